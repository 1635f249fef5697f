"""Plan a scan: manifests, files, deletes and splits."""
