"""Delete files with other locations in them: position delete files name data files in their rows, and the blobs of
deletion vectors in their properties. A table whose data files moved would have its rows back without this.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits.saving._avro import read_avro, rewritten_avro
from iceexplore.commits.saving._parquet import read_parquet, rewritten_parquet
from iceexplore.deletes import FILE_PATH_ID, POS_ID, PUFFIN_MAGIC, read_puffin_footer
from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import avro_batches, field_id, read_orc_footer, read_rows, sniff
from iceexplore.storage import DATA_RATIO, Budget, Storage

__all__ = ["RelocatedDeletes", "relocated_deletes", "relocated_puffin"]

_REFERENCED = "referenced-data-file"
#: What the rows of an ORC file may take in memory.
_ORC_LIMIT = 1 << 30
#: What rows of Avro take as Python's objects: each, and each of their bytes in Arrow.
_OBJECT, _OBJECTS_PER_BYTE = 500, 8
_ORC_CODECS = ("UNCOMPRESSED", "SNAPPY", "ZLIB", "LZ4", "ZSTD")


@dataclass(frozen=True)
class RelocatedDeletes:
    """A delete file with other locations.

    Attributes
    ----------
    data
        The file.
    paths
        The smallest and the largest path in its rows, which bound them in manifests; None of a Puffin file.
    """

    data: bytes
    paths: tuple[str, str] | None = None


def relocated_deletes(storage: Storage, location: str, moved: Mapping[str, str]) -> RelocatedDeletes | None:
    """A position delete file or Puffin file with other locations; None where it names none that moved.

    Parameters
    ----------
    moved
        Old locations of data files to new.

    Raises
    ------
    UnsupportedError
        A format that is not known.
    FormatError
        The file is damaged.
    IceexploreError
        The file cannot be read.
    """
    data = storage.read(location, kind="delete-file")
    kind = sniff(data)
    if kind == "puffin":
        puffin = relocated_puffin(storage, location, data, moved)
        return None if puffin is None else RelocatedDeletes(puffin)
    if kind == "parquet":
        return _parquet(data, location, moved)
    if kind == "avro":
        return _avro(data, location, moved)
    if kind == "orc":
        return _orc(storage, location, moved)
    raise UnsupportedError(
        f"{location}: a position delete file in {kind or 'a format that is not known'}, whose rows hold the old "
        'locations, is not rewritten; save the table with location="keep"'
    )


def relocated_puffin(storage: Storage, location: str, data: bytes, moved: Mapping[str, str]) -> bytes | None:
    """A Puffin file whose vectors name other files; None where they name none that moved.

    Every byte before the footer stays, so that manifest entries find the blobs where they were; of the footer the
    references change, and nothing else that it holds.
    """
    file = read_puffin_footer(storage, location, len(data))
    if not any(blob.properties.get(_REFERENCED) in moved for blob in file.blobs):
        return None
    footer = json.loads(file.payload)
    for blob in footer["blobs"]:
        properties: Any = blob.get("properties") if isinstance(blob, dict) else None
        old = properties.get(_REFERENCED) if isinstance(properties, dict) else None
        if isinstance(old, str) and old in moved:
            properties[_REFERENCED] = moved[old]
    text = json.dumps(footer, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    blobs = data[: len(data) - file.footer_size]
    # No flags: the payload is not compressed, whatever it was.
    return b"".join((blobs, PUFFIN_MAGIC, text, struct.pack("<i", len(text)), bytes(4), PUFFIN_MAGIC))


def _parquet(data: bytes, location: str, moved: Mapping[str, str]) -> RelocatedDeletes | None:
    try:
        file, table = read_parquet(data, location)
        changed = _moved_rows(table, location, moved)
        return None if changed is None else RelocatedDeletes(rewritten_parquet(file, changed[0]), changed[1])
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, IceexploreError):
            raise
        raise FormatError(f"a position delete file that does not decode: {error}", location=location) from None


def _orc(storage: Storage, location: str, moved: Mapping[str, str]) -> RelocatedDeletes | None:
    from pyarrow import orc

    changed = _moved_rows(read_rows(storage, location, kind="delete-file", limit=_ORC_LIMIT), location, moved)
    if changed is None:
        return None
    table, paths = changed
    footer = read_orc_footer(storage, location)
    codec = footer.compression.upper()
    out = io.BytesIO()
    # The footer's schema has ORC's attributes, and so the ids of the fields, in their own spelling.
    table = pa.Table.from_arrays(table.columns, schema=footer.schema)
    orc.write_table(table, out, compression=codec if codec in _ORC_CODECS else "ZLIB")
    return RelocatedDeletes(out.getvalue(), paths)


def _moved_rows(
    table: pa.Table, location: str, moved: Mapping[str, str]
) -> tuple[pa.Table, tuple[str, str]] | None:
    """Rows of position deletes with other paths, in the order the specification asks, and the first and last path.

    None where no path moved.
    """
    ids = {field_id(f): i for i, f in enumerate(table.schema)}
    at = ids.get(FILE_PATH_ID, table.schema.get_field_index("file_path"))
    pos = ids.get(POS_ID, table.schema.get_field_index("pos"))
    if at < 0 or pos < 0:
        raise FormatError("a position delete file without file_path and pos", location=location)
    paths = table.column(at).cast(pa.string())
    found = pc.index_in(paths, value_set=pa.array(list(moved), pa.string()))
    if found.null_count == len(found):
        return None
    new = pc.coalesce(pa.array(list(moved.values()), pa.string()).take(found), paths)
    table = table.set_column(at, table.schema.field(at), new.cast(table.schema.field(at).type))
    # Rows are sorted by path and position (spec, "Position Delete Files"), and names may sort otherwise now.
    names = table.schema.names
    ends = pc.min_max(new).as_py()
    return table.sort_by([(names[at], "ascending"), (names[pos], "ascending")]), (ends["min"], ends["max"])


def _avro(data: bytes, location: str, moved: Mapping[str, str]) -> RelocatedDeletes | None:
    try:
        schema, metadata, records = read_avro(data, location)
        names = {f.get("field-id"): f["name"] for f in schema["fields"]}
        at, pos = names.get(FILE_PATH_ID, "file_path"), names.get(POS_ID, "pos")
        _check_avro(data, location)
        rows: list[Any] = list(records)
        if not any(row[at] in moved for row in rows):
            return None
        for row in rows:
            row[at] = moved.get(row[at], row[at])
        rows.sort(key=lambda row: (row[at], row[pos]))
        return RelocatedDeletes(rewritten_avro(schema, metadata, rows), (rows[0][at], rows[-1][at]))
    except IceexploreError:
        raise
    except Exception as error:  # the library raises whatever a damaged file makes it stumble on
        text = f"a position delete file that does not decode: {type(error).__name__}: {error}"
        raise FormatError(text, location=location) from error


def _check_avro(data: bytes, location: str) -> None:
    """Refuse rows that would not fit in memory, before a library makes objects of them all."""
    budget = Budget(location, len(data), ratio=DATA_RATIO)
    batches = avro_batches(data, location)
    next(batches)  # their schema
    for batch in batches:
        budget.reserve(_OBJECT * batch.num_rows + _OBJECTS_PER_BYTE * batch.nbytes, "the rows")
