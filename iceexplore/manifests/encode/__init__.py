"""Encode manifests, manifest lists and root manifests."""
