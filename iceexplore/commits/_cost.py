"""The cost of commits: the files and requests of each commit, what planning reads, and what expiry frees."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._find import live_leaves
from iceexplore.commits.model._change import ADDED_COLUMN_FILES
from iceexplore.commits.saving._reachable import MetadataFile, files_of_leaves, reachable_files, tree_files
from iceexplore.commits.transaction._committer import CommitRecord
from iceexplore.errors import whole_number
from iceexplore.graph import TableState, human_bytes
from iceexplore.metadata import Snapshot, ancestry, in_order
from iceexplore.planning import make_filter, manifests_read
from iceexplore.render import shown_frame, whole_numbers
from iceexplore.storage import Read, Write

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.commits.transaction._committer import Committer

__all__ = ["Cost", "PlanCost", "Retained", "ancestors", "cost_of", "plan_cost", "plan_files", "retained"]

#: The kinds of metadata files, each with the prefix that its columns have in `Cost.commits`.
_KINDS = {"metadata": "json", "manifest-list": "root", "manifest": "manifest", "puffin": "dv"}
#: The kinds of reads that are not GET requests.
_NOT_GETS = ("stat", "list")


@dataclass(frozen=True)
class PlanCost:
    """The files that a planner reads to plan a scan of one snapshot without a filter.

    Attributes
    ----------
    cold
        Every file that a planner without a cache reads: the metadata file, the manifest list or root, and the manifests
        that `plan_scan` reads (it skips manifests without live entries, and delete manifests whose delete files cannot
        apply). If a manifest DV of one of these manifests is stored in a Puffin file, its blob counts as a file, too.
        The DVs and delete files that apply to data files are not included: they are read by the scan, not by the
        planner.
    warm
        The files of ``cold`` that a planner with a cache must still read. The cache has all files that the planner read
        to plan a scan of an earlier snapshot (see ``cached`` in `plan_cost`). The metadata file is always read again.
    """

    cold: tuple[MetadataFile, ...]
    warm: tuple[MetadataFile, ...]

    def to_pandas(self) -> pd.DataFrame:
        """Return the number and bytes of files in `cold` and `warm`, with a row per kind of file and a row "all"."""
        import pandas as pd

        kinds = dict.fromkeys(f.kind for f in self.cold)
        rows: list[dict[str, Any]] = []
        for kind in (*kinds, "all"):
            row: dict[str, Any] = {"kind": kind}
            for name, files in (("cold", self.cold), ("warm", self.warm)):
                mine = [f for f in files if kind in ("all", f.kind)]
                row[f"{name}_files"], row[f"{name}_bytes"] = len(mine), sum(f.size for f in mine)
            rows.append(row)
        return shown_frame(pd.DataFrame(rows))

    def __repr__(self) -> str:
        return "\n".join(
            f"{name}: {len(files):,} files, {human_bytes(sum(f.size for f in files))}"
            for name, files in (("plan cold", self.cold), ("plan warm", self.warm))
        )

    def _repr_html_(self) -> str:
        return _html(self.to_pandas())


def plan_cost(state: TableState, *, cached: TableState | None = None) -> PlanCost:
    """Return the files that a planner reads to plan a scan of the state's snapshot, without a cache and with one.

    The sizes of manifests are taken from the manifest list or root. To find the files, this function reads the root (or
    manifest list) of the snapshot in ``state`` and of that in ``cached``. A planner skips delete manifests that apply
    to no data file of the scan. If the roots do not show which ones these are, data manifests are read, too.

    Parameters
    ----------
    cached
        A state for which a planner has already planned a scan, so that the files it read for this are in its cache. By
        default, this is the state of the parent snapshot; if there is none in the table, the cache is empty.
    """
    before = cached if cached is not None else _parent(state)
    cold = plan_files(state)
    known = set() if before is None else {f.key for f in plan_files(before)}
    warm = tuple(f for f in cold if f.kind == "metadata" or f.key not in known)
    return PlanCost(cold, warm)


@dataclass(frozen=True)
class Retained:
    """The files that remain if some snapshots are kept, and the files that are freed if all other snapshots expire.

    Attributes
    ----------
    kept, expired
        Ids of snapshots, newest first.
    files
        Metadata files that the kept snapshots need: manifest lists or roots, manifests, manifest DVs in Puffin files.
    freed
        Metadata files that only expired snapshots need.
    freed_data_files, freed_data_bytes
        The number and the total bytes of the data and delete files that are live only in expired snapshots; None if
        they were not requested.
    """

    kept: tuple[int, ...]
    expired: tuple[int, ...]
    files: tuple[MetadataFile, ...]
    freed: tuple[MetadataFile, ...]
    freed_data_files: int | None = None
    freed_data_bytes: int | None = None

    @property
    def bytes(self) -> int:
        """The total size in bytes of the metadata files that the kept snapshots need (`files`)."""
        return sum(f.size for f in self.files)

    @property
    def freed_bytes(self) -> int:
        """The total size in bytes of the metadata files that only expired snapshots need (`freed`)."""
        return sum(f.size for f in self.freed)

    def __repr__(self) -> str:
        text = (
            f"{len(self.kept):,} {'snapshot keeps' if len(self.kept) == 1 else 'snapshots keep'} "
            f"{len(self.files):,} metadata file{'' if len(self.files) == 1 else 's'}, {human_bytes(self.bytes)}; "
            f"expiring {len(self.expired):,} snapshot{'' if len(self.expired) == 1 else 's'} frees "
            f"{len(self.freed):,} metadata file{'' if len(self.freed) == 1 else 's'}, {human_bytes(self.freed_bytes)}"
        )
        if self.freed_data_files is not None:
            text += f", and {self.freed_data_files:,} data and delete files, {human_bytes(self.freed_data_bytes or 0)}"
        return text

    def to_pandas(self) -> pd.DataFrame:
        """Return the number and bytes of kept and freed files, with a row per kind of metadata file and a row "all"."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for kind in (*dict.fromkeys(f.kind for f in (*self.files, *self.freed)), "all"):
            row: dict[str, Any] = {"kind": kind}
            for name, files in (("kept", self.files), ("freed", self.freed)):
                mine = [f for f in files if kind in ("all", f.kind)]
                row[f"{name}_files"], row[f"{name}_bytes"] = len(mine), sum(f.size for f in mine)
            rows.append(row)
        return shown_frame(pd.DataFrame(rows))

    def _repr_html_(self) -> str:
        from iceexplore.render import escape

        return f"<p>{escape.html(repr(self))}</p>{_html(self.to_pandas())}"


def retained(state: TableState, window: int, *, data: bool = False) -> Retained:
    """Return which files remain if only some snapshots are kept and all others expire.

    Two kinds of snapshots are kept: the newest ``window`` snapshots, which are the state's snapshot, its parent and so
    on, and all snapshots to which a branch or tag refers. Metadata files (JSON) are not included in the result;
    ``write.metadata.previous-versions-max`` limits how many of them are kept.

    Parameters
    ----------
    window
        The number of newest snapshots to keep, at least 1.
    data
        Also count the data and delete files that are freed; reads every manifest.

    Raises
    ------
    OptionError
        ``window`` is below 1.
    """
    window = min(whole_number("window", window, least=1), sys.maxsize)
    metadata = state.metadata
    stay = {s.snapshot_id for _, s in zip(range(window), ancestors(state), strict=False)}
    stay |= {r.snapshot_id for r in metadata.refs.values()}
    newest_first = in_order(metadata.snapshots, by_number=True)[::-1]
    keep = [s for s in newest_first if s.snapshot_id in stay]
    go = [s for s in newest_first if s.snapshot_id not in stay]
    kept, gone = _union(state, keep), _union(state, go)
    freed = tuple(f for key, f in gone.items() if key not in kept)
    files, size = _freed_data(state, keep, go) if data else (None, None)
    ids = [tuple(s.snapshot_id for s in side) for side in (keep, go)]
    return Retained(ids[0], ids[1], tuple(kept.values()), freed, files, size)


def _union(state: TableState, snapshots: Iterable[Snapshot]) -> dict[tuple[str, int], MetadataFile]:
    return {f.key: f for s in snapshots for f in tree_files(state, s)}


def _freed_data(state: TableState, keep: list[Snapshot], go: list[Snapshot]) -> tuple[int, int]:
    kept, gone = (files_of_leaves(state, side) for side in (keep, go))
    freed = gone.filter(pc.invert(pc.is_in(gone["location"], value_set=kept["location"])))
    by_file = freed.group_by("location", use_threads=False).aggregate([("file_size_in_bytes", "max")])
    return by_file.num_rows, int(pc.sum(by_file["file_size_in_bytes_max"]).as_py() or 0)


def plan_files(state: TableState) -> tuple[MetadataFile, ...]:
    """Return the files that are read to plan a scan of the state's snapshot without a cache; see `PlanCost`."""
    size = state.storage.stat(state.metadata_location).size or 0
    first = MetadataFile(state.metadata_location, "metadata", size)
    root = state.root()
    if root is None or state.snapshot is None:
        return (first,)
    read = manifests_read(state, make_filter(state.metadata, state.schema, None))
    return (first, *tree_files(state, state.snapshot, read=read))


def _parent(state: TableState) -> TableState | None:
    newest = [s for _, s in zip(range(2), ancestors(state), strict=False)]
    return state.showing(newest[1], state.schema, ref=None, travel=None) if len(newest) > 1 else None


def ancestors(state: TableState) -> Iterator[Snapshot]:
    """Yield the state's snapshot, its parent and so on, until a parent is no longer in the table."""
    return ancestry(state.metadata, state.snapshot)


# The cost of a sandbox's commits -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """The files that the commits of a simulation wrote and read, attempt by attempt.

    Attributes
    ----------
    writes
        The written files, including those that are no longer needed.
    records
        For each commit, including failed ones: its operation, its snapshot, its number of attempts, and the files that
        each attempt read.
    reachable
        Locations of the files that the newest state still needs. A written file that is not among them is an orphan.
    state
        The state after the last commit.
    """

    writes: tuple[Write, ...]
    records: tuple[CommitRecord, ...]
    reachable: frozenset[str]
    state: TableState = field(repr=False)

    @cached_property
    def commits(self) -> pd.DataFrame:
        """One row per attempt: snapshot, operation, whether the attempt was published, and what it wrote and read.

        These columns are about written files: ``files`` and ``bytes`` are the number and total size of all files that
        the attempt wrote. ``puts`` is the number of PUT requests, one per file. ``metadata_files`` and
        ``metadata_bytes`` count only metadata (JSON, manifest list or root, manifests, manifest DVs in Puffin files),
        ``data_files`` and ``data_bytes`` only data files, delete files and DVs. ``orphans`` is the number of written
        files that the newest state does not need.

        These columns are about reads: ``gets`` and ``get_bytes`` are the number and total size of the GET requests;
        reads that a cache served are not counted. ``metadata_gets`` and ``metadata_get_bytes`` count only metadata.
        Reads by Spark's workers are not included; they read data files, never metadata.

        For each kind of metadata file, there are two more columns, such as ``manifest_bytes`` (bytes written) and
        ``manifest_gets`` (number of reads). The prefix is ``json``, ``root`` (also for manifest lists), ``manifest`` or
        ``dv``. ``dv_bytes`` counts only manifest DVs, but ``dv_gets`` counts the reads of all Puffin files.
        """
        import pandas as pd

        rows = [self._attempt(record, attempt) for record in self.records for attempt in range(1, record.attempts + 1)]
        columns = list(self._attempt(CommitRecord(0, "", None, 0, None), 0))
        frame = pd.DataFrame(rows, columns=columns)
        frame["snapshot_id"] = whole_numbers(row["snapshot_id"] for row in rows)
        return shown_frame(frame)

    @cached_property
    def files(self) -> pd.DataFrame:
        """One row per written file: commit, attempt, kind, bytes, whether the newest state needs it, and locations.

        ``location`` is the file's location as the table spells it, and ``real`` is the path at which it really is.
        """
        import pandas as pd

        rows = [
            (w.commit, w.attempt, w.kind, self._is_data(w), w.length, w.location in self.reachable, w.location, w.real)
            for w in self.writes
        ]
        columns = ["commit", "attempt", "kind", "is_data", "bytes", "reachable", "location", "real"]
        return shown_frame(pd.DataFrame(rows, columns=columns).astype({"commit": "Int64", "attempt": "Int64"}))

    @cached_property
    def column_updates(self) -> pd.DataFrame:
        """One row per commit that added column files (V4 draft), with the bytes that a rewrite would have written.

        ``column_file_bytes`` is the total size of the commit's column files. ``data_file_bytes`` is the total size of
        their data files, which a rewrite would write again. ``share`` is ``column_file_bytes`` divided by
        ``data_file_bytes``. All sizes are taken from manifest entries, because synthetic files exist only there.
        """
        import pandas as pd

        rows = [row for record in self.records if (row := self._column_update(record)) is not None]
        columns = ["commit", "snapshot_id", "column_files", "column_file_bytes", "data_file_bytes", "share"]
        frame = pd.DataFrame(rows, columns=columns)
        frame["snapshot_id"] = whole_numbers(row["snapshot_id"] for row in rows)
        return shown_frame(frame)

    @cached_property
    def plan(self) -> PlanCost:
        """The files that a planner reads to plan a scan of the newest snapshot; see `plan_cost`.

        The planner's cache has the files that it read to plan a scan of the parent snapshot.
        """
        return plan_cost(self.state)

    def _column_update(self, record: CommitRecord) -> dict[str, Any] | None:
        wanted = None if record.snapshot_id is None else self.state.metadata.snapshot(record.snapshot_id)
        if wanted is None or ADDED_COLUMN_FILES not in (wanted.summary or {}):
            return None
        found = column_files_of(self.state, wanted)
        new, old = (int(pc.sum(found[name]).as_py() or 0) for name in ("column_file_bytes", "data_file_bytes"))
        return {
            "commit": record.number,
            "snapshot_id": wanted.snapshot_id,
            "column_files": found.num_rows,
            "column_file_bytes": new,
            "data_file_bytes": old,
            "share": round(new / old, 4) if old else None,
        }

    def _attempt(self, record: CommitRecord, attempt: int) -> dict[str, Any]:
        mine = self._by_attempt.get((record.number, attempt), [])
        data = [w for w in mine if self._is_data(w)]
        tree = [w for w in mine if not self._is_data(w)]
        reads: tuple[Read, ...] = record.reads[attempt - 1] if attempt and len(record.reads) >= attempt else ()
        gets = [r for r in reads if not r.cached and r.kind not in _NOT_GETS]
        metadata_reads = [r for r in gets if not self._is_data(r)]
        by_kind = Counter(r.kind for r in gets)
        row: dict[str, Any] = {
            "commit": record.number,
            "snapshot_id": record.snapshot_id,
            "operation": record.what,
            "attempt": attempt,
            "published": record.metadata_location is not None and attempt == record.attempts,
            "files": len(mine),
            "bytes": sum(w.length for w in mine),
            "metadata_files": len(tree),
            "metadata_bytes": sum(w.length for w in tree),
            "data_files": len(data),
            "data_bytes": sum(w.length for w in data),
            "orphans": sum(w.location not in self.reachable for w in mine),
            "puts": len(mine),
            "gets": len(gets),
            "get_bytes": sum(r.length for r in gets),
            "metadata_gets": len(metadata_reads),
            "metadata_get_bytes": sum(r.length for r in metadata_reads),
        }
        for kind, name in _KINDS.items():
            row[f"{name}_bytes"] = sum(w.length for w in tree if w.kind == kind)
            row[f"{name}_gets"] = by_kind[kind]
        return row

    @cached_property
    def _by_attempt(self) -> dict[tuple[int | None, int | None], list[Write]]:
        out: dict[tuple[int | None, int | None], list[Write]] = {}
        for write in self.writes:
            out.setdefault((write.commit, write.attempt), []).append(write)
        return out

    def _is_data(self, file: Write | Read) -> bool:
        prefix = self.state.metadata.location.rstrip("/") + "/data/"
        return file.kind not in _KINDS or (file.kind == "puffin" and file.location.startswith(prefix))

    def _shown(self) -> pd.DataFrame:
        names = ["commit", "operation", "attempt", "metadata_files", "metadata_bytes", "json_bytes", "root_bytes"]
        return self.commits[[*names, "manifest_bytes", "dv_bytes", "data_files", "gets", "orphans"]]

    def __repr__(self) -> str:
        if not self.records:
            return "nothing has been committed yet"
        updates = self.column_updates
        more = "" if updates.empty else f"\n{updates.to_string(index=False)}"
        return f"{self._shown().to_string(index=False)}{more}\n{self.plan!r}"

    def _repr_html_(self) -> str:
        if not self.records:
            return "<p>Nothing has been committed yet.</p>"
        updates = self.column_updates
        more = "" if updates.empty else _html(updates)
        return f"{_html(self._shown())}{more}{self.plan._repr_html_()}"


def column_files_of(state: TableState, snapshot: Snapshot) -> pa.Table:
    """Return a row for each column file that a snapshot added: the sizes of the column file and of its data file."""
    parts: list[pa.Table] = []
    shown = state.showing(snapshot, state.schema, ref=None, travel=None)
    for leaf, mask in live_leaves(shown):
        mine = pc.and_(mask, pc.equal(leaf.entries["column_files_snapshot_id"], snapshot.snapshot_id))
        entries = leaf.entries.filter(pc.fill_null(mine, False))
        # A snapshot adds at most one column file to a data file, always at the end of the entry's list of column files.
        sizes = [files[-1]["file_size_in_bytes"] for files in build.to_pylist(entries["column_files"])]
        old = entries["file_size_in_bytes"].combine_chunks()
        parts.append(pa.table({"column_file_bytes": pa.array(sizes, pa.int64()), "data_file_bytes": old}))
    none = build.schema([("column_file_bytes", pa.int64()), ("data_file_bytes", pa.int64())]).empty_table()
    return pa.concat_tables([none, *parts])


def cost_of(sandbox: Committer) -> Cost:
    """Return the cost of all commits so far, by the given sandbox and its forks."""
    state = sandbox.newest()
    writes = tuple(sandbox.storage.writes)
    own = {w.location for w in writes}
    return Cost(writes, sandbox.records, frozenset(reachable_files(state, own)), state)


def _html(frame: pd.DataFrame) -> str:
    from iceexplore.render import html_table

    rows = [tuple(v.item() if isinstance(v, np.generic) else v for v in row) for row in frame.itertuples(index=False)]
    return html_table(tuple(c.replace("_", " ") for c in frame.columns), rows)
