"""Evaluate filters against partitions, metrics and rows."""
