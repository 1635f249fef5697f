"""Find the live files that an operation affects."""
