"""Apply the file changes of a commit: write manifests, and the manifest list or root manifest that lists them."""
