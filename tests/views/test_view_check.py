"""`v.check()`: findings in the doctor's shape, with codes of the one registry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

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
    assert sorted([*DAMAGES, "view-version-changed"]) == CODES


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
    report = v.check()
    assert not list(report) and not report.unknown and report.ok and report.exit_code == 0
    assert "nothing found" in repr(report) and f"{len(v.versions)} version" in repr(report)
    assert "Data and delete files" not in repr(report), "views have none"


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
    assert report.unknown["other metadata files"] == "only the 20 nearest of 28 were opened"
    assert "Not checked: other metadata files. Only the 20 nearest" in repr(report)


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
