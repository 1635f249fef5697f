"""Follow rows across snapshots."""
