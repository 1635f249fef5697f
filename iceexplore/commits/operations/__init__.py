"""The operations on files and metadata."""
