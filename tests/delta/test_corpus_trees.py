"""Tables that Delta Lake 4.4 wrote (``adaptiveMetadata-preview``), against Delta's own account of their versions.

The tables are in the corpus, with what Delta's snapshot of each version lists: path, records, cardinality of the
deletion vector.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import iceexplore as ix

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module", params=["small", "parted"])
def account(request: Any, corpus: Path) -> tuple[Path, dict[int, Any]]:
    folder = corpus / "delta-amt"
    found = json.loads((folder / "oracle.json").read_text())[request.param]
    return folder / request.param, {int(v): entry for v, entry in found.items()}


def files(t: ix.Table) -> list[tuple[str, int, int]]:
    gone = {r["referenced_data_file"]: r["record_count"] for r in t.inspect.delete_files.arrow().to_pylist()}
    rows = t.inspect.data_files.arrow().to_pylist()
    return sorted(
        (r["file_path"].removeprefix(f"{t.location}/"), r["record_count"], gone.get(r["file_path"], 0)) for r in rows
    )


def test_every_version(account: Any) -> None:
    folder, versions = account
    t = ix.open(folder)
    assert len(versions) >= 5
    for version, entry in versions.items():
        at = t.at(version=version)
        assert files(at) == sorted((unquote(path), rows, gone) for path, rows, gone in entry["files"])
        assert at.count() == at.to_arrow().num_rows == entry["rows"]
        summary = t.snapshots[version].summary or {}
        assert int(summary["total-data-files"]) == len(entry["files"])
        assert int(summary["total-records"]) - int(summary["total-position-deletes"]) == entry["rows"]
    assert [p for p in t.problems if p.severity == "error"] == []


def test_a_copy_finds_its_vectors(account: Any, tmp_path: Path) -> None:
    """Their locations are absolute in the trees, and the log spells them without a prefix that the files have."""
    folder, versions = account
    shutil.copytree(folder, tmp_path / "copy")
    t = ix.open(tmp_path / "copy")
    assert t.to_arrow().num_rows == versions[max(versions)]["rows"]
    assert list(t.problems) == []


def test_nothing_is_wrong(account: Any) -> None:
    report = ix.open(account[0]).check(level="files", snapshots="all")
    assert {f.code for f in report if f.severity in ("fail", "wrong")} == set()
