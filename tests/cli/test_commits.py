"""The commands that commit: steps in order, what they wrote, the state before and after, and labs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyarrow import csv

import iceexplore as ix
from iceexplore.cli import main
from tests.cli.test_cli import TRIPS, answer, documented, run


def digest(folder: Path | str) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in Path(folder).rglob("*") if one.is_file()}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lab: three commits of the sample."""
    folder = tmp_path_factory.mktemp("labs") / "trips"
    assert run("lab", folder, "--commits", 3, "--format-version", 3).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file with two rows of trips."""
    path = tmp_path_factory.mktemp("rows") / "new.parquet"
    pq.write_table(ix.sample().to_arrow().slice(0, 2), path)
    return path


STEPS = (
    "--append", 3, "--rows", 1000, "--compact", "--append", 2, "--expire-snapshots", "--older-than", "now",
    "--retain-last", 2, "--upgrade", 4, "--commit", "tag('v1')", "--rewrite-manifests",
)  # fmt: skip


def test_commits_are_made_in_the_order_of_the_options() -> None:
    before = digest(TRIPS)
    values = answer("simulate", TRIPS, "--seed", 7, *STEPS)
    assert digest(TRIPS) == before, "the table is never written"
    s = ix.open(TRIPS).simulate(seed=7)
    s.append(3, rows=1000)
    s.compact()
    s.append(2, rows=1000)
    s.expire_snapshots(older_than=4_000_000_000_000, retain_last=2)
    s.upgrade(4)
    s.tag("v1")
    s.rewrite_manifests()
    names = [one["call"].partition("(")[0] for one in values["steps"]]
    assert names == ["append", "compact", "append", "expire_snapshots", "upgrade", "tag", "rewrite_manifests"]
    made = [one["snapshot_id"] for one in values["steps"]]
    assert [one is None for one in made] == [False, False, False, True, True, True, False]
    assert made[-1] == s.snapshot.snapshot_id, "the same commits as in Python"  # type: ignore[union-attr]
    assert values["after"]["snapshots"] == len(s.snapshots)
    assert (values["before"]["format_version"], values["after"]["format_version"]) == (3, 4)
    assert values["after"]["rows"] == s.plan().totals["rows"]
    written = [(w["kind"], w["files"], w["bytes"]) for one in values["steps"] for w in one["written"]]
    assert sum(files for _, files, _ in written) == len(s.writes)
    assert {kind for kind, _, _ in written} == {w.kind for w in s.writes}
    appended = values["steps"][0]
    assert appended["summary"]["added-records"] == "3000"
    assert "synthetic" in appended["note"]
    added = next(row for row in values["changes"] if row["content"] == "data file")
    assert added["added_files"] == 5
    assert values["saved"] is None


def test_the_text_has_the_steps_and_the_state_before_and_after(tmp_path: Path) -> None:
    page, saved = tmp_path / "result.html", tmp_path / "saved"
    few = ("--append", 3, "--rows", 1000, "--commit", "tag('v1')")
    done = run("simulate", TRIPS, *few, "--upgrade", 4, "--html", page, "--save", saved)
    assert done.exit_code == 0, done.output
    assert "Simulation of trips: 3 commits" in done.stdout
    for line in ("1. append(3, rows=1000)", "added-records                 3000", "2. tag('v1')"):
        assert line in done.stdout
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("format version")] == [
        ["format", "version", "3", "4"]
    ]
    assert ix.open(saved).refs["v1"].type == "tag"
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert "<script" not in text
    assert "delete_where" not in text
    assert run("simulate", TRIPS, "--save", saved).exit_code == 2, "nothing is replaced"


def test_rows_of_files_are_appended(rows: Path, tmp_path: Path) -> None:
    values = answer("simulate", TRIPS, "--append", rows, "--save", tmp_path / "s")
    (step,) = values["steps"]
    assert step["call"] == f"append({str(rows)!r})"
    assert step["summary"]["added-records"] == "2"
    assert {one["kind"] for one in step["written"]} >= {"data-file", "manifest"}
    assert ix.open(tmp_path / "s").count() == ix.sample().count() + 2
    plain = pa.table({"id": [1, 2], "name": ["a", None]})
    csv.write_csv(plain, tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text('{"id": 3, "name": "b"}\n')
    assert run("lab", tmp_path / "t", "--from", tmp_path / "a.csv", "--commits", 1).exit_code == 0
    assert run("lab", tmp_path / "t", "--append", tmp_path / "a.jsonl").exit_code == 0
    assert ix.open(tmp_path / "t").to_arrow().sort_by("id")["id"].to_pylist() == [1, 2, 3]
    for wrong in ("a.txt", "none.parquet", "a.parquet"):
        (tmp_path / "a.parquet").write_text("no parquet")
        assert "Error: " in (done := run("simulate", TRIPS, "--append", tmp_path / wrong)).stderr
        assert done.exit_code == 2


def test_what_finds_nothing_to_do_is_no_error() -> None:
    first, second = answer("simulate", TRIPS, "--compact", "--compact")["steps"]
    assert first["snapshot_id"]
    assert (second["snapshot_id"], second["written"]) == (None, [])
    assert second["note"].startswith("nothing was committed: compaction would not reduce")


def test_times_of_expiry(lab: Path) -> None:
    def expired(*how: object) -> str:
        (step,) = answer("simulate", lab, "--expire-snapshots", *how)["steps"]
        return str(step["note"])

    assert expired() == "0 snapshots expired, 3 kept"
    assert expired("--older-than", "5d") == "0 snapshots expired, 3 kept"
    assert expired("--older-than", "now") == "2 snapshots expired, 1 kept"
    assert expired("--older-than", "2100-01-01", "--retain-last", 2) == "1 snapshot expired, 2 kept"
    for wrong in ("5x", "99999999999w", "soon"):
        assert run("simulate", lab, "--expire-snapshots", "--older-than", wrong).exit_code == 2


@pytest.mark.parametrize(
    "call",
    [
        "", "tag", "tag('x'", "__import__('os').system('x')", "tag(__import__('os'))", "s.tag('x')",
        "tag(**{'name': 'x'})", "nix()", "tag()", "tag('a', 'b', 'c', 'd')", "delete('true')", "upgrade(2)",
        "delete_where('nix')", "[" * 5000, "tag(" + "-" * 50_000 + "1)", "x" * 200_000, "tag('x\x1b[31m', 7)",
        "append(2, rows=1, nix=3)",
    ],
)  # fmt: skip
def test_calls_that_are_none(call: str) -> None:
    done = run("simulate", TRIPS, "--commit", call)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("Error: ")
    assert "\x1b" not in done.output


def test_wrong_options(lab: Path, tmp_path: Path) -> None:
    for wrong in (
        ("simulate", TRIPS, "--upgrade", "x"),
        ("simulate", TRIPS, "--upgrade", 2),
        ("simulate", TRIPS, "--set-properties", "x"),
        ("simulate", TRIPS, "--layout", "nix=1"),
        ("simulate", TRIPS, "--layout", "overlay=/tmp/x"),
        ("simulate", TRIPS, "--format-version", 2),
        ("simulate", TRIPS, "--ref", "nix", "--rewrite-manifests"),
        ("simulate", tmp_path / "nothing"),
        ("lab", tmp_path / "x", "--sample", "nix"),
        ("lab", tmp_path / "x", "--sample", "trips", "--schema", "id long"),
        ("lab", tmp_path / "x", "--schema", "id"),
        ("lab", tmp_path / "x", "--schema", "id long, id int"),
        ("lab", tmp_path / "x", "--schema", "id nix"),
        ("lab", tmp_path / "x", "--layout", "location=/tmp/x"),
        ("lab", lab, "--sample", "trips"),
        ("lab", TRIPS, "--compact"),
    ):
        done = run(*wrong)
        assert done.exit_code == 2, wrong
        assert done.stderr, wrong
    assert not (tmp_path / "x").exists()
    error = answer("simulate", TRIPS, "--append", 1, "--commit", "tag('x', 3)", status=2)
    assert set(error) == documented()["any, on an error"]
    assert error["error"]["message"].startswith("tag('x', 3): ")


def test_a_lab_is_created_and_written(lab: Path, tmp_path: Path) -> None:
    t = ix.open(lab)
    assert (t.format_version, len(t.snapshots), t.count()) == (3, 3, ix.sample().count())
    assert [f.transform for f in t.spec.fields] == ["month", "bucket[2]"]  # type: ignore[union-attr]  # there is one
    folder = tmp_path / "copy"
    shutil.copytree(lab, folder)
    values = answer(
        "lab", folder, "--delete", "rider = 'guest'", "--compact", "--set-properties", "a=b=c", "--upgrade", 4
    )
    assert set(values) == documented()["lab"]
    assert [one["call"] for one in values["steps"]] == [
        "delete(\"rider = 'guest'\")", "compact()", "set_properties({'a': 'b=c'})", "upgrade(4)"
    ]  # fmt: skip
    assert "data-file" in {one["kind"] for one in values["steps"][0]["written"]}
    after = ix.open(folder)
    assert after.count("rider = 'guest'") == 0
    assert after.count() == t.count("rider != 'guest' or rider is null")
    assert (after.format_version, after.properties["a"]) == (4, "b=c")
    done = run("lab", folder, "--commit", "tag('kept')", "--commit", "rollback(1)")
    assert done.exit_code == 2
    assert "rollback(1) (the 1 commits before it stay)" in done.stderr
    assert "kept" in ix.open(folder).refs


def test_a_lab_of_random_rows(tmp_path: Path) -> None:
    schema = "id long, day date, spot struct<x: double, y: decimal(9, 2)>, tags list<string>"
    how = ("--schema", schema, "--partition-by", "day(day)", "--sort-by", "id desc", "--rows", 50, "--seed", 3)
    values = answer("lab", tmp_path / "a", *how, "--commits", 2, "--properties", "write.delete.mode=merge-on-read")
    assert (values["before"], values["changes"], values["steps"]) == (None, None, [])
    assert (values["after"]["rows"], values["after"]["snapshots"]) == (100, 2)
    t = ix.open(tmp_path / "a")
    assert [str(f.type) for f in t.schema.fields][:2] == ["long", "date"]
    assert t.check("files").ok
    answer("lab", tmp_path / "b", *how, "--commits", 2)
    assert ix.open(tmp_path / "b").to_arrow().sort_by("id").equals(t.to_arrow().sort_by("id")), "reproducible"
    assert run("lab", tmp_path / "c", "--schema", "id long", "--commits", 0).exit_code == 0
    assert ix.open(tmp_path / "c").snapshot is None
    assert run("simulate", tmp_path / "c", "--append", 1).exit_code == 0


def test_names_that_act_do_not(tmp_path: Path) -> None:
    evil = "e\x1b[31mvil\u202e<img>"
    made = ix.create(tmp_path / evil, {evil: "string"})
    made.append({evil: ["x"]})
    page = tmp_path / "page.html"
    step = ("--commit", f"tag({evil!r})", "--commit", f"set_properties({{{evil!r}: {evil!r}}})")
    done = run("simulate", tmp_path / evil, "--append", 1, *step, "--html", page)
    assert done.exit_code == 0, done.output
    for text in (done.output, page.read_text()):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<img>" not in page.read_text()


def test_completion_and_help_make_no_commit(tmp_path: Path) -> None:
    runner = CliRunner(
        env={"_ICEEXPLORE_COMPLETE": "bash_complete", "COMP_WORDS": "iceexplore simulate x --comp", "COMP_CWORD": "3"}
    )
    done = runner.invoke(main, prog_name="iceexplore")
    assert "--compact" in done.stdout
    assert run("lab", tmp_path / "x", "--help").exit_code == 0
    assert not (tmp_path / "x").exists()
    values: Any = json.loads(run("simulate", TRIPS, "--json").stdout)
    assert values["steps"] == []
    assert values["before"] == values["after"]
