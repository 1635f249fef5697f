"""What changed in the metadata file between two commits: partition spec, sort order, properties and refs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from iceexplore.errors import IceexploreError, Problems
from iceexplore.graph import TableState, is_secret_name
from iceexplore.metadata import (
    Snapshot,
    TableMetadata,
    format_sort_order,
    parse_table_metadata,
    properties_changes,
    spec_changes,
)
from iceexplore.storage import parse_document
from iceexplore.widgets.core._blocks import Part
from iceexplore.widgets.core._escape_text import signs

__all__ = ["MetadataChanges", "MetadataHistory"]

_KEPT = 8
#: The largest metadata file that is read for a snapshot's changes.
_MOST_BYTES = 8 << 20
_LONG = 300


@dataclass(frozen=True)
class MetadataChanges:
    """Changes between two metadata files, each a line of parts; ``unknown`` is the reason if they are not known."""

    lines: tuple[tuple[Part, ...], ...] = ()
    unknown: str = ""


class MetadataHistory:
    """The metadata files that commits wrote, found through the metadata log; the last ones are cached."""

    def __init__(self) -> None:
        self._read: OrderedDict[str, TableMetadata | None] = OrderedDict()

    def changes(self, state: TableState, before: Snapshot | None, after: Snapshot) -> MetadataChanges:
        """Return what changed from one commit's metadata file to that of another; no changes if ``before`` is None."""
        if before is None or state.opened.is_delta:  # a Delta table has a log instead
            return MetadataChanges()
        old, new = (self._written_by(state, snapshot) for snapshot in (before, after))
        if old is None or new is None:
            which = "older" if old is None else "newer"
            why = "is not in the metadata log any more, cannot be read or is large"
            return MetadataChanges(unknown=f"not known, as the {which} metadata file {why}")
        return MetadataChanges(tuple(_lines(old, new, (before.snapshot_id, after.snapshot_id))))

    def _written_by(self, state: TableState, snapshot: Snapshot) -> TableMetadata | None:
        """Return the first metadata file with a snapshot; None if it cannot be found or read."""
        metadata = state.metadata
        times = [(e.timestamp_ms, e.metadata_file) for e in metadata.metadata_log]
        own = metadata.last_updated_ms
        later = [file for ms, file in times if ms >= snapshot.timestamp_ms]
        # If the log has no file from before the snapshot, the first file with it may no longer be in the log.
        exact = any(ms == snapshot.timestamp_ms for ms in (*(ms for ms, _ in times), own))
        if not exact and not any(ms < snapshot.timestamp_ms for ms, _ in times):
            return None
        if later:
            found = self._file(state, later[0])
        else:
            found = metadata if own is not None and own >= snapshot.timestamp_ms else None
        return None if found is None or found.snapshot(snapshot.snapshot_id) is None else found

    def _file(self, state: TableState, location: str) -> TableMetadata | None:
        if location not in self._read:
            self._read[location] = _metadata(state, location)
            while len(self._read) > _KEPT:
                self._read.popitem(last=False)
        return self._read[location]


def _metadata(state: TableState, location: str) -> TableMetadata | None:
    """Read a different metadata file of the table, ignoring its problems; return None if it is unreadable or large."""
    try:
        if location == state.metadata_location:
            return state.metadata
        data = state.storage.read(location, kind="metadata", most=_MOST_BYTES)
        document, _ = parse_document(data, location, 4 * _MOST_BYTES)  # a higher limit, as the file may be compressed
        found = parse_table_metadata(document, location, Problems())
    except (IceexploreError, ValueError):
        return None
    same = found.table_uuid is None or found.table_uuid == state.metadata.table_uuid
    return found if same else None


def _lines(old: TableMetadata, new: TableMetadata, commits: tuple[int, int]) -> list[tuple[Part, ...]]:
    out: list[tuple[Part, ...]] = []
    specs = old.spec(), new.spec()
    if specs[0] is not None and specs[1] is not None:
        out += [(_safe(change.text),) for change in spec_changes(specs[0], specs[1], new)]
    was, now = (_order(metadata) for metadata in (old, new))
    if was != now:
        out.append((_safe(f"sort order changed from {was} to {now}"),))
    for change in properties_changes(old.properties, new.properties):
        kind = "secret" if is_secret_name(change.name) else "value"
        name: Part = ["code", _safe(change.name)]
        if change.kind == "removed":
            out.append(("property ", name, " removed, was ", [kind, _safe(change.old or "")]))
        elif change.kind == "added":
            out.append(("property ", name, " set to ", [kind, _safe(change.new or "")]))
        else:
            values: tuple[Part, ...] = ([kind, _safe(change.old or "")], " to ", [kind, _safe(change.new or "")])
            out.append(("property ", name, " changed from ", *values))
    for name_of in sorted({*old.refs, *new.refs}):
        a, b = old.refs.get(name_of), new.refs.get(name_of)
        if a == b or (a is not None and b is not None and (a.snapshot_id, b.snapshot_id) == commits):
            continue  # every commit moves its branch: such a move is not reported
        ref = b or a
        assert ref is not None
        what: list[Part] = [f"{ref.type} ", ["code", _safe(name_of)]]
        if b is None:
            out.append((*what, " removed"))
            continue
        known = new.snapshot(b.snapshot_id) is not None
        to: Part = str(b.snapshot_id)
        if known:
            to = ["go", str(b.snapshot_id), {"snapshot": str(b.snapshot_id), "node": f"snapshot:{b.snapshot_id}"}]
        if a is None:
            out.append((*what, " created at ", to))
        elif a.snapshot_id != b.snapshot_id:
            out.append((*what, f" moved from {a.snapshot_id} to ", to))
        else:
            out.append((*what, " has a different retention policy"))
    return out


def _order(metadata: TableMetadata) -> str:
    found = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), None)
    return (format_sort_order(found, metadata) if found is not None else "") or "unsorted"


def _safe(text: str) -> str:
    return signs(text if len(text) <= _LONG else f"{text[: _LONG - 1]}…")
