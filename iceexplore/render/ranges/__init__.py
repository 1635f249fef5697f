"""Draw ranges of values: a line per item, or a density."""
