"""Tables that Delta Lake writes now, with V4 trees, against its own account of every version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import iceexplore as ix
from tests.helpers.sampling import one_of
from tests.spark.delta_writer import TABLES, as_json


def written(folder: Path, name: str) -> dict[str, Any]:
    """Let Delta write a table, and return its account: a Spark with other settings, so in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.delta_writer", str(folder), name], capture_output=True, text=True,
        timeout=900, env={**os.environ, "DELTA_TESTING": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((folder / "account.json").read_text())[name]
    return found


@pytest.mark.parametrize("name", one_of(2, sorted(TABLES)))
def test_every_version_is_as_delta_says(require_java: None, tmp_path: Path, name: str) -> None:
    versions = written(tmp_path, name)
    t = ix.open(tmp_path / name)
    assert len(versions) >= 10
    assert [s.snapshot_id for s in t.snapshots] == [int(v) for v in versions]
    trees = 0
    for version, entry in versions.items():
        at = t.at(version=int(version))
        gone = {r["referenced_data_file"]: r["record_count"] for r in at.inspect.delete_files.arrow().to_pylist()}
        files = [
            [r["file_path"].removeprefix(f"{t.location}/"), r["record_count"], gone.get(r["file_path"], 0)]
            for r in at.inspect.data_files.arrow().to_pylist()
        ]
        assert sorted(files) == sorted([unquote(path), rows, deleted] for path, rows, deleted in entry["files"])
        assert sorted(as_json(row) for row in at.to_arrow().to_pylist()) == entry["rows"]
        assert at.count() == len(entry["rows"])
        trees += "/metadata/root-" in str(t.snapshots[int(version)].root_location)
    assert trees >= 3
    assert [p for p in t.problems if p.severity == "error"] == []
    assert {f.code for f in t.check(level="files") if f.severity in ("fail", "wrong")} == set()
