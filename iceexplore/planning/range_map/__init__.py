"""Draw the range of a column's values in each live data file, together with the range that a filter selects."""
