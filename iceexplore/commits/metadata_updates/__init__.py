"""Update the metadata document: schemas, specs, refs, snapshots."""
