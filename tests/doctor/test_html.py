"""The report as a page: its policy, its design, and redaction of every text of a finding."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.doctor import CatalogReport, Finding, Report, Since, TableCheck
from iceexplore.doctor.report._redact import redacted_report
from iceexplore.errors import OptionError
from iceexplore.widgets.core._bundle import style_sheet
from tests.helpers.hostile import HOSTILE
from tests.helpers.redaction_search import found, token

#: Words in the places of one kind each.
VALUE, COLUMN, REF, TABLE = (token(f"report {name}") for name in ("value", "column", "ref", "table"))
FOLDER, FILE, SECRET = (token(f"report {name}") for name in ("folder", "file", "secret"))
PLACE = f"s3://{FOLDER}/k=1/{FILE}.parquet"


@pytest.fixture(scope="module")
def report() -> Report:
    """A report with a word of each kind wherever it may be."""
    table = ix.sample("trips")
    one = Finding(
        code="bounds-untrue", modes=(34,), severity="wrong", where=f"{PLACE}#entry 3",
        text=f"{PLACE} has {VALUE} in {COLUMN} (password={SECRET})", field=f"lower_bound of {COLUMN}", found=VALUE,
        expected=f"https://user:{SECRET}@host/{FILE}.avro", means="Readers return fewer rows.",
        advice=f"Open it with allow=['s3://{FOLDER}'].", count=2, places=(f"{PLACE}#entry 3", f"{PLACE}#ref {REF}"),
        snapshots=(7137812319701696493,), refs=(REF, "main"), rows=5, partition_count=1,
        partitions=(f"{COLUMN}={VALUE}, path=s3://{FOLDER}/{FILE}.parquet?token={SECRET}",),
        since=Since(7137812319701696493, 1_700_000_000_000, VALUE, f"{VALUE} 1.2", f"s3://{FOLDER}/00001-{FILE}.metadata.json"),
    )  # fmt: skip
    later = replace(one, follows=(), since=Since(metadata_file=f"s3://{FOLDER}/00001-{FILE}.metadata.json"))
    metadata: Any = table.metadata
    return Report(
        TABLE, f"s3://{FOLDER}/{TABLE}/v1.metadata.json", 3, "files", (1,), (replace(one, follows=(later,)), later),
        {"manifests": f"{PLACE}?token={SECRET} cannot be read: {VALUE}"}, 1.5, metadata,
    )  # fmt: skip


KINDS: dict[str, tuple[Any, list[str], list[str]]] = {
    "nothing": (False, [], [VALUE, COLUMN, REF, TABLE, FOLDER, FILE, SECRET]),
    "credentials": ("credentials", [SECRET], [VALUE, COLUMN, REF, TABLE, FOLDER, FILE]),
    "values": (["values"], [VALUE, FOLDER, FILE], [COLUMN, REF]),
    "paths": ("paths", [FOLDER, FILE], [VALUE, REF]),
    "names": ("names", [COLUMN, REF, TABLE, FOLDER, FILE], []),
    "all": (True, [VALUE, COLUMN, REF, TABLE, FOLDER, FILE, SECRET], []),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_redacted_is_nowhere_in_the_page(report: Report, name: str) -> None:
    redact, gone, kept = KINDS[name]
    page = report.to_html(redact=redact)
    assert not found(gone, [("page", page.encode())])
    assert {word for word, _ in found(kept, [("page", page.encode())])} == set(kept)
    for text in ("bounds-untrue", "wrong rows or numbers", "7137812319701696493", "2 places", "#entry 3"):
        assert text in page, "codes, counts, ids and places stay"


def test_secrets_are_redacted_by_default(report: Report) -> None:
    assert SECRET not in report.to_html()
    assert "Redacted: credentials." in report.to_html()
    assert "Redacted: nothing." in report.to_html(redact=False)
    with pytest.raises(OptionError, match="choose from credentials, values, paths, names"):
        report.to_html(redact="secrets")


def test_equal_places_stay_equal(report: Report) -> None:
    page = report.to_html(redact="paths")
    places = re.findall(r'<dd class="where">(.*?)#entry 3 and 1 more</dd>', page)
    assert len(places) == 2
    assert places[0] == places[1]


def test_its_policy_admits_its_style_sheet_alone(report: Report) -> None:
    page = report.to_html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules == {
        "default-src": "'none'", "style-src": f"'sha256-{digest}'", "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    assert "style=" not in page, "which the policy would not allow"
    assert not re.search(r"<script|<img|<svg|<link|src=|href=", page)


def test_its_colours_are_the_explorers(report: Report) -> None:
    (style,) = re.findall("<style>(.*?)</style>", report.to_html(), re.DOTALL)
    colours = re.findall(r"(--ice-[a-z]+): (#[0-9a-f]{6})", style)
    assert len(colours) >= 12
    known = set(re.findall(r"(--ice-[a-z]+): (?:var\(--ice-page, )?(#[0-9a-f]{6})", style_sheet()))
    assert set(colours) <= known


def test_hostile_texts_are_text(report: Report) -> None:
    one = report.findings[1]
    names = [name for name in HOSTILE.values() if name]
    many = [replace(one, text=name, where=name, found=name, refs=(name,), advice=name) for name in names]
    page = replace(report, table=names[1], findings=tuple(many), unknown={"x": names[1]}).to_html(redact=False)
    assert page.count("<details") == len(names)
    tags = set(re.findall(r"<([a-z0-9]+)", page))
    assert not tags & {"b", "img", "script", "svg", "table", "foreignobject", "a"}
    page.encode()
    assert "\u202e" not in page and "\x1b" not in page


def test_all_findings_are_in_the_page(report: Report) -> None:
    many = replace(report, findings=tuple(replace(report.findings[1], text=f"No. {i}.") for i in range(50)))
    page = html.unescape(many.to_html())
    assert "No. 49." in page
    assert page.count(" open>") == 3


def test_the_page_of_a_catalog_has_the_same_policy(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "db" / "t", {"id": "long"})
    lab.append({"id": [1]})
    next((tmp_path / "db" / "t" / "data").rglob("*.parquet")).unlink()
    page = ix.check_catalog(tmp_path).to_html()
    assert "style-src 'sha256-" in page and "style=" not in page
    assert "A file that the table references is missing" in page


def _catalog(report: Report) -> CatalogReport:
    """A result with a word of each kind wherever it may be."""
    error = f"s3://{FOLDER}/{FILE}.avro cannot be read (password={SECRET}): {VALUE}"
    tables = (
        TableCheck(f"{FOLDER}/{TABLE}", report, 1.5, None),
        TableCheck(f"{FOLDER}/{TABLE} two", None, 1.0, error),
    )
    return CatalogReport(
        source=f"s3://user:{SECRET}@host/{FOLDER}", options={"level": "files"}, tables=tables,
        unlisted={f"{FOLDER}/{TABLE}": error}, complete=False, seconds=3.0,
    )  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_is_redacted_is_nowhere_in_the_page_of_a_catalog(report: Report, name: str) -> None:
    redact, gone, kept = KINDS[name]
    result = _catalog(report)
    page = result.to_html(redact=redact)
    assert not found(gone, [("page", page.encode())])
    assert bool(found([TABLE], [("page", page.encode())])) == (name not in ("names", "all"))
    assert {word for word, _ in found(kept, [("page", page.encode())])} == set(kept)
    assert "not read" in page and "could not be listed" in page and "2 wrong" in page
    assert FOLDER in repr(result), "the result itself keeps everything"


def test_the_page_of_a_catalog_has_no_secrets_by_default(report: Report) -> None:
    page = _catalog(report).to_html()
    assert SECRET not in page and VALUE in page
    assert "Redacted: credentials." in page
    with pytest.raises(OptionError, match="choose from credentials, values, paths, names"):
        _catalog(report).to_html(redact="secrets")


def test_the_steps_of_a_repair_are_in_the_page_on_demand(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / FOLDER / "t", {"id": "long"}, properties={"commit.manifest-merge.enabled": "false"})
    lab.append({"id": [1]})
    lab.append({"id": [2, 3]})
    path = max(lab.inspect.manifests()["path"], key=lambda p: Path(p.removeprefix("file://")).stat().st_mtime)
    Path(path.removeprefix("file://")).unlink()
    checked = lab.check()
    assert "Mending" not in checked.to_html()
    page = html.unescape(checked.to_html(redact=False, repair=True))
    assert "Re-register files that no manifest lists" in page
    assert "rows that come back: 2" in page and "table.add_files([" in page
    assert FOLDER in page
    assert "style=" not in page, "which the policy would not allow"
    hidden = checked.to_html(redact="paths", repair=True)
    assert FOLDER not in hidden and "Re-register files that no manifest lists" in hidden
    assert "table.add_files([" not in checked.to_html(redact="values", repair=True)
    with pytest.raises(OptionError, match="call check"):
        Report.from_dict(checked.to_dict()).to_html(repair=True)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("s3://b/secret#folder/name.avro#entry 3", "#entry 3"),
        ("s3://b/secret#folder x/name.avro", ""),
        ("s3://b/secret#1.avro", ""),
        ("s3://b/secret.json#ref secret/x", "#ref secret/x"),
    ],
)
def test_a_number_sign_in_a_path_hides_nothing_from_redaction(report: Report, where: str, kept: str) -> None:
    one = replace(report.findings[0], where=where, places=(where,))
    [hidden] = redacted_report(replace(report, findings=(one,)), frozenset({"paths"})).findings
    assert "folder" not in hidden.where and "secret#" not in hidden.where and "secret." not in hidden.where
    assert hidden.where.endswith(kept)
    assert hidden.places == (hidden.where,)
