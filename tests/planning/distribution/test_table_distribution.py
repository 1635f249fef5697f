"""Where bytes, rows, small files and deletes sit: sums against plain sums over `inspect.files` and the plan's tasks."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.planning import FileTasks, TableDistribution
from iceexplore.planning.delete_index._lists import Stretches
from iceexplore.planning.distribution._table_distribution import By, Reached, table_distribution
from tests.helpers.hostile import HOSTILE
from tests.helpers.tables import plan_table as lab

BY = ("age", "partition", "size", "snapshot", "spec")
DAY = 86_400_000
SHOWN: tuple[By, ...] = ("spec", "age")


@pytest.fixture(scope="module", params=list(lab.LAYOUTS))
def table(request: pytest.FixtureRequest) -> ix.Simulation:
    return lab.with_deletes(request.param)


def label(partition: Any) -> str:
    """A tuple as `inspect.files` has it, in the words of a distribution."""
    if not isinstance(partition, dict):
        return "unpartitioned"
    return ", ".join(f"{name}={'null' if v is None else v}" for name, v in partition.items())


def data_files(table: Any) -> pd.DataFrame:
    files = table.inspect.files()
    found: pd.DataFrame = files[files["content"] == 0]
    return found


@pytest.mark.parametrize("by", BY)
def test_nothing_is_lost(table: ix.Simulation, by: Any) -> None:
    files, frame = data_files(table), table.plan().distribution(by).frame
    assert frame["files"].sum() == len(files) == 15
    assert frame["bytes"].sum() == files["file_size_in_bytes"].sum()
    assert frame["rows"].sum() == files["record_count"].sum() == 50
    assert (frame["small_files"].sum(), frame["small_bytes"].sum()) == (15, files["file_size_in_bytes"].sum())
    deletes = 0 if table.format_version == 1 else 2
    assert frame["deleted_rows"].sum() == frame["files_with_deletes"].sum() == deletes


def test_partitions_are_those_of_the_files(table: ix.Simulation) -> None:
    files = data_files(table)
    frame = table.plan().distribution("partition").frame.set_index("partition")
    wanted = files.groupby(files["partition"].map(label))[["record_count", "file_size_in_bytes"]].sum()
    assert dict(zip(frame.index, frame["rows"], strict=True)) == wanted["record_count"].to_dict()
    assert dict(zip(frame.index, frame["bytes"], strict=True)) == wanted["file_size_in_bytes"].to_dict()
    assert list(frame.index)[:3] == [f"day_day=2024-01-01, region={r}" for r in ("null", "a", "b")], (
        "by value, null first"
    )


def test_deletes_are_those_of_the_tasks(table: ix.Simulation) -> None:
    plan = table.plan()
    tasks, frame = plan.tasks, plan.distribution("partition").frame.set_index("partition")
    reached: dict[str, set[str]] = defaultdict(set)
    for row in tasks.to_dict("records"):
        vector = [f"{row['deletion_vector']} of {row['file_path']}"] if isinstance(row["deletion_vector"], str) else []
        reached[row["partition"]] |= {*vector, *row["position_deletes"], *row["equality_deletes"]}
    assert {p: len(d) for p, d in reached.items() if d} == {
        p: n for p, n in zip(frame.index, frame["delete_files"], strict=True) if n
    }


@pytest.mark.parametrize("version", [2, 3])
def test_position_and_equality_deletes(version: int) -> None:
    table = lab.filled("v2" if version == 2 else "v3")
    files = data_files(table)
    first = files.iloc[0]
    table.row_delta(deletes={first["file_path"]: [0, 1]})
    table.row_delta(equality={"id": [3, 44], "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 5)], "region": ["a", "b"]})
    plan = table.plan()
    frame = plan.distribution("partition").frame.set_index("partition")
    reached = frame["equality_deletes"]
    tasks = plan.tasks
    for partition, rows in tasks.groupby("partition"):
        names = {name for names in rows["equality_deletes"] for name in names}
        assert reached[partition] == len(names)
    assert frame.loc[label(first["partition"]), "deleted_rows"] == 2
    assert frame["deleted_rows"].sum() == 2, "nobody can count what equality deletes delete"
    assert "equality" in repr(plan.distribution())


def test_evolved_specs() -> None:
    table = lab.filled("v2", partition_by=("region",), appends=2)
    table.evolve_spec(add=["day(day)"], remove=["region"])
    table.append(lab.frame(lab.rows_of(2) + lab.rows_of(3)))
    table.evolve_spec(remove=["day_day"])
    table.append(lab.frame(lab.rows_of(4)))
    files, plan = data_files(table), table.plan()
    specs = plan.distribution("spec").frame
    assert (
        dict(zip(specs["spec_id"], specs["rows"], strict=True))
        == files.groupby("spec_id")["record_count"].sum().to_dict()
    )
    partitions = plan.distribution("partition").frame
    assert partitions["partition"].tolist() == [
        "region=null", "region=a", "region=b", "day_day=2024-01-03", "day_day=2024-01-04", "unpartitioned",
    ]  # fmt: skip
    assert partitions["rows"].tolist() == [6, 8, 6, 10, 10, 10]


def aged() -> ix.Simulation:
    """A table with an append 400, 80, 6 and 0 days before its last snapshot."""
    table = lab.filled("v2", appends=0)
    now = (table.metadata.last_updated_ms or 0) + 500 * DAY
    for n, days in enumerate((400, 80, 6, 0)):
        table._sandbox.shared.clock = lambda at=now - days * DAY: at
        table.append(lab.frame(lab.rows_of(n)))
    return table


def test_ages_count_from_the_snapshot_shown() -> None:
    table = aged()
    frame = table.plan().distribution("age").frame
    assert frame["age"].tolist() == ["under an hour", "under a week", "under 90 days", "a year or more"]
    assert frame["rows"].tolist() == [10, 10, 10, 10]
    earlier = table.at(snapshot=table.metadata.snapshots[1].snapshot_id).plan().distribution("age").frame
    assert earlier["age"].tolist() == ["under an hour", "under a year"]
    snapshots = table.plan().distribution("snapshot").frame
    assert snapshots["committed"].is_monotonic_increasing
    assert snapshots["operation"].tolist() == ["append"] * 4
    table.expire_snapshots(retain_last=1)
    kept = table.plan().distribution("age").frame
    assert kept["age"].tolist() == ["under an hour", "snapshot has expired"]
    assert kept["rows"].tolist() == [10, 30]


def test_sizes_are_a_histogram_and_small_is_what_the_table_says() -> None:
    table = lab.filled("v2", appends=2)
    found = table.plan().distribution("size")
    frame, sizes = found.frame, data_files(table)["file_size_in_bytes"]
    for row in frame.to_dict("records"):
        assert row["files"] == ((sizes >= row["from_bytes"]) & (sizes < row["to_bytes"])).sum()
    assert (frame["from_bytes"].iloc[1:].to_numpy() == frame["to_bytes"].iloc[:-1].to_numpy()).all()
    middle = int(sizes.median())
    table.set_properties({"write.target-file-size-bytes": str(middle * 4 // 3)})
    found = table.plan().distribution("spec")
    assert found.small == middle * 4 // 3 * 3 // 4
    assert found.frame["small_files"].sum() == (sizes < found.small).sum()
    table.set_properties({"write.target-file-size-bytes": "no number"})
    assert table.plan().distribution().small == 384 << 20


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_empty_table(version: int, by: Any) -> None:
    table = ix.empty({"x": "long"}, format_version=version, seed=1)
    found = table.plan().distribution(by)
    assert len(found.frame) == 0
    assert "0 files" in repr(found)
    ElementTree.fromstring(str(found.to_svg()))


def test_of_many_groups_the_largest_are_shown() -> None:
    table = ix.empty({"x": "long"}, partition_by="x", format_version=2, seed=1)
    for n, rows in ((10, 1), (1, 30), (1, 20)):
        places = [{"x": 100 * rows + i} for i in range(n)]
        table.append(n, rows=rows, partitions=places, bytes_per_row=1000)
    for x in range(20):
        table.append(1, rows=2, partitions=[{"x": x}], bytes_per_row=1000)
    found = table.plan().distribution()
    chart = found.chart()
    assert len(found.frame) == 32
    assert [r.label for r in chart.rows[:3]] == ["x=3000", "x=2000", "x=0"]
    assert (len(chart.rows), chart.rows[-1].label) == (14, "19 more")
    rest = found.frame.sort_values("bytes", ascending=False, kind="stable")["rows"].iloc[13:].sum()
    assert chart.rows[-1].bars[2] is not None
    assert chart.rows[-1].bars[2].text == str(rest)


def test_another_word() -> None:
    with pytest.raises(OptionError, match="by='colour': choose one of 'age', 'partition'"):
        lab.filled("v2", appends=1).plan().distribution("colour")  # type: ignore[arg-type]


@pytest.mark.parametrize("by", BY)
def test_damaged_numbers_count_as_none(by: Any) -> None:
    table = lab.with_deletes("v2")
    tasks = table.plan().files
    worst = [None, -1, -(2**63), 2**63 - 1, 0]
    damaged = tasks.files.with_columns(
        record_count=pa.array(worst * 3, pa.int64()),
        file_size_in_bytes=pa.array(worst[::-1] * 3, pa.int64()),
        snapshot_id=pa.array([None, 5, -1, 2**62, 0] * 3, pa.int64()),
        partition_spec_id=pa.array([None, 0, 99, -7, 0] * 3, pa.int32()),
    )
    broken = FileTasks(damaged, tasks.root_row, tasks.whole, tasks.residual, tasks.residuals, tasks.matched)
    found = table_distribution(table.state, broken, by)
    frame = found.frame
    assert frame["files"].sum() == 15
    assert frame["rows"].sum() == frame["bytes"].sum() == 3 * 2**50
    assert (frame[["deleted_rows", "small_bytes"]] >= 0).all(axis=None)
    assert "15 files" in repr(found)
    ElementTree.fromstring(str(found.to_svg()))


@pytest.mark.parametrize("name", [n for n in HOSTILE if n not in ("surrogate", "noncharacter")])
def test_hostile_partition_values_stay_text(name: str) -> None:
    text = HOSTILE[name]
    table = ix.empty({"x": "string"}, partition_by="x", format_version=2, seed=1)
    table.append(2, rows=3, partitions=[{"x": text}, {"x": "plain"}])
    found = table.plan().distribution()
    assert found.frame["files"].tolist() == [1, 1]
    assert_harmless(found)


@pytest.mark.parametrize("name", [n for n in HOSTILE if n not in ("surrogate", "nul", "noncharacter")])
def test_hostile_table_names_stay_text(name: str) -> None:
    table = ix.empty({"x": "long"}, format_version=2, seed=1, location=f"/warehouse/db/{HOSTILE[name][:100]}/t")
    table.append(1, rows=3)
    for by in SHOWN:
        assert_harmless(table.plan().distribution(by))


def assert_harmless(found: TableDistribution) -> None:
    """Nothing runs in a notebook, and nothing drives a terminal."""
    shown = found._repr_mimebundle_()
    for tag in ("<script", "<img src=x", "<svg onload", "<style>*", "<foreignObject", "<b>bold", '"javascript'):
        assert tag not in shown["text/html"]
    for sign in "\x1b\x07\x9b\r\x08\u202e\u2066\x00":
        assert sign not in shown["text/plain"]
    root = ElementTree.fromstring(str(found.to_svg()))
    for element in root.iter():
        assert element.tag.rpartition("}")[2] not in ("script", "foreignObject", "image", "a", "b", "img")
        assert not any(key.lower().startswith("on") or "href" in key for key in element.attrib)


@st.composite
def shared_lists(draw: st.DrawFn) -> tuple[pa.ListViewArray, np.ndarray]:
    """Lists that share stretches of the values, as matched deletes do; and the group of each."""
    values = draw(st.lists(st.integers(0, 6), max_size=12))
    count = draw(st.integers(0, 8))
    starts = [draw(st.integers(0, len(values))) for _ in range(count)]
    sizes = [draw(st.integers(0, len(values) - s)) for s in starts]
    lists = build.list_view_array(
        pa.array(starts, pa.int32()), pa.array(sizes, pa.int32()), pa.array(values, pa.int32())
    )
    return lists, np.array([draw(st.integers(0, 2)) for _ in range(count)], dtype=np.int64)


@given(shared_lists())
def test_deletes_that_reach_a_group_are_counted_once(made: tuple[pa.ListViewArray, np.ndarray]) -> None:
    lists, codes = made
    empty: Any = None
    wanted: list[set[int]] = [set(), set(), set()]
    for code, names in zip(codes.tolist(), build.to_pylist(lists), strict=True):
        wanted[code] |= set(names)
    found = Reached(empty, codes, 3)._lists(Stretches.of(lists))
    assert found.tolist() == [len(w) for w in wanted]
