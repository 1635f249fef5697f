"""Commit operations on data files, rows and metadata."""
