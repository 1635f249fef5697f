"""The details of a node."""
