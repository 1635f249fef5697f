"""Draw the range of a column's values in each live data file, beside the range that a filter selects."""
