"""Rewrite the locations in metadata files for the location at which a table is saved."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, AnyMapArray, Binaries, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import FILE_PATH_ID, POS_ID, PUFFIN_MAGIC, read_puffin_footer
from iceexplore.errors import FormatError, MemoryLimitError
from iceexplore.formats import (
    PUFFIN,
    Avro,
    Parquet,
    PathRewrite,
    cannot_rewrite,
    field_id,
    format_named,
    read_avro,
    read_parquet,
    rewritten_avro,
    rewritten_parquet,
    sniff,
)
from iceexplore.manifests import offsets_of, slow_work, whole
from iceexplore.metadata import ABSOLUTE_LOCATION, relative_location, resolved_location
from iceexplore.storage import JsonValue, Storage, canonical

__all__ = [
    "Moves",
    "relocated_deletes",
    "relocated_document",
    "relocated_manifest",
    "relocated_puffin",
]

_REFERENCED = "referenced-data-file"


@dataclass(frozen=True)
class RelocatedDeletes:
    """A delete file with rewritten locations.

    Attributes
    ----------
    data
        The content of the file.
    paths
        The smallest and the largest path in its rows, as bounds for manifests; None for a Puffin file.
    """

    data: bytes
    paths: tuple[str, str] | None = None


class Moves(dict[str, str]):
    """A dict of the files that get a new location: from a file's old location to its new one.

    The same location can be written in several ways, such as ``/a/b`` and ``file:///a/b``, and a delete file may write
    it differently from the manifest. The dict's own methods find only the exact text; `find` accepts all ways.
    """

    def __init__(self, moved: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(moved)
        self._canonical: dict[str, str] = {}
        self._known = 0

    #: The table's old location if the table may have relative locations (V4), otherwise None. `place` joins it with the
    #: relative location of a file that has not moved.
    table: str | None = None

    def with_relative(self, old: str, new: str) -> Moves:
        """Return a copy for a V4 table, in which each file is also found by its location relative to the table.

        For example, if the table moves from ``/a`` to ``/b``, and its file ``/a/data/1.parquet`` to
        ``/b/data/x.parquet``, the copy also maps ``data/1.parquet`` to ``data/x.parquet``.

        Parameters
        ----------
        old, new
            The old and the new location of the table.
        """
        other = Moves(self)
        other.table = old
        for location, moved in self.items():
            short = relative_location(location, old)
            if short != location:
                other[short] = relative_location(moved, new)
        return other

    def place(self, name: PlainValue) -> str | None:
        """Return the location that replaces the location ``name`` in a manifest; None if nothing needs to change.

        If the file has moved, this is its new location, which is relative to the table's new location if ``name`` is
        relative to the old one (V4). If a file with a relative location has not moved, this is its absolute location,
        because the relative one would be joined with the table's new location. None is also returned if ``name`` is not
        a string.
        """
        if not isinstance(name, str):
            return None
        found = self.get(name)
        if found is None and self.table is not None:
            whole_name = resolved_location(name, self.table)
            return None if whole_name == name else whole_name
        return found

    def find(self, name: str) -> str | None:
        """Return the new location of a file; None if the file has not moved.

        The old location ``name`` may be written in any way, for example with or without ``file://``.
        """
        found = self.get(name)
        if found is not None or not self:
            return found
        for old, new in islice(self.items(), self._known, None):
            self._canonical.setdefault(canonical(old), new)
        self._known = len(self)
        return self._canonical.get(canonical(name))


def relocated_deletes(storage: Storage, location: str, moved: Mapping[str, str]) -> RelocatedDeletes | None:
    """Return a copy of a delete file that refers to its data files by their new locations.

    The delete file is a position delete file, or a Puffin file with deletion vectors. If none of its data files has
    moved, None is returned.

    Parameters
    ----------
    location
        The location from which the delete file is read.
    moved
        New locations of data files by old ones.

    Raises
    ------
    UnsupportedError
        The delete file's format is unknown.
    FormatError
        The delete file is damaged.
    IceexploreError
        The delete file cannot be read.
    """
    data = storage.read(location, kind="delete-file")
    moved = _moves(moved)
    kind = sniff(data)
    if kind == PUFFIN.name:
        puffin = relocated_puffin(storage, location, data, moved)
        return None if puffin is None else RelocatedDeletes(puffin)
    known = format_named(kind)
    if known is None:
        raise cannot_rewrite(location, kind or "an unknown format")
    rewrite = PathRewrite(moved.find, (FILE_PATH_ID, "file_path"), (POS_ID, "pos"))
    made = known.with_paths(storage, location, data, rewrite)
    return None if made is None else RelocatedDeletes(*made)


def relocated_puffin(storage: Storage, location: str, data: bytes, moved: Mapping[str, str]) -> bytes | None:
    """Return a Puffin file whose deletion vectors reference the new locations of data files; None if none has moved.

    All bytes before the footer stay as they are, so that the blobs' offsets in manifest entries remain valid; in the
    footer, only the references to data files change.
    """
    moved = _moves(moved)
    file = read_puffin_footer(storage, location, len(data))
    if not any(moved.find(blob.properties.get(_REFERENCED) or "") for blob in file.blobs):
        return None
    footer = json.loads(file.payload)
    for blob in footer["blobs"]:
        properties: Any = blob.get("properties") if isinstance(blob, dict) else None
        old = properties.get(_REFERENCED) if isinstance(properties, dict) else None
        new = moved.find(old) if isinstance(old, str) else None
        if new is not None:
            properties[_REFERENCED] = new
    text = json.dumps(footer, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    blobs = data[: len(data) - file.footer_size]
    # The new footer payload is not compressed, so no flags are set.
    return b"".join((blobs, PUFFIN_MAGIC, text, struct.pack("<i", len(text)), bytes(4), PUFFIN_MAGIC))


#: The fields of manifests and manifest lists that contain the location of a file, by field id. Each value is the id of
#: the field with the length of the same file: for 100 ``file_path``, it is 104 ``file_size_in_bytes``. It is None if
#: there is no such field. (Spec, "Manifest Lists" and "Manifests"; 155 and 164 are in V4 only.)
_LOCATIONS = {500: 501, 100: 104, 143: None, 155: None, 164: 166}
#: The field ``referenced_data_file``, in V4 ``referenced_file``. In the entry of a DV, it has the location of the data
#: file or the manifest to which the DV applies. The other fields have the locations of the entry's own files.
_REFERENCE = 143
#: The field with the list of an entry's column files (V4 draft). Each item is a record with the location of a column
#: file in its field 164.
_COLUMN_FILES = 158
#: The fields lower_bounds and upper_bounds, which contain paths if the entry is a position delete file.
_BOUNDS = (125, 128)
#: Table properties that would make later writers write outside the new location.
_PLACES = ("write.data.path", "write.metadata.path", "write.folder-storage.path", "write.object-storage.path")


#: The first format version in which a table's metadata may omit the location.
_OPTIONAL_LOCATION = 4


def relocated_document(document: Mapping[str, Any], location: str, moved: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata document of a table that is saved at a new location.

    Properties that give a folder for new files, such as ``write.data.path``, are left out, because that folder is not
    part of the saved table.

    Parameters
    ----------
    location
        The table's new location. It is not added to a V4 document that has no location.
    moved
        New locations of files by old ones; all other files keep their locations. Entries of ``metadata-log`` without a
        new location are left out, because their files were not written to the new location.
    """
    out = {**document, "location": location}
    if "location" not in document and document.get("format-version") == _OPTIONAL_LOCATION:
        del out["location"]
    log = document.get("metadata-log")
    out["metadata-log"] = [
        {**e, "metadata-file": moved[e["metadata-file"]]}
        for e in (log if isinstance(log, list) else ())
        if isinstance(e, dict) and isinstance(e.get("metadata-file"), str) and e["metadata-file"] in moved
    ]
    lists = ("manifest-list", "root-manifest", "manifests")
    out["snapshots"] = _relocated(document.get("snapshots") or [], lists, moved)
    for key in ("statistics", "partition-statistics"):
        if document.get(key):
            out[key] = _relocated(document[key], ("statistics-path",), moved)
    if isinstance(document.get("properties"), dict):
        out["properties"] = {k: v for k, v in document["properties"].items() if k not in _PLACES}
    return out


def _relocated(objects: JsonValue, keys: Iterable[str], moved: Mapping[str, str]) -> JsonValue:
    """Return a copy of a list of JSON objects, such as ``snapshots``, with new locations of the files that have moved.

    Parameters
    ----------
    objects
        The list. Anything in it that has an unexpected type stays as it is.
    keys
        The keys of each object whose value is a location, or a list of locations.
    moved
        New locations of files by old ones.
    """

    def new(value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [moved.get(v, v) if isinstance(v, str) else v for v in value]
        return moved.get(value, value) if isinstance(value, str) else value

    if not isinstance(objects, list):
        return objects
    return [{**o, **{k: new(o[k]) for k in keys if k in o}} if isinstance(o, dict) else o for o in objects]


def relocated_manifest(
    data: bytes,
    location: str,
    moved: Mapping[str, str],
    lengths: Mapping[str, int],
    paths: Mapping[str, tuple[str, str]] | None = None,
) -> bytes:
    """Return a manifest, manifest list or root with rewritten locations.

    The new locations may also change the sizes of files, and the bounds of the paths in position delete files: these
    are replaced, too. Everything else stays as written.

    Parameters
    ----------
    moved
        New locations by old ones.
    lengths
        The sizes in bytes of the files whose size changed, by new location.
    paths
        The smallest and the largest path in each position delete file whose paths changed, by new location. Replacing
        the paths in the old bounds is not enough: new paths may sort differently, and readers do not apply a delete
        file to data files outside its bounds.

    Raises
    ------
    FormatError
        The file cannot be read, or is neither Avro nor Parquet.
    """
    moved = _moves(moved)
    try:
        if data.startswith(Avro.magic):
            return _avro(data, location, moved, lengths, paths or {})
        if data.startswith(Parquet.magic):
            return _parquet(data, location, moved, lengths, paths or {})
    except MemoryLimitError:
        raise
    except Exception as e:  # the libraries raise arbitrary errors for damaged files
        raise FormatError(f"its locations cannot be rewritten: {type(e).__name__}: {e}", location=location) from e
    raise FormatError("neither Avro nor Parquet: its locations cannot be rewritten", location=location)


def _avro(
    data: bytes,
    location: str,
    moved: Moves,
    lengths: Mapping[str, int],
    paths: Mapping[str, tuple[str, str]],
) -> bytes:
    schema, metadata, records = read_avro(data, location, slow_work(location, len(data)))
    change = _record_change(schema, moved, lengths, paths)

    def changed() -> Iterator[Any]:
        for record in records:
            change(record)
            yield record

    return rewritten_avro(schema, metadata, changed())


def _moves(moved: Mapping[str, str]) -> Moves:
    return moved if isinstance(moved, Moves) else Moves(moved)


def _new_location(moved: Moves, number: int) -> Callable[[PlainValue], str | None]:
    """Return the function that finds the replacement for a location in the field whose id is ``number``.

    The function returns None if the location stays as it is. For most fields, it is `Moves.place`, which looks up the
    exact text of the location. For field 143, the reference from a DV to its data file, it is `Moves.find`: writers may
    write the location in this field in another way than in the entry of the data file.
    """
    if number != _REFERENCE:
        return moved.place
    return lambda name: moved.find(name) if isinstance(name, str) else None


def _record_change(
    schema: JsonValue, moved: Moves, lengths: Mapping[str, int], paths: Mapping[str, tuple[str, str]]
) -> Callable[[Any], None]:
    """Return a function that writes the new locations into one record of an Avro manifest or manifest list.

    The function modifies the record that it is called with, and the records nested in it. It also replaces the lengths
    of the files, and the bounds of the paths in position delete files.

    Parameters
    ----------
    schema
        The Avro schema of the record, as JSON.
    moved, lengths, paths
        As for `relocated_manifest`.
    """
    ids = {f.get("field-id"): f["name"] for f in schema.get("fields", ())}
    here = [(ids[i], ids.get(beside), _new_location(moved, i)) for i, beside in _LOCATIONS.items() if i in ids]
    bounds = [(ids[i], end) for end, i in enumerate(_BOUNDS) if i in ids]
    path = ids.get(100)
    inside = []
    for f in schema.get("fields", ()):
        kinds = f["type"] if isinstance(f["type"], list) else [f["type"]]
        record = next((k for k in kinds if isinstance(k, dict) and k.get("type") == "record"), None)
        if record is not None and f.get("field-id") != 102:  # the partition tuple has values, not locations
            inside.append((f["name"], _record_change(record, moved, lengths, paths)))
        items = next((k.get("items") for k in kinds if isinstance(k, dict) and k.get("type") == "array"), None)
        if f.get("field-id") == _COLUMN_FILES and isinstance(items, dict) and items.get("type") == "record":
            inside.append((f["name"], _record_change(items, moved, lengths, paths)))

    def change(record: PlainValue) -> None:
        for name, beside, find in here:
            new = find(record[name])
            if new is not None:
                record[name] = new
                if beside and record[beside] is not None:
                    record[beside] = lengths.get(new, record[beside])
        ends = None if path is None else paths.get(record[path])
        for name, end in bounds:
            if ends is not None and isinstance(record[name], list):
                record[name] = [_bound(pair, ends[end]) for pair in record[name]]
        for name, within in inside:
            for part in record[name] if isinstance(record[name], list) else [record[name]]:
                if isinstance(part, dict):
                    within(part)

    return change


def _bound(pair: PlainValue, path: str) -> PlainValue:
    if not isinstance(pair, dict) or pair.get("key") != FILE_PATH_ID:
        return pair
    return {**pair, "value": path.encode("utf-8", "surrogatepass")}


def _parquet(
    data: bytes,
    location: str,
    moved: Moves,
    lengths: Mapping[str, int],
    paths: Mapping[str, tuple[str, str]],
) -> bytes:
    file, table = read_parquet(data, location)
    struct = _columns(
        pa.StructArray.from_arrays([whole(c) for c in table.columns], fields=list(table.schema)),
        moved,
        lengths,
        paths,
    )
    columns = [pc.struct_field(struct, [i]) for i in range(struct.type.num_fields)]
    return rewritten_parquet(file, pa.Table.from_arrays(columns, schema=table.schema))


def _columns(
    array: pa.StructArray,
    moved: Moves,
    lengths: Mapping[str, int],
    paths: Mapping[str, tuple[str, str]],
) -> pa.StructArray:
    fields = list(array.type)
    ids = {field_id(f): i for i, f in enumerate(fields)}
    children = [array.field(i) for i in range(len(fields))]
    old = pa.array(list(moved), pa.string())
    new = pa.array(list(moved.values()), pa.string())
    for number, beside in _LOCATIONS.items():
        at = ids.get(number)
        if at is None or not pa.types.is_string(fields[at].type):
            continue
        found: AnyArray = new.take(pc.index_in(children[at], value_set=old))
        if moved.table is not None:
            absolute = pc.binary_join_element_wise(moved.table, children[at], "/")
            is_relative = pc.invert(pc.match_substring_regex(children[at], ABSOLUTE_LOCATION))
            joined: AnyArray = pc.if_else(is_relative, absolute, pa.scalar(None, pa.string()))
            found = pc.coalesce(found, joined)
        if number == _REFERENCE:
            respelled = _respelled(children[at].filter(found.is_null()), children[at], moved)
            children[at] = pc.coalesce(respelled, children[at])
        children[at] = pc.coalesce(found, children[at])
        size_at = None if beside is None else ids.get(beside)
        if size_at is not None:
            sizes = pa.array([lengths.get(n) for n in moved.values()], pa.int64())
            changed = sizes.take(pc.index_in(found, value_set=new)).cast(fields[size_at].type)
            kept = children[size_at]
            children[size_at] = pc.if_else(pc.and_(changed.is_valid(), kept.is_valid()), changed, kept)
    path = ids.get(100)
    for end, number in enumerate(_BOUNDS):
        at = ids.get(number)
        if paths and path is not None and at is not None and pa.types.is_map(fields[at].type):
            # Find the new bounds of each entry by its file's location, which has already been replaced above.
            row = pc.index_in(children[path], value_set=pa.array(list(paths), pa.string()))
            ends = pa.array([p[end].encode("utf-8", "surrogatepass") for p in paths.values()], pa.binary())
            children[at] = _bounds(cast(AnyMapArray, children[at]), ends.take(row))
    for i, f in enumerate(fields):
        if pa.types.is_struct(f.type) and field_id(f) != 102:
            children[i] = _columns(cast(pa.StructArray, children[i]), moved, lengths, paths)
        if field_id(f) == _COLUMN_FILES and pa.types.is_list(f.type) and pa.types.is_struct(f.type.value_type):
            lists = cast(AnyListArray, children[i])
            files = _columns(cast(pa.StructArray, lists.values), moved, lengths, paths)
            children[i] = build.list_array(offsets_of(lists), files).cast(f.type)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _respelled(names: AnyArray, among: AnyArray, moved: Moves) -> pa.StringArray:
    """Return the new locations of files whose old locations are written differently from the keys of ``moved``.

    Parameters
    ----------
    names
        The locations in ``among`` that a plain comparison with the keys did not find. Only these are looked up with
        `Moves.find`, because it is slow.
    among
        A column of locations. The result has one row for each of its rows: the new location, or null if the location is
        not in ``names`` or its file has not moved.
    moved
        New locations of files by old ones.
    """
    found = {name: moved.find(name) for name in build.to_pylist(names.unique()) if name is not None}
    row = pc.index_in(among, value_set=pa.array(list(found), pa.string()))
    return pa.array(list(found.values()), pa.string()).take(row)


def _bounds(maps: AnyMapArray, ends: Binaries) -> AnyMapArray:
    """Return a manifest's column of lower or upper bounds with new bounds for the column ``file_path``.

    Parameters
    ----------
    maps
        The bounds. Each row is for one manifest entry, and maps the id of a column to the column's bound.
    ends
        The new bound of ``file_path`` for each row, null for rows that stay as they are. A row without a bound of
        ``file_path`` gets none.
    """
    if maps.offset:
        maps = maps.take(build.array(np.arange(len(maps))))  # a slice starts within its buffers: copy it to new ones
    keys, items = maps.keys, maps.items
    offsets = maps.offsets.to_numpy(zero_copy_only=False)
    row_of = np.full(len(keys), len(maps))
    row_of[offsets[0] : offsets[-1]] = np.repeat(np.arange(len(maps)), np.diff(offsets))
    mine = ends.take(pa.array(row_of, mask=row_of == len(maps)))
    here = pc.and_(pc.equal(keys, FILE_PATH_ID), mine.is_valid())
    items = pc.if_else(here, mine.cast(items.type), items)
    return build.map_array(pa.array(offsets, pa.int32()), keys, items, type=maps.type, mask=maps.is_null())
