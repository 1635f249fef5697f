"""The command line: every command as text and JSON, exit statuses, files, pipes, colours, and hostile names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

import iceexplore as ix
from iceexplore.cli import main
from iceexplore.storage.finding._find import tables_below
from tests.doctor.damages import DAMAGES, healthy

ROOT = Path(__file__).resolve().parents[2]
TRIPS = str(ROOT / "iceexplore" / "data" / "trips")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def answer(*arguments: object, status: int = 0) -> dict[str, Any]:
    """The JSON of a command, whose standard output holds nothing else."""
    done = run(*arguments, "--json")
    assert done.exit_code == status, done.output
    assert done.stdout.isascii()
    values: dict[str, Any] = json.loads(done.stdout)
    assert (values.pop("version"), values.pop("iceexplore")) == (1, ix.__version__)
    assert values.pop("command") == arguments[0]
    return values


def documented() -> dict[str, set[str]]:
    """The keys that docs/cli.md lists for each command."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").partition("| command | further keys |")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return {name.strip("`"): set(re.findall(r"`(\w+)`", keys)) for name, keys in rows}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A table whose current manifest list is gone."""
    folder = healthy(tmp_path)
    snapshot = ix.open(folder).snapshot
    assert snapshot is not None
    Path(str(snapshot.root_location).removeprefix("file://")).unlink()
    return folder


COMMANDS: dict[str, tuple[str, ...]] = {
    "check": ("check", TRIPS),
    "repair": ("repair", TRIPS),
    "maintain": ("maintain", TRIPS),
    "catalog": ("catalog", TRIPS),
    "catalog --list": ("catalog", TRIPS, "--list"),
    "show": ("show", TRIPS),
    "at": ("at", TRIPS, "2024-q1-audit"),
    "inspect": ("inspect", TRIPS, "files"),
    "diff": ("diff", TRIPS, "2024-q1-audit", "main"),
    "plan": ("plan", TRIPS, "rider = 'guest'"),
    "rows": ("rows", TRIPS, "trip_id = 95"),
    "replay": ("replay", TRIPS),
    "simulate": ("simulate", TRIPS, "--append", "2"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_json_of_every_command_has_the_documented_keys(name: str) -> None:
    assert set(answer(*COMMANDS[name])) == documented()[name]


def test_a_table_is_exported_and_nothing_replaced(tmp_path: Path) -> None:
    archive, page = tmp_path / "t.zip", tmp_path / "t.html"
    assert set(answer("export", TRIPS, archive)) == documented()["export"]
    assert len(ix.open(archive).snapshots) == 12
    assert run("export", TRIPS, archive).exit_code == 2
    before = archive.stat().st_size
    assert run("export", TRIPS, archive, "--force", "--redact", "all").exit_code == 0
    assert archive.stat().st_size != before
    assert run("export", TRIPS, page).exit_code == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    for wrong in (["t.txt"], [page, "--redact", "all", "--redact", "names"], [page, "--deletes"]):
        assert run("export", TRIPS, *wrong).exit_code == 2


def test_a_broken_table_is_mended_in_a_copy(broken: Path, tmp_path: Path) -> None:
    done = run("repair", broken, "--save", tmp_path / "fixed")
    assert done.exit_code == 0, done.output
    assert "1. Remove snapshots without a manifest list" in done.stdout
    assert run("check", tmp_path / "fixed").exit_code == 0
    assert run("repair", broken, "--save", tmp_path / "fixed").exit_code == 2, "nothing is replaced"


def test_what_is_not_mended_is_status_1(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    next(d for d in DAMAGES if d.name == "field_id_twice").damage(folder)
    done = run("repair", folder)
    assert done.exit_code == 1
    assert "Not mended by this plan:" in done.stdout


def test_a_replay_is_saved(tmp_path: Path) -> None:
    assert answer("replay", healthy(tmp_path), "--save", tmp_path / "v4")["saved"]
    assert ix.open(tmp_path / "v4").format_version == 4


def test_every_command_is_documented() -> None:
    tables = {name for name in documented() if not name.startswith("view ")}  # test_view_commands.py has the others
    assert tables == {*COMMANDS, "export", "lab", "any, on an error"}
    guide = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert not [name for name in main.commands if f"iceexplore {name} " not in guide]
    report = answer("check", TRIPS)["report"]
    result = answer("catalog", TRIPS)["result"]
    for keys in (report, result, result["tables"][0]):
        assert not [key for key in keys if f"`{key}`" not in guide]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (COMMANDS["check"], "Check of trips: 4 × untidy"),
        (COMMANDS["catalog"], "1 table, 1 × untidy"),
        (COMMANDS["catalog --list"], "trips\n"),
        (COMMANDS["show"], "Rows before deletes  718"),
        (("show", TRIPS, "--at", "2024-q1-audit"), "2685260039173741930"),
        (COMMANDS["at"], "2685260039173741930"),
        (("at", TRIPS, "--timestamp", "2026-11-21T06:07:47"), "1209892253599139052"),
        (("tree", TRIPS), "├─ ▤ v23.gz.metadata.json"),
        (("tree", TRIPS, "--format", "svg"), "<svg"),
        (("tree", TRIPS, "--format", "mermaid"), "flowchart"),
        ((*COMMANDS["inspect"], "--columns", "record_count,file_format", "--limit", "2"), "… 20 more rows"),
        (COMMANDS["diff"], "data files                +2       −1"),
        (COMMANDS["plan"], "rider = 'guest'"),
        ((*COMMANDS["rows"], "--history"), "deleted in snapshot 7034736431810141194"),
    ],
)
def test_the_text_of_every_command(arguments: tuple[str, ...], expected: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert expected in done.stdout
    assert done.stderr == ""


def test_json_says_what_python_does() -> None:
    t = ix.open(TRIPS)
    assert answer("inspect", TRIPS, "snapshots")["total"] == 12
    rows = answer("inspect", TRIPS, "files", "--columns", "file_path")["rows"]
    assert [row["file_path"] for row in rows] == t.inspect.files.arrow()["file_path"].to_pylist()
    at = answer("inspect", TRIPS, "files", "--at", "2024-q1-audit")
    assert at["total"] == len(t.at("2024-q1-audit").inspect.files.arrow())
    assert answer(*COMMANDS["plan"])["totals"] == t.plan("rider = 'guest'").totals
    shown = answer("show", TRIPS, "--version", "5")["table"]
    assert shown["metadata_location"] == ix.open(TRIPS, version=5).metadata_location
    report = answer("check", TRIPS, "--snapshots", "all")["report"]
    assert len(report["snapshots"]) == 12
    assert answer("rows", TRIPS, "trip_id = 95")["rows"][0]["trip_id"] == 95


def test_findings_are_status_1(broken: Path, tmp_path: Path) -> None:
    page, xml = tmp_path / "report.html", tmp_path / "report.xml"
    done = run("check", broken, "--html", page, "--junit", xml)
    assert done.exit_code == 1
    assert "file-missing" in done.stdout
    assert page.read_text().startswith("<!doctype html>")
    suite = ElementTree.fromstring(xml.read_text())[0]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert suite.find("testcase/failure").get("type") == "fail: file-missing"  # type: ignore[union-attr]
    assert answer("check", broken, status=1)["report"]["ok"] is False
    assert run("check", broken, "--skip", "file-missing").exit_code == 0


def test_a_baseline_leaves_known_findings_out(broken: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    known.write_text(run("check", broken, "--json").stdout)
    assert run("check", broken, "--baseline", known).exit_code == 0
    known.write_text("{}")
    assert run("check", broken, "--baseline", known).exit_code == 2


def test_an_untidy_finding_passes(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    (folder / "metadata" / "version-hint.text").unlink()
    xml = tmp_path / "report.xml"
    assert run("check", folder, "--junit", xml).exit_code == 0
    suite = ElementTree.fromstring(xml.read_text())[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert "hint" in suite.find("testcase/system-out").text  # type: ignore[operator,union-attr]


def test_what_cannot_be_read_is_status_2(tmp_path: Path) -> None:
    xml = tmp_path / "report.xml"
    done = run("check", tmp_path / "nothing", "--junit", xml)
    assert done.exit_code == 2
    assert "the table cannot be opened" in done.stdout
    assert ElementTree.fromstring(xml.read_text())[0].get("errors") == "1"
    shown = run("show", tmp_path / "nothing")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("Error: ")
    error = answer("show", tmp_path / "nothing", status=2)
    assert set(error) == documented()["any, on an error"]
    assert error["error"]["kind"] == "MetadataNotFoundError"
    assert run("catalog", tmp_path / "nothing").exit_code == 2
    assert run("check").exit_code == 2
    assert run("check", TRIPS, "--only", "no-such-code").exit_code == 2
    assert "choose one of" in run("inspect", TRIPS, "file").stderr
    assert run("inspect", TRIPS, "files", "--columns", "nix").exit_code == 2
    assert run("show", TRIPS, "--properties", "nix").exit_code == 2


def test_limits_of_plans_are_assertions() -> None:
    assert run("plan", TRIPS, "--max-files", 12, "--max-bytes", 33115, "--max-deletes", 10).exit_code == 0
    totals = ix.open(TRIPS).plan().totals
    for name in ("files", "bytes", "rows", "splits", "manifests", "deletes", "delete_bytes"):
        option = f"--max-{name.replace('_', '-')}"
        assert run("plan", TRIPS, option, totals[name]).exit_code == 0
        assert run("plan", TRIPS, option, (totals[name] or 0) - 1).exit_code == 1, name
    done = run("plan", TRIPS, "--max-files", 11)
    assert done.exit_code == 1
    assert "✖ files: 12 are read, at most 11 allowed" in done.stdout
    values = answer("plan", TRIPS, "--max-files", 12, "--max-manifests", 1, status=1)
    assert values["failed"] == ["manifests: 2 are read, at most 1 allowed"]


def test_a_catalog_is_checked_and_resumed(broken: Path, tmp_path: Path) -> None:
    healthy(tmp_path / "more")
    resume, page = tmp_path / "fleet.json", tmp_path / "fleet.html"
    done = run("catalog", tmp_path, "--resume", resume, "--html", page, "--time-limit", 500)
    assert done.exit_code == 1, done.output
    assert done.stdout.index("✖ t ") < done.stdout.index("more/t")
    values = answer("catalog", tmp_path, "--resume", resume, status=1)
    assert json.loads(resume.read_text())["tables"] == values["result"]["tables"]
    listed = answer("catalog", tmp_path, "--list", "--listing-limit", 500)
    assert (listed["tables"], listed["namespaces"], listed["complete"]) == (["more/t", "t"], ["more"], True)
    assert "<details>" in page.read_text()


def test_a_listing_that_takes_too_long_is_status_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy(tmp_path)
    release = threading.Event()

    def hangs(*arguments: Any) -> Iterator[Any]:
        yield from tables_below(*arguments)
        release.wait(60)

    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr("iceexplore.storage.finding._list.tables_below", hangs)
    monkeypatch.setattr(os, "_exit", leave)
    listed = answer("catalog", tmp_path, "--list", "--listing-limit", 1, status=2)
    assert (listed["tables"], listed["complete"]) == (["t"], False)
    done = run("catalog", tmp_path, "--list", "--listing-limit", 0.1)
    assert (done.exit_code, done.stdout.splitlines()[-1][:24]) == (2, "ℹ Not everything is list")
    result = answer("catalog", tmp_path, "--listing-limit", 1, status=2)["result"]
    assert ([one["table"] for one in result["tables"]], result["complete"]) == (["t"], False)
    release.set()


def test_control_characters_in_names_do_not_act(tmp_path: Path) -> None:
    evil = "e\x1b[31mvil\u202e"
    lab = ix.create(tmp_path / "t", {evil: "string"}, format_version=2)
    lab.append({evil: ["a\nb\x1b[2J"]})
    lab.tag("tag\x1b[5m")
    for arguments in (
        ("show", tmp_path / "t"), ("check", tmp_path / "t"), ("tree", tmp_path / "t"), ("plan", tmp_path / "t"),
        ("inspect", tmp_path / "t", "files"), ("inspect", tmp_path / "t", "refs"), ("diff", tmp_path / "t", "main"),
        ("show", tmp_path / evil), ("check", tmp_path / evil), ("inspect", tmp_path / "t", evil),
    ):  # fmt: skip
        done = run(*arguments)
        assert "\x1b" not in done.output, arguments
        assert "\u202e" not in done.output, arguments


def test_colours_only_on_a_terminal(broken: Path) -> None:
    def on_terminal(**environment: str) -> str:
        runner = CliRunner(env=environment)
        return runner.invoke(main, ["check", str(broken)], color=True).stdout

    assert "\x1b[31m" in on_terminal()
    assert "\x1b" not in on_terminal(NO_COLOR="1")
    assert "\x1b" not in run("check", broken).stdout


def command(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "iceexplore.cli", *arguments], cwd=ROOT, text=True, check=False, **how)


def test_a_pipe_that_closes_early_ends_quietly(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = command("inspect", TRIPS, "column_stats", "--json", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_help_imports_nothing_heavy() -> None:
    heavy = ("pyarrow", "pandas", "numpy", "pyiceberg", "pyspark", "ipywidgets", "iceexplore.table")
    code = f"""
import sys
from iceexplore.cli import main
main(["--help"], standalone_mode=False)
print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "check" in done.stdout


def test_completion_is_clicks() -> None:
    done = command(capture_output=True, env={**os.environ, "_ICEEXPLORE_COMPLETE": "bash_source"})
    assert done.returncode == 0
    assert "_iceexplore_completion" in done.stdout or "complete" in done.stdout
