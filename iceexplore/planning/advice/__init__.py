"""Estimate which changes would let a filter skip more files."""
