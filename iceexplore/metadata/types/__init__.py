"""The types of a schema, and their Arrow types."""
