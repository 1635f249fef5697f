"""Prune row groups by footers and Bloom filters."""
