"""Create the entries of files that a commit adds, real and synthetic."""
