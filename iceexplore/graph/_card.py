"""The card of a table: a summary of its metadata file and, at most, its manifest list or root manifest."""

from __future__ import annotations

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.errors import concern_of
from iceexplore.graph._root import Removals, live_manifests, root_counts
from iceexplore.graph._snapshot_change import snapshot_change
from iceexplore.graph._state import TableState
from iceexplore.graph._travel import clock, format_ms
from iceexplore.manifests import ContentType, Manifest, live, whole
from iceexplore.metadata import Schema, TableMetadata, format_sort_order, format_spec, in_order
from iceexplore.render import Card, CardTable

__all__ = ["Totals", "human_bytes", "percent", "table_card", "totals"]

Totals = dict[str, int | None]

#: The totals that a card shows, each with its key in a snapshot's summary.
_SUMMARY_KEYS = {
    "data_files": "total-data-files",
    "records": "total-records",
    "delete_files": "total-delete-files",
    "position_deletes": "total-position-deletes",
    "equality_deletes": "total-equality-deletes",
    "bytes": "total-files-size",
}
_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
_SHOWN_SNAPSHOTS = 6
_SHOWN_FIELDS = 40
_SHOWN_REFS = 20
_SHOWN_PROBLEMS = 20


def totals(state: TableState, *, read_leaves: bool = True) -> Totals:
    """Return file, row, delete and byte totals of the snapshot, as its summary states them; None if unknown.

    Keys: ``data_files``, ``records``, ``delete_files``, ``position_deletes``, ``equality_deletes``, ``bytes``.
    If the summary lacks the number of data files or rows, the missing counts of data files, rows and delete files come
    from the manifest list or root manifest (one small read). A root states how many entries a manifest DV removes, but
    not their rows: to count the rows, the leaves with a manifest DV are read, or the count is None with
    ``read_leaves=False``.
    """
    summary = (state.snapshot.summary if state.snapshot else None) or {}
    out: Totals = {name: _whole(summary.get(key)) for name, key in _SUMMARY_KEYS.items()}
    if state.snapshot is None:
        return dict.fromkeys(_SUMMARY_KEYS, 0)
    if out["data_files"] is None or out["records"] is None:
        root = state.root()
        if root is not None:
            out.update(
                {
                    k: v
                    for k, v in counted(state, root, read_leaves=read_leaves and out["records"] is None).items()
                    if out[k] is None
                }
            )
    return out


def counted(state: TableState, root: Manifest, *, read_leaves: bool = True) -> Totals:
    """Count live data files, their rows, and live delete files from the root; None for what it does not state."""
    entries = root.entries
    mine = live(entries)
    out: Totals = {"data_files": 0, "records": 0, "delete_files": 0}

    def add(name: str, count: int | None) -> None:
        total = out[name]
        # A null count means unknown, so the total is unknown, too (spec, "Manifest Lists": the field ids 504 to 506 and
        # 512 to 514 are optional in v1).
        out[name] = None if total is None or count is None else total + count

    for name, kinds in (("data_files", (ContentType.DATA,)), ("delete_files", _DELETES)):
        chosen = entries.filter(pc.and_(mine, whole(pc.is_in(entries["content_type"], pa.array(kinds, pa.int32())))))
        add(name, chosen.num_rows)
        if name == "data_files":
            add("records", None if chosen["record_count"].null_count else pc.sum(chosen["record_count"]).as_py() or 0)
    removed = Removals(root)
    picked = live_manifests(root)
    records = entries.select(["content_type", "location", "manifest_stats"]).take(pa.array(picked, pa.int64()))
    to_read = []
    for row, record in zip(picked, records.to_pylist(), strict=True):
        is_data = record["content_type"] == ContentType.DATA_MANIFEST
        gone = removed.of(record["location"])
        files, rows = (_live_count(record["manifest_stats"], unit) for unit in ("files", "rows"))
        if root.dialect.deletion_vectors_on_entries:  # Delta Lake 4.4 writes 0 for counts that it does not compute
            files, rows = files or None, rows or None
            if is_data:  # entries of data files may have deletion vectors, which Delta's root does not count either
                add("delete_files", None)
        left = None if files is None or gone.entries is None or gone.entries > files else files - gone.entries
        add("data_files" if is_data else "delete_files", left)
        if is_data and gone.rows:
            to_read.append(row)
        elif is_data:
            add("records", rows)
    if to_read and not read_leaves:
        out["records"] = None
    elif to_read and out["records"] is not None:
        for leaf in state.reader.leaves(root, to_read):
            add("records", pc.sum(leaf.entries.filter(live(leaf.entries))["record_count"]).as_py() or 0)
    return out


def _live_count(stats: dict[str, int | None] | None, unit: str) -> int | None:
    """Return how many live files or rows (``unit``) a manifest has: added plus existing; None if either is unknown."""
    added, existing = (stats or {}).get(f"added_{unit}_count"), (stats or {}).get(f"existing_{unit}_count")
    return None if added is None or existing is None else added + existing


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:  # not a number, or too long for int()
        return None


def table_card(state: TableState) -> Card:
    """Return the table's card: facts, schema with evolution marks, refs, last snapshots, totals and problems."""
    m = state.metadata
    facts = [*_size_facts(state), ("Partitioning", _partitioning(m)), ("Sort order", _sorting(m))]
    if m.table_uuid:
        facts.append(("Table UUID", m.table_uuid))
    # Problems that concern the rows come first.
    met = sorted(state.problems, key=lambda p: concern_of(p.code, p.field, p.severity) is None)
    problems = tuple((p.severity, f"{p.text} [{p.code}]", p.where) for p in met[:_SHOWN_PROBLEMS])
    left = len(met) - len(problems)
    if left > 0:
        problems = (*problems, ("info", f"{left} more problems: see t.problems", ""))
    return Card(
        title=state.name,
        badges=(*state.format_badges, *((state.travel,) if state.travel else ())),
        subtitle=m.location,
        facts=tuple(facts),
        tables=tuple(t for t in (_fields(state), _snapshots(state), _refs(m)) if t.rows),
        notes=(f"Metadata file: {state.metadata_location}", *state.notes, *_clock_note(m)),
        problems=problems,
    )


def _clock_note(m: TableMetadata) -> tuple[str, ...]:
    if not m.snapshots or clock(m)[1]:
        return ()
    return ("The table has no snapshot-log: at(timestamp=) uses the timestamps of the snapshots.",)


def _size_facts(state: TableState) -> list[tuple[str, str]]:
    if state.snapshot is None:
        if not state.metadata.snapshots:
            return [("Snapshot", "none: nothing has been committed yet")]
        count = len(state.metadata.snapshots)
        return [("Snapshot", f"none is current, although the metadata file has {count:,}")]
    t = totals(state, read_leaves=False)

    otherwise = _counted_otherwise(state)

    def number(name: str) -> str:
        value, counted = t[name], otherwise.get(_SUMMARY_KEYS[name])
        text = "unknown" if value is None else f"{value:,}"
        return text if counted is None else f"{text} recorded, {counted} counted"

    size = t["bytes"]
    facts = [
        ("Snapshot", str(state.snapshot.snapshot_id)),
        ("Committed", format_ms(state.snapshot.timestamp_ms)),
        ("Data files", number("data_files")),
        ("Rows before deletes", number("records")),
        ("Size", "unknown" if size is None else human_bytes(size)),
        ("Delete files", number("delete_files")),
    ]
    for name, label in (("position_deletes", "Position deletes"), ("equality_deletes", "Equality deletes")):
        if t[name]:
            facts.append((label, number(name)))
    return [*facts, *_source_of_counts(state), *_root_fact(state)]


def _counted_otherwise(state: TableState) -> dict[str, str]:
    """Return the manifests' totals that differ from the summary, by the summary's key; empty until the root is read."""
    location = state.reader.root_location(state.snapshot) if state.snapshot else None
    root = state.root() if location is not None and location in state.reader.seen else None
    found = () if root is None else root.problems
    return {
        p.field: f"{int(p.found or 0):,}"
        for p in found
        if p.code == "totals-differ" and p.field and str(p.found).isdecimal()
    }


def _source_of_counts(state: TableState) -> list[tuple[str, str]]:
    """Return a fact saying that the counts come only from the summary; no fact once the manifests have been read."""
    summary = (state.snapshot.summary if state.snapshot else None) or {}
    if not any(_whole(summary.get(key)) is not None for key in _SUMMARY_KEYS.values()):
        return []
    seen = state.reader.seen
    location = state.reader.root_location(state.snapshot) if state.snapshot else None
    if location is None or location not in seen:
        return [("Counts from", "the snapshot's summary, unverified")]
    root = state.root()
    rows = [] if root is None else live_manifests(root)
    names = [] if root is None else root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
    if seen.issuperset(names):
        return []
    return [("Counts from", "the snapshot's summary, compared with the manifest list only")]


def percent(share: float, digits: int = 0) -> str:
    """Return a share from 0 to 1 as text: ``33 %``."""
    return f"{100 * share:,.{digits}f} %"


def human_bytes(size: int) -> str:
    """Return a size in bytes with a binary unit: ``1.5 MiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{size:,} B" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def _root_fact(state: TableState) -> list[tuple[str, str]]:
    """Return a fact about what the root manifest itself lists; an empty list for a table without one (below V4)."""
    root = state.root() if state.metadata.may_have_root_manifests else None
    if root is None or not root.dialect.has_root_manifest:
        return []
    words = [f"{count:,} {word if count == 1 else word + 's'}" for word, count in root_counts(root).items()]
    words.append(human_bytes(root.length))
    entries = [r.entries for r in Removals(root).all]
    if entries:
        gone = sum(e for e in entries if e is not None)
        least = "at least " if None in entries else ""
        which = "entry" if gone == 1 and not least else "entries"
        leaves = "leaf" if len(entries) == 1 else "leaves"
        words.append(f"{least}{gone:,} {which} of {len(entries):,} {leaves} removed by manifest DVs")
    return [("Root manifest", ", ".join(words))]


def _partitioning(m: TableMetadata) -> str:
    spec = m.spec()
    text = "unknown spec" if spec is None else format_spec(spec, m) or "unpartitioned"
    older = len(m.partition_specs) - 1
    return text + (f"  (spec {m.default_spec_id}; {older} older)" if older > 0 else "")


def _sorting(m: TableMetadata) -> str:
    order = next((o for o in m.sort_orders if o.order_id == m.default_sort_order_id), None)
    return (format_sort_order(order, m) if order else "") or "unsorted"


def _fields(state: TableState) -> CardTable:
    schema = state.schema
    marks = _evolution(state.metadata, schema)
    every = list(schema.walk())
    rows = tuple(
        (
            str(f.field_id),
            name,
            str(f.type) if len(str(f.type)) <= 80 else str(f.type)[:79] + "…",
            "required" if f.required else "",
            "; ".join(marks.get(f.field_id, ())),
            f.doc or "",
        )
        for name, f in every[:_SHOWN_FIELDS]
    )
    more = len(every) - len(rows)
    note = f"schema {schema.schema_id}, one of {len(state.metadata.schemas)}"
    if more:
        note += f"; {more} more fields: t.inspect.schemas()"
    columns = ("id", "field", "type", "", "evolution", "doc")
    return CardTable("Schema", columns, rows, note, code=frozenset({1, 2}), right=frozenset({0}))


def _evolution(m: TableMetadata, schema: Schema) -> dict[int, list[str]]:
    """Return how each field of this schema differs from earlier schemas, by field id: added, renamed, promoted."""
    older = sorted((s for s in m.schemas if s.schema_id < schema.schema_id), key=lambda s: s.schema_id)
    marks: dict[int, list[str]] = {}
    now = schema.by_id()
    for i, before in enumerate(older):
        after = older[i + 1] if i + 1 < len(older) else schema
        old, new = before.by_id(), after.by_id()
        for field_id in now:
            if field_id not in new:
                continue
            f = new[field_id][1]
            if field_id not in old:
                marks.setdefault(field_id, []).append(f"added in schema {after.schema_id}")
                continue
            old_field = old[field_id][1]
            if old_field.name != f.name:
                marks.setdefault(field_id, []).append(f"was {old_field.name}")
            if str(old_field.type) != str(f.type) and "<" not in str(f.type):
                marks.setdefault(field_id, []).append(f"was {old_field.type}")
    return marks


def _snapshots(state: TableState) -> CardTable:
    m = state.metadata
    by_ref: dict[int, list[str]] = {}
    for ref in m.refs.values():
        by_ref.setdefault(ref.snapshot_id, []).append(ref.name)
    ordered = in_order(m.snapshots)[::-1]
    shown_id = state.snapshot.snapshot_id if state.snapshot else None
    rows = []
    for s in ordered[:_SHOWN_SNAPSHOTS]:
        changes = snapshot_change(s.operation, s.summary).words()
        here = "▶ " if s.snapshot_id == shown_id else ""
        refs = ", ".join(by_ref.get(s.snapshot_id, ()))
        rows.append(
            (here + str(s.snapshot_id), format_ms(s.timestamp_ms), s.operation or "—", refs, "  ".join(changes))
        )
    more = len(m.snapshots) - len(rows)
    note = f"{len(m.snapshots)} in total" + (f", last {len(rows)} shown" if more else "")
    columns = ("id", "committed", "operation", "refs", "change")
    return CardTable("Snapshots", columns, tuple(rows), note, code=frozenset({0}))


def _refs(m: TableMetadata) -> CardTable:
    order = sorted(m.refs.values(), key=lambda r: (r.name != "main", r.type != "branch"))
    rows = tuple((r.name, r.type, str(r.snapshot_id)) for r in order[:_SHOWN_REFS])
    left = f", {len(rows)} shown: see t.refs" if len(rows) < len(m.refs) else ""
    columns, note = ("name", "type", "snapshot"), f"{len(m.refs):,} in total{left}"
    return CardTable("Refs", columns, rows, note, open=len(rows) > 1, code=frozenset({2}))
