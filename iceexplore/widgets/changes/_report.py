"""What the tab Changes shows above its table: headline, sums, partitions, schema and metadata, as blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, amount, format_ms, human_bytes, rows_changed
from iceexplore.metadata import Snapshot, ancestry
from iceexplore.widgets.changes._counted import Counted, recorded_otherwise
from iceexplore.widgets.changes._metadata_changes import MetadataChanges
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.core._escape_text import signs

__all__ = ["changes_sent"]

_DATA = "data file"
_COLUMN_FILE = "column file"
_PARTITIONS = 12
_MOST_PARTITIONS = 200
_UNREAD = 5
_LINES = 30
_LONG = 300
_MEASURES = {"data_files": "data files", "delete_files": "delete files", "rows": "rows", "bytes": "bytes"}


def changes_sent(state: TableState, counted: Counted, metadata: MetadataChanges) -> list[Block]:
    """Return the blocks. Numbers of files are counted; operation and engine come from the snapshot's summary."""
    doubtful = bool(counted.unread)
    about = [*_about(state, counted), *([f" {counted.manifests}"] if counted.manifests else [])]
    out: list[Block] = [["h", _headline(counted)], ["p", about]]
    if counted.unread:
        out.append(["problem", _unread(state, counted)])
    out += [["problem", [signs(text[:_LONG])]] for text in counted.doubts[:_UNREAD]]
    for measure, side, recorded, real in recorded_otherwise(counted):
        what = f"{_MEASURES[measure]} {side}"
        out.append(["problem", [f"The snapshot's summary records {recorded:,} {what}; counted: {real:,}."]])
    if counted.files.num_rows:
        out.append(_sums(counted, doubtful))
        out += [["p", [["note", text]]] for text in _deleted(counted)]
        out += _partitions(counted, doubtful)
    out += _listed("Schema", [(_safe(text),) for text in counted.schema])
    since = "since the parent's commit" if counted.commit else "between the two commits"
    if metadata.unknown:
        what = "Changes of partition spec, sort order, properties and refs"
        out.append(["p", [["note", f"{what}: {metadata.unknown}."]]])
    out += _listed(f"Metadata {since}", metadata.lines)
    return out


def _headline(counted: Counted) -> list[Part]:
    change = counted.change
    words = change.words()
    columns = _total(_by(counted.files, "content").get(_COLUMN_FILE, {}).values())["files"]
    if any(columns):
        words.append(f"{_both(columns)} column file{'' if sum(columns) == 1 else 's'}")
    size = _both(change.bytes, human_bytes)
    sums = [*words, *([size] if size else [])] or ["changes unknown" if counted.unread else "no files changed"]
    text = " · ".join(sums)
    return [*_operation(counted.after), " · ", text] if counted.commit else [text]


def _operation(snapshot: Snapshot) -> list[Part]:
    summary = snapshot.summary or {}
    engine = summary.get("engine-name") or ("spark" if "spark.app.id" in summary else "")
    version = summary.get("engine-version", "") if engine else ""
    by = f" by {engine} {version}".rstrip() if engine else ""
    return [["b", _safe(snapshot.operation or "no operation")], _safe(by)]


def _about(state: TableState, counted: Counted) -> list[Part]:
    after, before = counted.after, counted.before
    if before is None:
        return ["The first snapshot." if after.parent_snapshot_id is None else "Counted without the parent snapshot."]
    if counted.commit:
        return ["Against its parent, ", _go(before), "."]
    between = _commits(state, before, after)
    return ["From ", _go(before), " to ", _go(after), f": {between}."]


def _commits(state: TableState, before: Snapshot, after: Snapshot) -> str:
    """Return the number of commits from one snapshot to another by operation, or a text if no path connects them."""
    line = []
    for one in ancestry(state.metadata, after):
        if one.snapshot_id == before.snapshot_id:
            break
        line.append((one.operation or "no operation")[:40])
    else:
        return "on different lines of commits"
    kinds = ", ".join(f"{line.count(kind)} {signs(kind)}" for kind in dict.fromkeys(line))
    return f"{amount(len(line), 'commit')} ({kinds})"


def _go(snapshot: Snapshot) -> Part:
    when = format_ms(snapshot.timestamp_ms).replace(".000 UTC", " UTC")
    text = signs(f"{(snapshot.operation or 'snapshot')[:40]} {when}")
    number = str(snapshot.snapshot_id)
    return ["go", text, {"snapshot": number, "node": f"snapshot:{number}", "against": ""}]


def _unread(state: TableState, counted: Counted) -> list[Part]:
    """Return a note that the numbers are doubtful, with links to the files that cannot be read."""
    many = len(counted.unread)
    what = (
        "a file that lists changes cannot be read" if many == 1 else f"{many:,} files that list changes cannot be read"
    )
    parts: list[Part] = [f"▲ These numbers are not exact: {what}"]
    nodes: dict[str, dict[str, str]] = {}
    for of in (counted.after, counted.before):
        root = None if of is None else state.root(of)
        if of is None or root is None:
            continue
        number = str(of.snapshot_id)
        nodes.setdefault(root.location, {"node": f"root:{number}", "snapshot": number})
        hit = pc.is_in(root.entries["location"], value_set=pa.array(list(counted.unread), pa.string()))
        for row in build.to_pylist(pc.indices_nonzero(hit)):
            name = root.entries["location"][row].as_py()
            nodes.setdefault(name, {"node": f"manifest:{number}:{row}", "snapshot": number})
    for i, name in enumerate(counted.unread[:_UNREAD]):
        short = signs(name.rpartition("/")[2][:80])
        parts += [", " if i else ": ", ["go", short, nodes[name]] if name in nodes else short]
    return [*parts, "." if many <= _UNREAD else " …"]


def _sums(counted: Counted, doubtful: bool) -> Block:
    """Return a table with a row per kind of file, and a total of the rows added and removed."""
    sums = _by(counted.files, "content")
    order = [_DATA, _COLUMN_FILE, "deletion vector", "position delete file", "equality delete file"]
    rows: list[list[list[Part]]] = []
    for kind in sorted(sums, key=lambda k: (order.index(k) if k in order else len(order), k)):
        found = _total(sums[kind].values())
        of_rows = _both(found["record_count"])
        unit = " rows" if kind in (_DATA, _COLUMN_FILE, "equality delete file") else " positions"
        cells = [_both(found["files"]), of_rows and of_rows + unit, _both(found["size_in_bytes"], human_bytes)]
        parts: list[list[Part]] = [[_cell(cell, doubtful)] for cell in cells]
        rows.append([[_safe(f"{kind}s")], *parts])
    live = _both(counted.change.rows) or "no change"
    rows.append([[["b", "live rows"]], [""], [["b", _cell(live, doubtful)]], [""]])
    look = {"label": "Added and removed by kind", "columns": ["", "right", "right", "right"]}
    return ["table", [["kind"], ["files"], ["rows"], ["size"]], rows, look]


def _deleted(counted: Counted) -> list[str]:
    """Return sentences about the rows that deletes removed."""
    found = _by(counted.files, "content")
    in_files = _total(found.get(_DATA, {}).values())["record_count"][1]
    gone = counted.change.rows[1]
    out = []
    if gone > in_files:
        out.append(f"Deletes removed {amount(gone - in_files, 'row')} of files that stay.")
    elif gone < in_files:
        out.append(f"{amount(in_files - gone, 'row')} of the removed files had been deleted before.")
    if any("equality" in kind for kind in found):
        out.append("An equality delete counts as one row: how many rows it deletes is not in the metadata.")
    return out


def _partitions(counted: Counted, doubtful: bool) -> list[Block]:
    """Return the partitions that changed most, with bars; nothing for an unpartitioned table."""
    most_changed, count = _most_changed(counted.files)
    if not any(most_changed):
        return []
    chosen = pc.is_in(pc.fill_null(counted.files["partition"], ""), value_set=pa.array(most_changed, pa.string()))
    by = _by(counted.files.filter(chosen), "partition")
    found = {name: _of_partition(kinds) for name, kinds in by.items()}
    order = sorted(found, key=lambda p: (-sum(found[p]["rows"]), -sum(found[p]["size"]), p))
    most = {name: max(max(sides[name]) for sides in found.values()) or 1 for name in ("rows", "size")}

    def row(name: str) -> list[list[Part]]:
        sides = found[name]
        cells: list[list[Part]] = [[_cell(_both(sides[key]), doubtful)] for key in ("data files", "delete files")]
        for key, text in (("rows", "{:,}".format), ("size", human_bytes)):
            lengths = [[kind, n / most[key] / 2] for kind, n in zip(("left", "gone"), sides[key], strict=True)]
            cells.append([_cell(_both(sides[key], text), doubtful), ["bars", lengths]])
        return [[["value", _safe(name)] if name else ["note", "no partition"]], *cells]

    heads: list[list[Part]] = [["partition"], ["data files"], ["delete files"], ["rows"], ["size"]]
    look = {"label": "Added and removed by partition", "columns": ["", "right", "right", "", ""]}
    shown, rest = order[:_PARTITIONS], order[_PARTITIONS:]
    out: list[Block] = [["table", heads, [row(name) for name in shown], look]]
    if rest:
        inside: list[Block] = [["table", heads, [row(name) for name in rest], look]]
        left = count - len(order)
        if left:
            inside.append(["p", [["note", f"{left:,} more: the table below has the partition of each file."]]])
        out.append(["fold", [amount(count - len(shown), "more partition")], inside])
    return out


def _most_changed(files: pa.Table) -> tuple[list[str], int]:
    """Return the partitions with the most rows in files that changed, and the number of all partitions that changed."""
    grouped = files.group_by("partition", use_threads=False)
    totals = grouped.aggregate([("record_count", "sum"), ("change", "count")])
    order = totals.sort_by([("record_count_sum", "descending"), ("change_count", "descending")])
    names = build.to_pylist(order["partition"].slice(0, _MOST_PARTITIONS).combine_chunks())
    return [name or "" for name in names], totals.num_rows


Sides = tuple[int, int]
Sums = dict[str, Sides]
_NOTHING: Sums = dict.fromkeys(("files", "record_count", "size_in_bytes"), (0, 0))
_SUMMED = {"files": "change_count", "record_count": "record_count_sum", "size_in_bytes": "size_in_bytes_sum"}


def _by(files: pa.Table, column: str) -> dict[str, dict[str, Sums]]:
    """Return what was added and removed (files, rows, bytes) by the values of a column, and by kind of file."""
    keys = [column, "content", "change"] if column != "content" else ["content", "change"]
    grouped = files.group_by(keys, use_threads=False)
    totals = grouped.aggregate([("change", "count"), ("record_count", "sum"), ("size_in_bytes", "sum")])
    out: dict[str, dict[str, Sums]] = {}
    for r in build.to_pylist(totals.to_struct_array()):
        mine = out.setdefault(r[column] or "", {}).setdefault(r["content"] or "", dict(_NOTHING))
        for name, summed in _SUMMED.items():
            n = r[summed] or 0
            mine[name] = (n, mine[name][1]) if r["change"] == "added" else (mine[name][0], n)
    return out


def _total(sums: Iterable[Sums]) -> Sums:
    out = dict(_NOTHING)
    for one in sums:
        out = {name: (a + one[name][0], b + one[name][1]) for name, (a, b) in out.items()}
    return out


def _of_partition(kinds: Mapping[str, Sums]) -> Sums:
    """Return the change of a partition: data and delete files, rows as `Diff.rows` counts them, and bytes."""
    data = kinds.get(_DATA, _NOTHING)
    columns = kinds.get(_COLUMN_FILE, _NOTHING)
    deletes = _total(sums for kind, sums in kinds.items() if kind not in (_DATA, _COLUMN_FILE))
    change = rows_changed({kind: sums["record_count"] for kind, sums in kinds.items()})
    size = _total((data, columns, deletes))["size_in_bytes"]
    return {"data files": data["files"], "delete files": deletes["files"], "rows": change, "size": size}


def _listed(title: str, lines: Sequence[tuple[Part, ...]]) -> list[Block]:
    if not lines:
        return []
    shown: list[Any] = [list(line) for line in lines[:_LINES]]
    if len(lines) > _LINES:
        shown.append([["note", f"and {len(lines) - _LINES:,} more"]])
    return [["h", [title]], ["list", shown]]


def _both(sides: tuple[int, int], text: Any = "{:,}".format) -> str:  # noqa: ANN401  a function from int to text
    return " ".join(f"{sign}{text(n)}" for sign, n in zip("+−", sides, strict=True) if n)


def _cell(text: str, doubtful: bool) -> str:
    return f"{text} ▲" if doubtful and text else text


def _safe(text: str) -> str:
    return signs(text if len(text) <= _LONG else f"{text[: _LONG - 1]}…")
