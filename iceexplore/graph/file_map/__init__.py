"""The files of a snapshot as cells: columns of live, added and removed files, and their picture by partition."""
