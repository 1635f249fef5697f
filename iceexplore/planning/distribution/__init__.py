"""Group the files of a table by partition, size and age."""
