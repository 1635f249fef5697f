"""The scan lab: which files a filter reads and skips, and why."""
