"""Group data files by partition, size, age, snapshot or spec; measure how many have overlapping bounds of a column."""
