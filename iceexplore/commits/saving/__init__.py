"""Save a table or simulation with all its files, and find the files that a table references."""
