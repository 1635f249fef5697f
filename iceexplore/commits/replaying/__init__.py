"""Replay a table's history: repeat its commits in a new table with another format version or other layout options."""
