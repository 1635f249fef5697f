"""Partition transforms, one class each: accepted types, results, projections and texts."""
