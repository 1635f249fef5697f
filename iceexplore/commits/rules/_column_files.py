"""Rules on the column files of entries of the V4 draft, checked without opening the files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.rules._entries import RuleBreak, flagged
from iceexplore.manifests import ContentType, Manifest, bool_array, column_file_rows, live, whole
from iceexplore.manifests.rules import Mask, Rows
from iceexplore.metadata import LINEAGE_FIELDS, TableMetadata

__all__ = ["column_file_breaks"]


def column_file_breaks(manifest: Manifest, metadata: TableMetadata) -> list[RuleBreak]:
    """Return violations of ``column-file-columns`` and ``column-files-of-data`` by the live entries of a manifest.

    The first rule: a column file has at least one column, only columns of the table's schemas (or of row lineage), and
    no column that another column file of the same data file has. The second rule: only entries of data files have
    column files, and an entry has a ``latest_column_file_snapshot_id`` if and only if it has column files.

    For a manifest that is not of the V4 draft, the result is empty.
    """
    if not manifest.dialect.deletion_vectors_on_entries:
        return []
    entries = manifest.entries
    r, alive = Rows(entries, manifest.dialect), bool_array(live(entries))
    held = bool_array(pc.greater(pc.fill_null(pc.list_value_length(entries["column_files"]), 0), 0))
    since = ~r.null("column_files_snapshot_id")
    data = r.is_kind(ContentType.DATA)
    out = [
        ("column-files-of-data", held & ~data, "it has column files, but is not a data file"),
        ("column-files-of-data", held & ~since, "it has column files, but no latest_column_file_snapshot_id"),
        ("column-files-of-data", since & ~held, "it has a latest_column_file_snapshot_id, but no column files"),
    ]
    if held.any():
        unknown, twice, empty = _columns(entries, metadata)
        out += [
            ("column-file-columns", unknown, "a column file has columns that no schema of the table has"),
            (
                "column-file-columns",
                twice,
                "its column files have a column twice, so the column's values are ambiguous",
            ),
            ("column-file-columns", empty, "a column file has no columns"),
        ]
    return [b for rule, mask, text in out for b in flagged(rule, manifest.location, mask & alive, text, entries)]


def _columns(entries: pa.Table, metadata: TableMetadata) -> tuple[Mask, Mask, Mask]:
    """Return three masks of ``entries``, one for each fault that an entry's column files can have.

    - The first mask is true if a column file of the entry has a column that is in no schema of the table. (Columns of
      row lineage are allowed.)
    - The second mask is true if the entry's column files have the same column twice.
    - The third mask is true if a column file of the entry has no columns.
    """
    files = column_file_rows(entries)
    lists = _lists(files)
    entry = np.asarray(files["entry"], np.int64)
    unknown, twice, empty = (np.zeros(len(entries), np.bool_) for _ in range(3))
    empty[entry[bool_array(pc.equal(pc.fill_null(pc.list_value_length(lists), 0), 0))]] = True
    at = np.asarray(pc.list_parent_indices(lists), np.int64)
    ids = pc.list_flatten(lists)
    known = build.array([*metadata.all_fields(), *LINEAGE_FIELDS], pa.int32())
    unknown[entry[at[~bool_array(pc.is_in(ids, value_set=known))]]] = True
    pairs = np.stack([entry[at], np.asarray(pc.fill_null(ids, -1), np.int64)], axis=1)
    if len(pairs):
        found, counts = np.unique(pairs, axis=0, return_counts=True)
        twice[found[counts > 1, 0]] = True
    return unknown, twice, empty


def _lists(files: pa.Table) -> AnyListArray:
    return whole(files["field_ids"])  # type: ignore[return-value]
