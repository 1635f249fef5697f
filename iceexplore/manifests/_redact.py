"""Blank values in a manifest or manifest list, so that it can be mailed: shape and counts stay, values go.

Rewriting is row-wise (fastavro): a bundle is made once, by a person who waits for it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from typing import Any

from iceexplore.errors import FormatError, UnsupportedError

__all__ = ["Redactor"]

_BOUNDS = frozenset({"lower_bounds", "upper_bounds"})
_BLANKS: dict[str, Any] = {
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": b"",
    "string": "",
}


class Redactor:
    """Blanks bounds, and on request partition values, the same way in every file of one bundle.

    Parameters
    ----------
    partitions
        Blank partition tuples and partition summaries too, and replace the value in each ``name=value`` directory of
        a path by a short hash: equal values stay equal, and the salt, which is thrown away, keeps them from being
        guessed.
    salt
        Secret of this bundle.
    """

    def __init__(self, *, partitions: bool, salt: bytes) -> None:
        self.partitions = partitions
        self._salt = salt

    def path(self, location: str) -> str:
        """A location with its partition values replaced."""
        if not self.partitions:
            return location
        return "/".join(self._segment(s) for s in location.split("/"))

    def _segment(self, segment: str) -> str:
        name, equals, value = segment.partition("=")
        if not equals or not name:
            return segment
        return f"{name}=x{hashlib.blake2b(value.encode('utf-8', 'replace'), key=self._salt, digest_size=6).hexdigest()}"

    def manifest(self, data: bytes, location: str) -> bytes:
        """A v1–v3 manifest with its values blanked."""

        def entry(record: dict[str, Any], schema: dict[str, Any]) -> None:
            data_file = record.get("data_file")
            if not isinstance(data_file, dict):
                return
            for name in _BOUNDS & set(data_file):
                data_file[name] = _emptied(data_file[name])
            for name in ("file_path", "referenced_data_file"):
                if isinstance(data_file.get(name), str):
                    data_file[name] = self.path(data_file[name])
            if self.partitions and isinstance(data_file.get("partition"), dict):
                types = _field_types(_field_types(schema)["data_file"])["partition"]
                data_file["partition"] = {k: _blank(t) for k, t in _field_types(types).items()}

        return _rewrite(data, location, entry)

    def manifest_list(self, data: bytes, location: str, lengths: Mapping[str, int]) -> bytes:
        """A manifest list with its partition summaries blanked and the lengths of the rewritten manifests."""

        def entry(record: dict[str, Any], schema: dict[str, Any]) -> None:
            path = record.get("manifest_path")
            if isinstance(path, str) and path in lengths:
                record["manifest_length"] = lengths[path]
            for summary in record.get("partitions") or ():
                for name in ("lower_bound", "upper_bound"):
                    if summary.get(name) is not None:
                        summary[name] = None

        return _rewrite(data, location, entry)


def _emptied(value: Any) -> Any:
    return None if value is None else type(value)()


def _field_types(schema: Any) -> dict[str, Any]:
    """Field types of a record, also of one inside a union with null."""
    if isinstance(schema, list):
        schema = next((s for s in schema if isinstance(s, dict) and s.get("type") == "record"), {})
    if isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
        return _field_types(schema["type"])
    return {f["name"]: f["type"] for f in schema.get("fields", ())} if isinstance(schema, dict) else {}


def _blank(schema: Any) -> Any:
    if isinstance(schema, list):
        return None if "null" in schema else _blank(schema[0])
    if isinstance(schema, dict):
        if schema.get("type") == "fixed":
            return bytes(int(schema["size"]))
        # A logical type reads back as a Python object; blanking is done on the stored form, which fastavro takes too.
        return _blank(schema.get("type"))
    return _BLANKS.get(schema)


def _rewrite(data: bytes, location: str, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    import fastavro

    if not data.startswith(b"Obj\x01"):
        raise UnsupportedError(
            f"only Avro manifests can be redacted, and {location} is none; pass redact=() to send it as is"
        )
    try:
        reader = fastavro.reader(io.BytesIO(data))
        schema = reader.writer_schema
        records = []
        for record in reader:
            if isinstance(record, dict) and isinstance(schema, dict):
                change(record, schema)
            records.append(record)
        metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        out = io.BytesIO()
        fastavro.writer(out, schema, records, codec="deflate", metadata=metadata)
    except UnsupportedError:
        raise
    except Exception as e:  # fastavro raises whatever a damaged file makes it stumble on
        raise FormatError(f"cannot be redacted: {type(e).__name__}: {e}", location=location) from e
    return out.getvalue()
