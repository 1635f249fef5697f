"""What `pyiceberg_differences` compares metadata tables with, and the report on it."""
