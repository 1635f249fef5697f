"""Group data files by partition, size, age, snapshot or spec; measure how many overlap in their ranges of a column."""
