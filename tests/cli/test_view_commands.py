"""``iceexplore view``: every command as text and JSON, exit statuses, files, and hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

import iceexplore as ix
from iceexplore.cli import main
from tests.cli.test_cli import documented
from tests.views.view_documents import schema, version, view, write_view

COLUMNS = (("city", "string"), ("n", "long"))
FIELDS = [{"id": i, "name": n, "required": False, "type": kind} for i, (n, kind) in enumerate(COLUMNS)]
SQL = "SELECT city, count(*) AS n FROM trips GROUP BY city"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two snapshots, a view of two versions, a materialized view, and a broken one."""
    folder = tmp_path_factory.mktemp("warehouse")
    lab = ix.create(folder / "db" / "trips", {"id": "long", "city": "string"})
    lab.append({"id": [1, 2], "city": ["Oslo", "Rome"]})
    lab.tag("january")
    lab.append({"id": [3], "city": ["Oslo"]})
    both = {"spark": SQL, "trino": SQL.replace("city,", "city AS city,")}
    schemas = [schema(1, *FIELDS)]
    made = view(
        [version(1, both), version(2, {**both, "spark": SQL.replace("trips", "trips WHERE id > 1")})], schemas=schemas
    )
    write_view(folder / "db" / "daily", made)
    storage = {"storage-table": {"namespace": ["db"], "name": "trips"}}
    write_view(folder / "db" / "stored", view([version(1, SQL, **storage)], schemas=schemas))
    write_view(folder / "db" / "broken", view([version(1, "SELECT nix, id FROM trips")], schemas=schemas))
    return folder / "db"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["view", *map(str, arguments)])


def answer(*arguments: object, status: int = 0) -> dict[str, Any]:
    """The JSON of a command, whose standard output holds nothing else."""
    done = run(*arguments, "--json")
    assert done.exit_code == status, done.output
    values: dict[str, Any] = json.loads(done.stdout)
    assert (values.pop("version"), values.pop("iceexplore")) == (1, ix.__version__)
    assert values.pop("command") == f"view {arguments[0]}"
    return values


COMMANDS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "show": ((), 0, "SQL, trino"),
    "versions": ((), 0, "is_rollback"),
    "diff": (("1",), 0, "filter added: id > 1"),
    "sql": (("duckdb", "--at", "1"), 0, "translated from spark by sqlglot"),
    "dialects": ((), 1, "filter removed"),
    "lineage": (("--dialect", "spark"), 0, "prod.db.trips"),
    "tree": (("--versions", "all"), 0, "version 2 [current]"),
    "check": ((), 0, "view-dialects-vary"),
    "freshness": ((), 0, ""),
    "rows": (("--at", "1"), 0, "Oslo  2"),
}


@pytest.mark.parametrize("name", [one for one in COMMANDS if one != "freshness"])
def test_the_text_of_every_command(warehouse: Path, name: str) -> None:
    arguments, status, text = COMMANDS[name]
    done = run(name, warehouse / "daily", *arguments)
    assert done.exit_code == status, done.output
    assert text in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", [one for one in COMMANDS if one not in ("freshness", "tree")])
def test_the_json_of_every_command_has_the_documented_keys(warehouse: Path, name: str) -> None:
    arguments, status, _ = COMMANDS[name]
    assert set(answer(name, warehouse / "daily", *arguments, status=status)) == documented()[f"view {name}"]


def test_every_command_is_documented() -> None:
    group: Any = main.commands["view"]
    assert set(group.commands) == set(COMMANDS)
    assert {name for name in documented() if name.startswith("view ")} == {f"view {n}" for n in COMMANDS if n != "tree"}
    guide = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert not [name for name in COMMANDS if f"`view {name} SOURCE" not in guide]


def test_json_says_what_python_does(warehouse: Path) -> None:
    v = ix.open_view(warehouse / "daily")
    shown = answer("show", warehouse / "daily", "--at", "1")["view"]
    assert (shown["version_id"], shown["versions"], shown["sql"]["spark"]) == (1, 2, SQL)
    assert [one["name"] for one in shown["columns"]] == ["city", "n"]
    found = answer("diff", warehouse / "daily", "1", "2")
    assert (found["same_query"], found["dialects"]) == (False, {"spark": "changed", "trino": "same"})
    assert [one["text"] for one in found["changes"]] == [one.text for one in v.diff(1, 2).changes]
    assert answer("lineage", warehouse / "daily", "--no-sources")["tables"][0]["kind"] == "not opened"
    assert answer("sql", warehouse / "daily", "spark", "--timestamp", "2019-11-12T01:40")["sql"] == SQL
    log = answer("versions", warehouse / "daily")["log"]
    assert [one["version_id"] for one in log] == [1, 2]


def test_rows_of_any_state(warehouse: Path) -> None:
    place = warehouse / "daily"
    one = ("--at", "1")
    assert answer("rows", place, *one)["rows"] == ix.open_view(place).at(1).to_arrow().to_pylist()
    then = answer("rows", place, *one, "--tables-at", "db.trips=january")["rows"]
    assert sorted(row["n"] for row in then) == [1, 1]
    limited = answer("rows", place, *one, "--limit", 1)
    assert (len(limited["rows"]), limited["complete"]) == (1, False)
    assert "… and more rows; use --limit to show them" in run("rows", place, *one, "--limit", 1).stdout
    moved = answer("rows", place, *one, "--tables", f"db.trips={warehouse / 'trips'}", "--dialect", "trino")
    assert sum(row["n"] for row in moved["rows"]) == 3
    first = str(ix.open(warehouse / "trips").snapshots[0].snapshot_id)
    assert answer("rows", place, *one, "--tables-at", f"trips={first}")["rows"] == then
    assert run("rows", place).exit_code == 2, "the dialects differ"


def test_exit_statuses(warehouse: Path, tmp_path: Path) -> None:
    xml, page = tmp_path / "r.xml", tmp_path / "r.html"
    done = run("check", warehouse / "broken", "--junit", xml, "--html", page)
    assert done.exit_code == 1
    assert "view-column-missing" in done.stdout
    assert ElementTree.fromstring(xml.read_text())[0].get("failures") == "1"
    assert "view-column-missing" in page.read_text()
    known = tmp_path / "known.json"
    known.write_text(run("check", warehouse / "broken", "--json").stdout)
    assert run("check", warehouse / "broken", "--baseline", known).exit_code == 0
    assert run("check", warehouse / "broken", "--no-sources").exit_code == 0
    assert run("check", warehouse / "broken", "--skip", "view-column-missing").exit_code == 0
    assert run("check", warehouse / "broken", "--only", "nix").exit_code == 2
    found = answer("freshness", warehouse / "stored", status=2)
    assert set(found) == documented()["view freshness"]
    assert (found["status"], "records no refresh-state" in found["rule"]) == ("unknowable", True)
    assert "proposal" in run("freshness", warehouse / "stored").stdout
    for wrong in (
        ("show", tmp_path / "nothing"), ("show", warehouse / "trips"), ("rows", warehouse / "broken"),
        ("show", warehouse / "daily", "--at", "9"), ("show", warehouse / "daily", "--at", "1", "--timestamp", "2020"),
        ("freshness", warehouse / "daily"), ("sql", warehouse / "daily"),
        ("sql", warehouse / "daily", "duckdb", "--stored"),
        ("rows", warehouse / "stored", "--tables-at", "a=1", "--tables-at", "2020-01-01"),
        ("rows", warehouse / "stored", "--tables-at", "db.nix=1"),
    ):  # fmt: skip
        done = run(*wrong)
        assert (done.exit_code, done.stdout) == (2, ""), (wrong, done.output)
        assert "Error: " in done.stderr
    error = answer("rows", warehouse / "broken", status=2)["error"]
    assert error["kind"] == "UnsupportedError"


def test_pages_are_written(warehouse: Path, tmp_path: Path) -> None:
    for name, more in (("show", []), ("diff", ["1"]), ("lineage", [])):
        page = tmp_path / f"{name}.html"
        assert run(name, warehouse / "daily", *more, "--html", page).exit_code == 0
        assert page.read_text().lower().startswith("<!doctype html>")
    assert run("tree", warehouse / "daily", "--format", "svg").stdout.startswith("<svg")


def test_control_characters_do_not_act(tmp_path: Path) -> None:
    text = "SELECT '\x1b[31m' AS a, '\u202e' AS b FROM t"
    write_view(tmp_path / "v", view([version(1, {"spark": text, "e\x1b[2Jvil": text})], schemas=[schema(1, *FIELDS)]))
    for name in ("show", "versions", "lineage", "tree", "check", "dialects"):
        done = run(name, tmp_path / "v")
        assert "\x1b" not in done.output, name
        assert "\u202e" not in done.output, name
    done = run("rows", tmp_path / "v", "--dialect", "spark")
    assert "\x1b" not in done.output
