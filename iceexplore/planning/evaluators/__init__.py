"""Evaluate filters: on rows of data, and on partition values and column metrics to prune files and manifests."""
