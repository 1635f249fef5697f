"""A file opened without its table: its kind, recognized by content, its header and its records."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.deletes import bare_vector_problem, read_deletion_vector
from iceexplore.errors import (
    FileMissingError,
    FormatError,
    IceexploreError,
    OptionError,
    Problem,
    Problems,
    UnsupportedError,
)
from iceexplore.formats import FILE_FORMATS, HEAD_BYTES, sniff
from iceexplore.inspect.loose._kinds import READERS, Content, vector_content
from iceexplore.render import card_html, card_of, card_text, shown_frame
from iceexplore.storage import Storage, canonical, check_host
from iceexplore.views import Udf, parse_udf

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LooseFile", "open_file", "open_loose_storage", "open_udf"]


#: Storage and location of the file, and the ``offset`` and ``size`` of a deletion vector in it.
_Place = tuple[Storage, str, int | None, int | None]


@dataclass(frozen=True, eq=False, repr=False)
class LooseFile:
    """One file of a table, opened without the table. Immutable; records are read on demand.

    Attributes
    ----------
    location
        Location of the file.
    kind
        ``manifest``, ``manifest list``, ``root manifest``, ``table metadata``, ``view metadata``, ``udf metadata``,
        ``puffin``, ``deletion vector``, ``parquet``, ``orc``, ``avro`` or ``json``, recognized by content, not by name.
        The exception is a V4 root that holds only data files and so looks like a leaf: its key-value metadata decides
        or, if that says nothing, its name; otherwise the kind is ``manifest``. For manifests, ``header["known by"]``
        has the evidence.
    size
        Bytes of the file, or of the deletion vector if ``offset`` and ``size`` were given.
    header
        Key-value metadata, counts, codec and dialect, or the JSON document.
    schema
        The schema in the format's own form: parsed Avro JSON, an Arrow schema, or the current schema of table metadata.
    problems
        Faults found in the file.
    """

    location: str
    kind: str
    size: int | None
    header: Mapping[str, Any]
    schema: Any
    problems: tuple[Problem, ...]
    reads: Any = field(repr=False)
    _records: Callable[[], pa.Table] = field(repr=False)
    _entries: Callable[[], pa.Table] | None = field(repr=False)
    _vectors: Callable[[], pa.Table] | None = field(repr=False)
    _place: _Place = field(repr=False)

    def __reduce__(self) -> tuple[Callable[..., LooseFile], _Place]:
        return _opened, self._place  # when unpickled, another process reads the file itself

    def arrow(self) -> pa.Table:
        """Return the records.

        These are the entries of a manifest or manifest list as written, the snapshots in table metadata, the versions
        in a view's or function's metadata, the blobs of a Puffin file, the positions of a deletion vector, the column
        chunks of a Parquet file, the columns of an ORC file, or the rows of any other Avro file.

        Raises
        ------
        IceexploreError
            The records cannot be read.
        """
        return self._records()

    def to_pandas(self) -> pd.DataFrame:
        """Return the records as a data frame; 64-bit integers stay exact even beside nulls. Same errors as `arrow`."""
        import pandas as pd

        frame: pd.DataFrame = self.arrow().to_pandas(types_mapper=pd.ArrowDtype)
        return shown_frame(frame)

    def content_entries(self) -> pa.Table:
        """Return a manifest's or manifest list's entries, with the same columns for all format versions.

        Values that an entry inherits from the manifest list are not filled in.

        Raises
        ------
        OptionError
            The file has no entries.
        """
        if self._entries is None:
            raise OptionError(f"a file of kind {self.kind!r} has no content entries: {self.location}")
        return self._entries()

    def manifest_deletion_vectors(self) -> pa.Table:
        """Decode the manifest DVs of a V4 root: the leaf of each one, the positions that it removes, and its encoding.

        `arrow` returns the vectors as written. If a vector cannot be decoded, ``fault`` says why; for a vector in a
        Puffin file, which is not read, only location and offset are given.

        Raises
        ------
        OptionError
            The file is not a V4 root.
        """
        if self._vectors is None:
            raise OptionError(f"a file of kind {self.kind!r} has no manifest deletion vectors: {self.location}")
        return self._vectors()

    def __repr__(self) -> str:
        return card_text(card_of(self))

    def _repr_html_(self) -> str:
        return card_html(card_of(self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        card = card_of(self)
        return {"text/plain": card_text(card), "text/html": card_html(card)}


def open_file(
    source: str | os.PathLike[str],
    *,
    offset: int | None = None,
    size: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> LooseFile:
    """Open one file without its table: a manifest, manifest list or root, table metadata, Puffin, Parquet, ORC or Avro.

    In V4 manifests, locations stay as written (the location they are relative to is in the table metadata), statistics
    have the file's own types, and a leaf shows every entry: manifest DVs are in the root and are not applied.

    Parameters
    ----------
    source
        A local path or a URI. No other file is read.
    offset, size
        A deletion vector in the file: ``content_offset`` and ``content_size_in_bytes`` of its manifest entry.
    properties
        Options of the file system (credentials, endpoint), as for `iceexplore.open`.

    Raises
    ------
    FileMissingError, AccessDeniedError, StorageError
        The file cannot be read.
    FormatError
        The file is not of a kind that occurs in tables. A damaged file of a known format opens with `problems`.
    OptionError
        Only one of ``offset`` and ``size`` is given, or the source is a folder.
    """
    if (offset is None) != (size is None):
        raise OptionError("offset and size must be given together: take both from the deletion vector's manifest entry")
    return _opened(*open_loose_storage(source, properties), offset, size)


def open_udf(source: str | os.PathLike[str], *, properties: Mapping[str, str] | None = None) -> Udf:
    """Open the metadata file of a SQL user-defined function: its overloads, their parameters and versions.

    The UDF spec is new, and catalogs do not yet have functions: give the location of a metadata file.

    Parameters
    ----------
    source
        A local path or a URI of the JSON file, gzipped or not.
    properties
        Options of the file system (credentials, endpoint), as for `iceexplore.open`.

    Raises
    ------
    FileMissingError, AccessDeniedError, StorageError, OptionError
        The file cannot be read, or it is a folder.
    FormatError
        It is not the metadata of a function.
    UnsupportedError
        The ``format-version`` is above 1.

    Examples
    --------
    >>> u = ix.open_udf("warehouse/db/add_one/metadata/00001-….metadata.json")
    >>> u.versions()
    """
    file = open_file(source, properties=properties)
    if file.kind != "udf metadata":
        raise FormatError(f"this is not UDF metadata, but a file of kind {file.kind!r}", location=file.location)
    return parse_udf(file.header, file.location, Problems())


def _opened(storage: Storage, location: str, offset: int | None, size: int | None) -> LooseFile:
    place = (storage, location, offset, size)
    if offset is not None and size is not None:
        bitmap = read_deletion_vector(storage, location, offset, size)
        found = bare_vector_problem(location, offset)
        return _loose(place, size, vector_content(bitmap, offset, size, [found] if found else []))
    total = storage.stat(location).size
    head = storage.read(location, kind="other", length=min(HEAD_BYTES, HEAD_BYTES if total is None else total))
    format_ = sniff(head)
    if format_ == "zip":
        raise FormatError("this is a zip file; open a table in it with ix.open(path)", location=location, offset=0)
    if format_ is None or format_ not in READERS:
        raise FormatError(
            f"not a file of an Iceberg table: it begins with {head[:8]!r}; supported are "
            f"{', '.join(f.title for f in FILE_FORMATS)}, JSON (also gzipped) and deletion vectors",
            location=location,
            offset=0,
        )
    try:
        content = READERS[format_](storage, location)
    except (FormatError, UnsupportedError) as error:
        content = _damaged(format_, error, location)
    return _loose(place, total, content)


def open_loose_storage(
    source: str | os.PathLike[str], properties: Mapping[str, str] | None = None
) -> tuple[Storage, str]:
    """Return a storage for the folder of one file, and the file's location in it.

    Raises
    ------
    OptionError
        The source is a folder, or not a path.
    FileMissingError
        The local file does not exist.
    """
    asked: Any = source
    if not isinstance(asked, (str, os.PathLike)) or not isinstance(given := os.fspath(asked), str):
        raise OptionError(f"{source!r} is not a path or URI of a file")
    if properties is not None and not isinstance(properties, Mapping):
        raise OptionError(f"properties={type(properties).__name__}: give a dictionary of names and values")
    place = canonical(check_host(os.path.expanduser(given)))
    if "://" not in place:
        # The user named this file, so a symbolic link is followed wherever it leads.
        path = Path(os.path.realpath(place))
        if path.is_dir():
            raise OptionError(f"{place} is a folder; open a table in it with ix.open(path)")
        if not path.exists():
            raise FileMissingError(f"no such file: {place}")
        place = str(path)
    folder, _, _ = place.rpartition("/")
    return Storage(folder or "/", properties=properties), place


def _loose(place: _Place, size: int | None, content: Content) -> LooseFile:
    return LooseFile(
        location=place[1],
        kind=content.kind,
        size=size,
        header=content.header,
        schema=content.schema,
        problems=content.problems,
        reads=place[0].reads,
        _records=content.records,
        _entries=content.entries,
        _vectors=content.vectors,
        _place=place,
    )


def _damaged(format_: str, error: IceexploreError, location: str) -> Content:
    problems = Problems()
    problems.add_error(error, location)

    def records() -> pa.Table:
        raise error

    kind = {"gzip": "json", "deletion-vector": "deletion vector"}.get(format_, format_.removesuffix("-encrypted"))
    return Content(kind, {}, None, tuple(problems), records)
