"""Create manifest entries for the files that a commit adds, both real and synthetic ones."""
