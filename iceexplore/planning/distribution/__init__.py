"""Group data files by partition, size, age, snapshot or spec, and measure how well they are clustered by a column.

Files are well clustered by a column if few of them have overlapping ranges of its values.
"""
