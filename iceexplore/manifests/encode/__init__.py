"""Encoding of manifests, manifest lists and root manifests."""
