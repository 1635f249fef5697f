"""Judge whether a materialized view's storage table has the result of its current query.

The proposal leaves the policy to consumers. Two of the policies that it describes are combined here: the recorded
source states are compared with the sources, and the query shows whether a source was not recorded. So "fresh" means
that nothing has changed; it does not depend on how old the data is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import IceexploreError, OptionError
from iceexplore.metadata import Snapshot, TableMetadata, format_ms
from iceexplore.render import Card, CardTable, card_html, card_text, shown_frame
from iceexplore.views._model import ViewMetadata
from iceexplore.views._state import ViewState
from iceexplore.views.lineage._lineage import FoundSource, OpenSource, ViewLineage, view_lineage
from iceexplore.views.lineage._model import TableReference
from iceexplore.views.materialized._refresh_state import (
    REFRESH_STATE,
    RefreshState,
    SourceState,
    read_refresh_state,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Freshness", "FreshnessStatus", "PROPOSAL", "SourceFreshness", "view_freshness"]

FreshnessStatus = Literal["fresh", "stale", "unknowable"]

#: The label and the explanation of everything that only the proposal defines.
PROPOSAL = "proposal"
_NOTE = "Materialized views are a proposal (apache/iceberg pull request 11041), which may change."
_SHOWN = 100
_MOST_REWRITES = 1000

_SOURCES = build.schema(
    [
        ("source", pa.string()),
        ("type", pa.string()),
        ("status", pa.string()),
        ("recorded_id", pa.int64()),
        ("current_id", pa.int64()),
        ("recorded_uuid", pa.string()),
        ("note", pa.string()),
    ]
)


@dataclass(frozen=True)
class SourceFreshness:
    """A source of a materialized view, as recorded and as it is now.

    Attributes
    ----------
    status
        ``fresh``: unchanged; ``stale``: changed; ``unknowable``: not recorded, or not opened.
    recorded_id, current_id
        A table's snapshot ids, or a view's version ids; None where unknown.
    """

    name: str
    type: str
    status: FreshnessStatus
    recorded_id: int | None = None
    current_id: int | None = None
    recorded_uuid: str | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Freshness:
    """Whether the storage table of a materialized view has the result of its query, and the rule that decided.

    Attributes
    ----------
    status
        ``fresh``, ``stale`` or ``unknowable``.
    rule
        The reason, as a sentence.
    storage_table
        The storage table's name.
    snapshot_id
        The storage table's snapshot that holds the data; None if there is none or it is unknown.
    refresh
        What the refresh recorded; None if there is nothing valid.
    sources
        The sources, compared.
    """

    state: ViewState
    status: FreshnessStatus
    rule: str
    storage_table: str
    snapshot_id: int | None = None
    refresh: RefreshState | None = None
    sources: tuple[SourceFreshness, ...] = ()
    location: str | None = field(default=None, repr=False)

    @property
    def sources_arrow(self) -> pa.Table:
        """The compared sources as an Arrow table."""
        rows = [
            {
                "source": one.name,
                "type": one.type,
                "status": one.status,
                "recorded_id": one.recorded_id,
                "current_id": one.current_id,
                "recorded_uuid": one.recorded_uuid,
                "note": one.note or None,
            }
            for one in self.sources
        ]
        return pa.Table.from_pylist(rows, schema=_SOURCES)

    def to_pandas(self) -> pd.DataFrame:
        """Return the compared sources as a data frame."""
        import pandas as pd

        frame: pd.DataFrame = self.sources_arrow.to_pandas(types_mapper=pd.ArrowDtype)
        return shown_frame(frame)

    def card(self) -> Card:
        """Return the result as a card, for text and HTML."""
        version = self.state.version
        facts = [("Storage table", self.storage_table)]
        if self.snapshot_id is not None:
            facts.append(("Snapshot", str(self.snapshot_id)))
        if self.refresh is not None:
            facts += [
                ("Refresh started", format_ms(self.refresh.started_ms)),
                ("View version then", str(self.refresh.view_version_id)),
            ]
        if version is not None:
            facts.append(("View version", str(version.version_id)))
        rows = [
            (one.name, one.type, one.status, *map(_id, (one.recorded_id, one.current_id)), one.note)
            for one in self.sources
        ]
        heading = ("source", "", "", "recorded", "now", "note")
        more = f"first {_SHOWN} of {len(rows):,}" if len(rows) > _SHOWN else ""
        return Card(
            f"Freshness of {self.state.name}",
            badges=(self.status, PROPOSAL),
            subtitle=self.rule,
            facts=tuple(facts),
            tables=(CardTable("Sources", heading, tuple(rows[:_SHOWN]), more, code=frozenset({3, 4})),) if rows else (),
            notes=(_NOTE,),
        )

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def view_freshness(state: ViewState, open_source: OpenSource) -> Freshness:
    """Return the freshness of a materialized view at its selected version.

    Raises
    ------
    OptionError
        The version has no storage table: it is not a materialized view.
    """
    version = state.version
    if version is None or version.storage_table is None:
        raise OptionError(f"{state.name} is not a materialized view: the version that is shown has no storage-table")
    *namespace, name = version.storage_table
    # "The storage table must be in the same catalog as the materialized view."
    reference = TableReference(".".join(version.storage_table), None, tuple(namespace), name)
    found = open_source(reference, state)
    judge = _Judge(state, open_source, str(reference), found.location)
    if found.table_metadata is None:
        return judge.result("unknowable", f"The storage table {reference} was not opened: {found.note or found.kind}.")
    return judge.judged(version.version_id, found.table_metadata)


@dataclass(frozen=True)
class _Judge:
    state: ViewState
    open_source: OpenSource
    table: str
    location: str | None

    def result(
        self,
        status: FreshnessStatus,
        rule: str,
        snapshot: Snapshot | None = None,
        refresh: RefreshState | None = None,
        sources: tuple[SourceFreshness, ...] = (),
    ) -> Freshness:
        snapshot_id = None if snapshot is None else snapshot.snapshot_id
        return Freshness(self.state, status, rule, self.table, snapshot_id, refresh, sources, self.location)

    def judged(self, version_id: int, table: TableMetadata) -> Freshness:
        current = table.snapshot()
        if current is None:
            return self.result("stale", "The storage table has no snapshots: the view was never refreshed.")
        snapshot, text = _with_refresh_state(table, current)
        if text is None:
            return self.result(
                "unknowable",
                f"The storage table's current snapshot {current.snapshot_id} records no {REFRESH_STATE}.",
                current,
            )
        refresh = read_refresh_state(text)
        if isinstance(refresh, str):
            return self.result("unknowable", f"The {REFRESH_STATE} cannot be read: {refresh}.", snapshot)
        if refresh.view_version_id != version_id:
            rule = (
                f"The data is the result of version {refresh.view_version_id} of the view, but version {version_id} is "
                "shown: a changed definition makes it stale."
            )
            return self.result("stale", rule, snapshot, refresh)
        sources = (*(self._compared(one) for one in refresh.sources), *self._unrecorded(refresh))
        for status, rule in (
            ("stale", "A source has changed since the refresh"),
            ("unknowable", "A source was not recorded by the refresh, or cannot be compared"),
        ):
            first = next((one for one in sources if one.status == status), None)
            if first is not None:
                return self.result(first.status, f"{rule}: {first.name} ({first.note}).", snapshot, refresh, sources)
        rule = "The version of the view and all of its sources are those that the refresh recorded."
        return self.result("fresh", rule, snapshot, refresh, sources)

    def _compared(self, recorded: SourceState) -> SourceFreshness:
        found = self._open(recorded)
        name, known = str(recorded), (recorded.state_id, None, recorded.uuid)

        def answer(status: FreshnessStatus, note: str, current: int | None = None) -> SourceFreshness:
            return SourceFreshness(name, recorded.type, status, known[0], current, known[2], note)

        if found.kind == "missing":
            return answer("stale", "it no longer exists")
        metadata: TableMetadata | ViewMetadata | None = found.table_metadata
        if recorded.type == "view":
            metadata = None if found.view is None else found.view.metadata
        if metadata is None:
            return answer("unknowable", found.note or f"it was not opened as a {recorded.type}")
        uuid = metadata.table_uuid if isinstance(metadata, TableMetadata) else metadata.view_uuid
        if uuid is None:
            return answer("unknowable", "it has no uuid")
        if uuid.lower() != recorded.uuid.lower():
            return answer("stale", f"it is another {recorded.type}: it was dropped and created again")
        if not isinstance(metadata, TableMetadata):
            current = metadata.current_version_id
            if current is None:
                return answer("unknowable", "it has no current version")
            same = current == recorded.state_id
            return answer("fresh" if same else "stale", "" if same else "another version is current", current)
        ref = metadata.refs.get(recorded.ref)
        if ref is None:
            if recorded.ref == "main":
                return answer("stale", "it has no current snapshot")
            return answer("stale", f"it has no branch {recorded.ref}")
        if ref.snapshot_id == recorded.state_id:
            return answer("fresh", "", ref.snapshot_id)
        note = "another snapshot is current"
        if _only_rewritten(metadata, ref.snapshot_id, recorded.state_id):
            note = "only rewritten since: the rows are the same, but the proposal compares snapshot ids"
        return answer("stale", note, ref.snapshot_id)

    def _open(self, recorded: SourceState) -> FoundSource:
        reference = TableReference(str(recorded), recorded.catalog, recorded.namespace, recorded.name)
        return self.open_source(reference, self.state)

    def _unrecorded(self, refresh: RefreshState) -> Iterator[SourceFreshness]:
        """Yield the sources that the query reads, directly or through views, and that the refresh did not record."""
        try:
            lineage = view_lineage(self.state, None, self.open_source)
        except IceexploreError as error:
            yield SourceFreshness(self.state.name, "query", "unknowable", note=f"its sources are not known: {error}")
            return
        tables, views = (
            {_key(one.identifier) for one in refresh.sources if one.type == kind} for kind in ("table", "view")
        )
        yield from _uncovered(lineage, tables, views)


def _uncovered(lineage: ViewLineage, tables: set[str], views: set[str]) -> Iterator[SourceFreshness]:
    for source in lineage.sources:
        key = _key(source.reference.identifier)
        name = str(source.reference)
        if source.lineage is None:
            if key not in tables and key not in views:
                yield SourceFreshness(name, source.kind, "unknowable", note="not recorded")
            continue
        version = source.lineage.state.version
        storage = None if version is None else version.storage_table
        if storage is not None and _key(storage) in tables:
            continue  # the storage table of this inner view was recorded, so the view's own sources need not be
        if key not in views:
            yield SourceFreshness(name, "view", "unknowable", note="not recorded")
        yield from _uncovered(source.lineage, tables, views)


def _key(identifier: tuple[str, ...]) -> str:
    return "\0".join(identifier).lower()


def _with_refresh_state(table: TableMetadata, current: Snapshot) -> tuple[Snapshot, str | None]:
    """Return the latest snapshot that has a refresh state or does more than rewrite files, with its refresh state."""
    snapshot = current
    for _ in range(_MOST_REWRITES):
        text = (snapshot.summary or {}).get(REFRESH_STATE)
        parent = None if snapshot.parent_snapshot_id is None else table.snapshot(snapshot.parent_snapshot_id)
        if text is not None or snapshot.operation != "replace" or parent is None:
            return snapshot, text
        snapshot = parent
    return snapshot, None


def _only_rewritten(table: TableMetadata, current: int, recorded: int) -> bool:
    """Return whether all snapshots after the recorded one, up to the current one, only rewrote files."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots}
    at: int | None = current
    for _ in range(_MOST_REWRITES):
        if at == recorded:
            return True
        snapshot = None if at is None else by_id.get(at)
        if snapshot is None or snapshot.operation != "replace":
            return False
        at = snapshot.parent_snapshot_id
    return False


def _id(value: int | None) -> str:
    return "" if value is None else str(value)
