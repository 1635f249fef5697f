"""Replay a table's history: commit the same changes again in a different layout."""
