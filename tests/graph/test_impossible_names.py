"""Locations that no file can have: what is there is damage, never an error of Python's or Arrow's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import OptionError

NAMES = {"nul": "n\0", "surrogate": "n\ud800", "long": "n" * 300}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    s = ix.empty({"id": "long"}, format_version=2)
    s.append(files=2, rows=10)
    target: Path = tmp_path_factory.mktemp("names") / "t"
    s.save(target)
    return target


def changed(folder: Path, key: str, value: str) -> Path:
    """The metadata file with another location in it."""
    newest = max((folder / "metadata").glob("*.metadata.json"))
    document: dict[str, Any] = json.loads(newest.read_text(encoding="utf-8"))
    match key:
        case "manifest-list":
            for snapshot in document["snapshots"]:
                snapshot[key] = value
        case "metadata-log":
            document[key] = [{"timestamp-ms": 1, "metadata-file": value}]
        case "statistics":
            sizes = {"file-size-in-bytes": 10, "file-footer-size-in-bytes": 5}
            snapshot = document["current-snapshot-id"]
            document[key] = [{"snapshot-id": snapshot, "statistics-path": value, **sizes, "blob-metadata": []}]
        case _:
            document[key] = value
    out = folder / "changed.metadata.json"
    out.write_text(json.dumps(document), encoding="utf-8")
    return out


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("key", ["location", "manifest-list", "metadata-log", "statistics"])
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "elsewhere"])
def test_metadata_names_what_cannot_be(folder: Path, tmp_path: Path, key: str, name: str, inside: bool) -> None:
    value = f"{folder}/metadata/{name}" if inside else f"file:///elsewhere/{name}"
    t = ix.open(changed(folder, key, value))
    files = len(t.inspect.files())
    assert files == (0 if key == "manifest-list" else 2)
    assert len(t.inspect.metadata_log_entries()) == 2
    t.inspect.puffin_blobs()
    assert t.tree().nodes
    assert "<" in t._repr_html_()
    t.explore().settle()
    t.verify()
    t.bundle(tmp_path / "b.zip")
    found = {p.code for p in t.problems}
    wanted = "file-missing" if inside else "outside-roots"
    assert (wanted in found) == (key in ("manifest-list", "statistics")), found


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_data_file_that_cannot_be(tmp_path: Path, name: str) -> None:
    location = f"{tmp_path}/t/data/{name}"
    s = ix.empty({"id": "long"}, format_version=2)
    file = {"location": location, "record_count": 3, "file_size_in_bytes": 10}
    if "\ud800" in name:
        with pytest.raises(OptionError, match="a lone surrogate"):
            s.append([file])
        return
    s.append([file])
    s.save(tmp_path / "t")
    t = ix.open(tmp_path / "t")
    assert t.inspect.files()["file_path"].tolist() == [location]
    assert t.verify()["code"].tolist() == ["file-missing"]


def test_an_empty_table_has_a_location_that_can_be_written() -> None:
    with pytest.raises(OptionError, match="a lone surrogate"):
        ix.empty({"id": "long"}, location="a\ud800")
    assert ix.empty({"id": "long"}, location="/a\0b").location == "/a\0b"
