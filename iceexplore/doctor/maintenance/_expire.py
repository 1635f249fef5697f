"""Plan ``expire_snapshots``: which snapshots expire, what keeps the others, and which files are freed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.commits import (
    REFERENCED_SCHEMA,
    Expired,
    Sandbox,
    duration,
    expire_snapshots,
    path_keys,
    referenced_files,
    remove_schemas_and_specs,
    statistics_files,
)
from iceexplore.doctor.maintenance._files import (
    bytes_of,
    contradictions,
    files_by_kind,
    files_frame,
    kind_table,
    strict,
)
from iceexplore.doctor.maintenance._plan import (
    ARGUMENT,
    EngineCall,
    MaintenanceCost,
    Plan,
    T,
    Threshold,
    Wrap,
    spark_call,
    threshold,
)
from iceexplore.doctor.maintenance._times import before_ms, spark_timestamp
from iceexplore.doctor.maintenance._unused import unused_schemas_and_specs
from iceexplore.errors import whole_number_of
from iceexplore.graph import TableState, amount, human_bytes, to_frame
from iceexplore.metadata import Snapshot, TableMetadata, format_ms
from iceexplore.render import CardTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ExpirePlan", "plan_expire_snapshots"]

_SHOWN = 20
#: The columns of the result of Spark's procedure, each with the kind of deleted files that it counts.
_SPARK_COUNTS = {
    "deleted_data_files_count": "data file",
    "deleted_position_delete_files_count": "position delete file",
    "deleted_equality_delete_files_count": "equality delete file",
    "deleted_manifest_files_count": "manifest",
    "deleted_manifest_lists_count": "manifest list",
    "deleted_statistics_files_count": "statistics file",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExpirePlan(Plan[T]):
    """The snapshots that ``expire_snapshots`` would remove now, why the others stay, and the files it would delete.

    Attributes
    ----------
    snapshots
        The ids of the snapshots that expire; ``.kept`` has the others with the reasons, ``.refs`` the branches and tags
        that expire because of ``max-ref-age-ms``.
    files
        The files that are freed, as Iceberg's action finds them: those that expiring snapshots need, but no kept
        snapshot needs. An Arrow table: ``location``, ``kind``, ``bytes``.
    now_ms
        The time from which ages were computed, in milliseconds since the epoch.
    older_than_ms, retain_last
        The arguments of the procedure, the first as a time in milliseconds since the epoch; None if not given.
    schemas, specs
        With ``clean_expired_metadata``: the ids of schemas and partition specs that no kept snapshot uses.
    """

    procedure = "expire_snapshots"
    title = "Expire snapshots"

    snapshots: Expired
    files: pa.Table = field(repr=False)
    now_ms: int
    older_than_ms: int | None = None
    retain_last: int | None = None
    schemas: tuple[int, ...] = ()
    specs: tuple[int, ...] = ()

    @property
    def nothing(self) -> bool:
        """True if no snapshot, ref, schema or spec would be removed."""
        return not (self.snapshots or self.snapshots.refs or self.schemas or self.specs)

    @property
    def text(self) -> str:
        """A sentence about what would be removed."""
        kept = len(self.snapshots.kept)
        if self.nothing:
            return "there are no snapshots" if not kept else f"no snapshot expires, {kept:,} are kept"
        refs = f", {amount(len(self.snapshots.refs), 'ref')} too old" if self.snapshots.refs else ""
        if self.schemas or self.specs:
            refs += f", {amount(len(self.schemas), 'schema')} and {amount(len(self.specs), 'partition spec')} removed"
        freed = f"{amount(self.cost.files_freed or 0, 'file')} ({human_bytes(self.cost.bytes_freed or 0)}) freed"
        return f"{amount(len(self.snapshots), 'snapshot')} of {len(self.snapshots) + kept:,} expire{refs}; {freed}"

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of deleted files, in the columns that Spark's procedure returns.

        Spark has no column for manifest deletion vectors of V4 tables; `files` has a row for each.
        """
        found = files_by_kind(self.files)
        return {column: found.get(kind, (0, 0))[0] for column, kind in _SPARK_COUNTS.items()}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per snapshot, oldest first: id, time, operation, refs, whether it expires, what keeps it."""
        metadata = self.state.metadata
        reasons = {k.snapshot_id: k.reason for k in self.snapshots.kept}
        gone = set(self.snapshots)
        rows = sorted({s.snapshot_id: s for s in metadata.snapshots}.values(), key=lambda s: s.timestamp_ms)
        refs = _refs_by_snapshot(metadata)
        frame = pa.table(
            {
                "snapshot_id": pa.array([s.snapshot_id for s in rows], pa.int64()),
                "committed_at": pa.array([s.timestamp_ms for s in rows], pa.timestamp("ms", "UTC")),
                "operation": pa.array([s.operation for s in rows], pa.string()),
                "refs": pa.array([", ".join(refs.get(s.snapshot_id, ())) for s in rows], pa.string()),
                "expires": pa.array([s.snapshot_id in gone for s in rows], pa.bool_()),
                "kept_by": pa.array([reasons.get(s.snapshot_id) for s in rows], pa.string()),
            }
        )
        return to_frame(frame)

    def files_to_pandas(self) -> pd.DataFrame:
        """Return a row per freed file: ``location``, ``kind``, ``bytes``."""
        return files_frame(self.files)

    def _commit(self, sandbox: Sandbox) -> None:
        def change(document: Mapping[str, Any], _: int) -> Mapping[str, Any]:
            document, _expired = expire_snapshots(
                document, older_than_ms=self.older_than_ms, retain_last=self.retain_last, now_ms=self.now_ms
            )
            return remove_schemas_and_specs(document, schemas=self.schemas, specs=self.specs)

        sandbox.commit(document_change=change, what=self.procedure)

    def _details(self) -> dict[str, Any]:
        return {
            "now_ms": self.now_ms,
            "expired": list(self.snapshots),
            "kept": [{"snapshot_id": k.snapshot_id, "reason": k.reason} for k in self.snapshots.kept],
            "refs": list(self.snapshots.refs),
            "schemas": list(self.schemas),
            "specs": list(self.specs),
            "freed": {k: {"files": n, "bytes": size} for k, (n, size) in files_by_kind(self.files).items()},
        }

    def _tables(self) -> tuple[CardTable, ...]:
        by_id = {s.snapshot_id: s for s in self.state.metadata.snapshots}
        kept = CardTable(
            "Kept",
            ("snapshot", "committed", "because"),
            tuple(
                (str(k.snapshot_id), _when(by_id.get(k.snapshot_id)), k.reason) for k in self.snapshots.kept[:_SHOWN]
            ),
            note=_more(len(self.snapshots.kept)),
            code=frozenset({0}),
        )
        gone = CardTable(
            "Expired",
            ("snapshot", "committed", "operation"),
            tuple(
                (str(i), _when(by_id.get(i)), (s.operation or "") if (s := by_id.get(i)) else "")
                for i in self.snapshots[:_SHOWN]
            ),
            note=_more(len(self.snapshots)),
            code=frozenset({0}),
        )
        refs = CardTable("Branches and tags removed", ("name",), tuple((r,) for r in self.snapshots.refs[:_SHOWN]))
        return gone, kept, refs, kind_table("Files freed", self.files)


def plan_expire_snapshots(
    state: TableState,
    wrap: Wrap[T],
    *,
    now_ms: int,
    older_than: object = None,
    retain_last: int | None = None,
    clean_expired_metadata: bool = False,
) -> ExpirePlan[T]:
    """Plan the expiry of snapshots.

    Parameters
    ----------
    older_than, retain_last
        As in the engines' procedure ``expire_snapshots``; by default the values of the table's properties.
    clean_expired_metadata
        Also remove the schemas and partition specs that no kept snapshot uses.

    Raises
    ------
    OptionError
        An argument is invalid.
    RuleError
        ``expire-gc``: the table property ``gc.enabled`` is false; engines then refuse to expire snapshots.
    FormatError, FileMissingError
        A manifest list or manifest that the plan depends on is damaged or missing; engines fail, too.
    """
    before = None if older_than is None else before_ms(older_than, now_ms)
    least = None if retain_last is None else whole_number_of("retain_last", retain_last, 1)
    document = state.opened.document
    _, expired = expire_snapshots(document, older_than_ms=before, retain_last=least, now_ms=now_ms)
    reading = strict(state)
    files, read, shared = _freed(reading, set(expired))
    size = state.storage.stat(state.metadata_location).size or 0
    schemas: tuple[int, ...] = ()
    specs: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    if clean_expired_metadata:
        gone = set(expired)
        stay = [s for s in state.metadata.snapshots if s.snapshot_id not in gone]
        schemas, specs, notes = unused_schemas_and_specs(state, stay)
    notes = (*(() if shared is None else (shared,)), *notes, *contradictions(reading))
    arguments = {} if before is None else {"older_than": spark_timestamp(before)}
    arguments |= {} if least is None else {"retain_last": str(least)}
    arguments |= {"clean_expired_metadata": "true"} if clean_expired_metadata else {}
    return ExpirePlan(
        state=state,
        wrap=wrap,
        snapshots=expired,
        files=files,
        now_ms=now_ms,
        older_than_ms=before,
        retain_last=least,
        schemas=schemas,
        specs=specs,
        notes=notes,
        reasons=tuple(_thresholds(state.metadata, before, least)),
        cost=MaintenanceCost(
            files_read=len(read),
            bytes_read=int(pc.sum(read["bytes"]).as_py() or 0) if len(read) else 0,
            files_written=1,
            bytes_written=size,
            files_freed=len(pc.unique(files["location"].drop_null())),
            bytes_freed=bytes_of(files),
        ),
        calls=tuple(_calls(state, expired, arguments, before, least)),
    )


def _freed(state: TableState, gone: set[int]) -> tuple[pa.Table, pa.Table, str | None]:
    """Return the files that Iceberg deletes when snapshots expire, the files that it reads for this, and a warning.

    Parameters
    ----------
    gone
        The ids of the snapshots that expire.

    Returns
    -------
    tuple
        The deleted files, as a table of `REFERENCED_SCHEMA`; the manifests and manifest lists that are read, as a table
        with at least ``location`` and ``bytes``; and the warning.

        Iceberg deletes a file that a kept snapshot needs if this snapshot has another scheme or authority in the file's
        location than the expiring one, such as ``s3a://`` and ``s3://``. The warning is about such files; None if there
        are none.
    """
    if not gone:
        return REFERENCED_SCHEMA.empty_table(), REFERENCED_SCHEMA.empty_table(), None
    metadata = state.metadata
    snapshots = list({s.snapshot_id: s for s in metadata.snapshots}.values())
    seen: set[tuple[str, ...]] = set()
    # Manifests that the first call has read (`seen`) are skipped in the second one: kept snapshots need their files, so
    # these files are not freed.
    kept = referenced_files(state, (s for s in snapshots if s.snapshot_id not in gone), seen=seen)
    going = referenced_files(state, (s for s in snapshots if s.snapshot_id in gone), seen=seen)
    stay = {s.snapshot_id for s in snapshots} - gone
    kept = pa.concat_tables([kept, statistics_files(metadata, stay)])
    going = pa.concat_tables([going, statistics_files(metadata, gone)])
    freed = going.filter(pc.invert(pc.is_in(going["location"], value_set=kept["location"])))
    # Iceberg compares whole locations, as above. So it also deletes a file that a kept snapshot needs, if the snapshots
    # have different schemes or authorities in its location. Comparing only paths finds these files.
    stored = state.storage
    shared = freed.filter(pc.is_in(path_keys(stored, freed["location"]), path_keys(stored, kept["location"])))
    both = pa.concat_tables([kept, going])
    read = both.filter(pc.is_in(both["kind"], pa.array(["manifest list", "manifest"])))
    read = (
        read.group_by("location", use_threads=False).aggregate([("bytes", "max")]).rename_columns(["location", "bytes"])
    )
    if not len(shared):
        return freed, read, None
    first = shared["location"][0]
    one = len(shared) == 1
    files, these = (first, "this file") if one else (f"{len(shared):,} files, such as {first}", "these files")
    note = (
        f"Do not run the procedure: it would delete {files}. Kept snapshots still use {these}, but under another "
        "scheme or authority."
    )
    return freed, read, note


def _thresholds(metadata: TableMetadata, before: int | None, least: int | None) -> Iterator[Threshold]:
    properties = metadata.properties
    if before is None:
        yield threshold(properties, "history.expire.max-snapshot-age-ms", 432_000_000, show=_age)
    else:
        yield Threshold("older_than", str(before), ARGUMENT, format_ms(before))
    name = "history.expire.min-snapshots-to-keep"
    yield threshold(properties, name, 1, given=least, argument="retain_last")
    yield threshold(properties, "history.expire.max-ref-age-ms", 2**63 - 1, show=_age)
    yield threshold(properties, "gc.enabled", "true")
    for ref in metadata.refs.values():
        for key, value, show in (
            ("min-snapshots-to-keep", ref.min_snapshots_to_keep, None),
            ("max-snapshot-age-ms", ref.max_snapshot_age_ms, _age),
            ("max-ref-age-ms", ref.max_ref_age_ms, _age),
        ):
            if value is not None:
                yield Threshold(key, str(value), f"{ref.type} {ref.name}", "" if show is None else show(value))


def _calls(
    state: TableState, expired: Expired, arguments: dict[str, str], before: int | None, least: int | None
) -> Iterator[EngineCall]:
    yield spark_call(state, "expire_snapshots", **arguments)
    if expired:
        ids = ", ".join(map(str, expired[:_SHOWN])) + (", ..." if len(expired) > _SHOWN else "")
        note = (
            "removes the snapshots, keeps their files (remove_orphan_files finds them), and ignores the retention "
            "settings of branches and tags"
        )
        yield EngineCall("PyIceberg", f"table.maintenance.expire_snapshots().by_ids([{ids}]).commit()", note)
    given = [] if before is None else [f"older_than={before}"]
    given += [] if least is None else [f"retain_last={least}"]
    yield EngineCall("iceexplore", f"lab.expire_snapshots({', '.join(given)})", "for tables made by ix.create")


def _age(ms: int) -> str:
    return duration(ms) if ms < 2**62 else "without limit"


def _refs_by_snapshot(metadata: TableMetadata) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for ref in metadata.refs.values():
        found.setdefault(ref.snapshot_id, []).append(ref.name)
    return found


def _when(snapshot: Snapshot | None) -> str:
    return "" if snapshot is None else format_ms(snapshot.timestamp_ms)


def _more(count: int) -> str:
    return f"the first {_SHOWN} of {count:,}; to_pandas() has all" if count > _SHOWN else ""
