"""The figures of a table's health, compared with what a loop over the rows of its metadata tables counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iceexplore as ix
from iceexplore.doctor import HealthFigure, Shown, TableHealth
from iceexplore.errors import OptionError
from tests.doctor.test_health import MIB, simulated, spread, with_equality, with_positions

TARGET = 512 * MIB


def data_files(table: Any) -> list[dict[str, Any]]:
    return [row for row in table.inspect.files.arrow().to_pylist() if row["content"] == 0]


def bar_of(figure: HealthFigure, label: str) -> list[float]:
    (bar,) = [b for b in figure.bars if b.label == label]
    return [v[0] for v in bar.values if v is not None]


def matches(row: dict[str, Any], where: tuple[tuple[str, str, str], ...]) -> bool:
    """Apply a figure's conditions to a row of a metadata table, as the grid does."""
    return all(_matches(row[name], op, value) for name, op, value in where)


def _matches(cell: Any, op: str, value: str) -> bool:
    if op in ("null", "not null"):
        return (cell is None) == (op == "null")
    number = int(value)
    return bool({"=": cell == number, "!=": cell != number, "<": cell < number, ">=": cell >= number}[op])


def test_the_histogram_counts_each_file_once(tmp_path: Path) -> None:
    sizes = [1, 2, 3, 4, 7, 8, 100, 384, 511, 512, 600, 1024]
    t = simulated(tmp_path, [{"mib": size, "k": "a"} for size in sizes])
    figure = t.health()["sizes"]
    files = data_files(t)
    for row in figure.to_pandas().to_dict("records"):
        mine = [f for f in files if row["from_bytes"] <= f["file_size_in_bytes"] < row["to_bytes"]]
        assert (row["files"], row["bytes"]) == (len(mine), sum(f["file_size_in_bytes"] for f in mine))
        assert row["target"] == (row["from_bytes"] <= TARGET < row["to_bytes"])
    assert figure.to_pandas()["files"].sum() == len(sizes)
    assert figure.verdict.startswith("7 of 12 data files are smaller than 384.0 MiB")
    assert figure.attention
    everything = t.inspect.files.arrow().to_pylist()
    for bar in figure.bars:
        if bar.show is not None:
            assert sum(matches(row, bar.show.where) for row in everything) == bar.values[0][0]
    assert sum(matches(row, figure.show.where) for row in everything) == 7


def test_the_target_is_marked_where_no_file_is(tmp_path: Path) -> None:
    t = simulated(tmp_path, [{"mib": 1}, {"mib": 1}])
    rows = t.health()["sizes"].to_pandas().to_dict("records")
    assert [(r["from_bytes"], r["files"], r["target"]) for r in rows] == [(MIB, 2, False), (TARGET, 0, True)]
    t.set_properties({"write.target-file-size-bytes": "1000"})
    rows = t.health()["sizes"].to_pandas().to_dict("records")
    assert [(r["from_bytes"], r["target"]) for r in rows] == [(512, True), (MIB, False)]
    t.set_properties({"write.target-file-size-bytes": "many"})
    health = t.health()
    assert "no valid" in health.gain_note("sizes") or "whole number" in health.gain_note("sizes")
    assert "512.0 MiB" in health["sizes"].verdict, "an invalid property counts as the default"


def test_many_powers_of_two_become_few_bins(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}).simulate()
    lab.append([{"location": f"data/{p}.parquet", "record_count": 1, "file_size_in_bytes": 2**p} for p in range(30)])
    rows = lab.health()["sizes"].to_pandas()
    assert len(rows) == 15
    assert rows["files"].tolist() == [2] * 15


def test_deletes_are_those_of_a_plan(tmp_path: Path) -> None:
    t = ix.sample("trips")
    plan = t.plan()
    tasks = plan.tasks
    figure = t.health()["deletes"]
    assert bar_of(figure, "with a deletion vector")[0] == tasks["deletion_vector"].notna().sum()
    with_files = [n for n, v in zip(tasks["deletes"], tasks["deletion_vector"].isna(), strict=True) if n and v]
    assert bar_of(figure, "with position delete files")[0] == len(with_files)
    assert figure.verdict == "10 deletes apply to 10 of 12 data files, and remove 75 of 718 rows (10 %)."
    assert sum(tasks["rows"]) - t.count() == 75
    kinds = t.inspect.files.arrow().to_pylist()
    assert sum(matches(r, figure.show.where) for r in kinds) == 10  # type: ignore[union-attr]
    vectors = next(b for b in figure.bars if b.label == "with a deletion vector")
    assert vectors.show == Shown("map", of="with a deletion vector", instead=vectors.show.instead)  # type: ignore[union-attr]
    assert sum(matches(r, vectors.show.instead.where) for r in kinds) == 9  # type: ignore[union-attr]


def test_shares_of_deleted_rows(tmp_path: Path) -> None:
    t = with_positions(tmp_path, 5, 7)  # 35 of 100 rows, by five delete files
    health = t.health()
    figure = health["deletes"]
    assert bar_of(figure, "30 % of rows deleted or more") == [1, 100, 35]
    assert bar_of(figure, "with 5 deletes or more") == [1, 100, 35]
    assert figure.attention
    gain = health.gain("deletes")
    assert gain is not None
    assert (gain.procedure, gain.nothing) == ("rewrite_position_delete_files", False)
    plan = t.maintenance().rewrite_position_delete_files()
    assert gain.files == (5, 5 - plan.rewritten_delete_files + plan.added_delete_files)
    assert gain.sql == plan.calls[0].code


def test_files_with_some_deletes(tmp_path: Path) -> None:
    figure = with_positions(tmp_path, 2, 1).health()["deletes"]
    assert bar_of(figure, "with 2 to 4 deletes") == [1, 100, 2]
    assert not figure.attention


def test_rows_of_equality_deletes_are_unknown(tmp_path: Path) -> None:
    health = with_equality(tmp_path, 2).health()
    figure = health["deletes"]
    assert "an unknown number of rows" in figure.verdict
    assert "not counted" in figure.notes[0]
    gain = health.gain("deletes")
    assert gain is not None
    assert (gain.procedure, gain.unit, gain.files[0]) == ("rewrite_data_files", "data and delete files", 3)
    assert "delete-file-threshold" in gain.sql


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_manifests_are_those_of_the_table(tmp_path: Path, version: int) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=version)
    t = lab.simulate()
    for number in range(3):
        t.append([{"location": f"data/{number}.parquet", "record_count": 5, "file_size_in_bytes": 9}])
    health = t.health()
    found = health["manifests"].to_pandas()
    listed = t.inspect.manifests.arrow().to_pylist()
    if version == 4:  # a root lists files itself until there are many
        assert (len(found), health["manifests"].verdict) == (0, "The snapshot has no manifests.")
        assert health.gain("sizes").requests[0] == 1  # type: ignore[union-attr]
        return
    assert sorted(found["manifest_path"]) == sorted(row["path"] for row in listed)
    assert dict(zip(found["manifest_path"], found["bytes"], strict=True)) == {r["path"]: r["length"] for r in listed}
    assert found["bytes"].is_monotonic_increasing
    assert len(health.scan.files) == 3
    assert health["manifests"].verdict.startswith("3 of 3 manifests are smaller than 4.0 MiB")
    gain = health.gain("manifests")
    assert gain is not None
    assert (gain.files, gain.requests) == ((3, 1), (4, 2))
    assert health["partitions"].verdict == "The table is not partitioned."


def test_manifests_of_a_root_have_no_procedure() -> None:
    t = ix.sample("trips").simulate(format_version=4)
    t.compact()
    health = t.health()
    listed = t.inspect.manifests.arrow().to_pylist()
    assert sorted(health["manifests"].to_pandas()["manifest_path"]) == sorted(row["path"] for row in listed)
    assert "root manifest" in health.gain_note("manifests")


def test_partitions_are_sorted_by_bytes(tmp_path: Path) -> None:
    files = [{"mib": 100, "k": "big"}] * 20 + [{"mib": 10, "k": k} for k in "abcdefghijk"]
    t = simulated(tmp_path, files)
    figure = t.health()["partitions"]
    by: dict[str, int] = {}
    for row in data_files(t):
        by[row["partition"]["k"]] = by.get(row["partition"]["k"], 0) + row["file_size_in_bytes"]
    found = figure.to_pandas()
    assert dict(zip(found["partition"], found["bytes"], strict=True)) == {f"k={k}": size for k, size in by.items()}
    assert found["bytes"].iloc[0] == max(by.values())
    assert f"has {max(by.values()) / np.median(list(by.values())):.0f} times the bytes" in figure.verdict
    assert figure.attention
    assert len(figure.bars) == 10
    assert figure.notes == ("Not drawn: 2 smaller partitions.",)
    assert "add a partition field" in t.health().gain_note("partitions")
    rows = t.inspect.partitions.arrow().to_pylist()
    assert figure.show is not None
    shown = [row["partition"]["k"] for row in rows if matches(row, figure.show.where)]
    assert shown == ["big"], "the ones that are ten times the median"


def test_partitions_that_are_not_skewed_are_all_shown(tmp_path: Path) -> None:
    t = simulated(tmp_path, [{"mib": 10 + n, "k": k} for n, k in enumerate("abcdefghijk")])
    figure = t.health()["partitions"]
    assert not figure.attention
    assert figure.show is not None
    assert (figure.show.where, figure.show.largest) == ((), "total_data_file_size_in_bytes")


def test_without_files_there_is_nothing_to_sort(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, sort_by="id")
    lab.append({"id": [1, 2]})
    lab.delete("id > 0")
    assert ix.open(tmp_path / "t").health().gain_note("clustering") == "There are no data files to sort."


def test_clustering_is_compared_with_the_sort_order(tmp_path: Path) -> None:
    t = simulated(tmp_path, [{"low": 0, "high": 9}] * 6)
    health = t.health()
    figure = health["clustering"]
    verdict = "The table is sorted by id: a value of this column lies in 6.0 of 6 files on average"
    assert figure.verdict.startswith(verdict)
    assert figure.attention
    assert figure.bars[0].note == "no. 1 of the sort order"
    gain = health.gain("clustering")
    assert gain is not None
    assert "strategy => 'sort'" in gain.sql
    assert any("Metadata cannot show" in note for note in gain.notes)
    apart = simulated(tmp_path / "b", spread(6)).health()
    assert not apart["clustering"].attention
    assert "1.0 of 6 files" in apart["clustering"].verdict
    assert "of k" not in apart["clustering"].verdict
    named = t.health(["k"])
    assert [b.label for b in named["clustering"].bars] == ["k"]
    assert named["clustering"].verdict.startswith("No column of the sort order was measured; the column with the")
    with pytest.raises(OptionError, match="no column 'no'"):
        t.health(["no"])


def test_gains_are_those_of_the_plans(tmp_path: Path) -> None:
    t = simulated(tmp_path, [{"mib": 1} for _ in range(40)])
    health = t.health()
    plan = t.maintenance().rewrite_data_files()
    gain = health.gain("sizes")
    assert gain is not None
    assert gain.files == (40, 40 - plan.rewritten_data_files + plan.added_data_files) == (40, 1)
    assert gain.size == (40 * MIB, plan.cost.bytes_written)
    assert gain.text == plan.text
    after = plan.table.inspect.manifests.arrow()
    assert gain.requests == (2, 1 + len(after))
    assert gain.sentence.startswith("rewrite_data_files: 40 data files (40.0 MiB) would become 1 (about 40.0 MiB)")
    frame = health.to_pandas().set_index("figure")
    assert frame.loc["sizes", "files_after"] == 1
    assert frame.loc["sizes", "sql"] == gain.sql
    whole = simulated(tmp_path / "b", spread(2)).health()
    assert whole.gain("sizes").nothing
    assert whole.gain("sizes").sentence.startswith("rewrite_data_files has nothing to do")


def test_a_damaged_manifest_is_stated_at_the_figures(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"})
    for value in range(3):
        lab.append([{"id": value}])
    path = Path(lab.inspect.manifests.arrow()["path"][0].as_py().removeprefix("file:"))
    os.truncate(path, 40)
    health = ix.open(tmp_path / "t").health()
    assert len(health.scan.files) == 2
    assert path.name in health.missing
    for key in ("sizes", "deletes", "partitions", "clustering"):
        assert health[key].notes[0] == "Incomplete: 1 manifest cannot be read.", key
    assert "1 manifest cannot be read." in health["manifests"].notes
    assert "No rewrite can be planned" in health.gain_note("sizes")
    assert any(text.startswith("Files may be missing from the figures: ") for text in health.unchecked)
    assert "[incomplete]" in repr(health)
    assert f"Files may be missing from the figures: {health.missing}" in health.card().notes
    assert f"Not checked: {health.unchecked[-1]}" in health.card().notes
    for one in lab.inspect.manifests.arrow()["path"].to_pylist():
        os.truncate(str(one).removeprefix("file:"), 40)
    lost = ix.open(tmp_path / "t").health()
    assert {lost[key].verdict for key in ("sizes", "deletes", "clustering")} == {
        "Unknown: no manifest entry of a data file could be read."
    }
    assert "nothing needs attention" not in repr(lost)


def test_tables_without_files_or_snapshots(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"})
    health = ix.open(tmp_path / "t").health()
    assert health.scope == "no snapshot"
    assert {key: health[key].verdict for key in health} == {
        "sizes": "There are no data files.",
        "deletes": "No data files.",
        "manifests": "There is no snapshot.",
        "partitions": "The table is not partitioned.",
        "clustering": "There are no data files.",
    }
    assert all(health.gain(key) is None for key in health)
    lab.append([{"id": 1}])
    lab.delete("id = 1")
    emptied = lab.health()
    assert repr(emptied)
    assert emptied.to_pandas()["verdict"].notna().all()


def test_a_delta_table_has_figures_and_no_procedures() -> None:
    health = ix.sample("delta").health()
    assert health["sizes"].verdict.startswith("10 of 10 data files")
    assert "OPTIMIZE" in health.gain_note("sizes")
    entries = {row["manifest_path"]: row["entries"] for row in health["manifests"].rows.to_pylist()}
    assert sum(entries.values()) <= len(health.scan.files)
    assert all(n is not None for n in entries.values())


def test_what_a_large_table_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.doctor.figures._health.FEW_FILES", 3)
    t = simulated(tmp_path, spread(4))
    health = t.health()
    assert [f.key for f in health.measured] == ["sizes", "deletes", "manifests", "partitions"]
    assert "Clustering was not measured" in health.unchecked[0]
    assert "gain('sizes') computes" in repr(health)
    assert not health.gain_known("sizes")
    assert health["clustering"].verdict
    assert "Clustering" not in health.unchecked[0]
    assert health.gain("sizes") is not None
    assert "gain('sizes') computes" not in repr(health)
    assert t.health(["id"]).measured[-1].key == "clustering"


def test_an_earlier_snapshot_is_not_what_engines_rewrite() -> None:
    t = ix.sample("trips")
    earlier = t.at(snapshot=t.snapshots[2].snapshot_id)
    assert any("the table's current snapshot, which is not" in text for text in earlier.health().unchecked)
    assert not any("current snapshot" in text for text in t.health().unchecked)
    assert [text for text in earlier.health().card().notes if not text.startswith("Not checked: ")] == [
        "Engines would rewrite the table's current snapshot, which is not the one that is shown."
    ]


def test_names_are_escaped(tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    t = simulated(tmp_path, [{"k": hostile}])
    health = t.health()
    html = health._repr_html_()
    assert "<img src=x" not in html
    assert hostile in health["partitions"].verdict


def test_it_is_a_mapping() -> None:
    health = ix.sample("trips").health()
    assert isinstance(health, TableHealth)
    assert list(health) == ["sizes", "deletes", "manifests", "partitions", "clustering"]
    assert len(health) == 5
    with pytest.raises(KeyError):
        health["rows"]
    assert health.to_dict()["figures"]["sizes"]["gain"]["procedure"] == "rewrite_data_files"
    assert str(health["sizes"].to_svg()).startswith("<svg")
