"""Detect what a snapshot changed, or what changed between two states of a table."""
