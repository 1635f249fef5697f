"""Commit roots that break rules on purpose, to try approaches that the V4 proposal discarded.

The root's rows and the leaves are written exactly as the caller gives them, with the code that writes all manifests,
and can be read like any others. The caller must list every rule that the commit breaks; the snapshot's summary records
these rules (``violated-rules``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._root_builder import numbers
from iceexplore.commits.live_files._locate import readable
from iceexplore.commits.model._change import Applied, Change, Operation
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.rules._check import check_rules
from iceexplore.commits.transaction._sandbox import Sandbox
from iceexplore.errors import CommitConflictError, OptionError, RuleError, rule
from iceexplore.graph import TableState
from iceexplore.manifests import (
    ContentType,
    EntryBatch,
    Status,
    concat_batches,
    encode_manifest_dv,
    manifest_entry,
    root_batch,
    whole,
    write_manifest,
)
from iceexplore.metadata import Dialect, Snapshot

__all__ = [
    "VIOLATED_RULES",
    "ViolatingLeaf",
    "commit_violating_rules",
    "manifest_dv_entry",
    "root_rows",
]

#: The key in a snapshot's summary under which the rules that the snapshot breaks are listed.
VIOLATED_RULES = "violated-rules"


@dataclass(frozen=True)
class ViolatingLeaf:
    """A leaf manifest for `commit_violating_rules` to write.

    It can be an item of that function's ``rows``: the root then gets a row that lists this manifest.

    Attributes
    ----------
    location
        Location at which to write the manifest.
    rows
        The entries with their statuses, which are written unchanged; all must have the same partition spec. Where an
        entry's snapshot id or sequence number is null, readers use the one in the manifest's row of the root.
    content
        Whether to write a data manifest or a delete manifest.
    status
        Status of the manifest's row in the root.
    referenced_file
        For a delete manifest: location of the data manifest with which it is affiliated.
    """

    location: str
    rows: EntryBatch
    content: Literal["data", "delete"] = "data"
    status: Status = Status.ADDED
    referenced_file: str | None = None


@dataclass
class _GivenRows:
    """A layout that writes a root with exactly the given rows, instead of computing them from the commit's `Change`.

    A commit calls it with the change, of which only the summary is used, and the writer. If the commit has to be
    retried, because another one was published first, the second call raises `CommitConflictError`.

    Attributes
    ----------
    items
        The root's rows in order. For a `ViolatingLeaf`, the leaf is also written, and the root gets a row for it.
    files
        Contents of Puffin files to write, by location.
    summary
        Further entries for the snapshot's summary.
    """

    items: Sequence[EntryBatch | ViolatingLeaf]
    files: Mapping[str, bytes]
    summary: dict[str, str] = field(default_factory=dict)

    def __call__(self, change: Change, writer: CommitWriter) -> Applied:
        if writer.attempt > 1:
            raise CommitConflictError(
                "table-unchanged",
                "another commit was published first, and the given rows may not fit its root: refresh the table",
            )
        first = writer.first_row_id or 0
        parts = []
        for location, data in self.files.items():
            writer.write(location, data, kind="puffin")
        for item in self.items:
            part = self.written(item, writer) if isinstance(item, ViolatingLeaf) else item
            rows = item.rows if isinstance(item, ViolatingLeaf) and item.content == "data" else part
            taken = _numberless(rows)
            if isinstance(item, ViolatingLeaf):
                part = part.with_columns(first_row_id=first if item.content == "data" else None)
            else:
                ids = pa.array(first + np.cumsum(taken) - taken, mask=taken == 0)
                part = part.with_columns(first_row_id=pc.coalesce(part.entries["first_row_id"], ids))
            first += int(taken.sum())
            parts.append(part)
        location = writer.new_location("root", f".{writer.options.manifest_format}")
        metadata = writer.base.metadata
        data = self.manifest(concat_batches(parts), "root", writer, metadata.default_spec_id)
        writer.write(location, data, kind="manifest-list")
        return Applied(location, dict(change.summary) | self.summary, first - (writer.first_row_id or 0))

    def written(self, leaf: ViolatingLeaf, writer: CommitWriter) -> EntryBatch:
        """Write a leaf manifest, and return the root's row for it."""
        batch = leaf.rows.with_columns(ordinal=pa.array(np.arange(len(leaf.rows))), manifest_dv=None)
        spec_id = int(batch.entries["partition_spec_id"][0].as_py())
        data = self.manifest(batch, leaf.content, writer, spec_id)
        writer.write(leaf.location, data, kind="manifest")
        return manifest_entry(
            batch,
            location=leaf.location,
            length=len(data),
            content=leaf.content,
            metadata=writer.base.metadata,
            spec_id=spec_id,
            dialect=writer.options.dialect,
            status=int(leaf.status),
            snapshot_id=writer.snapshot_id,
            sequence_number=writer.sequence_number,
            referenced_file=leaf.referenced_file,
        )

    def manifest(
        self, batch: EntryBatch, content: Literal["data", "delete", "root"], writer: CommitWriter, spec_id: int
    ) -> bytes:
        o = writer.options
        return write_manifest(
            batch,
            content=content,
            metadata=writer.base.metadata,
            spec_id=spec_id,
            dialect=o.dialect,
            manifest_format=o.manifest_format,
            partition_storage=o.partition_storage,
            snapshot_id=writer.snapshot_id,
        )


def commit_violating_rules(
    sandbox: Sandbox,
    rows: Iterable[EntryBatch | ViolatingLeaf],
    *,
    relaxed: Collection[str],
    operation: Operation = "overwrite",
    files: Mapping[str, bytes] | None = None,
    summary: Mapping[str, str] | None = None,
    ref: str = "main",
) -> Snapshot:
    """Commit a root with exactly these rows, even if it breaks rules that are listed as ``relaxed``.

    The root is first written and checked (`check_rules`) in a separate sandbox. If it breaks a rule that is not in
    ``relaxed``, the commit is refused, and neither the table nor ``sandbox`` changes.

    Parameters
    ----------
    sandbox
        A sandbox of the dialect ``v4-proposal``.
    rows
        The root's rows in order: entries (`root_rows` returns the existing ones, `manifest_dv_entry` creates one for a
        manifest DV) or leaves to write. Null snapshot ids and sequence numbers are inherited; data files and leaves
        without row ids get new ones.
    relaxed
        Names of the rules that may be broken.
    operation
        The snapshot's operation, such as ``overwrite``.
    files
        Contents of Puffin files that should also be written, by location.
    summary
        Entries for the snapshot's summary. Unlike in other commits, no counts and totals are added to them.
    ref
        The branch to commit to.

    Raises
    ------
    RuleError
        The root breaks a rule that is not in ``relaxed``.
    CommitConflictError
        A different commit was published first; a commit with given rows is not retried.
    OptionError
        A rule is unknown, a leaf has no rows, or the sandbox's dialect is not ``v4-proposal``.
    """
    items = list(rows)
    for name in relaxed:
        rule(name)
    if sandbox.options.dialect != Dialect.V4_PROPOSAL:
        raise OptionError(f"dialect={sandbox.options.dialect!r}: only roots of 'v4-proposal' can be given row by row")
    for item in items:
        if isinstance(item, ViolatingLeaf) and not len(item.rows):
            raise OptionError(f"{item.location}: a root cannot list a manifest without entries")
    change = Change(operation, summary=dict(summary or {}))
    layout = _GivenRows(items, dict(files or {}))
    broken = _broken(sandbox, change, layout, ref, frozenset(relaxed))
    layout.summary = {VIOLATED_RULES: ",".join(broken)} if broken else {}
    made = sandbox.commit(lambda writer: change, ref=ref, layout=layout)
    assert made is not None
    return made


def _broken(sandbox: Sandbox, change: Change, layout: _GivenRows, ref: str, relaxed: frozenset[str]) -> list[str]:
    """Return the names of the rules that a commit would break; all of them must be in ``relaxed``.

    To find these rules, the change is committed in a separate sandbox, which is then discarded.

    Parameters
    ----------
    layout
        What writes the commit's root.
    ref
        The branch to commit to.
    relaxed
        The names of the rules that the commit may break.

    Raises
    ------
    RuleError
        The commit would break a rule that is not in ``relaxed``.
    """
    aside = Sandbox(sandbox.state, sandbox.options, seed=0)
    try:
        snapshot = aside.commit(lambda writer: change, ref=ref, layout=layout)
        found = check_rules(aside.state, snapshot)
    finally:
        aside.close()
    for item in found:
        if item.rule not in relaxed:
            raise RuleError(item.rule, f"{item.where}: {item.text}; list the rule in relaxed= to break it on purpose")
    return sorted({item.rule for item in found})


def root_rows(state: TableState) -> EntryBatch:
    """Return the rows of a state's V4 root, with the partition tuples of files; without a snapshot, return no rows.

    Raises
    ------
    FormatError
        The root is missing or damaged.
    """
    root = state.root()
    if root is None:
        return EntryBatch.empty()
    return root_batch(readable(root))


def manifest_dv_entry(
    leaf: str, positions: Iterable[int], status: Status = Status.ADDED, *, spec_id: int = 0
) -> EntryBatch:
    """Return a root's row for an inline manifest DV that removes some positions from the leaf at this location."""
    from pyroaring import BitMap

    bitmap = BitMap(positions)
    row = {
        "content_type": int(ContentType.MANIFEST_DV),
        "location": leaf,
        "file_format": "puffin",
        "status": int(status),
        "partition_spec_id": spec_id,
        "record_count": len(bitmap),
        "referenced_file": leaf,
        "deletion_vector": {"inline_content": encode_manifest_dv(bitmap)},
    }
    return EntryBatch.of_rows([row])


def _numberless(rows: EntryBatch) -> np.ndarray:
    """Return how many row ids each entry needs, as int64.

    A data file needs as many as it has rows, or 0 if it already has row ids or is DELETED. Other entries need 0.
    """
    entries = rows.entries
    wanted = np.asarray(whole(entries["first_row_id"]).is_null())
    wanted &= numbers(entries["content_type"]) == ContentType.DATA
    wanted &= numbers(entries["status"]) != Status.DELETED
    return np.where(wanted, numbers(entries["record_count"]), 0)
