"""Scan a table on Spark's own readers."""
