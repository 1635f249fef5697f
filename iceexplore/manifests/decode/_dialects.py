"""Detection of a file's dialect by its field ids, before anything else is decoded.

Some ids mean different things in different dialects, so the shape of the records is determined first. The version
number in the header only distinguishes dialects of the same shape: v1 to v3, and what Java writes today under version
4.
"""

from __future__ import annotations

from collections.abc import Mapping

from iceexplore.errors import FormatError
from iceexplore.manifests.model._reader_schema import ReaderSchema
from iceexplore.metadata import Dialect

__all__ = ["dialect_of"]

_BY_VERSION = {"1": Dialect.V1, "2": Dialect.V2, "3": Dialect.V3, "4": Dialect.V4_JAVA}


def dialect_of(
    reader_schema: ReaderSchema, metadata: Mapping[str, str], file_format: str, location: str
) -> tuple[Dialect, bool]:
    """Return a file's dialect, and whether it is a manifest list or root (in V4 as its ``content`` states).

    Raises
    ------
    FormatError
        The Avro or Parquet file is neither a manifest nor a manifest list.
    """
    if reader_schema.shape in ("v4-proposal", "v4-draft"):
        return Dialect(reader_schema.shape), metadata.get("content", "").strip().lower() == "root"
    if not reader_schema.shape:
        raise FormatError(
            "neither a manifest nor a manifest list: it has no field 500 (manifest_path), no field 2 (data_file), and"
            " no content entry of V4 (134 content_type with 100 location, or 147 tracking)",
            location=location,
        )
    is_list = reader_schema.shape == "list"
    if file_format == "parquet":
        return Dialect.V4_JAVA, is_list
    return _BY_VERSION.get(metadata.get("format-version", "").strip()) or _by_fields(reader_schema, is_list), is_list


def _by_fields(reader_schema: ReaderSchema, is_list: bool) -> Dialect:
    """Return the lowest version that has all of the file's fields, for a header without a version."""
    if is_list:
        if reader_schema.has(520):
            return Dialect.V3
        return Dialect.V2 if reader_schema.has(515) or reader_schema.has(517) else Dialect.V1
    if reader_schema.has(142) or reader_schema.has(144):
        return Dialect.V3
    return Dialect.V2 if reader_schema.has(3) or reader_schema.has(134) else Dialect.V1
