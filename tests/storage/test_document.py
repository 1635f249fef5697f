from __future__ import annotations

import contextlib
import gzip
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.storage import parse_document
from tests.storage.tables_on_disk import document

DOC = document("/t")
TEXT = json.dumps(DOC).encode()


def test_plain_gzip_and_zstd_by_content() -> None:
    two_members = gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])
    zstd = pa.Codec("zstd").compress(TEXT, asbytes=True)
    for data in (TEXT, b"\xef\xbb\xbf" + TEXT, gzip.compress(TEXT), two_members, zstd):
        assert parse_document(data, "f") == (DOC, ())


def test_large_integers_stay_exact() -> None:
    parsed, _ = parse_document(json.dumps(document("/t", **{"current-snapshot-id": 2**63 - 1})).encode(), "f")
    assert parsed["current-snapshot-id"] == 2**63 - 1


def test_what_is_no_unicode_is_replaced_and_noted() -> None:
    data = json.dumps(DOC | {"properties": {"lone \ud800": "\udc00 pair 😀", "n": 2**63 - 1}}).encode()
    parsed, notes = parse_document(data, "f")
    assert parsed == DOC | {"properties": {"lone \ufffd": "\ufffd pair 😀", "n": 2**63 - 1}}
    assert "lone surrogates" in notes[0]
    paired = DOC | {"properties": {"😀": "\\ud800"}}
    assert parse_document(json.dumps(paired).encode(), "f") == (paired, ())


def test_a_rest_answer_is_unwrapped() -> None:
    parsed, notes = parse_document(
        json.dumps({"metadata-location": "s3://x", "metadata": DOC, "config": {}}).encode(), "f"
    )
    assert parsed == DOC and "REST" in notes[0]


@pytest.mark.parametrize(
    ("data", "code", "offset", "says"),
    [
        (b'{"a": 1 2}', "file-corrupt", 8, "line 1, column 9"),
        ('{"é": 1,\n "b" 2}'.encode(), "file-corrupt", 15, "line 2, column 6"),
        (TEXT[:-40], "file-truncated", None, "invalid JSON"),
        (b'{"a": "\xff"}', "file-corrupt", 7, "not UTF-8"),
        (b"[" * 200_000, "file-corrupt", None, "nested too deeply"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "file-corrupt", None, "invalid JSON"),
        (gzip.compress(TEXT)[:-10], "file-truncated", None, "ends too early"),
        (gzip.compress(TEXT)[:-8] + b"\0" * 8, "file-corrupt", None, "gzip stream is damaged"),
        (b"", "file-corrupt", 0, "invalid JSON"),
        (b"[]", "metadata-invalid", None, "an array"),
        (b'{"type": "struct"}', "metadata-invalid", None, "its keys are type"),
        (b"null", "metadata-invalid", None, "null"),
    ],
)
def test_what_is_wrong_and_where(data: bytes, code: str, offset: int | None, says: str) -> None:
    with pytest.raises(FormatError, match="in the-file") as e:
        parse_document(data, "the-file")
    assert e.value.code == code and says in str(e.value)
    if offset is not None:
        assert e.value.offset == offset


def test_a_view_is_reported() -> None:
    with pytest.raises(UnsupportedError, match="metadata of a view"):
        parse_document(json.dumps({"view-uuid": "x", "format-version": 1, "location": "/v"}).encode(), "f")


def test_a_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    with pytest.raises(FormatError, match="max-metadata-bytes"):
        parse_document(bomb, "f", max_bytes=1_000_000)
    zstd = pa.Codec("zstd").compress(b" " * 50_000_000, asbytes=True)
    with pytest.raises(FormatError, match="max-metadata-bytes"):
        parse_document(zstd, "f", max_bytes=1_000_000)
    with pytest.raises(FormatError, match="max-metadata-bytes"):
        parse_document(TEXT, "f", max_bytes=10)


@given(st.one_of(st.binary(max_size=200), st.integers(0, len(TEXT)).map(lambda n: gzip.compress(TEXT)[:n])))
def test_only_our_errors(data: bytes) -> None:
    with contextlib.suppress(IceexploreError):
        parse_document(data, "f")


@given(st.integers(0, len(gzip.compress(TEXT, mtime=0)) - 1), st.integers(0, 255))
def test_a_flipped_byte_is_noticed_or_harmless(at: int, value: int) -> None:
    data = bytearray(gzip.compress(TEXT, mtime=0))
    data[at] = value
    with contextlib.suppress(IceexploreError):
        assert parse_document(bytes(data), "f")[0] == DOC
