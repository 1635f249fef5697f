"""Compare schemas, specs and properties."""
