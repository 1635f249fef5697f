"""Make commits that violate rules on purpose, and try out how changes are detected in the proposal's scenarios."""
