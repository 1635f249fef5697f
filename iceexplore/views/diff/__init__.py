"""Differences between versions of a view."""
