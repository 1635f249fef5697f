"""Plan the removal of old metadata files: those not in the metadata log, and those that the next commit drops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.commits import REFERENCED_SCHEMA, Sandbox, set_properties
from iceexplore.doctor.maintenance._files import bytes_of, files_frame
from iceexplore.doctor.maintenance._plan import (
    EngineCall,
    MaintenanceCost,
    Plan,
    T,
    Wrap,
    spark_call,
    spark_name,
    sql_text,
    threshold,
)
from iceexplore.graph import TableState, amount, human_bytes
from iceexplore.render import CardTable
from iceexplore.storage import canonical, list_versions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MetadataFilesPlan", "plan_metadata_files"]

_MOST, _DELETE = "write.metadata.previous-versions-max", "write.metadata.delete-after-commit.enabled"
_SHOWN = 10


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MetadataFilesPlan(Plan[T]):
    """The old metadata files that are not needed, and whether engines delete them.

    Attributes
    ----------
    files
        Metadata files in the table's metadata folder that are older than the current one, and that are not in the
        current file's metadata log. No commit deletes them; ``remove_orphan_files`` does. An Arrow table: ``location``,
        ``kind``, ``bytes``.
    next_commit
        The files that the next commit drops from the log, because ``write.metadata.previous-versions-max`` is exceeded.
        The commit deletes these files if `deletes` is true. A table like `files`.
    deletes
        Whether ``write.metadata.delete-after-commit.enabled`` is true.
    logged
        The number of files in the metadata log.
    """

    procedure = "metadata_files"
    title = "Delete old metadata files"

    files: pa.Table = field(repr=False)
    next_commit: pa.Table = field(repr=False)
    deletes: bool = False
    logged: int = 0

    @property
    def nothing(self) -> bool:
        """True if there is no file to delete, neither now nor after the next commit.

        The files to delete now are those in `files`. After the next commit, there are also those in `next_commit`,
        unless `deletes` is true: then the next commit itself deletes them.
        """
        return not len(self.files) and (self.deletes or not len(self.next_commit))

    @property
    def text(self) -> str:
        """A sentence about the metadata files in the log, those not in it, and those that the next commit drops."""
        parts = [f"the metadata log lists {amount(self.logged, 'file')}"]
        if len(self.files):
            size = human_bytes(bytes_of(self.files))
            are = "is" if len(self.files) == 1 else "are"
            parts.append(f"{amount(len(self.files), 'older metadata file')} ({size}) {are} not in it")
        if len(self.next_commit):
            count = f"{len(self.next_commit):,}"
            how = f"deletes {count}" if self.deletes else f"drops {count} from the log, but deletes no file"
            parts.append(f"the next commit {how}")
        return "; ".join(parts)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per metadata file that is not needed: ``location``, ``kind``, ``bytes``."""
        return files_frame(pa.concat_tables([self.files, self.next_commit]))

    def _commit(self, sandbox: Sandbox) -> None:
        """Set the property that makes commits delete the metadata files that they drop from the log.

        No file is deleted: old metadata files are not part of the simulated table's state.
        """
        sandbox.commit(
            document_change=lambda document, _: set_properties(document, set={_DELETE: "true"}), what="set_properties"
        )

    def _details(self) -> dict[str, Any]:
        return {
            "logged": self.logged,
            "deletes": self.deletes,
            "not_in_log": self.files["location"].to_pylist(),
            "next_commit": self.next_commit["location"].to_pylist(),
        }

    def _tables(self) -> tuple[CardTable, ...]:
        names = [str(place).rpartition("/")[2] for place in self.files["location"].slice(0, _SHOWN).to_pylist()]
        more = f"the first {_SHOWN} of {len(self.files):,}" if len(self.files) > _SHOWN else ""
        table = CardTable(
            "Not in the metadata log", ("file",), tuple((n,) for n in names), note=more, code=frozenset({0})
        )
        return (table,)


def plan_metadata_files(state: TableState, wrap: Wrap[T]) -> MetadataFilesPlan[T]:
    """Plan the removal of old metadata files.

    Raises
    ------
    AccessDeniedError, StorageError
        The metadata folder cannot be listed.
    """
    metadata, notes = state.metadata, []
    log = [e.metadata_file for e in metadata.metadata_log]
    versions = list_versions(state.opened)
    sizes = {canonical(v.location): v.size for v in versions}
    logged = {canonical(place) for place in (*log, state.metadata_location)}
    number = state.opened.version
    older = [
        v
        for v in versions
        if canonical(v.location) not in logged
        and v.size is not None
        and v.number is not None
        and number is not None
        and v.number < number
    ]
    try:
        most = max(1, int(metadata.properties.get(_MOST, 100)))
    except ValueError:
        most = 100
        notes.append(f"{_MOST} is not a number: engines fail. This plan uses the default.")
    after = [*log, state.metadata_location]
    leaving = log[: max(0, len(after) - most)]
    deletes = metadata.properties.get(_DELETE, "false").lower() == "true"
    files = _table([v.location for v in older], [v.size for v in older])
    following = _table(leaving, [sizes.get(canonical(place)) for place in leaving])
    freed = pa.concat_tables([files, following])
    return MetadataFilesPlan(
        state=state,
        wrap=wrap,
        files=files,
        next_commit=following,
        deletes=deletes,
        logged=len(log),
        reasons=(threshold(metadata.properties, _MOST, 100), threshold(metadata.properties, _DELETE, "false")),
        cost=MaintenanceCost(files_read=0, files_written=1, files_freed=len(freed), bytes_freed=bytes_of(freed)),
        calls=tuple(_calls(state, deletes, bool(older))),
        notes=tuple(notes),
    )


def _table(places: list[str], sizes: list[int | None]) -> pa.Table:
    columns: dict[str, list[str] | list[int | None]] = {
        "location": places, "kind": ["metadata file"] * len(places), "bytes": sizes
    }  # fmt: skip
    return pa.table(columns, schema=REFERENCED_SCHEMA)


def _calls(state: TableState, deletes: bool, older: bool) -> Iterator[EngineCall]:
    if not deletes:
        yield EngineCall(
            "Spark SQL",
            f"ALTER TABLE {spark_name(state)} SET TBLPROPERTIES ('{_DELETE}' = 'true')",
            "after this, each commit deletes the metadata files that it drops from the metadata log",
        )
    if older:
        folder = state.metadata_location.rpartition("/")[0]
        note = "deletes the metadata files that are not in the metadata log, and any other orphan file in their folder"
        call = spark_call(state, "remove_orphan_files", location=sql_text(folder))
        yield EngineCall(call.engine, call.code, note)
