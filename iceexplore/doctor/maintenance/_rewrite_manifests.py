"""Plan ``rewrite_manifests``: the manifests that Spark's procedure would rewrite now, and the number of new ones.

Java: ``RewriteManifestsSparkAction`` (1.11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import Sandbox, rewrite_manifests
from iceexplore.doctor.maintenance._files import contradictions, strict
from iceexplore.doctor.maintenance._plan import MaintenanceCost, Plan, T, Wrap, spark_call, sql_text, threshold
from iceexplore.doctor.maintenance._size_based import Accuracy, Longs, Mask
from iceexplore.errors import OptionError, UnsupportedError, nearest
from iceexplore.graph import TableState, amount, human_bytes, to_frame
from iceexplore.manifests import ContentType, EntryBatch, Manifest, concat_batches, live, whole
from iceexplore.metadata import PartitionSpec
from iceexplore.planning import partition_codes
from iceexplore.render import CardTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RewriteManifestsPlan", "plan_rewrite_manifests"]

#: Java: ``TableProperties.MANIFEST_TARGET_SIZE_BYTES_DEFAULT``.
_TARGET = 8 * 1024 * 1024
#: The default of ``spark.sql.execution.rangeExchange.sampleSizePerPartition``. Spark sorts the entries into ranges, one
#: for each new manifest. It finds the limits of the ranges from a random sample of the entries, with this many entries
#: for each new manifest. If there are not more entries than the sample may have, the sample has all entries, and the
#: plan finds the same ranges.
_SAMPLED = 100
_KINDS = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RewriteManifestsPlan(Plan[T]):
    """The manifests that ``rewrite_manifests`` would rewrite now, and the number of new ones.

    Spark rewrites all data manifests of one partition spec, whatever their sizes, and all delete manifests of this
    spec. There is one exception: if the spec has only one data manifest, and it is not larger than the target size, the
    manifest is kept. The same holds for delete manifests. In the new manifests, entries are clustered by partition.

    In the simulated table, the entries keep their order. Where the plan has several new data manifests or several new
    delete manifests, the simulated table may have another number of them.

    Attributes
    ----------
    spec_id
        The partition spec whose manifests are rewritten.
    manifests
        A row per manifest that is rewritten. An Arrow table: ``manifest_path``, ``content`` (``data`` or ``deletes``),
        ``bytes``, ``live_files`` and ``deleted_files``.
    added_data_manifests, added_delete_manifests
        The numbers of new manifests.
    accuracy
        How accurate these two numbers are: ``exactly``, or ``at most`` if Spark may write fewer manifests. It does so
        if some of the planned manifests get no entries. This cannot be foreseen in two cases with several new
        manifests: the spec is unpartitioned, so that Spark distributes the entries at random; or there are more than
        100 live entries for each new manifest, so that Spark distributes them by a random sample.
    """

    procedure = "rewrite_manifests"
    title = "Rewrite manifests"

    spec_id: int = 0
    manifests: pa.Table = field(repr=False)
    added_data_manifests: int = 0
    added_delete_manifests: int = 0
    accuracy: Accuracy = "exactly"
    _live: tuple[int, int] = (0, 0)

    @property
    def nothing(self) -> bool:
        """True if no manifest is rewritten."""
        return not len(self.manifests)

    @property
    def rewritten_manifests(self) -> int:
        """The number of manifests that are rewritten (``rewritten_manifests_count``)."""
        return len(self.manifests)

    @property
    def added_manifests(self) -> int:
        """The number of new manifests (``added_manifests_count``)."""
        return self.added_data_manifests + self.added_delete_manifests

    @property
    def text(self) -> str:
        """A sentence about what the procedure would do."""
        if self.nothing:
            return f"no manifest of partition spec {self.spec_id} is rewritten"
        size = int(pc.sum(self.manifests["bytes"]).as_py() or 0)
        about = "" if self.accuracy == "exactly" else f"{self.accuracy} "
        return (
            f"{amount(self.rewritten_manifests, 'manifest')} of partition spec {self.spec_id} ({human_bytes(size)}) "
            f"become {about}{self.added_manifests:,}"
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per manifest that is rewritten: see `manifests`."""
        return to_frame(self.manifests)

    def _details(self) -> dict[str, Any]:
        return {
            "spec_id": self.spec_id,
            "rewritten_manifests": self.rewritten_manifests,
            "added_data_manifests": self.added_data_manifests,
            "added_delete_manifests": self.added_delete_manifests,
            "accuracy": self.accuracy,
            "manifests": build.to_pylist(self.manifests),
        }

    def _tables(self) -> tuple[CardTable, ...]:
        rows = []
        for kind, made in (("data", self.added_data_manifests), ("deletes", self.added_delete_manifests)):
            mine = self.manifests.filter(pc.equal(self.manifests["content"], kind))
            if len(mine):
                sums = [int(pc.sum(mine[name]).as_py() or 0) for name in ("bytes", "live_files", "deleted_files")]
                rows.append((kind, f"{len(mine):,}", human_bytes(sums[0]), *(f"{n:,}" for n in sums[1:]), f"{made:,}"))
        names = ("content", "manifests", "size", "live entries", "deleted entries", "new manifests")
        return (CardTable("Manifests", names, tuple(rows), right=frozenset({1, 2, 3, 4, 5})),)

    def _commit(self, sandbox: Sandbox) -> None:
        numbers = zip(self._live, (self.added_data_manifests, self.added_delete_manifests), strict=True)
        entries = max((-(-files // manifests) for files, manifests in numbers if manifests), default=1)
        before = sandbox.options
        sandbox.options = replace(before, leaf_entries=max(1, entries))
        try:
            paths = build.to_pylist(self.manifests["manifest_path"])
            sandbox.commit(lambda writer: rewrite_manifests(writer.base, writer, paths))
        finally:
            sandbox.options = before


def plan_rewrite_manifests(
    state: TableState, wrap: Wrap[T], *, spec_id: int | None = None, sort_by: Iterable[str] | None = None
) -> RewriteManifestsPlan[T]:
    """Plan ``rewrite_manifests``.

    Besides the manifest list, manifests are read only if a partitioned spec gets more than one new data manifest, or
    more than one new delete manifest.

    Parameters and errors are those of `Maintenance.rewrite_manifests`.
    """
    metadata, number = state.metadata, state.metadata.default_spec_id if spec_id is None else spec_id
    spec = metadata.spec(number)
    if spec is None:
        raise OptionError(f"spec_id={number!r}: the table has no such partition spec")
    by = None if sort_by is None else [sort_by] if isinstance(sort_by, str) else list(sort_by)
    fields = None if by is None else _fields(spec, by)
    limit = threshold(metadata.properties, "commit.manifest.target-size-bytes", _TARGET, show=human_bytes)
    target = int(limit.value) if limit.value.isascii() and limit.value.isdecimal() and len(limit.value) < 20 else 0
    if target < 1:
        raise OptionError(f"{limit.name}={limit.value!r:.60}: Spark's procedure needs a whole number above 0")
    reading = strict(state)
    root = reading.root()
    if root is not None and root.dialect.has_root_manifest:
        raise UnsupportedError("the table has a root manifest: no engine's procedure rewrites its manifests yet")
    chosen: list[Longs] = []
    counts, exact, files = [0, 0], [True, True], [0, 0]
    for at, kind in enumerate(_KINDS):
        rows = _of_spec(root, kind, number)
        entries = None if root is None else root.entries.take(build.array(rows))
        made = 0 if entries is None else -(-_total(entries) // target)
        if root is None or entries is None or not len(rows) or (made == 1 and len(rows) == 1):
            continue
        chosen.append(rows)
        files[at] = int(_live_files(entries).sum())
        counts[at], exact[at] = _written(reading, root, rows, spec, fields, files[at], made)
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *chosen])
    table = _table(root, rows)
    read = int(pc.sum(table["bytes"]).as_py() or 0)
    kept = int(pc.sum(table["live_files"]).as_py() or 0)
    total = kept + int(pc.sum(table["deleted_files"]).as_py() or 0)
    names = None if by is None else ", ".join(sql_text(name) for name in by)
    return RewriteManifestsPlan(
        state=state,
        wrap=wrap,
        reasons=(limit,),
        cost=MaintenanceCost(
            len(rows), read, sum(counts), read if not total else round(read * kept / total), len(rows), read
        ),
        calls=(
            spark_call(
                state,
                "rewrite_manifests",
                spec_id=None if spec_id is None else str(spec_id),
                sort_by=None if names is None else f"array({names})",
            ),
        ),
        spec_id=number,
        manifests=table,
        added_data_manifests=counts[0],
        added_delete_manifests=counts[1],
        accuracy="exactly" if all(exact) else "at most",
        notes=contradictions(reading),
        _live=(files[0], files[1]),
    )


def _fields(spec: PartitionSpec, names: list[str]) -> list[str]:
    """Return the field ids, as text, of the partition fields with these names.

    Raises
    ------
    OptionError
        There is no name, or the partition spec has no field with this name.
    """
    known = {each.name: str(each.field_id) for each in spec.fields}
    if not names:
        raise OptionError("sort_by=[]: give names of partition fields")
    for name in names:
        if name not in known:
            raise OptionError(
                f"sort_by: partition spec {spec.spec_id} has no field {name!r}; {nearest(name, [*known])}"
            )
    return [known[name] for name in names]


def _of_spec(root: Manifest | None, kind: ContentType, spec_id: int) -> Longs:
    """Return the row numbers, in the manifest list, of the manifests of one content type and partition spec."""
    if root is None:
        return np.zeros(0, dtype=np.int64)
    entries = root.entries
    mask = pc.and_(pc.equal(entries["content_type"], int(kind)), pc.equal(entries["partition_spec_id"], spec_id))
    return np.flatnonzero(np.asarray(pc.fill_null(whole(mask), False))).astype(np.int64)


def _total(entries: pa.Table) -> int:
    """Return the total bytes of some manifests.

    Parameters
    ----------
    entries
        The rows of a manifest list that describe these manifests.

    Raises
    ------
    OptionError
        The manifest list lacks a file count of one of these manifests, so that Spark's procedure fails.
    """
    stats = whole(entries["manifest_stats"])
    for name in ("added_files_count", "existing_files_count", "deleted_files_count"):
        lacking = pc.is_null(pc.struct_field(stats, name))
        if pc.any(lacking).as_py():
            where = whole(entries["location"]).filter(lacking)[0].as_py()
            raise OptionError(f"the manifest list lacks the {name} of {where}: Spark's procedure refuses such a table")
    return int(pc.sum(entries["file_size_in_bytes"], min_count=0).as_py())


def _live_files(entries: pa.Table) -> Longs:
    stats = whole(entries["manifest_stats"])
    added, existing = (
        np.asarray(pc.fill_null(pc.struct_field(stats, name), 0)).astype(np.int64)
        for name in ("added_files_count", "existing_files_count")
    )
    return added + existing


def _written(
    state: TableState,
    root: Manifest,
    rows: Longs,
    spec: PartitionSpec,
    fields: list[str] | None,
    files: int,
    manifests: int,
) -> tuple[int, bool]:
    """Return the number of manifests that Spark writes in place of old ones, and whether this number is certain.

    The old manifests are either all data manifests or all delete manifests.

    Parameters
    ----------
    root
        The manifest list.
    rows
        The row numbers, in the manifest list, of the old manifests.
    fields
        The field ids of the partition fields to cluster by, as text; None for all fields.
    files
        The number of live entries of the old manifests.
    manifests
        The number of new manifests that Spark's procedure requests. Spark may write fewer.
    """
    if not files:
        return 0, True
    if manifests == 1:
        return 1, True
    if spec.is_unpartitioned:
        return min(manifests, files), False
    leaves = state.reader.leaves(root, rows.tolist(), parts=frozenset({"entries", "partition"}))
    batch = concat_batches(_live_entries(leaf) for leaf in leaves)
    if fields is not None and batch.partition is not None:
        picked = [pc.struct_field(batch.partition, [batch.partition.type.get_field_index(key)]) for key in fields]
        batch = EntryBatch(batch.entries, {}, pa.StructArray.from_arrays(picked, names=fields))
    return _ranges(np.bincount(partition_codes(batch)), manifests), files <= _SAMPLED * manifests


def _live_entries(leaf: Manifest) -> EntryBatch:
    return EntryBatch.of(leaf, ()).filter(live(leaf.entries))


def _ranges(counts: Longs, parts: int) -> int:
    """Return the number of ranges that get entries if Spark distributes entries to ranges (``RangePartitioner``).

    A range consists of whole partitions, so there can be fewer ranges than requested.

    Parameters
    ----------
    counts
        The number of entries of each table partition, sorted by the partition tuples.
    parts
        The number of requested ranges.
    """
    total = int(counts.sum())
    parts = min(parts, total)
    step = total / max(1, parts)
    reached, target, bounds, last = 0.0, step, 0, -1
    for key, count in enumerate(counts.tolist()):
        reached += count
        if bounds < parts - 1 and reached >= target:
            bounds, last, target = bounds + 1, key, target + step
    return bounds + (last < len(counts) - 1)


def _table(root: Manifest | None, rows: Longs) -> pa.Table:
    if root is None or not len(rows):
        names = ("manifest_path", "content", "bytes", "live_files", "deleted_files")
        kinds = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64())
        return build.schema(list(zip(names, kinds, strict=True))).empty_table()
    entries = root.entries.take(build.array(rows))
    is_data: Mask = np.asarray(pc.equal(entries["content_type"], int(ContentType.DATA_MANIFEST)))
    gone = pc.struct_field(whole(entries["manifest_stats"]), "deleted_files_count")
    return build.table(
        {
            "manifest_path": entries["location"],
            "content": pa.array(np.where(is_data, "data", "deletes"), pa.string()),
            "bytes": entries["file_size_in_bytes"],
            "live_files": _live_files(entries),
            "deleted_files": pc.fill_null(gone, 0),
        }
    )
