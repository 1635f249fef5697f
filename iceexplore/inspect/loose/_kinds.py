"""Readers of loose files, one for each format: kind, header, schema and records."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.deletes import POS_ID, Bitmap, bare_vector_problem, decode_deletion_vector, read_puffin_footer
from iceexplore.errors import FormatError, IceexploreError, MemoryLimitError, Problem, Problems, UnsupportedError
from iceexplore.formats import (
    DATA_FILE_FORMATS,
    ENCRYPTED,
    PUFFIN,
    DataFileFormat,
    Shape,
    read_rows,
    whole_file,
)
from iceexplore.inspect._puffin import BLOB_FIELDS
from iceexplore.inspect.loose._vectors import manifest_vectors
from iceexplore.inspect.view_tables._build import version_rows
from iceexplore.manifests import Manifest, open_manifest, role_of
from iceexplore.metadata import TableMetadata, parse_table_metadata
from iceexplore.storage import VIEW, Budget, Storage, load_json, parse_document
from iceexplore.views import is_udf_metadata, parse_udf, parse_view_metadata

__all__ = ["Content", "MAX_POSITIONS", "READERS", "vector_content"]

#: Maximum number of positions that `LooseFile.arrow` lists (800 MB). A few bytes of runs can set 65,536 of them.
MAX_POSITIONS = 100_000_000
#: Maximum size, in bytes after decompression, of a JSON file that is not table metadata.
MAX_JSON_BYTES = 1 << 28

_MANIFEST_LIST_ID = 500  # manifest_path
_DATA_FILE_ID = 2
_FILE_PATH_ID = 100
_CONTENT_TYPE_ID = 134  # a V4 row is a content entry: 134 content_type (or type), 100 location

BLOBS = build.schema(
    [
        pa.field("ordinal", pa.int64()),
        pa.field("type", pa.string()),
        pa.field("fields", pa.list_(pa.int32())),
        *BLOB_FIELDS,
    ]
)
SNAPSHOTS = build.schema(
    [
        pa.field("snapshot_id", pa.int64()),
        pa.field("parent_snapshot_id", pa.int64()),
        pa.field("sequence_number", pa.int64()),
        pa.field("timestamp", pa.timestamp("ms", "UTC")),
        pa.field("operation", pa.string()),
        pa.field("schema_id", pa.int64()),
        pa.field("manifest_list", pa.string()),
    ]
)


@dataclass(frozen=True)
class Content:
    """The content of a loose file.

    ``records`` reads the file's records. ``entries`` returns a manifest's content entries, and ``vectors`` decodes the
    manifest DVs of a V4 root; they are None for other files.
    """

    kind: str
    header: Mapping[str, Any]
    schema: Any
    problems: tuple[Problem, ...]
    records: Callable[[], pa.Table]
    entries: Callable[[], pa.Table] | None = None
    vectors: Callable[[], pa.Table] | None = None


def vector_content(bitmap: Bitmap, offset: int, size: int, problems: Iterable[Problem]) -> Content:
    """Return the content of a deletion vector: its positions."""
    count = len(bitmap)
    header = {"cardinality": count, "offset": offset, "size_in_bytes": size}
    if count:
        header |= {"first_position": bitmap.min(), "last_position": bitmap.max()}

    def records() -> pa.Table:
        import numpy as np

        if count > MAX_POSITIONS:
            raise UnsupportedError(f"{count:,} positions are not listed (at most {MAX_POSITIONS:,}); see `header`")
        return pa.table({"pos": pa.array(np.asarray(bitmap.to_array(), dtype=np.int64))})

    return Content("deletion vector", header, pa.schema([pa.field("pos", pa.int64())]), tuple(problems), records)


def _bare_vector(storage: Storage, location: str) -> Content:
    blob = whole_file(storage, location, "puffin")
    bitmap = decode_deletion_vector(blob, location)
    found = bare_vector_problem(location, 0)
    return vector_content(bitmap, 0, len(blob), [found] if found else [])


def _puffin(storage: Storage, location: str) -> Content:
    file = read_puffin_footer(storage, location)
    header = {
        "blobs": len(file.blobs),
        "properties": dict(file.properties),
        "footer_size": file.footer_size,
        "footer_compressed": file.footer_compressed,
    }

    def records() -> pa.Table:
        rows = [
            {
                **asdict(b),
                "ndv": b.ndv,
                "cardinality": b.cardinality,
                "referenced_data_file": b.referenced_data_file,
                "properties": list(b.properties.items()),
            }
            for b in file.blobs
        ]
        return pa.Table.from_pylist(rows, schema=BLOBS)

    return Content(PUFFIN.name, header, None, file.problems, records)


def _json(storage: Storage, location: str) -> Content:
    data = whole_file(storage, location, "metadata")
    try:
        document, notes = parse_document(data, location)
    except MemoryLimitError:
        raise
    except (FormatError, UnsupportedError):
        other = _other_json(data, location)
        if other is None:
            raise
        if VIEW.fits(other):
            return _view(other, location)
        if is_udf_metadata(other):
            return _udf(other, location)
        return Content("json", other, None, (), lambda: pa.table({"key": list(other)}))
    problems = Problems()
    header = {**document, **({"notes": list(notes)} if notes else {})}
    try:
        metadata = parse_table_metadata(document, location, problems)
    except (FormatError, UnsupportedError) as error:
        problems.add_error(error, location)
        return Content("table metadata", header, None, tuple(problems), lambda: pa.table({"key": list(document)}))
    return Content("table metadata", header, metadata.schema(), tuple(problems), lambda: _snapshots(metadata))


def _view(document: dict[str, Any], location: str) -> Content:
    """Return the metadata of a view: its versions are the records."""
    problems = Problems()
    try:
        metadata = parse_view_metadata(document, location, problems)
    except (FormatError, UnsupportedError) as error:
        problems.add_error(error, location)
        return Content("view metadata", document, None, tuple(problems), lambda: pa.table({"key": list(document)}))
    schema = metadata.schema(metadata.version())
    return Content("view metadata", document, schema, tuple(problems), lambda: version_rows(metadata))


def _udf(document: dict[str, Any], location: str) -> Content:
    """Return the metadata of a function: the versions of its overloads are the records."""
    problems = Problems()
    try:
        udf = parse_udf(document, location, problems)
    except (FormatError, UnsupportedError) as error:
        problems.add_error(error, location)
        return Content("udf metadata", document, None, tuple(problems), lambda: pa.table({"key": list(document)}))
    return Content("udf metadata", document, None, tuple(problems), udf.versions_arrow)


def _other_json(data: bytes, location: str) -> dict[str, Any] | None:
    """Return the JSON object (gzipped or not) in a file that is not table metadata; None if it has none.

    Raises
    ------
    MemoryLimitError
        Parsing the file would exceed the memory limit.
    """
    with contextlib.suppress(ValueError, RecursionError, zlib.error):
        plain = zlib.decompressobj(31).decompress(data, MAX_JSON_BYTES) if data[:2] == b"\x1f\x8b" else data
        document = load_json(plain, Budget(location, len(data)), "the JSON")
        if isinstance(document, dict):
            return {str(k): v for k, v in document.items()}
    return None


def _snapshots(metadata: TableMetadata) -> pa.Table:
    rows = [
        {
            "snapshot_id": s.snapshot_id,
            "parent_snapshot_id": s.parent_snapshot_id,
            "sequence_number": s.sequence_number,
            "timestamp": s.timestamp_ms,
            "operation": s.operation,
            "schema_id": s.schema_id,
            "manifest_list": s.root_location,
        }
        for s in metadata.snapshots
    ]
    return pa.Table.from_pylist(rows, schema=SNAPSHOTS)


def _data_file(known: DataFileFormat, storage: Storage, location: str) -> Content:
    found = known.describe(storage, location)
    if _is_manifest(found.shapes):
        return _manifest(storage, location, found.schema)
    details = found.details()
    problems = Problems()
    for fault in details.faults:
        problems.add_error(fault, location)
    content = {"content": "position deletes"} if POS_ID in details.ids else {}
    header = {**details.header, **content, "metadata": dict(details.metadata)}
    return Content(known.name, header, found.schema, tuple(problems), details.records)


def _manifest(storage: Storage, location: str, schema: object) -> Content:
    try:
        found = open_manifest(storage, location)
    except UnsupportedError as error:  # an unsupported dialect: its rows are still shown
        problems = Problems()
        problems.add_error(error, location)
        return Content("manifest", {}, schema, tuple(problems), lambda: read_rows(storage, location, kind="manifest"))
    tree = found.dialect.has_root_manifest
    known_by = "field 500 manifest_path" if found.is_root else "field 2 data_file"
    if tree:
        known_by = role_of(found.entries, found.dialect, found.header.content, location).known_by
    header = {
        "dialect": found.dialect,
        "known by": known_by,
        "format": found.header.format,
        "codec": found.header.codec,
        "entries": found.entries.num_rows,
        "metadata": dict(found.header.metadata),
    }
    kind = "manifest"
    if found.is_root:
        kind = "root manifest" if tree else "manifest list"
    vectors = (lambda: manifest_vectors(found)) if tree and found.is_root else None
    return Content(
        kind, header, schema, found.problems, lambda: _as_written(storage, found), lambda: found.entries, vectors
    )


def _as_written(storage: Storage, found: Manifest) -> pa.Table:
    """Return all columns of the file under their own names; for a damaged file, perhaps only its decoded entries."""
    if found.problems:
        with contextlib.suppress(IceexploreError):
            return read_rows(storage, found.location, kind="manifest")
        return found.entries
    return read_rows(storage, found.location, kind="manifest")


def _is_manifest(fields: Sequence[Shape]) -> bool:
    """Return whether these are fields of a manifest or manifest list.

    Ids alone do not decide, as other files have field ids too: a name or a child's id must match as well.
    """
    own = {(number, name) for number, name, _ in fields}
    if (_FILE_PATH_ID, "location") in own and {(_CONTENT_TYPE_ID, "content_type"), (_CONTENT_TYPE_ID, "type")} & own:
        return True
    if (None, "location") in own and (None, "content_type") in own:
        return True
    for number, name, children in fields:
        if number == _MANIFEST_LIST_ID and name == "manifest_path":
            return True
        if number == _DATA_FILE_ID and any(child == _FILE_PATH_ID for child, _ in children):
            return True
        if number is None and (name == "manifest_path" or (name == "data_file" and children)):
            return True
    return False


def _encrypted(storage: Storage, location: str) -> Content:
    raise UnsupportedError(f"{location} is encrypted and its key is not available")


#: Readers by the format that `sniff` returns.
READERS: dict[str, Callable[[Storage, str], Content]] = {
    **{f.name: partial(_data_file, f) for f in DATA_FILE_FORMATS},
    **dict.fromkeys(ENCRYPTED, _encrypted),
    PUFFIN.name: _puffin,
    "deletion-vector": _bare_vector,
    "gzip": _json,
    "json": _json,
}
