"""A bundle: a table's metadata in a zip, to mail; opens again with `iceexplore.open`."""

from __future__ import annotations

import gzip
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph._root import MANIFESTS, ROOT_DIALECTS
from iceexplore.graph._secrets import BLANK, blank_secrets, is_secret_name
from iceexplore.graph._state import TableState
from iceexplore.manifests import ContentType, Manifest, Redactor
from iceexplore.metadata import Snapshot
from iceexplore.render import Card, CardTable, card_html, card_text
from iceexplore.storage import member_name, parse_document, place_to_write, progress, write_zip

__all__ = ["Bundle", "REDACTIONS", "blank_secrets", "is_secret_name", "write_bundle"]

#: What can be blanked. ``partitions`` implies ``bounds``: the bounds of an identity partition's column hold its value.
REDACTIONS = ("credentials", "bounds", "partitions")

_NOT_REDACTED = "V4 manifests cannot be redacted yet; pass redact=() to send it as is"


@dataclass(frozen=True)
class Bundle:
    """What was written: the zip, its members with their bytes, what was blanked, and what could not be read."""

    path: Path
    members: dict[str, int]
    redacted: tuple[str, ...]
    missing: dict[str, str]

    def card(self) -> Card:
        """The bundle as a card."""
        facts = (
            ("Files", f"{len(self.members):,}"),
            ("Bytes before compression", f"{sum(self.members.values()):,}"),
            ("Redacted", ", ".join(self.redacted) or "nothing"),
        )
        rows = tuple((loc, why) for loc, why in self.missing.items())
        tables = (CardTable("Left out", ("file", "why"), rows),) if rows else ()
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
        Any of `REDACTIONS`; True is all of them, False none. ``credentials`` (the default) blanks property values whose
        key or form is that of a secret; ``bounds`` blanks column bounds and partition summaries; ``partitions`` also
        blanks partition values, in paths too (equal ones stay equal). With bounds blanked, statistics files stay out:
        their sketches are made of values.
    deletes
        Add delete files and deletion vectors. They are not rewritten, so not together with ``bounds``.
    overwrite
        Replace a file that is there.

    Raises
    ------
    OptionError
        An unknown redaction, deletes together with blanked bounds, or no file can be there, as its folder is missing,
        say.
    ExistsError
        The file is there and ``overwrite`` is false. It is a FileExistsError, too.
    StorageError, AccessDeniedError
        The disk refuses it: a file that was there is untouched.
    """
    if isinstance(redact, bool):
        redact = REDACTIONS if redact else ()
    if not isinstance(redact, Iterable):
        raise OptionError(f"redact={redact!r}: True, False, or any of {', '.join(REDACTIONS)}")
    kinds = {redact} if isinstance(redact, str) else set(redact)
    unknown = kinds - set(REDACTIONS)
    if unknown:
        raise OptionError(f"redact={sorted(map(str, unknown))}: any of {', '.join(REDACTIONS)}")
    target = place_to_write(path, overwrite=overwrite)
    if "partitions" in kinds:
        kinds.add("bounds")
    if deletes and "bounds" in kinds:
        raise OptionError(
            "delete files hold values and are not rewritten: leave out deletes=True, or do not redact bounds"
        )
    collector = _Collector(state, frozenset(kinds), deletes)
    members: dict[str, int] = {}

    def counted() -> Iterator[tuple[str, bytes]]:
        for location, data in collector.files():
            name = member_name(state.storage, state.metadata.location, location)
            if name not in members:
                members[name] = len(data)
                yield name, data

    write_zip(target, counted(), overwrite=overwrite)
    return Bundle(target, members, tuple(k for k in REDACTIONS if k in kinds), collector.missing)


class _Collector:
    """Reads and blanks what goes in, one file at a time, leaves before their list (whose lengths they change)."""

    def __init__(self, state: TableState, kinds: frozenset[str], deletes: bool) -> None:
        self.state = state
        self.kinds = kinds
        self.deletes = deletes
        self.missing: dict[str, str] = {}
        self.redactor = (
            Redactor(partitions="partitions" in kinds, salt=secrets.token_bytes(16)) if "bounds" in kinds else None
        )

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Each file's location and bytes."""
        m = self.state.metadata
        yield from self._metadata_files()
        lengths: dict[str, int] = {}
        done: set[str] = set()
        with progress(len(m.snapshots), "snapshots") as step:
            for snapshot in m.snapshots:
                yield from self._snapshot_files(snapshot, lengths, done)
                step()
        if not self.redactor:
            paths = [f.statistics_path for f in m.statistics] + [f.statistics_path for f in m.partition_statistics]
            for location in paths:
                data = self._read(location, "puffin")
                if data is not None:
                    yield location, data

    def _snapshot_files(
        self, snapshot: Snapshot, lengths: dict[str, int], done: set[str]
    ) -> Iterator[tuple[str, bytes]]:
        root = self.state.reader.root(snapshot)
        columns = (root.entries[name].to_pylist() for name in ("content_type", "location", "deletion_vector"))
        for row, (kind, location, vector) in enumerate(zip(*columns, strict=True)):
            if not location:
                continue
            if kind in MANIFESTS:
                if location not in done:
                    done.add(location)
                    data = self._manifest(root, row, location)
                    if data is not None:
                        lengths[location] = len(data)
                        yield location, data
                    if self.deletes:
                        yield from self._delete_files(self.state.reader.leaf(root, row).entries, done)
            elif kind == ContentType.MANIFEST_DV and (vector or {}).get("offset") is not None and location not in done:
                done.add(location)  # positions in a manifest: no values, and without them the leaf reads wrong
                data = self._read(location, "puffin")
                if data is not None:
                    yield location, data
        if self.deletes:  # those that stand in a V4 root itself
            yield from self._delete_files(root.entries, done)
        place = snapshot.root_location
        if place and place not in done:
            done.add(place)
            data = self._root(root, place, lengths)
            if data is not None:
                yield place, data

    def _delete_files(self, entries: pa.Table, done: set[str]) -> Iterator[tuple[str, bytes]]:
        for kind, location in zip(entries["content_type"].to_pylist(), entries["location"].to_pylist(), strict=True):
            if kind in (1, 2) and location and location not in done:
                done.add(location)
                data = self._read(location, "delete-file")
                if data is not None:
                    yield location, data

    def _manifest(self, root: Manifest, row: int, location: str) -> bytes | None:
        """A manifest's bytes; one that cannot be blanked stays out."""
        if self.redactor and self.state.reader.leaf(root, row).dialect in ROOT_DIALECTS:
            self.missing[location] = _NOT_REDACTED
            return None
        return self._read(location, "manifest")

    def _root(self, root: Manifest, location: str, lengths: Mapping[str, int]) -> bytes | None:
        if self.redactor and root.dialect in ROOT_DIALECTS:
            self.missing[location] = _NOT_REDACTED
            return None
        return self._read(location, "manifest-list", lengths)

    def _metadata_files(self) -> Iterator[tuple[str, bytes]]:
        here = self.state.metadata_location
        for location in dict.fromkeys((here, *(e.metadata_file for e in self.state.metadata.metadata_log))):
            data = self._read(location, "metadata")
            if data is None:
                continue
            if not self.kinds:
                yield location, data
                continue
            try:
                document = parse_document(data, location)[0]
            except IceexploreError as e:
                self.missing[location] = f"cannot be redacted: {e}"
                continue
            plain = json.dumps(self._blanked(document), ensure_ascii=False, indent=1)
            text = plain.encode("utf-8", "backslashreplace")  # of a lone surrogate that is JSON's own escape
            yield location, gzip.compress(text, mtime=0) if data[:2] == b"\x1f\x8b" else text

    def _blanked(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if "partitions" in self.kinds:
                value = {k: v for k, v in value.items() if not k.startswith("partitions.")}
            return {k: self._blanked(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self._blanked(v, key) for v in value]
        if isinstance(value, str) and "credentials" in self.kinds:
            return BLANK if is_secret_name(key) else blank_secrets(value)
        return value

    def _read(self, location: str, kind: str, lengths: Mapping[str, int] | None = None) -> bytes | None:
        """A file's bytes, blanked where that is wanted; what cannot be blanked stays out, and so is named."""
        try:
            data = self.state.storage.read(location, kind=kind)
            if self.redactor and kind == "manifest":
                return self.redactor.manifest(data, location)
            if self.redactor and kind == "manifest-list":
                return self.redactor.manifest_list(data, location, lengths or {})
            return data
        except IceexploreError as e:
            self.missing[location] = str(e)
            return None
