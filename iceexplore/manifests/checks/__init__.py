"""Check manifests against the statements in their own header and in their root."""
