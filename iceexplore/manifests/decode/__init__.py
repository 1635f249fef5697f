"""Decoding of manifests of every version and dialect."""
