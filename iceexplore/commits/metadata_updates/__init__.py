"""Change a table's metadata document (the parsed JSON): schemas, specs, sort orders, refs, snapshots, properties."""
