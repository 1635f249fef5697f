"""One interface between Avro manifests and the libraries that decode them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from iceexplore.errors import FormatError
from iceexplore.formats import read_header
from iceexplore.manifests.decode import _avro as _decode
from iceexplore.manifests.decode._avro import DataFusionDecoder, Decoded, FastavroDecoder, decode
from iceexplore.manifests.model._reader_schema import reader_schema_of


class Fake:
    """A decoder that notes what it is asked, and gives what it is made with."""

    name = "fake"

    def __init__(self, made: Any = None, *, willing: bool = True) -> None:
        self.made, self.willing = made, willing
        self.asked: list[tuple[int, bool]] = []
        self.decoded: list[list[str]] = []

    def takes(self, size: int, *, whole: bool) -> bool:
        self.asked.append((size, whole))
        return self.willing

    def decode(
        self, data: bytes, header: Any, index: Any, reader_schema: Any, columns: list[str], location: str
    ) -> Decoded | None:
        self.decoded.append(columns)
        return None if self.made is None else self.made(data, header, index, reader_schema, columns, location)


@pytest.fixture
def _anew() -> Iterator[None]:
    _decode._has_fast_datafusion.cache_clear()
    yield
    _decode._has_fast_datafusion.cache_clear()


def manifest(make: Any, rows: int = 5) -> tuple[bytes, Any, Any]:
    data = make("avro")(make("entry_schema")([]), [make("entry")(i) for i in range(rows)])
    header = read_header(data, "f")
    return data, header, reader_schema_of(header.schema, "f")


def test_every_manifest_and_list_goes_through_the_interface(table: Any, make: Any, monkeypatch: Any) -> None:
    fake = Fake(FastavroDecoder().decode)
    monkeypatch.setattr(_decode, "DECODERS", (fake,))
    rows = [make("entry")(i, sequence_number=7, file_sequence_number=7) for i in range(3)]
    table.snapshot(make("listed")(table.manifest("a.avro", rows), partition_spec_id=0))
    reader = table.reader()
    root = reader.root(reader.metadata.snapshots[-1])
    leaves = list(reader.leaves(root))
    assert [len(leaf) for leaf in leaves] == [3]
    assert not reader.problems
    assert len(fake.decoded) == 2
    assert all(whole for _, whole in fake.asked)


def test_the_next_one_is_asked_where_one_gives_nothing(make: Any) -> None:
    data, header, reader_schema = manifest(make)
    unwilling, uncertain = Fake(willing=False), Fake()
    got = decode(data, header, reader_schema, ["f103"], "f", decoders=(unwilling, uncertain, FastavroDecoder()))
    assert got.table["f103"].to_pylist() == [10, 11, 12, 13, 14]
    assert unwilling.decoded == []
    assert uncertain.decoded == [["f103"]]


def test_nobody_left_is_our_error(make: Any) -> None:
    data, header, reader_schema = manifest(make)
    with pytest.raises(FormatError, match="no decoder"):
        decode(data, header, reader_schema, ["f103"], "f", decoders=(Fake(),))


def test_damage_is_known_to_who_is_asked(make: Any) -> None:
    data, header, reader_schema = manifest(make)
    fake = Fake(FastavroDecoder().decode)
    assert decode(data[:-3], header, reader_schema, ["f103"], "f", decoders=(fake,)).faults
    assert fake.asked == [(len(data) - 3, False)]
    assert not DataFusionDecoder().takes(1 << 30, whole=False)


@pytest.mark.usefixtures("_anew")
@pytest.mark.parametrize("found", ["53.0.0", "51.1.0", None])
def test_datafusion_that_cannot_decode_is_not_used_and_reported_once(
    make: Any, monkeypatch: pytest.MonkeyPatch, found: str | None
) -> None:
    def version(name: str) -> str:
        assert name == "datafusion"
        if found is None:
            raise PackageNotFoundError(name)
        return found

    def never(*_: Any) -> None:
        raise AssertionError("not to be used")

    monkeypatch.setattr(_decode, "version", version)
    monkeypatch.setattr(_decode, "decode_bulk", never)
    monkeypatch.setattr(_decode, "BULK_BYTES", 0)
    monkeypatch.setattr(_decode, "IMPORT_BYTES", -1)
    data, header, reader_schema = manifest(make)
    with pytest.warns(UserWarning, match=r"fastavro, up to twenty times slower: datafusion (53|51|is not installed)"):
        got = decode(data, header, reader_schema, ["f103"], "f")
    assert got.table["f103"].to_pylist() == [10, 11, 12, 13, 14]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decode(data, header, reader_schema, ["f103"], "f")


@pytest.mark.usefixtures("_anew")
def test_datafusion_that_can_is_used(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_decode, "version", lambda name: "54.0.0")
    monkeypatch.setattr(_decode, "BULK_BYTES", 0)
    monkeypatch.setattr(_decode, "IMPORT_BYTES", -1)
    assert DataFusionDecoder().takes(1, whole=True)


@pytest.mark.usefixtures("_anew")
def test_of_many_files_none_waits_for_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_decode, "version", lambda name: "54.0.0")
    monkeypatch.setattr(_decode, "_slow_bytes", 0)
    monkeypatch.delitem(sys.modules, "datafusion", raising=False)
    size = _decode.BULK_BYTES
    _decode.expect_files([size - 1] * 1000)  # small ones are never decoded in bulk
    assert not DataFusionDecoder().takes(size, whole=True)
    _decode.expect_files([_decode.IMPORT_BYTES, 1])
    assert not DataFusionDecoder().takes(size, whole=True)
    _decode.expect_files([_decode.IMPORT_BYTES, size])
    assert DataFusionDecoder().takes(size, whole=True)
