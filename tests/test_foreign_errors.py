"""Damage that once raised an error of Python's: each has an error of ours, or is shown as a problem."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import fastavro
import pytest

import iceexplore as ix
from iceexplore.errors import CatalogError, FileMissingError, FormatError
from iceexplore.formats import _avro_rows, read_rows
from iceexplore.formats._avro import container
from iceexplore.graph import _seed_style
from iceexplore.storage import Storage
from iceexplore.storage._catalog import from_catalog

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
    with pytest.raises(CatalogError, match="no metadata file"):
        from_catalog("db.t", Catalog(location), {})


def test_a_view_is_said_to_be_one() -> None:
    with pytest.raises(CatalogError, match="is a view, not a table"):
        from_catalog("db.t", Catalog(view=True), {})
