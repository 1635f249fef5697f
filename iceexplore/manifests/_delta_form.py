"""Delta's form of V4 manifests, converted to entries of an Iceberg table.

Delta Lake writes trees in the draft's form, with differences that matter to readers. In trees of Delta Lake 4.4, all
entries of a root are ADDED, even old ones; partition values are a map of texts by the columns' physical names; paths of
data files are encoded as URLs; counts of manifests are not maintained; spec and snapshot ids are null. Delta's main
branch (August 2026) and its RFC ``iceberg-v4-metadata.md`` have typed tuples, plain paths and counts. Both forms are
recognised by the absence of Iceberg's key-value metadata.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.delta import CURRENT_SPECS, DELTA_LOG, partition_arrow
from iceexplore.errors import IceexploreError, Problem, problem
from iceexplore.manifests.decode._file import Head, Part
from iceexplore.manifests.model._arrow import HAS_TUPLE, whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, MANIFEST_STATS, ContentType
from iceexplore.manifests.model._locations import absolute
from iceexplore.manifests.model._reader_schema import PartitionColumn
from iceexplore.metadata import Dialect, TableMetadata, Type, arrow_type
from iceexplore.storage import Storage, canonical, is_local

__all__ = ["DeltaForm", "with_columns"]

_FILES = pa.array([int(ContentType.DATA), int(ContentType.POSITION_DELETE)], pa.int32())
#: Name of the child of ``partition`` in manifests of Delta Lake 4.4: a map by physical name.
_MAP = "values"
_VECTOR_FILE = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")


@dataclass(frozen=True)
class _Field:
    """A partition field: its id and name, the physical name of its column, and the column's type."""

    field_id: int
    name: str
    physical: str
    kind: Type | None


@dataclass(frozen=True)
class DeltaForm:
    """What is needed to convert the manifests of one Delta table.

    Attributes
    ----------
    specs
        Pairs of the first version in which a partition spec was the default, and its id; oldest first.
    fields
        The fields of all specs.
    columns
        Id and type of each column by its physical name.
    """

    location: str
    specs: tuple[tuple[int, int], ...]
    fields: tuple[_Field, ...]
    columns: Mapping[str, tuple[int, Type]]

    @classmethod
    def of(cls, metadata: TableMetadata) -> DeltaForm | None:
        """Return the form of a table's manifests; None if the table is not Delta's."""
        if DELTA_LOG not in metadata.properties:
            return None
        names = dict(_physical_names(metadata.properties.get("schema.name-mapping.default", "")))
        types = {i: f.type for i, (_, f) in metadata.all_fields().items()}
        fields = [
            _Field(f.field_id, f.name, names.get(f.source_ids[0], f.name), types.get(f.source_ids[0]))
            for spec in metadata.partition_specs
            for f in spec.fields
            if f.source_ids
        ]
        pairs = (p.partition("=") for p in metadata.properties.get(CURRENT_SPECS, "").split())
        specs = [(int(a), int(b)) for a, _, b in pairs if a.isdecimal() and b.isdecimal()]
        columns = {name: (i, types[i]) for i, name in names.items() if i in types}
        return cls(metadata.location, tuple(specs), tuple(fields), columns)

    @staticmethod
    def wrote(head: Head) -> bool:
        """Return whether Delta wrote this file."""
        return head.dialect is Dialect.V4_DRAFT and "format-version" not in head.header.metadata

    def spec_ids(self, versions: AnyArray) -> AnyArray:
        """Return, for each version of the table, the id of its default partition spec."""
        first = [since for since, _ in self.specs] or [0]
        ids = [spec for _, spec in self.specs] or [0]
        at = np.searchsorted(first, np.asarray(pc.fill_null(versions, 0)), side="right") - 1
        return pa.array(np.asarray(ids)[np.maximum(at, 0)], pa.int32())

    def adapted(self, name: str, part: Part, storage: Storage, location: str) -> Part:
        """Convert one part of a manifest that Delta wrote: ``entries``, ``partition`` or ``stats``."""
        maps = any(c.field_id is None and c.name == _MAP for c in part.head.reader_schema.partition)
        head = part.head
        if maps:
            columns = tuple(PartitionColumn(f"p{f.field_id}", f.field_id, f.name, None) for f in self._distinct())
            head = replace(head, reader_schema=replace(head.reader_schema, partition=columns))
        if name == "entries":
            table, problems = self._entries(part.table, storage, location, encoded=maps)
            return Part(head, table, (*part.problems, *problems))
        if name == "partition" and maps:
            table, problems = self.tuples(part.table, location)
            return Part(head, table, (*part.problems, *problems))
        return Part(head, part.table, part.problems)

    def _distinct(self) -> Iterable[_Field]:
        return {f.field_id: f for f in self.fields}.values()

    def _entries(
        self, entries: pa.Table, storage: Storage, location: str, *, encoded: bool
    ) -> tuple[pa.Table, list[Problem]]:
        kind = entries["content_type"]
        is_file = pc.fill_null(pc.is_in(kind, _FILES), False)
        changed: dict[str, AnyArray] = {}
        problems: list[Problem] = []
        for name in ("location", "referenced_file"):
            values = whole(entries[name])
            if encoded:
                mine = ContentType.DATA if name == "location" else ContentType.POSITION_DELETE
                values = _unquoted(values, whole(pc.fill_null(pc.equal(kind, int(mine)), False)))
            values, more = absolute(values, self.location, location)
            problems += more
            changed[name] = values
        changed["location"] = self._vector_files(changed["location"], whole(kind), storage)
        numbers = whole(entries["sequence_number"])
        # The commit that added a vector is not recorded: the vector's entry inherits the snapshot id from the manifest.
        data = whole(pc.fill_null(pc.equal(kind, int(ContentType.DATA)), False))
        known = pc.if_else(data, numbers, pa.scalar(None, pa.int64()))
        changed["snapshot_id"] = known
        changed["file_sequence_number"] = pc.coalesce(whole(entries["file_sequence_number"]), numbers)
        specs = pc.coalesce(whole(entries["partition_spec_id"]), self.spec_ids(numbers))
        changed["partition_spec_id"] = pc.if_else(whole(is_file), specs, pa.scalar(None, pa.int32()))
        if encoded:  # Delta Lake 4.4 does not count rows, nor update counts when files are removed
            changed["manifest_stats"] = _unknown_counts(whole(entries["manifest_stats"]))
        return with_columns(entries, changed), problems

    def _vector_files(self, locations: AnyArray, kinds: AnyArray, storage: Storage) -> AnyArray:
        """Return the locations, with those of deletion vectors corrected.

        In Delta Lake 4.4, locations of vectors are absolute, so they are wrong once the table has been copied; and in
        Delta's own tests, file names have a prefix that the log does not mention. A vector is always in the table's own
        folder.
        """
        rows = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(kinds, int(ContentType.POSITION_DELETE)), False)))
        if not len(rows):
            return locations
        texts = locations.to_pylist()
        found = {text: self.vector_file(text, storage) for text in {texts[row] for row in rows.tolist()} if text}
        if all(text == here for text, here in found.items()):
            return locations
        for row in rows.tolist():
            texts[row] = found.get(texts[row] or "", texts[row])
        return pa.array(texts, pa.string())

    def vector_file(self, location: str, storage: Storage) -> str:
        """Return the actual location of a deletion vector's file."""
        folder, _, name = location.rpartition("/")
        inside = canonical(location).startswith(canonical(self.location) + "/")
        try:
            if inside and (not is_local(storage.folder) or storage.exists(location)):
                return location
            if not inside:  # the vector is in the table's folder, or in a sub-folder with a random name
                for tail in (name, f"{folder.rpartition('/')[2]}/{name}"):
                    if storage.exists(f"{self.location}/{tail}"):
                        return f"{self.location}/{tail}"
            plain = _VECTOR_FILE.search(name)
            if inside and plain is not None and is_local(storage.folder):
                for info in storage.list(folder):
                    if info.location.endswith(plain[0]):
                        return info.location
        except IceexploreError:
            pass  # reading the vector reports what is wrong
        return location

    def tuples(self, table: pa.Table, location: str) -> tuple[pa.Table, list[Problem]]:
        """Return typed partition columns, and problems.

        Parameters
        ----------
        table
            The map of partition values, and a mask of the rows that have a partition tuple.
        """
        column = next((n for n in table.column_names if n != HAS_TUPLE), None)
        values = None if column is None else whole(table.column(column))
        texts: dict[str, AnyArray] = {}
        for field in self.fields:
            if values is not None and pa.types.is_map(values.type):
                key = pa.scalar(field.physical, values.type.key_type)
                texts[field.physical] = pc.map_lookup(values, key, "first").cast(pa.string())
        return self.typed(texts, table.num_rows, location)

    def typed(self, texts: Mapping[str, AnyArray], rows: int, location: str) -> tuple[pa.Table, list[Problem]]:
        """Return the part ``partition``: typed columns, converted from texts that are given by physical column name."""
        arrays: list[AnyArray] = []
        names: list[str] = []
        problems: list[Problem] = []
        for field in self._distinct():
            given = [texts[f.physical] for f in self.fields if f.field_id == field.field_id and f.physical in texts]
            text = pc.coalesce(*given) if given else pa.nulls(rows, pa.string())
            made, damaged = partition_arrow(text, pa.string() if field.kind is None else arrow_type(field.kind))
            if damaged:
                what = f"{damaged} partition values of {field.name!r} do not fit the column's type."
                problems.append(
                    problem("value-undecodable", location, what, field=str(field.field_id), expected=str(field.kind))
                )
            arrays.append(made)
            names.append(f"p{field.field_id}")
        arrays.append(pa.array(np.ones(rows, dtype=np.bool_)))
        return pa.table(arrays, names=[*names, HAS_TUPLE]), problems


def with_columns(entries: pa.Table, columns: Mapping[str, AnyArray]) -> pa.Table:
    """Return the entries with some columns replaced."""
    return pa.Table.from_arrays(
        [columns.get(f.name, entries.column(f.name)) for f in ENTRY_SCHEMA], schema=ENTRY_SCHEMA
    )


def _unknown_counts(given: AnyArray) -> pa.StructArray:
    fields = [*MANIFEST_STATS]
    return pa.StructArray.from_arrays(
        [build.nulls(len(given), f.type) for f in fields], fields=fields, mask=given.is_null()
    )


def _unquoted(locations: AnyArray, mask: AnyArray) -> AnyArray:
    """Return the locations, URL-decoded where the mask is true; without a copy if nothing is encoded."""
    rows = pc.and_(mask, pc.fill_null(pc.match_substring(locations, "%"), False))
    at = build.to_pylist(pc.indices_nonzero(rows))
    if not at:
        return locations
    decoded = [urllib.parse.unquote(text or "") for text in locations.take(pa.array(at)).to_pylist()]
    return pc.replace_with_mask(locations, rows, pa.array(decoded, pa.string()))


def _physical_names(text: str) -> Iterable[tuple[int, str]]:
    """Yield id and physical name of the top-level columns of a name mapping."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return
    for item in found if isinstance(found, list) else []:
        names = item.get("names") if isinstance(item, dict) else None
        if isinstance(names, list) and names and isinstance(item.get("field-id"), int):
            yield item["field-id"], str(names[0])
