"""Lineage of views: the tables and columns that their queries read."""
