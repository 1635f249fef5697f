"""Find and open a table's current metadata file."""
