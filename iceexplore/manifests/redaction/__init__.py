"""Redaction of manifests."""
