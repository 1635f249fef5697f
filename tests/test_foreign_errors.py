"""Damage that once raised an error of Python's: each has an error of ours, or is shown as a problem."""

from __future__ import annotations

import contextlib
import io
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.errors import CatalogError, FileMissingError, FormatError
from iceexplore.formats import _avro_rows, read_rows
from iceexplore.formats._avro import container
from iceexplore.graph.proposal import _diagram as _seed_style
from iceexplore.manifests.decode import _file as _source
from iceexplore.storage import CACHE, Storage
from iceexplore.storage._catalog import from_catalog
from scripts.fuzz.look import Look
from scripts.fuzz.tables import ways
from tests.helpers.folders import local
from tests.helpers.outside_lab import change_manifests

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "long"}]}


@pytest.mark.parametrize("path", ["a\0b/c/f", "data/x\0/f", "\0/f", "d\ud800/f"])
def test_a_folder_that_cannot_be_is_missing(tmp_path: Path, path: str) -> None:
    storage = Storage(str(tmp_path))
    location = f"{tmp_path}/{path}"
    with pytest.raises(FileMissingError):
        storage.read(location, kind="manifest")
    with pytest.raises(FileMissingError):
        storage.open(location, kind="manifest")
    with pytest.raises(FileMissingError):
        storage.list(location)


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_record_of_avro_that_ends_early_is_ours(tmp_path: Path, cut: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, {"a": "text", "b": 1 << 40})
    path = tmp_path / "f.avro"
    path.write_bytes(b"".join(container(SCHEMA, 1, [out.getvalue()[:-cut]])))
    with pytest.raises(FormatError):
        read_rows(Storage(str(tmp_path)), str(path), kind="other")
    with pytest.raises(FormatError, match="does not decode"):
        list(_avro_rows.avro_batches(path.read_bytes(), str(path)))


@pytest.mark.parametrize("wrong", [7, "x", None, {}, [7], True])
def test_a_loose_avro_file_whose_fields_are_no_list(tmp_path: Path, wrong: Any) -> None:
    inner = {"type": "record", "name": "i", "fields": wrong}
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", inner]}]}
    path = tmp_path / "f.avro"
    path.write_bytes(b"".join(container(schema, 0, [])))
    with contextlib.suppress(ix.IceexploreError):
        repr(ix.open_file(path))


def test_a_status_that_there_is_not_is_its_number() -> None:
    assert [_seed_style._status_name(s) for s in (None, 1, -1, 99)] == ["", "ADDED", "-1", "99"]


class Catalog:
    name = "c"

    def __init__(self, location: Any = None, *, view: bool = False) -> None:
        self.location, self.view = location, view

    def load_table(self, key: Any) -> Any:
        from pyiceberg.exceptions import NoSuchTableError

        if self.view:
            raise NoSuchTableError("no table")

        class Found:
            metadata_location, io, metadata, catalog = self.location, None, None, self

            def name(self) -> tuple[str, str]:
                return ("db", "t")

        return Found()

    def view_exists(self, key: Any) -> bool:
        return self.view


@pytest.mark.parametrize("location", [None, "", 7])
def test_a_catalogs_answer_without_a_metadata_file(location: Any) -> None:
    with pytest.raises(CatalogError, match="returned no metadata-location"):
        from_catalog("db.t", Catalog(location), {})


def test_a_view_is_reported_as_one() -> None:
    with pytest.raises(CatalogError, match="is a view, not a table"):
        from_catalog("db.t", Catalog(view=True), {})


def _deleted_from(folder: Path, version: int) -> Path:
    lab = ix.create(folder, {"id": "long"}, format_version=version, properties={"write.delete.mode": "merge-on-read"})
    lab.append({"id": [1, 2, 3]})
    lab.append({"id": [4, 5, 6]})
    lab.delete("id in (1, 4)")
    lab.close()
    return folder


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("cached", [False, True], ids=["nothing kept", "entries kept"])
def test_a_root_that_is_gone_at_its_second_read(
    version: int, cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _deleted_from(tmp_path / "t", version)
    # As of a large file, no part of which is decoded before it is asked for.
    monkeypatch.setattr(_source, "BULK_BYTES", 0)
    CACHE.clear()
    t = ix.open(folder)
    root = t.state.root()
    assert root is not None and len(root) and not root.problems
    local(root.location).unlink()
    if not cached:
        CACHE.clear()
    seen = Look()
    found = ways(folder, local(t.metadata_location), tmp_path)
    names = ["tree seed svg", "tree tree text", "inspect.manifests", "inspect.entries", "inspect.partitions", "head"]
    for name in [*names, "plan", "verify", "changes", "bundle", "simulate", "save_html"]:
        seen.go(name, partial(found[name], t))
    for name in ("count", "to_arrow"):
        seen.go(name, getattr(t, name))
    assert seen.faults == []
    assert seen.refused
    assert "file-missing" in {p.code for p in t.problems}


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("status", [-1, 99])
def test_a_status_that_there_is_not_is_drawn(version: int, status: int, tmp_path: Path) -> None:
    folder = _deleted_from(tmp_path / "t", version)
    if version == 2:
        change_manifests(folder, lambda record: record.update(status=status))
    else:
        root = ix.open(folder).state.root()
        assert root is not None
        _with_status(local(root.location), status)
    t = ix.open(folder)
    tree = t.tree(snapshots="all", style="proposal")
    for kind in ("text", "svg", "mermaid", "graphviz"):
        getattr(tree, f"to_{kind}")()
    assert str(status) in tree.to_text()
    assert any("status" in str(p.field) for p in t.problems)


def _with_status(path: Path, status: int) -> None:
    """Write a V4 root anew with one status in all its rows."""
    table = pq.read_table(path)
    at = next(i for i, f in enumerate(table.schema) if pa.types.is_struct(f.type) and "status" in f.type.names)
    column = table.column(at).combine_chunks()
    fields = list(column.type)
    parts = [pa.array([status] * len(table), f.type) if f.name == "status" else column.field(f.name) for f in fields]  # type: ignore[attr-defined]
    made = pa.StructArray.from_arrays(parts, fields=fields)
    pq.write_table(table.set_column(at, table.schema.field(at), made), path, store_schema=False)
