"""The timeline of snapshots and refs."""
