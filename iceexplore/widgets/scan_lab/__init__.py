"""The scan lab."""
