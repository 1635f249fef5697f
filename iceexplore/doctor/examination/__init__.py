"""The parts of a table that the checks examine, and the collection of their results."""
