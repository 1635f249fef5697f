"""Places that iceexplore writes to: overlays, folders and whole files."""
