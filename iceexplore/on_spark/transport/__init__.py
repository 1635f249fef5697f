"""Carry state, rows and errors between driver and workers."""
