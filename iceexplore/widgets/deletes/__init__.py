"""The deleted positions of a file."""
