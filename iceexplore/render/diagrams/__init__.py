"""Draw manifests as tables with a row per entry, as the V4 proposal does."""
