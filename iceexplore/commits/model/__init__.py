"""What a commit changes, and where it writes."""
