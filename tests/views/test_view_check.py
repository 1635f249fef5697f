"""`v.check()`: findings in the doctor's shape, with codes of the one registry."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import iceexplore as ix
from iceexplore.doctor import Report
from iceexplore.errors import PROBLEM_KINDS
from tests.helpers.hostile import HOSTILE
from tests.views.test_view_hostile import IN_HTML, IN_TEXT, hostile_view
from tests.views.view_documents import (
    EXAMPLE_CREATED,
    EXAMPLE_REPLACED,
    HOUR,
    START,
    cleaned,
    log,
    schema,
    version,
    view,
    without,
    write_view,
)

#: The codes of views, as far as the metadata of views alone shows them.
CODES = sorted(code for code in PROBLEM_KINDS if code.startswith("view-"))


def early(**changes: Any) -> dict[str, Any]:
    """The early draft's example, with other keys in its representation."""
    made = cleaned(EXAMPLE_CREATED)
    made["versions"][0]["representations"][0].update(changes)
    return made


def two_texts() -> dict[str, Any]:
    """A view with two texts of one dialect."""
    texts = [{"type": "sql", "sql": f"SELECT day, {i} AS trips FROM t", "dialect": "spark"} for i in (1, 2)]
    return view([version(1, representations=texts)])


#: A damaged view for each code, with the severity, the field and the part of the metadata.
DAMAGES: dict[str, tuple[dict[str, Any], str, str | None, str]] = {
    "view-aliases": (early(**{"field-aliases": ["x"]}), "wrong", "field-aliases", "#version 1"),
    "view-columns-differ": (view([version(1, "SELECT day FROM t")]), "fail", "sql", "#version 1"),
    "view-dialects-differ": (
        view([version(1, {"spark": "SELECT a, b FROM t", "trino": "SELECT a, b FROM t JOIN u ON t.i = u.i"})]), "wrong",
        "representations", "#version 1",
    ),
    "view-dialects-vary": (
        view([version(1, {"spark": "SELECT a, b / 2 FROM t", "trino": "SELECT a, b / 2 FROM t"})]), "untidy",
        "representations", "#version 1",
    ),
    "view-dialect-twice": (two_texts(), "wrong", "dialect", "#version 1"),
    "view-invalid": (view([version(1, **{"schema-id": 5})]), "fail", "schema-id", "#version 1"),
    "view-log-differs": (view([version(1), version(2)], **{"version-log": log(1)}), "wrong", "version-id", ""),
    "view-representation-unknown": (
        view([version(1, representations=[{"type": "x"}, *version(1)["representations"]])]), "untidy", "type",
        "#version 1",
    ),
    "view-version-expired": (view([version(2)], 1, 2), "untidy", "version-log", ""),
    "view-version-ids": (
        view([version(1, **{"timestamp-ms": START + 9 * HOUR}), version(2)], 2, 1), "untidy", "version-id", "#version 1"
    ),
    "view-versions-many": (view([version(i) for i in range(1, 12)]), "untidy", "version.history.num-entries", ""),
}  # fmt: skip


@pytest.mark.parametrize("code", sorted(DAMAGES))
def test_each_code(code: str, tmp_path: Path) -> None:
    document, severity, field, part = DAMAGES[code]
    report = ix.open_view(write_view(tmp_path / "v", document)).check()
    (found,) = report
    assert (found.code, found.severity, found.field) == (code, severity, field)
    assert found.where.endswith(f"metadata/v1.metadata.json{part}") and found.places == (found.where,)
    assert found.advice and found.title and report.ok is (severity == "untidy")
    assert report.exit_code == (0 if report.ok else 1)
    assert code in repr(report) and code in report._repr_html_() and code in report.to_html()


def test_every_code_is_documented_and_tested() -> None:
    page = (Path(__file__).parents[2] / "docs" / "views.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"`(view-[a-z-]+)`", page))) == CODES
    assert sorted([*DAMAGES, *SOURCES, "view-version-changed"]) == CODES


@pytest.mark.parametrize(
    "document",
    [
        view(),
        view([version(1), version(2), version(3)], 1, 2, 3, 2, 1),
        view([version(i) for i in range(1, 11)]),
        view([version(i) for i in range(1, 30)], properties={"version.history.num-entries": "40"}),
        view([version(8), version(9)]),
        without(view(), "properties"),
        view([version(1, summary={})]),
        view([version(1, **{"default-namespace": [], "default-catalog": None})]),
        view([version(1, {"spark": "SELECT * FROM t", "trino": "SELECT a, b FROM lake.db.T"})]),
        view([version(1, {"spark": "SELECT a, b FROM db.t", "trino": "SELECT a, b FROM t"})]),
        cleaned(EXAMPLE_CREATED),
    ],
)
def test_sound_views_have_no_findings(document: dict[str, Any], tmp_path: Path) -> None:
    v = ix.open_view(write_view(tmp_path / "v", document))
    report = v.check(open_sources=False)
    assert not list(report) and not report.unknown and report.ok and report.exit_code == 0
    assert "nothing found" in repr(report) and f"{len(v.versions)} version" in repr(report)
    assert "Data and delete files" not in repr(report), "views have none"


def evolving(folder: Path) -> ix.Table:
    """A table whose columns changed after its first snapshot: day was added again, fare widened, tip dropped."""
    lab = ix.create(folder / "db" / "t", {"day": "date", "fare": "int", "tip": "long", "trips": "long"})
    lab.append([{"fare": 1}])
    lab.evolve_schema(update={"fare": "long"}, drop=["day", "tip"])
    lab.evolve_schema(add={"day": "date"})
    return lab.table


#: Codes of the tables that a view reads: the query, the columns of the view, and a part of the text.
SOURCES: dict[str, tuple[str, list[str], str]] = {
    "view-column-missing": ("SELECT tip FROM t", ["long"], "v reads the column tip of prod.db.t, which has no such"),
    "view-cycle": ("SELECT c1 FROM v", ["long"], "v reads prod.db.v, which reads v"),
    "view-source-changed": (
        "SELECT day FROM t", ["date"],
        "The column day of prod.db.t has been replaced by a new column with the same name since version 1",
    ),
    "view-source-missing": ("SELECT a FROM gone", ["long"], "v reads prod.db.gone, which does not exist"),
    "view-types-differ": ("SELECT trips FROM t", ["string"], "returns long for the column c1 (prod.db.t.trips)"),
}  # fmt: skip


def reading(folder: Path, sql: str, kinds: list[str]) -> ix.View:
    """A view beside the table, made after the table's first snapshot and before it changed."""
    table = ix.open(folder / "db" / "t")
    fields = [{"id": i, "name": f"c{i}", "required": False, "type": kind} for i, kind in enumerate(kinds, 1)]
    made = view([version(1, sql, **{"timestamp-ms": table.snapshots[0].timestamp_ms})], schemas=[schema(1, *fields)])
    return ix.open_view(write_view(folder / "db" / "v", made))


@pytest.mark.parametrize("code", sorted(SOURCES))
def test_each_code_of_what_a_view_reads(code: str, tmp_path: Path) -> None:
    evolving(tmp_path)
    sql, kinds, text = SOURCES[code]
    v = reading(tmp_path, sql, kinds)
    catalog = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    report = v.check(catalog=catalog if code == "view-source-missing" else None)
    (found,) = report
    assert (found.code, report.ok, dict(report.unknown)) == (code, False, {})
    assert text in found.text
    assert code in repr(report) and code in report.to_html()
    assert not list(v.check(open_sources=False)) and not v.check(open_sources=False).unknown


@pytest.mark.parametrize(
    ("sql", "kinds", "codes"),
    [
        ("SELECT fare FROM t", ["long"], ["view-source-changed"]),
        ("SELECT count(*) FROM t", ["int"], ["view-types-differ"]),
        ("SELECT count(*), CAST(trips AS string), trips > 3, CAST(trips AS decimal(9, 2)) FROM t",
         ["long", "string", "boolean", "decimal(9, 2)"], []),
        ("SELECT CAST(trips AS int), CAST(trips AS decimal(9, 2)) FROM t", ["long", "decimal(12, 2)"], []),
        ("SELECT CAST(trips AS decimal(9, 2)) FROM t", ["decimal(9, 3)"], ["view-types-differ"]),
        ("SELECT sum(trips), max(trips), trips + 1 FROM t", ["string", "string", "string"], []),
        ("SELECT s.trips FROM (SELECT sum(trips) AS trips FROM t) s", ["string"], []),
        ("SELECT * FROM t", ["long", "long"], ["view-columns-differ", "view-source-changed"]),
        ("SELECT * FROM (SELECT trips, tip FROM t) s", ["long", "long"], ["view-column-missing"]),
    ],
)  # fmt: skip
def test_what_a_view_reads_is_compared(tmp_path: Path, sql: str, kinds: list[str], codes: list[str]) -> None:
    evolving(tmp_path)
    assert sorted({f.code for f in reading(tmp_path, sql, kinds).check()}) == codes


def test_tables_that_cannot_be_opened_are_not_checked(tmp_path: Path) -> None:
    evolving(tmp_path)
    v = reading(tmp_path, "SELECT a FROM db.elsewhere", ["long"])
    report = v.check()
    assert report.ok and "not found beside the view" in report.unknown["prod.db.elsewhere"]
    report = v.check(tables={"db.elsewhere": tmp_path / "nothing"})
    assert report.ok and "nothing" in report.unknown["prod.db.elsewhere"]
    inner = reading(tmp_path, "SELECT tip FROM t", ["long"])
    column = {"id": 1, "name": "x", "required": False, "type": "long"}
    outer = view([version(1, "SELECT c1 FROM v")], schemas=[schema(1, column)])
    (found,) = ix.open_view(write_view(tmp_path / "db" / "outer", outer)).check()
    assert found.code == "view-column-missing" and found.text.startswith(f"{inner.name} reads the column tip")


def test_sql_that_cannot_be_parsed_is_not_checked(tmp_path: Path) -> None:
    report = ix.open_view(write_view(tmp_path / "v", cleaned(EXAMPLE_REPLACED))).check()
    assert not list(report) and "not valid spark" in report.unknown["the SQL of spark"]
    assert "Not checked: the SQL of spark." in repr(report)


def test_the_version_that_is_shown_is_checked(tmp_path: Path) -> None:
    v = ix.open_view(write_view(tmp_path / "v", view([version(1, "SELECT 1"), version(2)])))
    assert [f.code for f in v.at(1).check()] == ["view-columns-differ"]
    assert not list(v.check()), "of the current version"


def test_equal_faults_are_one_finding(tmp_path: Path) -> None:
    made = view([version(i, **{"schema-id": 7}) for i in range(1, 10)])
    (found,) = ix.open_view(write_view(tmp_path / "v", made)).check()
    assert found.count == 9 and len(found.places) == 9 and "and 8 more" in repr(ix.open_view(tmp_path / "v").check())


def test_versions_are_immutable_so_a_changed_one_is_reported(tmp_path: Path) -> None:
    old = view([version(1), version(2)])
    for name, changed, field in (
        ("sql", version(1, "SELECT 9, 9"), "representations"),
        ("dialect", version(1, {"spark": "SELECT day, trips FROM t", "trino": "SELECT 1"}), "representations"),
        ("schema", version(1, **{"schema-id": 2}), "schema-id"),
        ("catalog", version(1, **{"default-catalog": "other"}), "default-catalog"),
        ("namespace", version(1, **{"default-namespace": ["x"]}), "default-namespace"),
    ):
        folder = write_view(tmp_path / name, old)
        write_view(folder, view([changed, version(2)], schemas=[schema(1), schema(2)]), "v2.metadata.json")
        (found,) = ix.open_view(folder).check()
        assert (found.code, found.severity, found.field) == ("view-version-changed", "wrong", field)
        assert found.where.endswith("v2.metadata.json#version 1") and found.found == "v1.metadata.json"
    v = ix.open_view(folder)
    v.check()
    assert [p.code for p in v.problems] == ["view-version-changed"], "the card shows it from then on"


def test_what_is_no_change_of_a_version(tmp_path: Path) -> None:
    for name, other in (
        ("summary", view([version(1, summary={})])),
        ("created again", view([version(1, "SELECT 9")], **{"view-uuid": "11111111-3681-40c8-86dc-e36561f83385"})),
        ("another time", view([version(1, "SELECT 9", **{"timestamp-ms": START})])),
        ("expired", view([version(2)], 2)),
    ):
        folder = write_view(write_view(tmp_path / name, other), view(), "v2.metadata.json")
        assert not list(ix.open_view(folder).check())


def test_what_could_not_be_checked_is_listed(tmp_path: Path) -> None:
    folder = write_view(write_view(tmp_path / "v", EXAMPLE_CREATED), view(), "v2.metadata.json")
    report = ix.open_view(folder).check()
    assert "v1.metadata.json cannot be read" in report.unknown["other metadata files"]
    for i in range(3, 30):
        write_view(folder, view(), f"v{i}.metadata.json")
    report = ix.open_view(folder).check()
    why = "only 20 of 28 were opened, those with version numbers closest to the current one"
    assert report.unknown["other metadata files"] == why
    assert "Not checked: other metadata files. Only 20 of 28 were" in repr(report)


def test_each_reason_why_other_files_were_not_compared_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iceexplore.doctor._views._MOST_OPENED", 3)
    monkeypatch.setattr("iceexplore.doctor._views._MOST_BYTES", 100_000)
    for i in range(1, 7):
        write_view(tmp_path / "v", view(), f"v{i}.metadata.json")
    for i, text in ((3, "{"), (4, " " * 100_001), (5, "[")):
        (tmp_path / "v" / "metadata" / f"v{i}.metadata.json").write_text(text)
    why = ix.open_view(tmp_path / "v").check().unknown["other metadata files"]
    assert why.startswith("only 3 of 5 were opened, those with version numbers closest to the current one; v5.metadata")
    assert [part.partition(": ")[0] for part in why.split("; ")[1:]] == [
        "v5.metadata.json cannot be read",
        "v4.metadata.json is larger than 0 MiB",
        "v3.metadata.json cannot be read",
    ]


def test_without_a_number_in_its_name_the_files_modified_last_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iceexplore.doctor._views._MOST_OPENED", 2)
    changed = view([version(1, "SELECT 9, 9")])
    folder = write_view(tmp_path / "v", view(), "current.metadata.json")
    for i in range(1, 5):
        write_view(folder, changed if i == 3 else view(), f"v{i}.metadata.json")
        os.utime(folder / "metadata" / f"v{i}.metadata.json", (i, i))
    report = ix.open_view(folder / "metadata" / "current.metadata.json").check()
    assert [(f.code, f.found) for f in report] == [("view-version-changed", "v3.metadata.json")]
    assert report.unknown["other metadata files"] == "only 2 of 4 were opened, those modified last"


def test_codes_are_chosen_and_a_baseline_is_left_out(tmp_path: Path) -> None:
    made = view([version(1, **{"schema-id": 7}), version(3)], 1, 2, 3)
    v = ix.open_view(write_view(tmp_path / "v", made))
    assert [f.code for f in v.check()] == ["view-invalid", "view-version-expired"]
    assert [f.code for f in v.check(only="view-version-expired")] == ["view-version-expired"]
    assert [f.code for f in v.check(skip=["view-invalid"])] == ["view-version-expired"]
    assert not list(v.check(baseline=v.check())) and not list(v.check(only="health"))
    with pytest.raises(ix.OptionError, match="is not a problem code; nearest: view-invalid"):
        v.check(only="view-invalit")


def test_the_report_is_stored_and_read_again(tmp_path: Path) -> None:
    v = ix.open_view(write_view(tmp_path / "v", view([version(1, **{"schema-id": 7})])))
    report = v.check()
    values = json.loads(report.to_json())
    assert (values["kind"], values["versions"], values["snapshots"], values["ok"]) == ("view", [1], [], False)
    again = Report.from_dict(values)
    assert repr(again) == repr(report) and [f.code for f in again] == ["view-invalid"]
    assert len(report.to_pandas()) == 1 and report.timeline().empty and "view-invalid" in report.to_junit()
    with pytest.raises(ix.OptionError, match="views cannot be repaired"):
        report.repair()


def test_names_of_columns_are_redacted(tmp_path: Path) -> None:
    fields = [{"id": 1, "name": "salary", "required": "x", "type": "long"}]
    v = ix.open_view(write_view(tmp_path / "v", view(schemas=[{"schema-id": 1, "type": "struct", "fields": fields}])))
    assert "salary" in repr(v.check()) and "salary" in v.check().to_html()
    assert "salary" not in v.check().to_html(redact=["names"])


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    v = hostile_view(HOSTILE[name], tmp_path / "v")
    write_view(tmp_path / "v", json.dumps({**v.metadata.raw, "version-log": log(5, 1)}), "v2.metadata.json")
    report = ix.open_view(tmp_path / "v").check()
    assert report.findings
    assert not [sign for sign in IN_TEXT for text in (repr(report), report.to_json()) if sign in text]
    pages = (report._repr_html_(), re.sub("<style>.*?</style>", "", report.to_html(), flags=re.DOTALL))
    assert not [sign for sign in IN_HTML for page in pages if sign in page]


def test_a_thousand_versions_are_checked_in_under_a_second(tmp_path: Path) -> None:
    made = view([version(i) for i in range(1, 1001)], properties={"version.history.num-entries": "1000"})
    report = ix.open_view(write_view(tmp_path / "v", made)).check()
    assert not list(report) and report.seconds < 1
