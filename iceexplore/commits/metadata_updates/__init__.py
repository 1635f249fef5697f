"""Update the table metadata document: schemas, partition specs, sort orders, refs, snapshots, properties."""
