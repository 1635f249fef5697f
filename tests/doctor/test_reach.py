"""The rows and partitions of findings: exact for every kind of place, merged or not, and counted as columns."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

import iceexplore as ix
from iceexplore.doctor import Finding, Report
from iceexplore.doctor._reach import measured
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import finding_of
from iceexplore.errors import problem
from tests.doctor import damages as d
from tests.doctor import file_damages as fd
from tests.doctor import v4_damages as v4

KEYS = "abcdefghijkl"


def wide(folder: Path) -> Path:
    """Return a table with twelve partitions, two data manifests, and 1 and 2 rows in each of their files."""
    lab = ix.create(
        folder / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=2,
        properties={"commit.manifest-merge.enabled": "false"},
    )  # fmt: skip
    lab.append({"id": list(range(12)), "k": list(KEYS)})
    lab.append({"id": list(range(24)), "k": list(KEYS) * 2})
    return folder / "t"


def only(report: Report, code: str) -> Finding:
    found = [one for one in report if one.code == code]
    assert len(found) == 1, "\n".join(map(str, report))
    return found[0]


def check(folder: Path, code: str, **options: Any) -> Finding:
    return only(ix.open(folder).check(**options), code)


def affects(one: Finding) -> str:
    """Return the line of the report, without the snapshots."""
    report = ix.sample("trips").check()
    lines = repr(replace(report, findings=(one,))).split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("    Affects"))
    text = lines[start][4:].removeprefix("Affects").strip()
    for line in lines[start + 1 :]:
        if not line.startswith(" " * 13):
            break
        text += f" {line.strip()}"
    return text.partition("; ")[2]


# Kinds of places ------------------------------------------------------------------------------------------------------


def test_one_entry(tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    row = next(r for r in ix.open(folder).inspect.files.arrow().to_pylist() if r["content"] == 0)
    d.local(row["file_path"]).unlink()
    one = check(folder, "file-missing")
    assert (one.rows, one.partitions, one.partition_count) == (row["record_count"], (f"k={row['partition']['k']}",), 1)
    assert affects(one) == f"{row['record_count']} row in partition k={row['partition']['k']}"


def test_more_entries_than_places(tmp_path: Path) -> None:
    rows = ix.open(wide(tmp_path)).inspect.files.arrow().to_pylist()
    gone = [row for row in rows if row["partition"]["k"] != "c"]
    for row in gone:
        d.local(row["file_path"]).unlink()
    one = check(tmp_path / "t", "file-missing")
    assert one.count == len(gone) == 22
    assert len(one.places) == 10
    assert one.rows == sum(row["record_count"] for row in gone) == 33
    assert one.partition_count == 11
    assert len(one.partitions) == 10
    assert set(one.partitions) < {f"k={key}" for key in KEYS if key != "c"}
    assert affects(one) == f"33 rows in 11 partitions: {', '.join(one.partitions)} and 1 more"
    opened = check(tmp_path / "t", "file-missing", level="files")  # a finding for each file, merged
    assert (opened.count, opened.rows, opened.partition_count) == (22, 33, 11)


def test_a_manifest_is_its_live_entries(tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    name = d.header_with_a_whole_spec(folder)
    t = ix.open(folder)
    manifest = next(row for row in t.inspect.manifests.arrow().to_pylist() if row["path"].endswith(name))
    one = only(t.check(), "file-corrupt")
    assert one.rows == 2
    assert set(one.partitions) == {"k=a", "k=b"}
    assert manifest["added_data_files_count"] == one.partition_count == 2


def test_a_lost_manifest_is_what_its_list_states(tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    path = d.manifest_paths(folder)[-1]
    with d.root_path(folder).open("rb") as file:
        listed: list[Any] = list(fastavro.reader(file))
    row = next(r for r in listed if d.local(r["manifest_path"]) == path)
    path.unlink()
    one = check(folder, "file-missing")
    assert one.rows == row["added_rows_count"] + row["existing_rows_count"] > 0
    assert (one.partitions, one.partition_count) == ((), None)
    assert affects(one) == f"{one.rows} rows"
    cut = d.manifest_paths(folder)[0]
    cut.write_bytes(cut.read_bytes()[:-40])  # some of its entries could be read
    assert check(folder, "file-truncated").rows == 2


def test_a_lost_manifest_of_deletes_is_not_counted(tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    d.manifest_paths(folder, content=1)[0].unlink()
    one = check(folder, "file-missing")
    assert (one.rows, one.partitions, one.partition_count) == (None, (), None)


@pytest.mark.parametrize(
    ("version", "damage", "code", "rows"),
    [
        (3, fd.vector_without_an_offset, "entry-invalid", 1),  # the row that it deletes
        (3, d.two_vectors_of_one_file, "dv-twice", 1),  # the same vector counts once
        (2, d.delete_manifest_without_a_version, "header-version-missing", 1),
        (3, d.vector_of_a_file_that_is_not_live, "delete-dangling", 0),  # it deletes nothing
        (2, fd.equality_ids_empty, "equality-ids-invalid", None),  # how many rows have the values is unknown
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_deletes(version: int, damage: Callable[[Path], str], code: str, rows: int | None, tmp_path: Path) -> None:
    folder = d.healthy(tmp_path, version)
    damage(folder)
    one = check(folder, code)
    assert (one.rows, one.partitions, one.partition_count) == (rows, ("k=a",), 1)
    assert affects(one) == {None: "partition k=a", 0: "no rows in partition k=a", 1: "1 row in partition k=a"}[rows]


@pytest.mark.parametrize("damage", [d.current_list_gone, d.summary_totals_wrong, d.parent_of_minus_one])
def test_the_document_and_whole_lists_have_neither(damage: Callable[[Path], str], tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    damage(folder)
    report = ix.open(folder).check()
    assert len(report) > 0
    assert {(one.rows, one.partitions, one.partition_count) for one in report} == {(None, (), None)}


def test_rows_of_a_list_are_their_manifests(tmp_path: Path) -> None:
    def change(rows: list[d.Record], header: dict[str, str]) -> None:
        for row in rows:
            row["partitions"] = None

    d.edit_avro(d.root_path(wide(tmp_path)), change)
    one = check(tmp_path / "t", "summary-missing")
    assert (one.count, one.rows, one.partition_count) == (2, 36, 12)


def test_entries_that_a_problem_only_counts(tmp_path: Path) -> None:
    def change(rows: list[d.Record], header: dict[str, str]) -> None:
        for row in rows[1:]:
            row["data_file"]["split_offsets"] = [4, 10**9]

    d.edit_manifest(wide(tmp_path), change)
    one = check(tmp_path / "t", "split-offsets-invalid")
    assert (one.count, one.rows, one.partition_count) == (11, 22, 11)
    assert len(one.places) == 10
    assert one.where == one.places[0]


def test_impossible_counts_are_unknown(tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    d.edit_manifest(folder, d.records(lambda r: r["data_file"].update({"record_count": -7})))
    one = next(one for one in ix.open(folder).check() if one.field == "103 record_count")
    assert (one.rows, one.partitions) == (None, ("k=a",))


# Version 4 ------------------------------------------------------------------------------------------------------------


def test_an_entry_of_a_v4_root(tmp_path: Path) -> None:
    folder = v4.healthy_v4(tmp_path)
    v4.file_without_a_size(folder)
    t = ix.open(folder)
    row = next(r for r in t.inspect.data_files.arrow().to_pylist() if r["file_size_in_bytes"] is None)
    one = only(t.check(skip=("outside-roots",)), "entry-invalid")
    assert (one.rows, one.partitions, one.partition_count) == (row["record_count"], (partition(row),), 1)


def test_entries_of_v4_leaves(tmp_path: Path) -> None:
    t = ix.open(v4.healthy_v4(tmp_path))
    data = t.inspect.data_files.arrow().to_pylist()
    one = only(t.check(), "outside-roots")  # all synthetic files
    assert one.count == len(data)
    assert one.rows == sum(row["record_count"] for row in data)
    assert set(one.partitions) == {partition(row) for row in data}
    assert one.partition_count == len(one.partitions)


def test_a_vector_in_an_entry_of_the_draft_is_not_counted_beside_its_file(tmp_path: Path) -> None:
    folder = v4.draft_v4(tmp_path)
    v4.replaced_without_a_successor(folder)
    one = only(ix.open(folder).check(skip=("outside-roots",)), "changes-untrue")
    assert (one.count, one.rows, one.partition_count) == (2, 10, 0)


def partition(row: dict[str, Any]) -> str:
    return f"k={row['partition']['k']}, id_bucket_4={row['partition']['id_bucket_4']}"


# Specs and snapshots --------------------------------------------------------------------------------------------------


def test_unpartitioned(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"})
    lab.append({"id": [1, 2, 3], "k": ["a", "a", "b"]})
    first = d.file_paths(tmp_path / "t")[0]
    first.unlink()
    one = check(tmp_path / "t", "file-missing")
    assert (one.rows, one.partitions, one.partition_count) == (3, (), 0)
    assert affects(one) == "3 rows"
    lab.evolve_spec(add=["k"])
    lab.append({"id": [4], "k": ["a"]})
    next(path for path in d.file_paths(tmp_path / "t") if path != first).unlink()
    one = check(tmp_path / "t", "file-missing")
    assert one.rows == 4
    assert set(one.partitions) == {"unpartitioned", "k=a"}


def test_the_newest_affected_snapshot_counts(tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    old = {row["file_path"] for row in ix.open(folder).inspect.files.arrow().to_pylist()}
    lab = ix.lab(folder)
    lab.delete("k = 'a'")  # drops the files of a partition
    left: list[Any] = ix.open(folder).inspect.data_files.arrow().to_pylist()
    for path in {*old, *(row["file_path"] for row in left)}:
        d.local(path).unlink(missing_ok=True)
    t = ix.open(folder)
    one = only(t.check(snapshots="all"), "file-missing")
    assert len(one.snapshots) == 5
    assert one.rows == sum(row["record_count"] for row in left)
    assert one.partitions == ("k=b",)
    before = only(
        t.check(snapshots=[sorted(t.metadata.snapshots, key=lambda s: s.sequence_number)[-2]]), "file-missing"
    )
    assert set(before.partitions) == {"k=a", "k=b"}


# Merged findings ------------------------------------------------------------------------------------------------------


def test_merged_findings(tmp_path: Path) -> None:
    def change(rows: list[d.Record], header: dict[str, str]) -> None:
        for row in rows[:7]:
            row["data_file"]["null_value_counts"] = [{"key": 1, "value": 1000}]

    folder = wide(tmp_path)
    for path in d.manifest_paths(folder):
        d.edit_avro(path, change, list_path=d.root_path(folder))
    one = check(folder, "count-mismatch")
    assert (one.count, one.rows) == (14, 7 * 1 + 7 * 2)
    assert one.partition_count == 7


def test_consequences_have_their_own(tmp_path: Path) -> None:
    folder = d.healthy(tmp_path)
    d.file_with_two_sizes(folder)
    one = check(folder, "file-overwritten")
    follows = next(more for more in one.follows if more.code == "file-twice")
    assert one.rows == follows.rows == 3  # the larger count, once
    assert follows.partitions == ("k=a",)


# Reports --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = wide(tmp_path_factory.mktemp("report"))
    for path in d.file_paths(folder):
        path.unlink()
    return ix.open(folder).check(only="damage")


def test_values_that_are_shown(report: Report) -> None:
    one = report[0]
    line = f"36 rows in 12 partitions: {', '.join(one.partitions)} and 2 more"
    for shown in (report.to_html(redact=False), report._repr_html_(), report.to_junit()):
        assert line in shown
    row = report.to_pandas().iloc[0]
    assert (row["rows"], row["partition_count"], row["partitions"]) == (36, 12, list(one.partitions))


def test_several_fields_are_separated(report: Report) -> None:
    one = replace(report[0], partitions=("k=a, day=1", "k=a, day=2"), partition_count=2)
    assert affects(one) == "36 rows in 2 partitions: k=a, day=1; k=a, day=2"
    assert affects(replace(one, partition_count=None)).endswith("k=a, day=2 and possibly others")


@pytest.mark.parametrize("kind", ["values", "names"])
def test_partitions_are_redacted(report: Report, kind: str) -> None:
    page = report.to_html(redact=[kind])
    assert not re.search(r"k=[a-l]", page)
    assert "36 rows in 12 partitions<" in page, "numbers stay"


def test_json(report: Report) -> None:
    values = report.to_dict()
    assert json.loads(report.to_json())["findings"][0]["partition_count"] == 12
    assert Report.from_dict(values).findings == report.findings
    for name in ("rows", "partitions", "partition_count"):
        del values["findings"][0][name]
    old = Report.from_dict(values)[0]
    assert (old.rows, old.partitions, old.partition_count) == (None, (), None)
    with pytest.raises(KeyError):
        Finding.from_dict({key: value for key, value in report[0].to_dict().items() if key != "refs"})


# Large tables ---------------------------------------------------------------------------------------------------------


def test_no_call_per_entry() -> None:
    def calls(files: int) -> int:
        s = ix.empty({"id": "long"}, partition_by=["bucket(16, id)"], format_version=2, seed=1)
        s.append(files=files, rows=files * 10)
        state = s._state
        assert state.snapshot is not None
        examination = Examination.of(state, [state.snapshot], "metadata")
        rows = np.arange(len(examination.files.entries))
        assert len(rows) == files
        item = problem("file-missing", examination.files.place(0), "Files are missing.")
        one = finding_of(item, places=examination.places(rows), count=files, rows=rows, snapshots=examination.roots)
        count = 0

        def called(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(called)
        try:
            [found] = measured(examination, [one])
        finally:
            sys.setprofile(None)
        assert found.rows == sum(r["record_count"] for r in s.inspect.files.arrow().to_pylist())
        assert found.partition_count == 8  # of synthetic files
        return count

    assert calls(4_000) < 1.1 * calls(200)
