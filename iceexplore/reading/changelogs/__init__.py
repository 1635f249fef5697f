"""Compute which rows each snapshot inserted, updated and deleted."""
