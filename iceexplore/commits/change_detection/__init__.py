"""Detect what changed between two roots."""
