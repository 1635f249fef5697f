"""Find Java, and make the package importable on workers."""
