"""Commit a table's history again in another layout."""
