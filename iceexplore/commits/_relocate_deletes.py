"""Delete files with other locations in them: position delete files name data files in their rows, and the blobs of
deletion vectors in their properties. A table whose data files moved would have its rows back without this.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.deletes import FILE_PATH_ID, POS_ID, NewBlob, read_puffin_blob, read_puffin_footer, write_puffin
from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats import field_id, sniff
from iceexplore.storage import Storage

__all__ = ["relocated_deletes"]

_REFERENCED = "referenced-data-file"


def relocated_deletes(storage: Storage, location: str, moved: Mapping[str, str]) -> bytes | None:
    """A position delete file or Puffin file with other locations; None where it names none that moved.

    Parameters
    ----------
    moved
        Old locations of data files to new.

    Raises
    ------
    UnsupportedError
        A position delete file in ORC or Avro, or a Puffin file whose blobs do not stand one after the other.
    FormatError
        The file is damaged.
    IceexploreError
        The file cannot be read.
    """
    data = storage.read(location, kind="delete-file")
    kind = sniff(data)
    if kind == "puffin":
        return _puffin(storage, location, moved)
    if kind == "parquet":
        return _parquet(data, location, moved)
    raise UnsupportedError(
        f"{location}: a position delete file in {kind or 'a format that is not known'}, whose rows hold the old "
        'locations, is not rewritten; save the table with location="keep"'
    )


def _parquet(data: bytes, location: str, moved: Mapping[str, str]) -> bytes | None:
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"a position delete file that does not decode: {error}", location=location) from None
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
    table = table.sort_by([(names[at], "ascending"), (names[pos], "ascending")])
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", store_schema=False)
    return out.getvalue()


def _puffin(storage: Storage, location: str, moved: Mapping[str, str]) -> bytes | None:
    """The same blobs at the same places: manifest entries name them by offset and length."""
    file = read_puffin_footer(storage, location)
    if not any(blob.properties.get(_REFERENCED) in moved for blob in file.blobs):
        return None
    blobs, places = [], []
    for blob in sorted(file.blobs, key=lambda b: b.offset):
        if blob.compression_codec:
            raise UnsupportedError(f'{location}: a compressed blob beside vectors; save with location="keep"')
        properties: dict[str, Any] = dict(blob.properties)
        if properties.get(_REFERENCED) in moved:
            properties[_REFERENCED] = moved[properties[_REFERENCED]]
        content = read_puffin_blob(storage, location, blob)
        blobs.append(
            NewBlob(blob.type, content, tuple(blob.fields), blob.snapshot_id, blob.sequence_number, properties)
        )
        places.append((blob.offset, blob.length))
    data, now = write_puffin(blobs, properties=file.properties)
    if now != places:
        raise UnsupportedError(f'{location}: its blobs do not follow each other; save with location="keep"')
    return data
