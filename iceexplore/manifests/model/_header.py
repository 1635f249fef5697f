"""A manifest's header: its schema and key-value metadata as written, and some parsed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iceexplore.errors import MemoryLimitError
from iceexplore.storage import Budget, JsonValue, load_json

__all__ = ["ManifestHeader"]


@dataclass(frozen=True)
class ManifestHeader:
    """The header of a manifest or manifest list.

    Attributes
    ----------
    schema
        The Avro schema as written, or the Parquet columns, as JSON text; empty if the file could not be read.
    metadata
        Key-value metadata; values as text.
    codec
        Compression: ``null``, ``deflate``, ``snappy``, ``zstandard``, ``bzip2``, ``xz``, or Parquet's name for it.
    format
        ``avro``, ``parquet``, ``inline`` (no file: a v1 snapshot that lists its manifests), or empty.
    spec_id
        ``partition-spec-id`` as a number; None if missing or malformed.
    content
        ``content`` as written: ``data``, ``deletes`` or, in V4, ``data``, ``delete`` or ``root``; None if missing.
    """

    schema: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    codec: str = ""
    format: str = ""
    spec_id: int | None = None
    content: str | None = None

    @classmethod
    def of(cls, schema: str, metadata: Mapping[str, str], codec: str, file_format: str) -> ManifestHeader:
        """Build a header from a file's key-value metadata; malformed values are tolerated."""
        spec_id = _number(metadata, "partition-spec-id")
        return cls(schema, metadata, codec, file_format, spec_id, metadata.get("content"))

    def number(self, key: str) -> int | None:
        """Return a key's value as a number, such as ``snapshot-id`` or ``schema-id``; None if missing or malformed."""
        return _number(self.metadata, key)

    def json(self, key: str) -> JsonValue:
        """Return a key's value as parsed JSON, such as ``partition-spec``; None if missing or malformed."""
        text = self.metadata.get(key)
        if text is None:
            return None
        try:
            return load_json(text, Budget("", len(text)), key)
        except (ValueError, RecursionError, MemoryLimitError):
            return None


def _number(metadata: Mapping[str, str], key: str) -> int | None:
    text = metadata.get(key, "").strip()
    if not text.lstrip("-").isdecimal() or len(text) > 20 or text.count("-") > 1:
        return None
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else None  # None beyond int64: no column could hold it
