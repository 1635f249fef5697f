"""Draw a table as the V4 proposal draws it."""
