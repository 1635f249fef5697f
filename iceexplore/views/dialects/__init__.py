"""The dialects of one version, compared with each other."""
