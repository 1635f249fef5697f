"""Findings of the doctor, as data."""
