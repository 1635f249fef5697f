"""SQL user-defined functions: their metadata, as the UDF spec of 2026 defines it."""
