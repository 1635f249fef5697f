"""Convert single values and arrays between Iceberg's encodings and Python or Arrow."""
