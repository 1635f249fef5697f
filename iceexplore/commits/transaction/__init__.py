"""Commit: attempts, retries and the table's pointer."""
