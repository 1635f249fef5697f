"""Prune row groups of Parquet files by the bounds and null counts in the footers, and by Bloom filters."""
