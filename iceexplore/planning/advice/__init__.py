"""Estimate what would help a filter skip more."""
