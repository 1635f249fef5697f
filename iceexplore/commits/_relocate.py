"""Metadata files with other locations in them: what a saved table needs to stand where it was saved."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits._rewrite_avro import rewritten_avro
from iceexplore.commits._rewrite_parquet import read_parquet, rewritten_parquet
from iceexplore.deletes import FILE_PATH_ID
from iceexplore.errors import FormatError
from iceexplore.manifests import whole

__all__ = ["relocated_document", "relocated_manifest"]

#: Fields that hold locations, by id (spec, "Manifest Lists", "Manifests"; V4 proposal and draft), and the fields beside
#: them that hold the length of what they name.
_LOCATIONS = {500: 501, 100: 104, 143: None, 155: None}
#: lower_bounds and upper_bounds; of a position delete file they hold paths.
_BOUNDS = (125, 128)
_AVRO, _PARQUET = b"Obj\x01", b"PAR1"
#: Properties that would send the next writer elsewhere.
_PLACES = ("write.data.path", "write.metadata.path", "write.folder-storage.path", "write.object-storage.path")


def relocated_document(document: Mapping[str, Any], location: str, moved: Mapping[str, str]) -> dict[str, Any]:
    """A table's document at another location.

    Parameters
    ----------
    moved
        Where files are now, by their locations so far; others keep theirs. Entries of ``metadata-log`` that are not
        among them are left out: nobody wrote these files to the new place.
    """
    out = {**document, "location": location}
    out["metadata-log"] = [
        {**e, "metadata-file": moved[e["metadata-file"]]}
        for e in document.get("metadata-log") or ()
        if e.get("metadata-file") in moved
    ]
    snapshots = []
    for snapshot in document.get("snapshots") or ():
        names = {k: moved.get(snapshot[k], snapshot[k]) for k in ("manifest-list", "root-manifest") if k in snapshot}
        if snapshot.get("manifests"):
            names["manifests"] = [moved.get(m, m) for m in snapshot["manifests"]]
        snapshots.append({**snapshot, **names})
    out["snapshots"] = snapshots
    for key in ("statistics", "partition-statistics"):
        if document.get(key):
            out[key] = [
                {**s, "statistics-path": moved.get(s["statistics-path"], s["statistics-path"])} for s in document[key]
            ]
    if isinstance(document.get("properties"), dict):
        out["properties"] = {k: v for k, v in document["properties"].items() if k not in _PLACES}
    return out


def relocated_manifest(data: bytes, location: str, moved: Mapping[str, str], lengths: Mapping[str, int]) -> bytes:
    """A manifest, list or root with other locations; everything else stays as it was written.

    Parameters
    ----------
    moved
        Old locations to new.
    lengths
        Bytes of the files at new locations, where they changed.

    Raises
    ------
    FormatError
        The file cannot be read, or is neither Avro nor Parquet.
    """
    try:
        if data[:4] == _AVRO:
            return _avro(data, moved, lengths)
        if data[:4] == _PARQUET:
            return _parquet(data, moved, lengths)
    except Exception as e:  # the libraries raise whatever a damaged file makes them stumble on
        raise FormatError(f"its locations cannot be rewritten: {type(e).__name__}: {e}", location=location) from e
    raise FormatError("neither Avro nor Parquet: its locations cannot be rewritten", location=location)


def _avro(data: bytes, moved: Mapping[str, str], lengths: Mapping[str, int]) -> bytes:
    import fastavro

    reader = fastavro.reader(io.BytesIO(data))
    schema: Any = reader.writer_schema
    change = _record_change(schema, moved, lengths)
    records = []
    for record in reader:
        change(record)
        records.append(record)
    return rewritten_avro(schema, reader.metadata, records)


def _record_change(schema: Any, moved: Mapping[str, str], lengths: Mapping[str, int]) -> Callable[[Any], None]:
    """What replaces the locations in a record of this schema, and in the records inside it."""
    ids = {f.get("field-id"): f["name"] for f in schema.get("fields", ())}
    here = [(ids[i], ids.get(beside)) for i, beside in _LOCATIONS.items() if i in ids]
    bounds = [ids[i] for i in _BOUNDS if i in ids]
    inside = []
    for f in schema.get("fields", ()):
        kinds = f["type"] if isinstance(f["type"], list) else [f["type"]]
        record = next((k for k in kinds if isinstance(k, dict) and k.get("type") == "record"), None)
        if record is not None and f.get("field-id") != 102:  # the partition tuple holds values
            inside.append((f["name"], _record_change(record, moved, lengths)))

    def change(record: Any) -> None:
        for name, beside in here:
            new = moved.get(record[name])
            if new is not None:
                record[name] = new
                if beside and record[beside] is not None:
                    record[beside] = lengths.get(new, record[beside])
        for name in bounds:
            if isinstance(record[name], list):
                record[name] = [pair for pair in (_bound(p, moved) for p in record[name]) if pair is not None]
        for name, within in inside:
            if isinstance(record[name], dict):
                within(record[name])

    return change


def _bound(pair: Any, moved: Mapping[str, str]) -> Any:
    """A bound of a position delete file's paths: moved as a path is, left out if it is not one that moved whole."""
    if not isinstance(pair, dict) or pair.get("key") != FILE_PATH_ID:
        return pair
    new = moved.get(bytes(pair["value"]).decode("utf-8", "replace"))
    return None if new is None else {**pair, "value": new.encode("utf-8", "surrogatepass")}


def _parquet(data: bytes, moved: Mapping[str, str], lengths: Mapping[str, int]) -> bytes:
    file, table = read_parquet(data)
    struct = _columns(
        pa.StructArray.from_arrays([whole(c) for c in table.columns], fields=list(table.schema)), moved, lengths
    )
    columns = [pc.struct_field(struct, [i]) for i in range(struct.type.num_fields)]
    return rewritten_parquet(file, pa.Table.from_arrays(columns, schema=table.schema))


def _columns(array: pa.StructArray, moved: Mapping[str, str], lengths: Mapping[str, int]) -> pa.StructArray:
    fields = list(array.type)
    ids = {_field_id(f): i for i, f in enumerate(fields)}
    children = [array.field(i) for i in range(len(fields))]
    old = pa.array(list(moved), pa.string())
    new = pa.array(list(moved.values()), pa.string())
    for field_id, beside in _LOCATIONS.items():
        at = ids.get(field_id)
        if at is None or not pa.types.is_string(fields[at].type):
            continue
        found = new.take(pc.index_in(children[at], value_set=old))
        children[at] = pc.coalesce(found, children[at])
        size_at = None if beside is None else ids.get(beside)
        if size_at is not None:
            sizes = pa.array([lengths.get(n) for n in moved.values()], pa.int64())
            changed = sizes.take(pc.index_in(found, value_set=new)).cast(fields[size_at].type)
            kept = children[size_at]
            children[size_at] = pc.if_else(pc.and_(changed.is_valid(), kept.is_valid()), changed, kept)
    for i, f in enumerate(fields):
        if pa.types.is_struct(f.type) and _field_id(f) != 102:
            children[i] = _columns(children[i], moved, lengths)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(b"PARQUET:field_id")
    return int(text) if text is not None else None
