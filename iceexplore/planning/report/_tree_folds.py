"""Make the nodes, in the tree of a plan, for manifests and files that the plan skips.

A node shows the term of the filter that matches no row, such as ``id > 9``, and the metadata that proves this, such as
``bounds: id is 0 to 9``. If there are only a few skipped items, each gets a node. Otherwise, the items that the same
term excludes are represented by one node.
"""

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
    label
        For one item, the last part of its location. For several, their number, such as ``12 files skipped``.
    lines
        The texts below the label. If all items are skipped because of the same term of the filter, there are up to
        three texts: the term, such as ``id > 9``; the metadata of the first item, which proves that none of its rows
        match, such as ``bounds: id is 0 to 9``; and the total rows and bytes of the items. Otherwise, there are two:
        the number of different reasons, and the first two terms.
    tooltip
        The location of the item, and the full explanation of why it is skipped. If the node represents several items,
        the location and explanation of the first item.
    count
        Number of items that the node represents.
    """

    label: str
    lines: tuple[str, ...]
    tooltip: str
    count: int = 1


def cuts(why: pa.Table, what: str, *, single: int, most: int) -> list[Cut]:
    """Return the nodes for skipped files or manifests.

    Parameters
    ----------
    why
        A table of `SKIPPED_SCHEMA` with one row per skipped item.
    what
        The noun for the items in labels: ``file`` or ``manifest``.
    single
        If there are at most this many items, each gets a node. Otherwise, the items are grouped, and a group gets a
        node. Items are in the same group if the same term of the filter (a comparison, such as ``id > 9``) excludes
        them, and the same kind of metadata (such as partition values or bounds) proves that it matches no row.
    most
        The maximum number of groups that get a node each; the groups with the most items are preferred. All other
        groups share one more node.
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
    """Return, as a short text, the metadata that proves that no row of a skipped item matches the filter.

    Examples are ``partition: region is b`` and ``bounds: id is 0 to 9``. If the proof is not a value or a range of
    values of one column, the explanation in ``record["why"]`` is returned. Its end, such as ``: no row has id > 9``, is
    removed, because it only repeats the condition of the filter.

    Parameters
    ----------
    record
        The skipped manifest, data file or row group, as a dictionary with the columns of `WHY_SCHEMA`.
    """
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
    """Group skipped items (manifests or data files) that have the same ``term`` and ``by``.

    Parameters
    ----------
    why
        A table of `SKIPPED_SCHEMA`, with one row per skipped item.

    Returns
    -------
    list of dict
        The groups; the group with the most items comes first. Each has these keys:

        - ``term``: the part of the filter that excludes the items, such as ``id > 9``; None for empty manifests.
        - ``by``: the kind of metadata that proves that no row matches, such as ``partition`` or ``bounds``.
        - ``row_count``: the number of items.
        - ``row_min``: the row, in ``why``, of the first item of the group.
        - ``files_sum``, ``rows_sum``, ``bytes_sum``: the sums of the columns ``files``, ``rows`` and ``bytes``.
        - ``files_count``, ``rows_count``, ``bytes_count``: the number of items whose value in that column is not null.
          If it is less than ``row_count``, the sum is incomplete.
        - ``ranges``: the number of different combinations of ``column``, ``lower`` and ``upper`` among the items.
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
        text += f" in the first of these; {amount(more, 'other range')} not shown"
    files, rows, size = (
        group[f"{name}_sum"] if group[f"{name}_count"] == count else None for name in ("files", "rows", "bytes")
    )
    amounts = held(rows, size, files if what == "manifest" else None)
    lines = tuple(line for line in (group["term"], text, amounts) if line)
    return Cut(f"{amount(count, what)} skipped", lines, _example(why, group["row_min"]), count)


def _example(why: pa.Table, row: int) -> str:
    return f"the first of these: {why['name'][row].as_py() or ''}\n{why['why'][row].as_py() or ''}"
