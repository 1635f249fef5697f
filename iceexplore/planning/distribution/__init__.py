"""Group the files of a table by partition, size, age, snapshot or spec; measure how far ranges of columns overlap."""
