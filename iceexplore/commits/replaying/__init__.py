"""Replay a table's history: commit it again in another layout."""
