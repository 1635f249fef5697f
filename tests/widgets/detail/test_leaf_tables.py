"""Tables whose rows are made when they are looked at: the same in all that a grid does as their data frame."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.graph import build_tree
from iceexplore.inspect import Inspect
from iceexplore.widgets._explorer import Explorer
from iceexplore.widgets.detail import _node_tables
from iceexplore.widgets.detail._node_rows import nodes_of_rows, row_of_node
from iceexplore.widgets.grid import _table as _grid_table
from iceexplore.widgets.grid._arranged import ArrangedTable
from iceexplore.widgets.grid._copy_export import cell_text, csv_chunk, row_json
from iceexplore.widgets.grid._filter_sort import rows_in_order
from iceexplore.widgets.grid._page import page_of
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.grid._query import Filter, Order
from iceexplore.widgets.grid._table import FrameTable, LeafTable
from tests.doctor.damages import edit_avro, root_path

NAMES = ("files", "entries", "content_entries")


def simulated(version: int) -> ix.Table:
    """Several manifests with live, deleted and added entries, of one of which nothing is live; deletes."""
    s = ix.empty({"id": "long", "kind": "string"}, format_version=version, partition_by="kind")
    for turn in range(4):
        s.append(files=3 + turn, rows=100)
    paths = s.table.inspect.files()["file_path"].tolist()
    s.delete_files(paths[:4])
    if version > 1:
        s.row_delta(deletes={path: [0, 5] for path in paths[4:7]})
    s.append(files=2, rows=10)
    return s.table


@pytest.fixture(scope="module")
def tables() -> dict[str, ix.Table]:
    made = {f"v{version}": simulated(version) for version in (1, 2, 3, 4)}
    return {"trips": ix.sample("trips"), "nothing": ix.empty({"id": "long"}).table, **made}


def both(table: ix.Table, name: str) -> tuple[LeafTable, FrameTable]:
    found = Inspect(table.state)[name]
    rows = found.by_leaf()
    assert rows is not None
    return LeafTable(found, rows), FrameTable(found())


WHICH = ["trips", "nothing", "v1", "v2", "v3", "v4"]


def is_whole(table: LeafTable) -> bool:
    return table._whole is not None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", WHICH)
def test_rows_columns_and_pages(tables: dict[str, ix.Table], which: str, name: str) -> None:
    made, frame = both(tables[which], name)
    assert (made.names, made.right, len(made)) == (frame.names, frame.right, len(frame))
    rng = np.random.default_rng(7)
    for places in (rng.permutation(len(frame)), np.zeros(0, np.int64), np.repeat(np.arange(len(frame)), 2)[::-1]):
        pd.testing.assert_frame_equal(
            pd.DataFrame(made.rows(slice(0, None), places).reset_index(drop=True)),
            pd.DataFrame(frame.rows(slice(0, None), places).reset_index(drop=True)),
        )
    for place in range(len(frame.names)):
        assert made.column(place).equals(frame.column(place)), frame.names[place]
    for page in (0, 1, 99):
        assert page_of(made, page, 5) == page_of(frame, page, 5)
    assert csv_chunk(made, None, 0) == csv_chunk(frame, None, 0)
    if len(frame):
        last = len(frame) - 1
        assert row_json(made, last) == row_json(frame, last)
        assert cell_text(made, last, 1) == cell_text(frame, last, 1)
    assert not is_whole(made), "no frame of all rows was made"
    for wrong in (-1, len(frame.names)):
        with pytest.raises(OptionError, match="columns, so there is no column"):
            made.column(wrong)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["trips", "v3", "v4"])
def test_filters_and_sorting(tables: dict[str, ix.Table], which: str, name: str) -> None:
    made, frame = both(tables[which], name)
    place = frame.names.index("data_file" if name == "entries" else "record_count")
    filters = [(), (Filter(None, "contains", "1"),), (Filter(place, "not null", ""), Filter(0, "contains", "0"))]
    sorts: list[Any] = [(i, way) for i, way in zip(range(len(frame.names)), itertools.cycle(("asc", "desc")))]
    for some, sort in [*((some, None) for some in filters), *zip(itertools.cycle(filters), sorts)]:
        found, wanted = (rows_in_order(one, Order(sort, some)) for one in (made, frame))
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            assert found.tolist() == wanted.tolist(), (some, sort)
    with pytest.raises(OptionError, match="there is no column 99"):
        rows_in_order(made, Order(None, (Filter(99, "contains", "x"),)))
    assert not is_whole(made)


def test_rows_of_many_manifests_are_kept_with_the_next(
    tables: dict[str, ix.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, frame = both(tables["v3"], "files")
    order = rows_in_order(made, Order((frame.names.index("file_path"), "desc")))
    assert order is not None
    assert _grid_table._MOST_MADE < _node_tables.MANY_ROWS, "a CSV of such tables made all rows again and again"
    monkeypatch.setattr(_grid_table, "_MOST_MADE", 8)
    taken: list[list[int]] = []
    take = made._rows.take

    def counted(places: Any, *, plain: bool) -> Any:
        assert not plain, "the page has columns of statistics"
        taken.append(places.tolist())
        return take(places, plain=plain)

    monkeypatch.setattr(made._rows, "take", counted)
    assert page_of(made, 0, 2) == page_of(frame, 0, 2)
    before = made.nbytes
    monkeypatch.setattr(_grid_table, "_MOST_MADE", -1)
    monkeypatch.setattr(_grid_table, "_AHEAD_BYTES", int(8.5 * max(made._rows.row_nbytes, 1_000)))
    assert page_of(made, 2, 2, rows=order) == page_of(frame, 2, 2, rows=order)
    assert made.nbytes > before
    assert page_of(made, 3, 2, rows=order) == page_of(frame, 3, 2, rows=order)
    assert page_of(made, 1, 2, rows=order) == page_of(frame, 1, 2, rows=order)
    assert taken == [[0, 1], sorted(order[2:10].tolist())], "the pages beside it were there already"
    assert csv_chunk(made, order, 0) == csv_chunk(frame, order, 0)
    assert not is_whole(made)
    pd.testing.assert_frame_equal(made.frame(), frame.frame())
    assert is_whole(made) and made.nbytes >= frame.nbytes
    assert made._ahead.nbytes == 0, "nothing is kept twice"
    assert made.column(1).equals(frame.column(1))
    assert page_of(made, 2, 2, rows=order) == page_of(frame, 2, 2, rows=order)


def test_columns_without_statistics_are_built_alone(
    tables: dict[str, ix.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, frame = both(tables["v3"], "files")
    monkeypatch.setattr(_grid_table, "_MOST_MADE", -1)
    order = rows_in_order(made, Order((frame.names.index("file_path"), "desc")))
    assert order is not None
    few = [frame.names.index(name) for name in ("file_path", "record_count", "partition") if name in frame.names]
    for page in (0, 1, 3):
        at = slice(page * 2, page * 2 + 2)
        assert made.values(at, order, few) == frame.values(at, order, few)
        assert made._ahead.plain and "lower_bounds" not in made._ahead._made.column_names
    at = slice(2, 4)
    wide = [frame.names.index("lower_bounds"), *few]
    assert made.values(at, order, wide) == frame.values(at, order, wide)
    assert not made._ahead.plain
    assert made.values(at, order, few) == frame.values(at, order, few), "the wide rows serve, too"
    assert not made._ahead.plain


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", WHICH)
def test_few_rows_are_built_at_once(tables: dict[str, ix.Table], which: str, name: str) -> None:
    found = Inspect(tables[which].state)[name]
    rows = found.by_leaf()
    assert rows is not None
    few = rows.if_few(1_000)
    assert few is not None
    assert few.equals(found.arrow())
    assert "_begins" not in vars(rows), "they were not counted first"
    if len(few):
        assert rows.if_few(len(few) - 1) is None


def test_more_rows_than_the_root_states_are_not_built_at_once(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    s.append(files=20, rows=100)
    s.save(tmp_path / "t")

    def understate(rows: list[Any], _: dict[str, str]) -> None:
        for row in rows:
            row.update({"added_files_count": 1, "existing_files_count": 0, "deleted_files_count": 0})

    edit_avro(root_path(tmp_path / "t"), understate)
    rows = Inspect(ix.open(tmp_path / "t").state)["files"].by_leaf()
    assert rows is not None
    assert rows.if_few(19) is None
    assert rows.if_few(20) is not None


@pytest.mark.parametrize("which", ["trips", "v2", "v4"])
def test_rows_lead_to_nodes_and_back(tables: dict[str, ix.Table], which: str) -> None:
    table = tables[which]
    assert table.snapshot is not None
    tree = build_tree(table.state, depth="snapshots")
    node = tree.node(f"snapshot:{table.snapshot.snapshot_id}")
    for name in ("files", "entries"):
        made, frame = both(table, name)
        rows = list(range(len(frame)))
        found = nodes_of_rows(table.state, node, name, made, rows)
        assert found == nodes_of_rows(table.state, node, name, frame, rows)
        assert any(found)
        for at in filter(None, found):
            there = tree.node(at)
            places = [row_of_node(table.state, node, name, one, there) for one in (made, frame)]
            assert places[0] == places[1] is not None
    assert row_of_node(table.state, node, "files", made, tree.node("table")) is None


def test_the_explorer_makes_no_frame_of_many_files(
    tables: dict[str, ix.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_node_tables, "MANY_ROWS", 3)
    table = tables["v3"]
    assert table.snapshot is not None
    of = f"snapshot:{table.snapshot.snapshot_id}"
    widget = Explorer(table)
    widget.query = {"detail": {"n": 1, "of": of, "table": "files"}}
    assert widget.settle(60) and widget.error == {}
    page = widget.pages["detail"]
    assert "bars" not in page, "no manifest is read for them"
    place = [column["name"] for column in page["columns"]].index("record_count")
    widget.query = {"detail": {"n": 2, "of": of, "table": "files", "sort": [place, "desc"]}}
    assert widget.settle(60) and widget.error == {}
    page = widget.pages["detail"]
    assert page["total"] == len(table.inspect.files())
    counts = [int(row[page["shown"].index(place)] or 0) for row in page["rows"]]
    assert counts == sorted(counts, reverse=True)
    assert list(page["bars"]) == [str(place)] and page["bars"][str(place)][0] == 100, "the sorted column is known"
    arranged = widget._panel(GridPanel).table("detail", of, "files")
    assert isinstance(arranged, ArrangedTable)
    kept = arranged.base
    assert isinstance(kept, LeafTable) and not is_whole(kept)
    pd.testing.assert_frame_equal(arranged.frame(), table.inspect.files())
    widget.close()


def test_a_missing_manifest_has_no_rows_and_a_problem(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    for _ in range(3):
        s.append(files=2, rows=10)
    s.save(tmp_path / "t")
    t = ix.open(tmp_path / "t")
    gone = t.inspect.manifests()["path"].iloc[1]
    (tmp_path / "t" / "metadata" / gone.rpartition("/")[2]).unlink()
    t = ix.open(tmp_path / "t")
    made, _ = both(t, "files")
    assert len(made) == 4
    assert [p.code for p in t.problems] == ["file-missing"]
    assert len(made.rows(slice(0, 10))) == 4
    assert json.loads(row_json(made, 3))["record_count"] == 10


def test_a_manifest_whose_statistics_are_damaged_keeps_its_rows(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "kind": "string"}, format_version=4, partition_by="kind", flush_data_files=0)
    for _ in range(2):
        s.append(files=20, rows=10)
    s.save(tmp_path / "t")
    saved = tmp_path / "t"
    leaf = ix.open(saved).inspect.manifests()["path"][0]
    path = Path(leaf.removeprefix("file://"))
    group = pq.ParquetFile(path).metadata.row_group(0)
    bounds = [c for i in range(group.num_columns) if (c := group.column(i)).path_in_schema.endswith("lower_bound")]
    data = bytearray(path.read_bytes())
    for chunk in bounds:
        at = chunk.dictionary_page_offset or chunk.data_page_offset
        data[at : at + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)
    damaged = ix.open(saved)
    made, frame = both(damaged, "files")
    assert len(made) == len(frame) == 40
    pd.testing.assert_frame_equal(pd.DataFrame(made.rows(slice(None))), pd.DataFrame(frame.frame()))
    assert "Parquet page" in " ".join(p.text for p in damaged.problems)
