"""Redact a table's documents."""
