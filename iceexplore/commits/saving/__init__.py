"""Save a simulated table with all its files."""
