"""Checks of manifests against what they and their root state."""
