"""Arrange manifest entries in manifest lists and root manifests."""
