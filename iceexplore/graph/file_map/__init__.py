"""File maps: pictures of a snapshot's live, added and removed files, as cells in a row per partition."""
