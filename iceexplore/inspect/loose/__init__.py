"""Loose files, which are opened without their table: a manifest, a manifest list, a Puffin file, a data file."""
