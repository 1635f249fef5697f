"""Check what manifests say against what they hold."""
