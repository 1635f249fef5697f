"""Draw ranges of values: each item as a line, or many items as shades."""
