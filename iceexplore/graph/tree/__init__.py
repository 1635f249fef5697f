"""The tree of a table: its nodes and their labels."""
