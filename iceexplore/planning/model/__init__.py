"""The data that a plan consists of."""
