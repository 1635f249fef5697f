"""A file without its table: what it is by its content, what its header says, and its records."""

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
from iceexplore.formats import HEAD_BYTES, sniff
from iceexplore.inspect._loose_kinds import READERS, Content, vector_content
from iceexplore.render import card_html, card_of, card_text, shown_frame
from iceexplore.storage import Storage, canonical, check_host

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LooseFile", "open_file", "open_loose_storage"]


#: The file, and where a deletion vector is in it: ``offset`` and ``size``.
_Place = tuple[Storage, str, int | None, int | None]


@dataclass(frozen=True, eq=False, repr=False)
class LooseFile:
    """One file of a table, shown by itself. Immutable; records are read when they are asked for.

    Attributes
    ----------
    location
        Where it is.
    kind
        ``manifest``, ``manifest list``, ``root manifest``, ``table metadata``, ``puffin``, ``deletion vector``,
        ``parquet``, ``orc``, ``avro`` or ``json``: by its content, not by its name. A V4 root that holds data files
        alone is like a leaf; where its key-value metadata do not tell, its name does, and ``manifest`` is either where
        that does not, too. Of manifests ``header["known by"]`` says which it was.
    size
        Bytes of the file; of a deletion vector that was cut out, of the vector.
    header
        What the file says of itself: key-value metadata, counts, codec, dialect, the JSON document.
    schema
        The schema as the format has it: parsed Avro JSON, an Arrow schema, or the current schema of table metadata.
    problems
        What is wrong with it.
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
        return _opened, self._place  # another process reads the file itself

    def arrow(self) -> pa.Table:
        """The records.

        Of a manifest or manifest list its entries as written, of table metadata the snapshots, of a Puffin file the
        blobs, of a deletion vector the positions, of a Parquet file row groups × columns, of an ORC file the columns,
        of any other Avro file the rows.

        Raises
        ------
        IceexploreError
            They cannot be read.
        """
        return self._records()

    def to_pandas(self) -> pd.DataFrame:
        """The records as a data frame; 64-bit numbers stay whole beside nulls. Raises as `arrow`."""
        import pandas as pd

        frame: pd.DataFrame = self.arrow().to_pandas(types_mapper=pd.ArrowDtype)
        return shown_frame(frame)

    def content_entries(self) -> pa.Table:
        """The entries of a manifest or manifest list in the one shape of all format versions; nothing is inherited.

        Raises
        ------
        OptionError
            The file has no entries.
        """
        if self._entries is None:
            raise OptionError(f"a file of kind {self.kind!r} has no content entries: {self.location}")
        return self._entries()

    def manifest_deletion_vectors(self) -> pa.Table:
        """Decode the manifest DVs of a V4 root: which positions of which leaf each removes, and in which form it is.

        `arrow` has them as written. A vector that cannot be decoded has its ``fault``, one in a Puffin file its place.

        Raises
        ------
        OptionError
            The file is no V4 root.
        """
        if self._vectors is None:
            raise OptionError(f"a file of kind {self.kind!r} has no manifest deletion vectors: {self.location}")
        return self._vectors()

    def __repr__(self) -> str:
        return card_text(card_of(self))

    def _repr_html_(self) -> str:
        return card_html(card_of(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        card = card_of(self)
        return {"text/plain": card_text(card), "text/html": card_html(card)}


def open_file(
    source: str | os.PathLike[str],
    *,
    offset: int | None = None,
    size: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> LooseFile:
    """Show one file without its table: a manifest, manifest list or root, table metadata, Puffin, Parquet, ORC or Avro.

    Of V4 manifests locations stay as written (what they are relative to only the table knows), the types of statistics
    are the file's own, and a leaf shows every entry: what a manifest DV removes stands in the root.

    Parameters
    ----------
    source
        A local path or a URI. Nothing but this file is read.
    offset, size
        Where a deletion vector is in the file: ``content_offset`` and ``content_size_in_bytes`` of its manifest entry.
    properties
        Options of the file system (credentials, endpoint), as for `iceexplore.open`.

    Raises
    ------
    FileMissingError, AccessDeniedError, StorageError
        The file cannot be had.
    FormatError
        Nothing that a table is made of. A file whose format is plain, but which is damaged, is shown with `problems`.
    OptionError
        Only one of ``offset`` and ``size``, or a folder.
    """
    if (offset is None) != (size is None):
        raise OptionError("offset and size go together: both are in the manifest entry of a deletion vector")
    return _opened(*open_loose_storage(source, properties), offset, size)


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
        raise FormatError("this is a zip; ix.open(path) opens one with a table in it", location=location, offset=0)
    if format_ is None or format_ not in READERS:
        raise FormatError(
            f"nothing that a table is made of: it begins with {head[:8]!r}; known are Avro, Parquet, ORC, Puffin, "
            "JSON (also gzipped) and deletion vectors",
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
    """A storage that reads the folder of one file, and the file's location in it.

    Raises
    ------
    OptionError
        A folder.
    FileMissingError
        No such local file.
    """
    asked: Any = source
    if not isinstance(asked, (str, os.PathLike)) or not isinstance(given := os.fspath(asked), str):
        raise OptionError(f"{source!r} is no path or URI of a file")
    if properties is not None and not isinstance(properties, Mapping):
        raise OptionError(f"properties={type(properties).__name__}: give names and values, as a dictionary")
    place = canonical(check_host(os.path.expanduser(given)))
    if "://" not in place:
        # The user named this file: where a link leads is theirs to say.
        path = Path(os.path.realpath(place))
        if path.is_dir():
            raise OptionError(f"{place} is a folder; ix.open(path) opens a table by its folder")
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

    kind = {"gzip": "json", "parquet-encrypted": "parquet", "deletion-vector": "deletion vector"}.get(format_, format_)
    return Content(kind, {}, None, tuple(problems), records)
