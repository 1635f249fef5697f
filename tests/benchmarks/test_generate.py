"""The generated tables are valid: fastavro reads what the columns say, PyIceberg opens them."""

from __future__ import annotations

import importlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import fastavro
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in [n for n in sys.modules if n.partition(".")[0] in ("generate", "generator")]:
        sys.modules.pop(name, None)
    return importlib.import_module("generate")


def _read(location: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
    with open(location.removeprefix("file://"), "rb") as file:
        reader = fastavro.reader(file)
        return dict(reader.metadata), list(reader)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_valid(generator: Any, tmp_path: Path, version: int, partitioned: bool) -> None:
    from pyiceberg.table import StaticTable

    deletes = 0 if version == 1 else 30
    shape = generator.Shape(
        files=250, deletes=deletes, manifests=5, columns=12, partitioned=partitioned, format_version=version
    )
    path = generator.generate(shape, tmp_path / "t")
    document = json.loads(path.read_text())
    assert len(document["snapshots"]) == 5

    _, manifests = _read(document["snapshots"][-1]["manifest-list"])
    assert len(manifests) == 5
    files: dict[str, dict[str, Any]] = {}
    for manifest in manifests:
        assert Path(manifest["manifest_path"].removeprefix("file://")).stat().st_size == manifest["manifest_length"]
        metadata, entries = _read(manifest["manifest_path"])
        assert metadata["format-version"] == str(version)
        assert len(entries) == manifest["added_files_count"]
        assert sum(e["data_file"]["record_count"] for e in entries) == manifest["added_rows_count"]
        for entry in entries:
            assert entry["snapshot_id"] == manifest["added_snapshot_id"]
            files[entry["data_file"]["file_path"]] = entry["data_file"]
            if partitioned:
                region = entry["data_file"]["partition"]["region"].encode()
                assert manifest["partitions"][1]["lower_bound"] <= region <= manifest["partitions"][1]["upper_bound"]
    data = [f for f in files.values() if f.get("content", 0) == 0]
    delete_entries = [f for f in files.values() if f.get("content", 0) == 1]
    assert len(data) == 250
    assert len(delete_entries) == (deletes if version < 3 else 1)  # v3: up to 100 vectors share a Puffin file
    for f in delete_entries:
        assert f["referenced_data_file"] in files
        assert f["partition"] == files[f["referenced_data_file"]]["partition"]
    for f in data:
        lower = {pair["key"]: pair["value"] for pair in f["lower_bounds"]}
        upper = {pair["key"]: pair["value"] for pair in f["upper_bounds"]}
        assert set(lower) == set(range(1, 13))
        assert {pair["value"] for pair in f["value_counts"]} == {f["record_count"]}
        number = int(f["file_path"].split("/")[-1].split("-")[0])
        assert struct.unpack("<q", lower[1]) == (number * 1_000_000,)
        assert all(lower[i] <= upper[i] for i in (3, 7, 8, 10))

    table = StaticTable.from_metadata(str(path))
    seen = table.inspect.files()
    assert sorted(seen["file_path"].to_pylist()) == sorted(
        [f["file_path"] for f in data]
        + [e["data_file"]["file_path"] for m in manifests for e in _read(m["manifest_path"])[1] if m.get("content")]
    )
    metrics = seen.to_pylist()[0]["readable_metrics"]
    assert metrics["region"]["lower_bound"] is None or metrics["region"]["lower_bound"].startswith("region-")


def test_cached_by_its_shape(generator: Any, tmp_path: Path) -> None:
    shape = generator.Shape(files=20, manifests=3)
    path = generator.generate(shape, tmp_path)
    before = path.stat().st_mtime_ns
    assert generator.generate(shape, tmp_path).stat().st_mtime_ns == before
    assert shape.name != generator.Shape(files=21, manifests=3).name


def test_moved_folder_is_made_again(generator: Any, tmp_path: Path) -> None:
    shape = generator.Shape(files=20, manifests=3)
    generator.generate(shape, tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    document = json.loads(generator.generate(shape, tmp_path / "b").read_text())
    assert document["location"] == (tmp_path / "b").as_uri()


@pytest.mark.parametrize(
    "wrong",
    [{"format_version": 4}, {"format_version": 1, "deletes": 3}, {"files": 5, "deletes": 6}, {"manifests": 1}],
)
def test_nonsense_is_refused(generator: Any, tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"version|delete|manifest"):
        generator.generate(generator.Shape(**wrong), tmp_path)
