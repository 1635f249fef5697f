"""Partition transforms: names, values, arrays and the sources they accept."""
