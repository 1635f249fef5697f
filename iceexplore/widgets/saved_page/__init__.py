"""The explorer as one HTML page."""
