"""Operations with a filter read the data manifests that a plan reads, and no others, when they commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.commits import check_rules
from iceexplore.storage import CACHE

LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"format_version": 3},
    "v4": {"format_version": 4, "flush_data_files": 0},
    "draft": {"format_version": 4, "dialect": "v4-draft", "flush_data_files": 0},
}
DAYS = 6
WHERE = "day = 'd3'"
#: Operations, and the rows of the day that they leave.
OPERATIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "delete_where": (lambda s: s.delete_where(WHERE), 0),
    "overwrite": (lambda s: s.overwrite(rows(3, 1), where=WHERE), 1),
    "compact": (lambda s: s.compact(where=WHERE), 4),
    "delete": (lambda s: s.delete(WHERE + " and id in (6, 8)"), 2),
    "update": (lambda s: s.update({"v": 2.0}, WHERE + " and id in (6, 8)"), 4),
    "update_columns": (lambda s: s.update_columns({"v": 2.0}, where=WHERE + " and id in (6, 8)"), 4),
}


def rows(day: int, count: int = 2, first: int = 0) -> pa.Table:
    return pa.table(
        {"id": range(day * 2 + first, day * 2 + first + count), "day": [f"d{day}"] * count, "v": [1.0] * count}
    )


def table(folder: Path, layout: dict[str, Any]) -> ix.Lab:
    """A manifest for each day, and one more for the day that the filter selects."""
    made = ix.create(folder, {"id": "long", "day": "string", "v": "double"}, partition_by=["day"], **layout)
    for day in range(DAYS):
        made.append(rows(day))
    made.append(rows(3, first=2))
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_manifests_that_may_list_matching_files_are_read(layout: str, tmp_path: Path) -> None:
    made = table(tmp_path / "t", LAYOUTS[layout])
    manifests = set(made.inspect.manifests.arrow()["path"].to_pylist())
    assert len(manifests) == DAYS + 1
    for name, (act, left) in OPERATIONS.items():
        if name == "update_columns" and layout != "draft":
            continue
        CACHE.clear()
        if hasattr(ix.Simulation, name) and name != "update_columns":
            s: Any = ix.open(tmp_path / "t").simulate()
        else:
            table(tmp_path / name, LAYOUTS[layout])
            CACHE.clear()
            s = ix.lab(tmp_path / name)
        before = len(s.reads)
        act(s)
        read = {r.location for r in list(s.reads)[before:] if r.kind == "manifest"}
        assert len(read) == 2, (name, read)
        assert s.count("day = 'd3'") == left and s.count() == 2 * (DAYS - 1) + left
        assert check_rules(s.state) == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_manifests_that_another_writer_rewrote(layout: str, tmp_path: Path) -> None:
    """The files are then in a manifest that the plan did not know."""
    made = table(tmp_path / "t", LAYOUTS[layout])
    s = ix.open(tmp_path / "t").simulate()
    other = s.fork()
    assert s.rewrite_manifests() is not None
    other.overwrite(rows(3, 1), where=WHERE, isolation="snapshot")
    assert other.count("day = 'd3'") == 1 and other.count() == made.count() - 3
    assert check_rules(other.state) == []
