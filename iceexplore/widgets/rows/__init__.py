"""Find rows, and show what happened to them."""
