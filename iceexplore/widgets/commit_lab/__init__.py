"""The commit lab."""
