"""Commits that break rules on purpose, and change-detection scenarios."""
