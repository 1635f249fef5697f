"""What `generate` writes manifests with: schemas, columns of entries, and Avro blocks filled into a template."""
