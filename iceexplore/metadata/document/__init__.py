"""Read table metadata from its JSON document."""
