"""Redaction of a table's documents."""
