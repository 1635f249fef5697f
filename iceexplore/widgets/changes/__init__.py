"""Count what snapshots changed, for the tab Changes of the explorer."""
