"""Evaluate filters on partition values and column metrics, to prune files and manifests, and on rows."""
