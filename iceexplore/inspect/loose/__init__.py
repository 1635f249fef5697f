"""Files without their table: a manifest, a manifest list, a Puffin file, a footer."""
