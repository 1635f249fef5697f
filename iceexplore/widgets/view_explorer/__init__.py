"""The explorer of views."""
