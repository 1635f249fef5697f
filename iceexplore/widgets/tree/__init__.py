"""The explorer's tree."""
