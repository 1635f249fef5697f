"""Decode manifests of every version and dialect."""
