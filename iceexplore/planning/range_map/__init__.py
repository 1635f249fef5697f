"""Draw the range of a column in each file beside a filter's range."""
