"""Where iceexplore writes: overlays, folders and single files."""
