"""The registry of data-file formats: what each class promises, and who has to know of a new one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import (
    DATA_FILE_FORMATS,
    DEFAULT_FORMAT,
    FILE_FORMATS,
    PUFFIN,
    ColumnRequest,
    DataFile,
    DataFileFormat,
    data_file_format,
    format_named,
    format_of_content,
    format_of_suffix,
    sniff,
    sniff_file,
)
from iceexplore.storage import DATA_RATIO, Budget, Storage

ROWS = 300
IDS = {"id": 1, "name": 2}


def parquet(ids: dict[str, int]) -> bytes:
    out = io.BytesIO()
    pq.write_table(arrow(ids, "PARQUET:field_id"), out, row_group_size=100, store_schema=False)
    return out.getvalue()


def orc_bytes(ids: dict[str, int]) -> bytes:
    out = io.BytesIO()
    orc.write_table(arrow(ids, "iceberg.id"), out)
    return out.getvalue()


def avro(ids: dict[str, int]) -> bytes:
    out = io.BytesIO()
    kinds = {"id": "long", "name": "string"}
    fields = [{"name": n, "type": t, **({"field-id": ids[n]} if ids else {})} for n, t in kinds.items()]
    rows = arrow({}, "").to_pylist()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows, sync_interval=100)
    return out.getvalue()


#: A file of each format, with the field ids of its columns. A new format needs one, too.
MADE = {"parquet": parquet, "orc": orc_bytes, "avro": avro}


def arrow(ids: dict[str, int], key: str) -> pa.Table:
    fields = [
        pa.field(n, t, nullable=False, metadata={key: str(ids[n])} if ids else None)
        for n, t in {"id": pa.int64(), "name": pa.string()}.items()
    ]
    return build.table([range(ROWS), [f"n{i}" for i in range(ROWS)]], schema=build.schema(fields))


@pytest.fixture(params=DATA_FILE_FORMATS, ids=lambda f: f.name)
def known(request: pytest.FixtureRequest) -> Any:
    return request.param


def written(folder: Path, known: DataFileFormat, ids: dict[str, int] = IDS) -> tuple[Storage, str]:
    (folder / "x").write_bytes(MADE[known.name](ids))
    return Storage(str(folder)), str(folder / "x")


def test_every_format_is_tested() -> None:
    assert list(MADE) == [f.name for f in DATA_FILE_FORMATS]


def test_formats_are_found(known: DataFileFormat) -> None:
    assert format_named(known.name.upper()) is format_named(known.name) is known
    assert format_of_suffix(f"/data/X{known.suffixes[0].upper()}") is known
    head = MADE[known.name](IDS)[:64]
    assert sniff(head) == known.name
    assert format_of_content(sniff(head)) is known
    assert known.name == known.name.lower()


def test_other_files_have_no_format_of_data_files() -> None:
    assert format_named(None) is format_named("puffin") is format_named("lance") is format_of_content(None) is None
    assert format_of_content("puffin") is format_of_content("encrypted") is format_of_suffix("/x/parquet") is None
    assert DEFAULT_FORMAT.name == "parquet"
    assert PUFFIN.begins(b"PFA1")


def test_an_encrypted_file_keeps_its_format() -> None:
    assert sniff(b"PARE....") == "parquet-encrypted"
    found = format_of_content("parquet-encrypted")
    assert found is not None
    assert found.name == "parquet"
    with pytest.raises(UnsupportedError, match="its key is not available"):
        data_file_format(io.BytesIO(b"PARE...."), "x")


def test_a_file_of_another_kind_is_no_data_file() -> None:
    with pytest.raises(FormatError, match=r"not Parquet, .*, but json, although its manifest entry states the format"):
        data_file_format(io.BytesIO(b"{}"), "x", "orc")
    with pytest.raises(FormatError, match="the file is empty"):
        data_file_format(io.BytesIO(b""), "x")


@pytest.mark.parametrize("batch_rows", [None, 7])
def test_columns_are_counted_and_in_order(known: DataFileFormat, batch_rows: int | None, tmp_path: Path) -> None:
    storage, location = written(tmp_path, known)
    with storage.open(location, kind="data") as file:
        found = known.columns(DataFile(storage, location, file, "data"), ColumnRequest((), list, batch_rows=batch_rows))
        assert found.rows == ROWS
        at = 0
        for start, batch in found.batches:
            assert start == at
            assert batch_rows is None or batch.num_rows <= batch_rows
            at += batch.num_rows
        assert at == ROWS


def test_rows_have_their_field_ids(known: DataFileFormat, tmp_path: Path) -> None:
    storage, location = written(tmp_path, known)
    with storage.open(location, kind="data") as file, Budget(location, file.size, ratio=DATA_RATIO) as budget:
        rows = known.rows(DataFile(storage, location, file, "data"), budget)
        assert [f.metadata for f in rows.schema] == [{b"PARQUET:field_id": b"1"}, {b"PARQUET:field_id": b"2"}]
        assert rows.table().column(1).to_pylist() == [f"n{i}" for i in range(ROWS)]


@pytest.mark.parametrize("ids", [IDS, {}], ids=["ids", "no ids"])
def test_facts(known: DataFileFormat, ids: dict[str, int], tmp_path: Path) -> None:
    storage, location = written(tmp_path, known, ids)
    with storage.open(location, kind="data") as file:
        facts = known.facts(DataFile(storage, location, file, "data"))
    assert (facts.format, facts.rows, facts.ids, facts.columns) == (known.name, ROWS, frozenset(ids.values()), True)
    assert (facts.offsets is not None) == known.has_row_groups


def test_row_groups_are_promised_and_kept(known: DataFileFormat, tmp_path: Path) -> None:
    storage, location = written(tmp_path, known)
    with storage.open(location, kind="data") as file:
        assert sniff_file(file) == known.name
        offsets = known.row_group_offsets(file, location)
    assert (offsets is not None) == known.has_row_groups
    if not known.has_row_groups:
        with pytest.raises(UnsupportedError, match="cannot be pruned: such files are read whole"):
            known.row_groups(storage, location, lambda leaves: ())
        return
    groups = known.row_groups(storage, location, lambda leaves: range(len(leaves)))
    assert [g.rows for g in groups.groups] == [100, 100, 100]
    assert [g.offset for g in groups.groups] == offsets
    for number in range(3):
        with storage.open(location, kind="data") as file:
            request = ColumnRequest((), list, row_groups=[number])
            [(start, batch)] = known.columns(DataFile(storage, location, file, "data"), request).batches
            assert (start, batch.num_rows) == (number * 100, 100)


def test_a_loose_file_is_described(known: DataFileFormat, tmp_path: Path) -> None:
    _, location = written(tmp_path, known)
    found = ix.open_file(location)
    assert found.kind == known.name
    assert found.header["rows"] == ROWS
    assert found.arrow().num_rows > 0


@pytest.mark.parametrize("known", FILE_FORMATS, ids=lambda f: f.name)
def test_the_hints_of_open_know_every_format(known: Any, tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    place = tmp_path / "1" / f"a{known.suffixes[0]}"
    place.write_bytes(known.magic + bytes(60))
    with pytest.raises(IceexploreError, match=f"this is an? {known.title} file, not table metadata"):
        ix.open(str(place))
    if known is not PUFFIN:
        with pytest.raises(IceexploreError, match=f"it holds 1 {known.title} files"):
            ix.open(str(tmp_path / "1"))
