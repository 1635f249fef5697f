"""Decode the bytes of a metadata file to its JSON document."""

from __future__ import annotations

import json
import zlib
from typing import Any

from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.storage._budget import Budget
from iceexplore.storage._json import JsonValue, load_json
from iceexplore.storage.finding._kinds import TABLE, DocumentKind

__all__ = ["MAX_METADATA_BYTES", "parse_document", "too_large"]

#: A metadata file must not be larger than this after decompression (property ``iceexplore.max-metadata-bytes``).
MAX_METADATA_BYTES = 1 << 28
#: Memory limit for the objects of a metadata file, lower than the general limit: 2 kB for each of 500,000 snapshots.
_MOST_OBJECTS = 1 << 30

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_STEP = 1 << 20
_WORDS = ("true", "false", "null")


def parse_document(
    data: bytes, location: str, max_bytes: int = MAX_METADATA_BYTES, kind: DocumentKind = TABLE
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parse a metadata file of a table or view; return the document and notes. Compression is detected by content.

    A REST catalog's response to "load table" or "load view" (``{"metadata-location": …, "metadata": {…}}``) is
    unwrapped.

    Raises
    ------
    FormatError
        Invalid gzip, UTF-8 or JSON (with the byte offset), nested too deeply, larger than ``max_bytes``,
        or not metadata of the wanted kind.
    UnsupportedError
        The file is the metadata of a view where a table is wanted, or the reverse.
    MemoryLimitError
        The objects of its JSON would exceed the memory limit.
    """
    notes: list[str] = []
    # The limit grows with ``max_bytes``, which may be set far above the default.
    budget = Budget(location, len(data), most=max(_MOST_OBJECTS, 4 * max_bytes))
    is_gzip, name = data[:2] == _GZIP, location.rpartition("/")[2]
    if ".metadata.json" in name and is_gzip != (".gz" in name):
        notes.append(
            f"{name} is {'gzip, but its name has no .gz' if is_gzip else 'not gzip, but its name has .gz'}: "
            "Iceberg's Java decides by the name and cannot read it."
        )
    plain: bytes | bytearray = data
    if is_gzip:
        plain = _gunzip(data, location, max_bytes)
    elif data[:4] == _ZSTD:
        plain = _unzstd(data, location, max_bytes)
    if len(plain) > max_bytes:
        raise too_large(max_bytes, location)
    document, clean = _json(plain, location, budget, f"the {kind.name} metadata")
    if not clean:
        notes.append("The metadata file has escapes that are not Unicode (lone surrogates); they are shown as \ufffd.")
    if not isinstance(document, dict):
        raise _not_metadata(f"its JSON is {_kind(document)}, not an object", location, kind)
    inner = document.get("metadata")
    if isinstance(inner, dict) and "format-version" not in document:
        document = inner
        notes.append("The file is a REST catalog's response; its `metadata` is shown.")
    if not kind.fits(document):
        other = kind.other
        if other.fits(document):
            raise UnsupportedError(
                f"{location} is the metadata of a {other.name}, not of a {kind.name}: {other.call}(...) opens it"
            )
        keys = ", ".join(list(map(str, document))[:8]) or "none"
        raise _not_metadata(f"its JSON has no {kind.needs}; its keys are {keys}", location, kind)
    return document, tuple(notes)


def _not_metadata(why: str, location: str, kind: DocumentKind) -> FormatError:
    return FormatError(f"not Iceberg {kind.name} metadata: {why}", location=location, code=kind.code)


def _gunzip(data: bytes, location: str, max_bytes: int) -> bytearray:
    """Return the decompressed content of all members of a gzip file; zlib verifies each CRC and length."""
    plain = bytearray()
    rest = data
    while rest[:2] == _GZIP:
        decoder = zlib.decompressobj(wbits=31)
        while True:
            try:
                part = decoder.decompress(rest, _STEP)
            except zlib.error as e:
                raise FormatError(f"the gzip stream is damaged: {e}", location=location) from e
            plain += part
            if len(plain) > max_bytes:
                raise too_large(max_bytes, location)
            if decoder.eof:
                rest = decoder.unused_data
                break
            rest = decoder.unconsumed_tail
            if not part and not rest:
                raise FormatError(
                    "the gzip stream ends too early", location=location, offset=len(data), code="file-truncated"
                )
    return plain


def _unzstd(data: bytes, location: str, max_bytes: int) -> bytes:
    """Return the decompressed content of a zstd file, which no version of the spec mentions, but iceberg-go writes."""
    import pyarrow as pa

    parts: list[bytes] = []
    total = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while part := stream.read(_STEP):
                total += len(part)
                if total > max_bytes:
                    raise too_large(max_bytes, location)
                parts.append(part)
    except OSError as e:
        raise FormatError(f"the zstd stream is damaged: {e}", location=location) from e
    return b"".join(parts)


def too_large(max_bytes: int, location: str) -> FormatError:
    """Return the error for a metadata file of more than ``max_bytes``."""
    return FormatError(
        f"the metadata file has more than {max_bytes:,} bytes, after decompression if it is compressed; "
        "properties={'iceexplore.max-metadata-bytes': …} raises the limit",
        location=location,
    )


def _json(data: bytes | bytearray, location: str, budget: Budget, what: str) -> tuple[Any, bool]:
    """Return the document, and whether its strings were valid Unicode; lone surrogates are replaced by U+FFFD."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise FormatError(f"the metadata file is not UTF-8: {e.reason}", location=location, offset=e.start) from e
    try:
        document = load_json(text, budget, what)
        if "\\ud" not in text and "\\uD" not in text:
            return document, True
        budget.reserve(8 * len(text), what)  # for the copies made below: two as UTF-16, two as text
        written = json.dumps(document, ensure_ascii=False)
        shown = written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return (document, True) if shown == written else (json.loads(shown), False)
    except json.JSONDecodeError as e:
        offset = len(text[: e.pos].encode())
        rest = text[e.pos :].rstrip()
        ends = not rest or e.msg.startswith("Unterminated string") or any(w.startswith(rest) for w in _WORDS)
        code = "file-truncated" if ends and text.strip() else "file-corrupt"
        raise FormatError(
            f"invalid JSON: {e.msg} (line {e.lineno}, column {e.colno})", location=location, offset=offset, code=code
        ) from e
    except RecursionError as e:
        raise FormatError("invalid JSON: nested too deeply", location=location) from e
    except ValueError as e:  # an integer of thousands of digits
        raise FormatError(f"invalid JSON: {e}", location=location) from e


def _kind(value: JsonValue) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
