"""Decoding of column statistics and partition tuples."""
