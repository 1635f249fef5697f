"""Clustering: depths by brute force, of whole tables and within partitions, by default and of named columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.planning.distribution._clustering import overlaps


def test_depths_are_those_of_counting() -> None:
    rng = np.random.default_rng(11)
    for count, values, wide in ((1, 1, 1), (7, 3, 2), (40, 50, 9), (60, 10, 10), (80, 400, 60)):
        low = rng.integers(0, values, count)
        high = low + rng.integers(0, wide, count)
        group = rng.integers(0, 3, count)
        for one in (np.zeros(count, dtype=np.int64), group):
            depth, others = overlaps(low, high, one)
            for i in range(count):
                mine = one == one[i]
                at = [int(((low <= v) & (v <= high) & mine).sum()) for v in range(low[i], high[i] + 1)]
                assert depth[i] == max(at)
                assert others[i] == int(((low <= high[i]) & (low[i] <= high) & mine).sum()) - 1
        assert overlaps(low, high)[0].tolist() == overlaps(low, high, np.zeros(count, dtype=np.int64))[0].tolist()
    assert [len(a) for a in overlaps(low[:0], low[:0], group[:0])] == [0, 0]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> ix.Lab:
    """A partitioned table: ``id`` is sorted within partitions, ``name`` is not, and ``tags`` has several values."""
    columns = {"id": "long", "k": "string", "name": "string", "tags": "list<string>", "s": "struct<x: double>"}
    lab = ix.create(tmp_path_factory.mktemp("c") / "t", columns, partition_by="k", format_version=2)
    for first in (0, 10, 20):
        for k in ("a", "b"):
            lab.append(
                {
                    "id": [first, first + 9],
                    "k": [k, k],
                    "name": ["a", "z"],
                    "tags": [["x"], ["y"]],
                    "s": [{"x": float(first)}, {"x": float(first)}],
                }
            )
    return lab


def test_partitions_are_measured_apart(lab: ix.Lab) -> None:
    found = lab.plan().clustering()
    rows = {row["column"]: row for row in found.columns.to_pylist()}
    assert set(rows) == {"id", "k", "name", "s.x"}
    assert rows["id"] == {
        "column": "id", "files": 6, "constant": 0, "average_depth": 2.0, "max_depth": 2, "average_overlaps": 1.0,
        "partition_average_depth": 1.0, "partition_max_depth": 1,
    }  # fmt: skip
    assert (rows["name"]["average_depth"], rows["name"]["partition_max_depth"]) == (6.0, 3)
    assert (rows["k"]["constant"], rows["k"]["max_depth"]) == (6, 3)
    assert rows["s.x"]["constant"] == 6
    assert len(found.to_pandas()) == 4
    name = "average depth within partitions"
    assert name in repr(found) and name in found._repr_html_()


def test_only_files_of_a_plan_count(lab: ix.Lab) -> None:
    found = lab.plan("k = 'a' and id < 15").clustering("id")
    assert (found.files, found.columns["max_depth"].to_pylist()) == (2, [1])
    none = lab.plan("id > 1000").clustering()
    assert (none.files, len(none.columns)) == (0, 0)
    assert "Clustering" in repr(none)


def test_manifests_that_the_plan_skips_are_not_read(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=2)
    for k in ("a", "b") * 3:
        lab.append({"id": [1, 2], "k": [k, k]})
    plan = ix.open(lab.location).plan("k = 'a'")
    reads = plan.state.storage.reads
    before = len(reads)
    assert plan.clustering("id").files == 3
    skipped = set(plan.skipped["name"][plan.skipped["kind"] == "manifest"])
    assert len(skipped) == 3
    assert not skipped & {read.location for read in list(reads)[before:]}


def test_columns_are_those_of_the_sort_order(lab: ix.Lab) -> None:
    assert lab.plan().clustering(["name", "id"]).columns["column"].to_pylist() == ["name", "id"]
    refused = {
        "nam": "^no column 'nam'; nearest: name",
        "tags": "^column 'tags' has type list<string>, whose values have no order; ",
        "tags.element": "^column 'tags.element' is inside a list or map, so a row has several values; ",
        "s": "^column 's' has type struct<.*>, whose values have no order; ",
    }
    for name, why in refused.items():
        with pytest.raises(OptionError, match=why):
            lab.plan().clustering([name])
    s = lab.simulate(seed=1)
    s.set_sort_order("id")
    found = s.plan().clustering()
    assert (found.columns["column"].to_pylist(), found.notes) == (["id"], ())


def test_columns_without_bounds_are_named(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "x": "long"}, format_version=2)
    lab.set_properties({"write.metadata.metrics.column.x": "none"})
    lab.append({"id": [1], "x": [1]})
    assert lab.plan().clustering().columns["column"].to_pylist() == ["id"]
    found = lab.plan().clustering(["id", "x"])
    assert found.notes == ("No file has both bounds of these columns, or their values have no order: x.",)
    assert found.columns["partition_max_depth"].to_pylist() == [None]
    assert "in partition" not in repr(found)


@pytest.mark.parametrize("version", [1, 3, 4])
def test_wide_tables_show_the_first_columns(version: int) -> None:
    s = ix.empty({f"c{i}": "long" for i in range(25)}, format_version=version)
    s.append(files=3, rows=10)
    found = s.plan().clustering()
    assert found.columns["column"].to_pylist() == [f"c{i}" for i in range(20)]
    assert "only its first 20 columns" in found.notes[0]
    assert s.maintenance().clustering("c24").columns["files"].to_pylist() == [3]
