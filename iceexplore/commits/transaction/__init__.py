"""Run a commit: attempts, retries, and the pointer to the table's current metadata file."""
