"""Decode column statistics and partition tuples."""
