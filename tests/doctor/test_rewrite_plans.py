"""Plans of rewrites: files, groups and thresholds of Iceberg's planners, and the simulated table after them.

What Spark's procedures then do is compared with the plans in `tests/spark/test_maintenance.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

import iceexplore as ix
from iceexplore.doctor import Maintenance, Threshold
from iceexplore.doctor.maintenance._rewrite_manifests import _ranges
from iceexplore.doctor.maintenance._size_based import ProcedureOptions, SizeRules, packed
from iceexplore.errors import FileMissingError, OptionError, UnsupportedError
from iceexplore.storage import CACHE

MB = 1024 * 1024


def sized(*commits: list[int], **properties: str) -> ix.Simulation:
    """A table of synthetic files of some sizes in MiB."""
    names = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    s = ix.empty({"id": "long"}, format_version=2, properties=names)
    for sizes in commits:
        s.append(files=[file(size) for size in sizes])
    return s


def file(size: int, **more: Any) -> dict[str, Any]:
    """A new data file of a size in MiB."""
    FILES.append(size)
    entry = {"location": f"/warehouse/db/events/data/{len(FILES)}.parquet", "record_count": 10}
    return {**entry, "file_size_in_bytes": size * MB, **more}


FILES: list[int] = []


@pytest.fixture(scope="module")
def small() -> ix.Simulation:
    """A table of one file."""
    return sized([1])


# rewrite_data_files ---------------------------------------------------------------------------------------------------


def java_groups(sizes: list[int], most: int, files: int) -> list[list[int]]:
    """``BinPacking.ListPacker`` with a lookback of 1, as Java writes it: one bin is open at a time."""
    out: list[list[int]] = []
    for at, size in enumerate(sizes):
        if out and sum(sizes[i] for i in out[-1]) + size <= most and len(out[-1]) < files:
            out[-1].append(at)
        else:
            out.append([at])
    return out


def test_groups_are_packed_as_java_packs_them() -> None:
    rng = np.random.default_rng(3)
    for most, files in ((10, 99), (25, 3), (1, 1), (1000, 4), (0, 2)):
        partition = np.sort(rng.integers(0, 4, 60))
        sizes = rng.integers(0, 12, 60)
        expected, number = [], -1
        for one in range(4):
            mine = sizes[partition == one].tolist()
            for group in java_groups(mine, most, files):
                number += 1
                expected += [number] * len(group)
        assert packed(sizes, partition, most, files).tolist() == expected
    assert len(packed(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 1, 1)) == 0


@pytest.mark.parametrize(
    ("size", "files", "split"),
    [
        # target 100, minimum 75, maximum 180, so writers close a file at 140; a split has 5 KiB more
        (0, 1, 140), (99, 1, 140), (100, 1, 140), (110, 1, 140), (111, 2, 140), (175, 2, 140), (221, 2, 140),
        (222, 3, 140), (275, 3, 140), (276, 3, 140), (1050, 10, 140), (1076, 11, 140),
    ],
)  # fmt: skip
def test_expected_files_are_javas(size: int, files: int, split: int) -> None:
    """Java: ``SizeBasedFileRewritePlanner.expectedOutputFiles``, ``inputSplitSize``."""
    given = ProcedureOptions({"target_file_size_bytes": 100}, ("target-file-size-bytes",), {})
    rules = SizeRules.of(given, "write.target-file-size-bytes", 1)
    sizes = np.array([size], dtype=np.int64)
    assert rules.expected_files(sizes).tolist() == [files]
    assert rules.split_size(sizes).tolist() == [split]


def test_files_are_selected_by_size_and_groups_by_their_number() -> None:
    s = sized([10, 10, 10, 10], write__target_file_size_bytes=str(100 * MB))
    few = s.maintenance().rewrite_data_files()
    assert few.nothing
    assert few.text == "none of 4 data files is rewritten"
    assert few.cost.files_read == 0
    plan = s.maintenance().rewrite_data_files(min_input_files=4)
    assert (plan.rewritten_data_files, plan.added_data_files, plan.rewritten_bytes) == (4, 1, 40 * MB)
    assert plan.text == "4 data files of 4 (40.0 MiB) in 1 group become 1 file"
    assert plan.groups["why"].to_pylist() == ["number of files"]
    assert set(plan.files["why"].to_pylist()) == {"too small"}
    assert (plan.cost.files_written, plan.cost.files_freed, plan.cost.bytes_freed) == (1, 4, 40 * MB)
    assert plan.table.count() == s.count() == 40
    assert len(plan.table.inspect.files()) == 1


def test_groups_are_selected_by_bytes() -> None:
    s = sized([70, 70, 100], [181], write__target_file_size_bytes=str(100 * MB))
    plan = s.maintenance().rewrite_data_files()
    assert plan.files["bytes"].to_pylist() == [181 * MB, 70 * MB, 70 * MB]  # the newest manifest comes first
    assert plan.files["why"].to_pylist() == ["too large", "too small", "too small"]
    assert plan.groups["why"].to_pylist() == ["bytes"]
    assert plan.groups["expected_files"].to_pylist() == [3]  # a rest of 21 MiB is spread over the others
    two = s.maintenance().rewrite_data_files(max_file_group_size_bytes=150 * MB)
    assert two.groups["files"].to_pylist() == [1, 2]
    assert two.accuracy == "about"
    assert "differ from run to run" in two.notes[0]
    assert s.maintenance().rewrite_data_files(max_file_group_input_files=1).groups["files"].to_pylist() == [1]


def test_partial_progress_commits_groups_in_turn() -> None:
    s = sized(*([10] for _ in range(11)))
    options: dict[str, Any] = {"rewrite_all": True, "max_file_group_size_bytes": 10 * MB}
    whole = s.maintenance().rewrite_data_files(**options, partial_progress_max_commits=3)
    assert (len(whole.groups), len(whole.commits)) == (11, 1)  # without effect unless it is enabled
    assert "commit" not in whole.text
    partly = {**options, "partial_progress_enabled": True, "max_concurrent_file_group_rewrites": 1}
    plan = s.maintenance().rewrite_data_files(**partly, partial_progress_max_commits=3)
    assert plan.text.startswith("11 data files of 11 (110.0 MiB) in 11 groups and 3 commits become")
    rows = plan.commits.to_pylist()
    assert [(r["first_group"], r["last_group"], r["files"], r["added_files"]) for r in rows] == [
        (1, 4, 4, 4),
        (5, 8, 4, 4),
        (9, 11, 3, 3),
    ]
    assert plan.to_dict()["commits"] == rows
    assert "Commits" in repr(plan) and "5 to 8" in repr(plan)
    assert plan.calls[0].code.endswith("'partial-progress.max-commits', '3'))")
    assert not any("Spark rewrites" in note or "expects" in note for note in plan.notes)
    before = set(s.inspect.files.arrow()["file_path"].to_pylist())
    files = plan.files.to_pylist()
    for done in range(4):
        after = plan.after(done)
        assert len(after.snapshots) == len(s.snapshots) + done
        assert after.count() == s.count()
        left = before & set(after.inspect.files.arrow()["file_path"].to_pylist())
        last = rows[done - 1]["last_group"] if done else 0
        assert left == {r["file_path"] for r in files if r["group"] > last}
    assert plan.after(3) is plan.table
    with pytest.raises(OptionError, match="the plan has only 3 commits"):
        plan.after(4)
    with pytest.raises(OptionError, match="partial-progress"):
        s.maintenance().rewrite_data_files(partial_progress_enabled=True, partial_progress_max_commits=0)


def test_commits_that_java_counts_as_failed() -> None:
    s = sized(*([10] for _ in range(11)))
    options: dict[str, Any] = {"rewrite_all": True, "max_file_group_size_bytes": 10 * MB}
    options["partial_progress_enabled"] = True
    plan = s.maintenance().rewrite_data_files(**options)  # 10 commits at most, so two groups per commit
    assert plan.commits["groups"].to_pylist() == [2, 2, 2, 2, 2, 1]
    assert (
        "The procedure makes only 6 of the 10 commits that it expects. It reports the other 4 as failed in its log."
        in plan.notes
    )
    assert any(note.startswith("Spark rewrites 5 groups at the same time") for note in plan.notes)
    one = s.maintenance().rewrite_data_files(**options, partial_progress_max_commits=7)
    assert (
        "The procedure makes only 6 of the 7 commits that it expects. It reports the other one as failed in its log."
        in one.notes
    )
    options["partial-progress.max-failed-commits"] = 3  # Iceberg's own spelling is taken, too
    strict = s.maintenance().rewrite_data_files(**options)
    assert any(note.endswith("the other 4 as failed, and fails after its last commit.") for note in strict.notes)


def test_partial_progress_drops_dangling_deletes_last(tmp_path: Path) -> None:
    properties = {"write.delete.mode": "merge-on-read"}
    columns = {"id": "long", "k": "string"}
    lab = ix.create(tmp_path / "t", columns, partition_by="k", format_version=2, properties=properties)
    lab.append({"id": [1, 2, 3, 4], "k": ["a", "a", "b", "b"]})
    lab.delete("id in (1, 3)")
    plan = lab.maintenance().rewrite_data_files(
        rewrite_all=True,
        remove_dangling_deletes=True,
        partial_progress_enabled=True,
        use_starting_sequence_number=False,
    )
    assert (len(plan.commits), plan.removed_delete_files) == (2, 2)
    counts = [len(plan.after(n).inspect.delete_files.arrow()) for n in range(3)]
    assert counts[0] == 2 and counts[2] == 0
    assert [plan.after(n).count() for n in range(3)] == [2, 2, 2]


def test_each_threshold_has_its_source() -> None:
    s = sized([1], write__target_file_size_bytes="1000")
    reasons = s.maintenance().rewrite_data_files(min_input_files=3).reasons
    assert reasons[:4] == (
        Threshold("target-file-size-bytes", "1000", "table property write.target-file-size-bytes", "1,000 B"),
        Threshold("min-file-size-bytes", "750", "75 %: default of Iceberg, relative to the target", "750 B"),
        Threshold("max-file-size-bytes", "1800", "180 %: default of Iceberg, relative to the target", "1.8 KiB"),
        Threshold("min-input-files", "3", "argument"),
    )


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"min_input": 1}, "unknown option 'min-input'"),
        ({"min_input_files": 0}, "min-input-files='0'"),
        ({"target_file_size_bytes": "x"}, "target-file-size-bytes='x'"),
        ({"target_file_size_bytes": 10, "min_file_size_bytes": 10}, "must be above min-file-size-bytes"),
        ({"target_file_size_bytes": 10, "max_file_size_bytes": 10}, "below max-file-size-bytes"),
        ({"delete_ratio_threshold": 1.5}, "delete-ratio-threshold='1.5'"),
        ({"rewrite_job_order": "size"}, "rewrite-job-order='size'"),
        ({"output_spec_id": 7}, "output-spec-id=7"),
        ({"strategy": "zorder"}, "strategy='zorder'"),
        ({"strategy": "sort"}, "no sort order"),
        ({"sort_order": "id"}, "needs strategy='sort'"),
        ({"compression_factor": 2}, "unknown option 'compression-factor'"),
    ],
)
def test_options_that_spark_refuses(small: ix.Simulation, how: dict[str, Any], match: str) -> None:
    with pytest.raises(OptionError, match=match):
        small.maintenance().rewrite_data_files(**how)


def test_a_property_that_is_no_number_is_named() -> None:
    m = sized([1], write__target_file_size_bytes="big").maintenance()
    assert "write.target-file-size-bytes='big'" in m.refused["rewrite_data_files"]


def test_deletes_select_files(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "db" / "t", {"id": "long"}, format_version=3)
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    lab.append({"id": list(range(10))})
    lab.append({"id": list(range(10, 20))})
    lab.delete("id in (1, 2)")
    m = lab.maintenance()
    assert m.rewrite_data_files().nothing  # a fifth of the rows
    for how, why in (({"delete_ratio_threshold": 0.2}, "delete ratio"), ({"delete_file_threshold": 1}, "deletes")):
        plan = m.rewrite_data_files(**how)
        assert plan.groups.select(["files", "rows", "deletes", "deleted_rows", "why"]).to_pylist() == [
            {"files": 2, "rows": 20, "deletes": 1, "deleted_rows": 2, "why": why}
        ]  # the other file is small, too, and in the same group
        assert plan.removed_delete_files == 1
        assert plan.text.endswith("in 1 group become 1 file; 1 delete file removed")
        assert plan.table.count() == lab.count() == 18
        assert len(plan.table.inspect.files()) == 1
    assert m.rewrite_data_files("id < 5", rewrite_all=True).candidates == 1
    code = m.rewrite_data_files("id < 5", rewrite_all=True).calls[0].code
    assert code == (
        "CALL catalog_name.system.rewrite_data_files(table => 'db.t', where => 'id < 5', "
        "options => map('rewrite-all', 'true'))"
    )


def test_how_surely_the_number_of_new_files_is_known(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, format_version=2)
    lab.append({"id": [1, 2], "k": ["a", "b"]})
    assert lab.maintenance().rewrite_data_files(rewrite_all=True).accuracy == "exactly"
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    lab.delete("id = 1")
    assert lab.maintenance().rewrite_data_files(rewrite_all=True).accuracy == "exactly"
    lab.delete("id = 2")
    gone = lab.maintenance().rewrite_data_files(rewrite_all=True)
    assert (gone.accuracy, gone.added_data_files) == ("exactly", 0)
    assert gone.table.count() == 0
    lab.append({"id": [3, 4], "k": ["a", "b"]})
    lab.evolve_spec(add=["k"])
    moved = lab.maintenance().rewrite_data_files("id > 2", rewrite_all=True)
    assert moved.accuracy == "at least"
    assert moved.groups["partition"].to_pylist() == ["other specs"]
    assert "become at least 1 file" in moved.text
    many = sized([10], write__target_file_size_bytes=str(4 * MB))
    assert many.maintenance().rewrite_data_files(strategy="sort", sort_order="id").accuracy == "at most"


def test_jobs_can_be_ordered_and_limited() -> None:
    s = ix.empty({"id": "long", "k": "string"}, partition_by="k", format_version=2)
    for k, files, size in (("a", 2, 3), ("b", 3, 1), ("c", 1, 10)):
        s.append(files=[file(size, partition={"k": k}) for _ in range(files)])
    m = s.maintenance()

    def counts(**how: Any) -> list[object]:
        return list(m.rewrite_data_files(rewrite_all=True, **how).groups["files"].to_pylist())

    assert counts(rewrite_job_order="bytes-asc") == [3, 2, 1]
    assert counts(rewrite_job_order="bytes_desc") == [1, 2, 3]
    assert counts(rewrite_job_order="files-asc") == [1, 2, 3]
    assert counts(rewrite_job_order="files-desc") == [3, 2, 1]
    assert counts(max_files_to_rewrite=4) == [2, 2]
    after = m.rewrite_data_files(rewrite_all=True).table
    assert sorted(after.inspect.files()["partition"].astype(str)) == sorted(
        set(s.inspect.files()["partition"].astype(str))
    )


def test_a_rewrite_is_not_planned_where_a_manifest_is_missing(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1]})
    manifest = lab.inspect.manifests()["path"][0]
    Path(lab.state.storage.resolve(manifest)).unlink()
    m: Maintenance[Any] = ix.open(lab.location).maintenance()
    with pytest.raises(FileMissingError):
        m.rewrite_data_files()
    assert "rewrite_data_files" in m.refused


def test_a_plan_of_a_rewrite_is_a_card_and_json() -> None:
    plan = sized([1] * 29, [1]).maintenance().rewrite_data_files(max_file_group_input_files=1, rewrite_all=True)
    assert "the first 20 of 30; to_pandas() has all" in repr(plan)
    assert "Rewrite data files" in plan._repr_html_()
    values = json.loads(plan.to_json())
    assert values["rewritten_data_files"] == len(values["groups"]) == len(plan.to_pandas()) == 30
    assert len(plan.files_to_pandas()) == 30
    assert "refuse the option max-file-group-input-files" in plan.notes[1]


# rewrite_manifests ----------------------------------------------------------------------------------------------------


def range_partitions(keys: list[int], parts: int) -> int:
    """Spark's ``RangePartitioner.determineBounds`` candidate by candidate, and the ranges that get a key."""
    parts = min(parts, len(keys))
    step = target = len(keys) / parts
    bounds: list[int] = []
    for at, key in enumerate(sorted(keys)):
        if len(bounds) < parts - 1 and at + 1 >= target and (not bounds or key > bounds[-1]):
            bounds.append(key)
            target += step
    return len({int(np.searchsorted(bounds, key)) for key in keys})


def test_ranges_are_those_of_spark() -> None:
    rng = np.random.default_rng(5)
    for size, distinct, parts in ((1, 1, 1), (9, 1, 4), (20, 3, 8), (40, 30, 5), (100, 7, 7), (60, 60, 60)):
        keys = np.unique(rng.integers(0, distinct, size), return_inverse=True)[1]
        assert _ranges(np.bincount(keys), parts) == range_partitions(keys.tolist(), parts)


def manifests(t: ix.Table, content: int) -> list[int]:
    frame = t.inspect.manifests()
    return list(frame[frame["content"] == content]["length"])


def test_all_manifests_of_a_spec_are_rewritten(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "db" / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=2)
    assert lab.maintenance().rewrite_manifests().text == "no manifest of partition spec 0 is rewritten"
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    for i in range(4):
        lab.append({"id": [i, 10 + i, 20 + i], "k": ["a", "a", "b"]})
    lab.delete("id in (1, 2)")
    data = manifests(lab, 0)
    plan = lab.maintenance().rewrite_manifests()
    assert plan.manifests["bytes"].to_pylist() == data  # the single delete manifest stays
    assert (plan.rewritten_manifests, plan.added_manifests, plan.accuracy) == (4, 1, "exactly")
    assert plan.text.endswith("become 1")
    assert (plan.cost.files_read, plan.cost.bytes_read) == (4, sum(data))
    after = plan.table
    assert (len(manifests(after, 0)), len(manifests(after, 1))) == (1, 1)
    assert after.to_arrow().sort_by("id").equals(lab.to_arrow().sort_by("id"))
    assert after.maintenance().rewrite_manifests().nothing

    lab.set_properties({"commit.manifest.target-size-bytes": str(sum(data) // 3)})
    split = lab.maintenance().rewrite_manifests()
    assert split.reasons[0].source == "table property"
    assert (split.added_data_manifests, split.added_delete_manifests) == (2, 0)  # two partitions, so two ranges
    assert len(manifests(split.table, 0)) == 2
    assert "live entries" in repr(split) and "live entries" in split._repr_html_()
    assert len(split.to_pandas()) == json.loads(split.to_json())["rewritten_manifests"] == 4
    assert "sort_by => array('k')" in lab.maintenance().rewrite_manifests(sort_by="k").calls[0].code

    lab.evolve_spec(remove=["k"])
    lab.append({"id": [50], "k": ["a"]})
    assert lab.maintenance().rewrite_manifests().nothing
    assert lab.maintenance().rewrite_manifests(spec_id=0).rewritten_manifests == 4


def test_entries_of_unpartitioned_tables_are_distributed_at_random() -> None:
    s = sized([1], [1], [1], commit__manifest__target_size_bytes="5000")
    plan = s.maintenance().rewrite_manifests()
    assert plan.accuracy == "at most"
    assert "become at most" in plan.text


def test_rewrites_of_manifests_that_spark_refuses(small: ix.Simulation) -> None:
    m = small.maintenance()
    with pytest.raises(OptionError, match="spec_id=5"):
        m.rewrite_manifests(spec_id=5)
    with pytest.raises(OptionError, match="no field 'id'"):
        m.rewrite_manifests(sort_by=["id"])
    with pytest.raises(OptionError, match=r"sort_by=\[\]"):
        m.rewrite_manifests(sort_by=[])
    zero = sized([1], commit__manifest__target_size_bytes="0").maintenance()
    assert "commit.manifest.target-size-bytes='0'" in zero.refused["rewrite_manifests"]
    root = ix.empty({"id": "long"}, format_version=4)
    root.append(files=1, rows=1)
    with pytest.raises(UnsupportedError, match="root manifest"):
        root.maintenance().rewrite_manifests()


# rewrite_position_delete_files ----------------------------------------------------------------------------------------


def with_deletes(folder: Path, granularity: str) -> ix.Lab:
    """A table of version 2 with two data files, and position delete files of three commits."""
    lab = ix.create(folder, {"id": "long"}, format_version=2)
    lab.set_properties({"write.delete.mode": "merge-on-read", "write.delete.granularity": granularity})
    for first in (0, 100):
        lab.append({"id": list(range(first, first + 10))})
    for gone in ("id in (1, 101)", "id in (2, 102)", "id = 3"):
        lab.delete(gone)
    return lab


@pytest.mark.parametrize(("granularity", "files", "made"), [("file", 5, 2), ("partition", 3, 1)])
def test_delete_files_are_merged(tmp_path: Path, granularity: str, files: int, made: int) -> None:
    lab = with_deletes(tmp_path / "db" / "t", granularity)
    m = lab.maintenance()
    default = m.rewrite_position_delete_files()  # five are enough files
    assert default.nothing == (files < 5)
    plan = m.rewrite_position_delete_files(min_input_files=2)
    assert (plan.rewritten_delete_files, plan.added_delete_files, plan.accuracy) == (files, made, "exactly")
    assert plan.text.startswith(f"{files} of {files} position delete files and deletion vectors (")
    assert plan.text.endswith(f"in 1 group become {made} delete file{'' if made == 1 else 's'}")
    assert set(plan.files["kind"].to_pylist()) == {"position"}
    assert set(plan.files["why"].to_pylist()) == {"too small"}
    assert set(plan.data_files["delete_files"].to_pylist()) == {2, 3}
    sizes = lab.inspect.delete_files()["file_size_in_bytes"]
    assert (plan.cost.files_read, plan.cost.bytes_read) == (files, sizes.sum())
    after = plan.table
    assert len(after.inspect.delete_files()) == made
    assert after.to_arrow().sort_by("id").equals(lab.to_arrow().sort_by("id"))
    assert after.maintenance().rewrite_position_delete_files(min_input_files=2).rewritten_delete_files in (0, 2)
    assert plan.calls[0].code.endswith("files(table => 'db.t', options => map('min-input-files', '2'))")


def test_delete_files_become_vectors(tmp_path: Path) -> None:
    lab = with_deletes(tmp_path / "t", "partition")
    lab.upgrade(3)
    lab.delete("id = 104")  # the vector of its data file has the older positions, too
    plan = lab.maintenance().rewrite_position_delete_files(rewrite_all=True)
    assert plan.to_vectors
    assert plan.files["kind"].to_pylist().count("position") == 3
    assert plan.files["kind"].to_pylist().count("vector") == 1
    assert plan.text.endswith("become 2 deletion vectors")
    after = plan.table
    assert after.count() == lab.count() == 14
    assert set(after.inspect.delete_files()["file_format"].str.lower()) == {"puffin"}
    assert after.maintenance().rewrite_position_delete_files(rewrite_all=True).nothing  # vectors alone are left alone


def test_delete_files_of_several_data_files_are_opened_or_not(tmp_path: Path) -> None:
    lab = with_deletes(tmp_path / "t", "partition")
    m = lab.maintenance()
    unread = m.rewrite_position_delete_files(rewrite_all=True, read=False)
    assert (unread.accuracy, unread.added_delete_files) == ("at least", 1)
    assert "become at least 1 delete file" in unread.text
    several = unread.files.filter(pc.is_null(unread.files["referenced_data_file"]))
    Path(lab.state.storage.resolve(several["file_path"][0].as_py())).unlink()
    CACHE.clear()
    with pytest.raises(FileMissingError):
        ix.open(lab.location).maintenance().rewrite_position_delete_files(rewrite_all=True)


def test_deletes_that_are_not_rewritten(small: ix.Simulation, tmp_path: Path) -> None:
    plan = small.maintenance().rewrite_position_delete_files(rewrite_all=True)
    assert plan.text == "none of 0 position delete files and deletion vectors is rewritten"
    assert plan.table.count() == small.count()
    with pytest.raises(OptionError, match="unknown option 'delete-file-threshold'"):
        small.maintenance().rewrite_position_delete_files(delete_file_threshold=1)
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=2)
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    lab.append({"id": [1, 2, 3, 4], "k": ["a", "a", "b", "b"]})
    lab.delete("id in (1, 3)")
    m = lab.maintenance()
    assert m.rewrite_position_delete_files(rewrite_all=True).groups["partition"].to_pylist() == ["k=a", "k=b"]
    some = m.rewrite_position_delete_files("k = 'b'", rewrite_all=True)
    assert (some.candidates, some.groups["partition"].to_pylist()) == (1, ["k=b"])
    assert "Rewrite position delete files" in repr(some)
    assert len(some.files_to_pandas()) == len(some.to_pandas()) == json.loads(some.to_json())["rewritten_delete_files"]
