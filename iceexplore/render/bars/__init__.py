"""Draw bar charts and bars in tables."""
