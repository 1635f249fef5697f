"""Validate a commit against concurrent ones."""
