"""Bundles: a table's metadata in one zip file, to send to others, who can open it with `iceexplore.open`."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from iceexplore.errors import IceexploreError, OptionError, UnsupportedError
from iceexplore.graph._root import MANIFESTS
from iceexplore.graph._state import TableState
from iceexplore.graph.redaction._document import DocumentRedactor, to_json
from iceexplore.graph.redaction._puffin import redact_puffin
from iceexplore.graph.redaction._redactor import REDACTIONS, Redaction, redactions
from iceexplore.graph.redaction._secrets import blank_secrets, is_secret_name
from iceexplore.manifests import ContentType, Redactor, redact_manifest
from iceexplore.metadata import Snapshot
from iceexplore.render import Card, CardTable, card_html, card_text
from iceexplore.storage import member_name, parse_document, place_to_write, progress, write_zip

__all__ = ["Bundle", "REDACTIONS", "blank_secrets", "is_secret_name", "write_bundle"]


@dataclass(frozen=True)
class Bundle:
    """The result of `write_bundle`: the zip, its members and their sizes, the redactions, and the omitted files.

    `missing` maps the location of each omitted file to the reason. The locations are the real ones, for the person who
    writes the bundle; they are not in the zip.
    """

    path: Path
    members: dict[str, int]
    redacted: tuple[str, ...]
    missing: dict[str, str]

    def card(self) -> Card:
        """Return the bundle as a card."""
        facts = (
            ("Files", f"{len(self.members):,}"),
            ("Bytes before compression", f"{sum(self.members.values()):,}"),
            ("Redacted", ", ".join(self.redacted) or "nothing"),
        )
        rows = tuple((loc, why) for loc, why in self.missing.items())
        tables = (CardTable("Left out", ("file", "reason"), rows),) if rows else ()
        return Card(f"Bundle {self.path}", facts=facts, tables=tables)

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def write_bundle(
    state: TableState,
    path: str | os.PathLike[str],
    *,
    redact: bool | str | Iterable[str] = ("credentials",),
    deletes: bool = False,
    overwrite: bool = False,
) -> Bundle:
    """Write the metadata of a table into a zip: every metadata file, manifest list, manifest, and statistics file.

    Parameters
    ----------
    redact
        Any of `REDACTIONS`; True for all of them, False for none. A file that cannot be redacted is left out and listed
        in `Bundle.missing`.

        ``credentials`` (the default): anything whose name or form marks it as a secret, wherever it occurs; user
        information and queries of URLs, even in locations; keys of encrypted files.
        ``values``: bounds, partition values, defaults, blobs of statistics, and the text of properties, summaries and
        documentation, except numbers and words that Iceberg defines. Equal partition values stay equal.
        ``paths``: locations, except scheme, depth and kind of file. Equal locations stay equal.
        ``names``: of columns, partition fields, branches and tags, unknown keys, and all documentation.

        ``values`` and ``names`` imply ``paths``, as paths contain both. With all four, no text and no value of the
        table is left. Ids, timestamps, counts, sizes, and whether a value is null always stay.
    deletes
        Add delete files and deletion vectors. Cannot be combined with redacting ``values``: delete files contain them.
    overwrite
        Replace an existing file.

    Raises
    ------
    OptionError
        A redaction is unknown, ``deletes`` is combined with redacting values, or no file can be written at the path,
        for example because its folder is missing.
    ExistsError
        The file exists and ``overwrite`` is false. The error is also a FileExistsError.
    StorageError, AccessDeniedError
        The file cannot be written; an existing file is left unchanged.
    """
    kinds = redactions(redact)
    target = place_to_write(path, overwrite=overwrite)
    if deletes and "values" in kinds:
        raise OptionError("delete files contain values: leave out deletes=True, or do not redact values")
    collector = _Collector(state, kinds, deletes)
    members: dict[str, int] = {}

    def counted() -> Iterator[tuple[str, bytes]]:
        for location, data in collector.files():
            name = collector.member(location)
            if name not in members:
                members[name] = len(data)
                yield name, data

    write_zip(target, counted(), overwrite=overwrite)
    return Bundle(target, members, tuple(k for k in REDACTIONS if k in kinds), collector.missing)


class _Collector:
    """Read and redact the bundle's files one at a time.

    A file is read before the files that state its length, because redaction may change that length.
    """

    def __init__(self, state: TableState, kinds: frozenset[str], deletes: bool) -> None:
        self.state = state
        self.kinds = kinds
        self.deletes = deletes
        self.missing: dict[str, str] = {}
        metadata = state.metadata
        known = {name.split(".")[-1] for name, _ in metadata.all_fields().values()}
        known |= {f.name for spec in metadata.partition_specs for f in spec.fields}
        self.redaction = Redaction(kinds, known)
        #: The lengths that manifests, delete files and vectors have after redaction, by location.
        self.lengths: dict[str, int] = {}
        self.statistics: dict[str, dict[str, int]] = {}
        self.documents = DocumentRedactor(self.redaction, self.statistics)
        self.manifests = Redactor(self.redaction, self.documents.header, metadata)

    def member(self, location: str) -> str:
        """Return the name that a file has in the zip."""
        return self.redaction.member(member_name(self.state.storage, self.state.metadata.location, location))

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield each file's location and bytes."""
        m = self.state.metadata
        done: set[str] = set()
        with progress(len(m.snapshots), "snapshots") as step:
            for snapshot in m.snapshots:
                yield from self._snapshot_files(snapshot, done)
                step()
        for file in m.statistics:
            yield from self._vectors(file.statistics_path, {}, done)
        for table in m.partition_statistics:
            yield from self._partition_statistics(table.statistics_path, done)
        yield from self._metadata_files()

    def _snapshot_files(self, snapshot: Snapshot, done: set[str]) -> Iterator[tuple[str, bytes]]:
        root = self.state.reader.root(snapshot)
        columns = (root.entries[name].to_pylist() for name in ("content_type", "location", "deletion_vector"))
        vectors = _vectors_of(root.entries, (ContentType.MANIFEST_DV,))
        for row, (kind, location, _) in enumerate(zip(*columns, strict=True)):
            if not location:
                continue
            if kind in MANIFESTS:
                if location not in done:
                    done.add(location)
                    if self.deletes:
                        yield from self._delete_files(self.state.reader.leaf(root, row).entries, done)
                    yield from self._records(location, "manifest")
            elif kind == ContentType.MANIFEST_DV and location in vectors:
                # Without these vectors, removed entries would look live.
                yield from self._vectors(location, vectors, done)
        if self.deletes:  # delete files in a V4 root itself
            yield from self._delete_files(root.entries, done)
        place = root.location
        if place and snapshot.root_location and place not in done:
            done.add(place)
            yield from self._records(place, "manifest-list")

    def _delete_files(self, entries: pa.Table, done: set[str]) -> Iterator[tuple[str, bytes]]:
        kinds = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
        vectors = _vectors_of(entries, kinds)
        for kind, location in zip(entries["content_type"].to_pylist(), entries["location"].to_pylist(), strict=True):
            if kind not in kinds or not location or location in done:
                continue
            if location in vectors:
                yield from self._vectors(location, vectors, done)
            else:
                done.add(location)
                yield from self._records(location, "delete-file")

    def _records(self, location: str, kind: str) -> Iterator[tuple[str, bytes]]:
        """Yield a redacted manifest, manifest list or delete file; if redaction fails, list it as missing instead."""
        try:
            data = written = self.state.storage.read(location, kind=kind)
            if self.kinds:
                written = redact_manifest(self.manifests, data, location, self.lengths)
        except IceexploreError as error:
            self._left_out(location, error)
            return
        if len(written) != len(data):
            self.lengths[location] = len(written)
        yield location, written

    def _vectors(
        self, location: str, regions: Mapping[str, list[tuple[int, int]]], done: set[str]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield a redacted Puffin file."""
        if location in done:
            return
        done.add(location)
        try:
            if self.kinds:
                data, lengths = redact_puffin(self.state.storage, location, self.documents, regions.get(location, ()))
                if lengths:
                    self.lengths[location], self.statistics[location] = len(data), lengths
            else:
                data = self.state.storage.read(location, kind="puffin")
        except IceexploreError as error:
            self._left_out(location, error)
            return
        yield location, data

    def _partition_statistics(self, location: str, done: set[str]) -> Iterator[tuple[str, bytes]]:
        if location in done:
            return
        done.add(location)
        if self.redaction.blanks:
            error = UnsupportedError("partition statistics consist of partition values and column names")
            self._left_out(location, error)
            return
        for place, data in self._records(location, "other"):
            self.statistics[place] = {"file-size-in-bytes": len(data)} if self.kinds else {}
            yield place, data

    def _metadata_files(self) -> Iterator[tuple[str, bytes]]:
        here = self.state.metadata_location
        for location in dict.fromkeys((here, *(e.metadata_file for e in self.state.metadata.metadata_log))):
            try:
                data = self.state.storage.read(location, kind="metadata")
                if self.kinds:
                    document = parse_document(data, location)[0]
                    plain = to_json(self.documents.table(document))
                    text = plain.encode("utf-8", "backslashreplace")  # a lone surrogate becomes a JSON escape
                    data = gzip.compress(text, mtime=0) if data[:2] == b"\x1f\x8b" else text
            except IceexploreError as error:
                self._left_out(location, error)
                continue
            yield location, data

    def _left_out(self, location: str, error: IceexploreError) -> None:
        """Record a file that is left out. The record is not in the zip: only the bundle's writer sees the location."""
        self.missing[location] = str(error)


def _vectors_of(entries: pa.Table, kinds: Iterable[int]) -> dict[str, list[tuple[int, int]]]:
    """Return, by file location, the offsets and sizes of the deletion vectors stored in files."""
    out: dict[str, list[tuple[int, int]]] = {}
    wanted = set(kinds)
    columns = (entries[name].to_pylist() for name in ("content_type", "location", "deletion_vector"))
    for kind, location, vector in zip(*columns, strict=True):
        if kind in wanted and location and vector and vector.get("offset") is not None:
            out.setdefault(location, []).append((vector["offset"], vector.get("size_in_bytes") or 0))
    return out
