"""Draw many small things, such as the files of a table, as cells in rows."""
