"""Describe the files that a commit adds, real and synthetic."""
