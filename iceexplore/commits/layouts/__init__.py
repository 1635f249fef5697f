"""Arrange entries in manifest lists and root manifests."""
