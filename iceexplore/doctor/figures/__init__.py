"""Figures (charts with a verdict) of a table's health, and the gains of rewrites."""
