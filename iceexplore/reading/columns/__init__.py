"""Project a data file's columns onto a schema."""
