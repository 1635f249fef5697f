"""Partition transforms, a class each: what they accept, their results, projections and texts."""
