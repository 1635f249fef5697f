"""The metadata tables of views."""
