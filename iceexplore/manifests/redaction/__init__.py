"""Redact manifests."""
