"""Draw the items that a plan skips, with the evidence: one node per item if there are few, otherwise one per term."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.planning.report._tree_labels import amount, basename, held

__all__ = ["Cut", "cuts", "evidence"]

_BY = {"partition": "partition", "bounds": "bounds", "row-group bounds": "row group"}


@dataclass(frozen=True)
class Cut:
    """A node for one or many skipped manifests or files.

    Attributes
    ----------
    label, lines, tooltip
        `label` is the name of the item, or the number of items. `lines` are the term of the filter that excludes them,
        the metadata that shows it, and their size. `tooltip` is the full explanation.
    count
        Number of items that the node represents.
    """

    label: str
    lines: tuple[str, ...]
    tooltip: str
    count: int = 1


def cuts(why: pa.Table, what: str, *, single: int, most: int) -> list[Cut]:
    """Return the nodes for skipped items.

    Parameters
    ----------
    why
        A table of `SKIPPED_SCHEMA`.
    what
        ``file`` or ``manifest``.
    single
        The maximum number of items that are drawn as single nodes. More are grouped by term.
    most
        The maximum number of nodes for groups, the largest groups first. If there are more groups, one more node counts
        the items of all others.
    """
    if len(why) <= single:
        return [_one(record, what) for record in why.to_pylist()]
    groups = _groups(why)
    out = [_fold(group, why, what) for group in groups[:most]]
    rest = groups[most:]
    if len(rest) == 1:
        out.append(_fold(rest[0], why, what))
    elif rest:
        count = sum(g["row_count"] for g in rest)
        terms = [str(g["term"]) for g in rest if g["term"]]
        lines = (f"for {amount(len(rest), 'other reason')}", ", ".join(terms[:2]) + (", …" if len(terms) > 2 else ""))
        out.append(Cut(f"{amount(count, what)} skipped", lines, _example(why, rest[0]["row_min"]), count))
    return out


def evidence(record: Mapping[str, Any]) -> str:
    """Return the deciding evidence, as ``partition: region is b`` or ``bounds: id is 0 to 9``; else the explanation."""
    low, high, by = record["lower"], record["upper"], record["by"]
    if record["column"] is None or by not in _BY or (low is None and high is None):
        return str(record["why"] or "").removesuffix(f": no row has {record['term']}")
    if low is None or high is None:
        text = f"at most {high}" if low is None else f"at least {low}"
    else:
        text = low if low == high else f"{low} to {high}"
    return f"{_BY[by]}: {record['column']} is {text}"


def _one(record: Mapping[str, Any], what: str) -> Cut:
    size = held(record["rows"], record["bytes"], record["files"] if what == "manifest" else None)
    lines = tuple(line for line in (record["term"], evidence(record), size) if line)
    return Cut(basename(record["name"]), lines, f"{record['name']}\n{record['why'] or ''}")


def _groups(why: pa.Table) -> list[dict[str, Any]]:
    """Group skipped items by term and kind of evidence, the largest group first.

    Each group is a dictionary with these keys:

    - ``term`` and ``by``, the kind of evidence.
    - ``row_count``, the number of its items, and ``row_min``, the row of the first one in ``why``.
    - ``files_sum``, ``rows_sum`` and ``bytes_sum``, and ``files_count``, ``rows_count`` and ``bytes_count``, the number
      of items for which the amount is known.
    - ``ranges``, the number of different pairs of bounds in the evidence.
    """
    table = why.select(["term", "by", "column", "lower", "upper", "files", "rows", "bytes"])
    table = table.append_column("row", pa.array(np.arange(len(why))))
    sums: list[Any] = [("row", "min"), ("row", "count")]
    for name in ("files", "rows", "bytes"):
        sums += [(name, "sum"), (name, "count")]
    found = build.to_pylist(table.group_by(["term", "by"], use_threads=False).aggregate(sums))
    ranges = (
        table.group_by(["term", "by", "column", "lower", "upper"], use_threads=False)
        .aggregate([])
        .group_by(["term", "by"], use_threads=False)
    )
    different = {(r["term"], r["by"]): r["count_all"] for r in ranges.aggregate([([], "count_all")]).to_pylist()}
    for group in found:
        group["ranges"] = different[group["term"], group["by"]]
    return sorted(found, key=lambda g: (-g["row_count"], g["row_min"]))


def _fold(group: Mapping[str, Any], why: pa.Table, what: str) -> Cut:
    count = group["row_count"]
    first = why.slice(group["row_min"], 1).to_pylist()[0]
    if count == 1:
        return _one(first, what)
    text, more = evidence(first), group["ranges"] - 1
    if more:
        text += f" in the first; {amount(more, 'other range')}"
    files, rows, size = (
        group[f"{name}_sum"] if group[f"{name}_count"] == count else None for name in ("files", "rows", "bytes")
    )
    amounts = held(rows, size, files if what == "manifest" else None)
    lines = tuple(line for line in (group["term"], text, amounts) if line)
    return Cut(f"{amount(count, what)} skipped", lines, _example(why, group["row_min"]), count)


def _example(why: pa.Table, row: int) -> str:
    return f"the first: {why['name'][row].as_py() or ''}\n{why['why'][row].as_py() or ''}"
