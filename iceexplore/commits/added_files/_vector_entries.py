"""Create the entries for deletion vectors that are written as blobs in a Puffin file."""

from __future__ import annotations

from collections.abc import Sequence

from iceexplore.manifests import ContentType, EntryBatch

__all__ = ["entries_of_vectors"]


def entries_of_vectors(
    targets: EntryBatch, location: str, length: int, places: Sequence[tuple[int, int]], counts: Sequence[int]
) -> EntryBatch:
    """Return entries for the deletion vectors in one Puffin file, with the specs and partitions of their data files.

    Parameters
    ----------
    targets
        The entries of the data files, one per deletion vector.
    location, length
        The Puffin file's location, and its size in bytes.
    places
        For each deletion vector, the offset and size of its blob in bytes.
    counts
        For each deletion vector, the number of positions that it deletes.
    """
    names, specs = (targets.entries[column].to_pylist() for column in ("location", "partition_spec_id"))
    entries = [
        {
            "content_type": int(ContentType.POSITION_DELETE),
            "location": location,
            "file_format": "puffin",
            "partition_spec_id": spec_id,
            "record_count": count,
            "file_size_in_bytes": length,
            "referenced_file": name,
            "deletion_vector": {"offset": offset, "size_in_bytes": size, "inline_content": None},
        }
        for name, spec_id, (offset, size), count in zip(names, specs, places, counts, strict=True)
    ]
    return EntryBatch.of_rows(entries, partition=targets.partition)
