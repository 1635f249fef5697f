"""Decide which files of a plan plain Spark reads together, and which Python workers read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FileMissingError, IceexploreError, UnsupportedError
from iceexplore.expressions import ALWAYS
from iceexplore.formats import PUFFIN, Parquet, format_named
from iceexplore.graph import TableState
from iceexplore.manifests import whole
from iceexplore.metadata import NestedField
from iceexplore.on_spark.scans._fields import (
    RESERVED,
    STORED,
    identity_sources,
    inside,
    names_collide,
    walked,
    wanted_fields,
)
from iceexplore.on_spark.scans._file_schemas import Footer, Footers, footers_of
from iceexplore.on_spark.scans._literals import speaks
from iceexplore.on_spark.scans._lookups import spark_reads
from iceexplore.on_spark.scans._nodes import Node
from iceexplore.on_spark.scans._projection import Projection, Unreadable, absent, identified_nodes, project
from iceexplore.planning import FileTasks
from iceexplore.reading import (
    DELETED,
    POS,
    ROW_ID,
    Output,
    PositionDeletes,
    TaskReader,
    equality_fields,
    has_ids,
    identified,
    is_synthetic,
    naming_of,
)
from iceexplore.storage import is_local

__all__ = ["Group", "MOST_LINKS", "PLACED", "ScanParts", "scan_parts"]

#: Maximum number of groups, which keeps the plan small; workers read the files of all others.
_MOST_GROUPS = 24
#: Maximum number of 64-bit words in all bitsets together (32 MiB).
_MOST_WORDS = 1 << 22
#: Maximum number of keys of all equality deletes together.
_MOST_KEYS = 8_000_000
#: Maximum number of files in a group that needs constants per file: each Spark task receives those of all files.
MOST_LINKS = 2_000
#: Columns that are computed from a row's position in its file.
PLACED = frozenset((POS.field_id, ROW_ID.field_id))
_FREE = frozenset((POS.field_id, DELETED.field_id))
#: Maximum number of distinct sets of equality deletes in a group, which are the bits of a mask.
_MOST_SETS = 62
#: Minimum number of threads for slow remote stores. For local files, more threads would only take more memory.
_THREADS = 8

_Version = tuple[int, int]
_Words = Any
_Found = tuple[Node | None, ...]


@dataclass(eq=False)
class Group:
    """Files that one Spark read covers.

    Attributes
    ----------
    found
        The needed columns of the files; None for those that they lack.
    rows
        The indexes of the tasks.
    columns
        The projection of each field; None if these files lack it.
    words
        The bits of the deleted rows by task, 64 to a word; empty if no row is deleted by position.
    equality
        The field ids that the equality deletes compare, one tuple per combination.
    format
        The name of the files' format, one that plain Spark reads.
    """

    found: _Found
    columns: dict[int, Projection | None]
    rows: list[int] = field(default_factory=list)
    words: dict[int, _Words] = field(default_factory=dict)
    equality: tuple[tuple[int, ...], ...] = ()
    format: str = Parquet.name


@dataclass(eq=False)
class ScanParts:
    """The tasks of a scan, sorted by the way in which they are read.

    Attributes
    ----------
    fields
        The fields to read, for the result, the filter and equality deletes.
    paths
        The columns that equality deletes compare, as paths by field id.
    workers
        The tasks that Python workers read.
    lost
        The locations that cannot be read, with the errors. Tasks that need them are left out.
    unnamed
        The tasks whose files have no field ids according to the footers that were read, if the table has no name
        mapping.
    """

    fields: list[NestedField]
    paths: dict[int, tuple[NestedField, ...]]
    groups: list[Group]
    workers: list[int]
    lost: list[tuple[str, IceexploreError]]
    unnamed: list[int]


def scan_parts(
    state: TableState,
    reader: TaskReader,
    outputs: Sequence[Output],
    version: _Version,
    *,
    native: bool = True,
    footers: Footers = footers_of,
    links: int = MOST_LINKS,
) -> ScanParts:
    """Sort the tasks of a scan by the way in which they are read. This reads footers and position deletes.

    Parameters
    ----------
    native
        Whether plain Spark may read files; if False, workers read everything.
    footers
        The function that reads the files' footers.
    links
        The maximum number of files in a group that needs constants per file.

    Raises
    ------
    UnsupportedError
        A file is synthetic, added by a simulation.
    """
    tasks = reader.tasks
    entries = tasks.files.entries.select(["location", "file_format", "file_size_in_bytes"]).to_pydict()
    locations: list[str] = entries["location"]
    synthetic = next((x for x in locations if is_synthetic(x)), None)
    if synthetic is not None:
        raise UnsupportedError(
            f"{synthetic} is a synthetic file of a simulation (append(files=...)) and has no rows; append a DataFrame "
            "for data that can be read"
        )
    lost: list[tuple[str, IceexploreError]] = []
    rows = [r for r in range(len(tasks)) if entries["file_format"][r] != PUFFIN.name or reader.is_data(r)]
    some = np.flatnonzero(np.asarray(pc.list_value_length(tasks.matched.equality)) > 0).tolist()
    equality = {row: reader.equality.numbers(row) for row in some}
    used = sorted({n for numbers in equality.values() for n in numbers})
    paths = equality_fields(state, reader.equality.ids(used)) if used else {}
    fields = wanted_fields(state, outputs, tasks, paths)
    native = native and len({f.field_id for f in fields}) == len(fields)
    rows = _present_deletes(state, tasks, rows, equality, lost)
    sorting = _Sorting(state, tasks, outputs, fields, version, reader)
    formats = entries["file_format"]
    updated = _column_files(tasks, {f.field_id for f in fields})
    chosen = [r for r in rows if native and r not in updated and sorting.may_read(r, formats[r])]
    sizes = entries["file_size_in_bytes"]
    read_footers = footers(state, [locations[r] for r in chosen], [sizes[r] for r in chosen])
    twice = Counter(locations)
    own = sorting.own(equality)
    workers = []
    words = sorting.words({r: f.rows for r, f in zip(chosen, read_footers, strict=True) if isinstance(f, Footer)})
    for row, footer in zip(chosen, read_footers, strict=True):
        if isinstance(footer, IceexploreError):
            lost.append((locations[row], footer))
            continue
        named = spark_reads(state.storage.resolve(locations[row])) and twice[locations[row]] == 1
        if footer.nodes is None or not named or not sorting.plain(row, equality, footer):
            workers.append(row)
            continue
        bits = words.get(row)
        if isinstance(bits, IceexploreError):
            lost.append((locations[row], bits))
        else:
            sorting.add(row, footer, bits, own.get(row), workers)
    done = set(chosen)
    for row in rows:
        if row not in done:
            _look(state, (locations[row], *updated.get(row, ())), row, workers, lost)
    constants = any(o.field.field_id >= RESERVED and o.field.field_id not in _FREE for o in outputs)
    groups = []
    for group in sorting.groups.values():
        linked = constants or group.words or group.equality or sorting.given(group)
        groups += _cut(group, links) if linked else [group]
    groups.sort(key=lambda g: -len(g.rows))
    for group in groups[_MOST_GROUPS:]:
        workers += group.rows
    return ScanParts(fields, paths, groups[:_MOST_GROUPS], sorted(workers), lost, sorting.unnamed)


def _cut(group: Group, most: int) -> list[Group]:
    """Split a group into several of at most ``most`` files."""
    some = [group.rows[at : at + most] for at in range(0, len(group.rows), most)]
    return [replace(group, rows=rows, words={r: group.words[r] for r in rows if r in group.words}) for rows in some]


def _column_files(tasks: FileTasks, field_ids: Collection[int]) -> dict[int, list[str]]:
    """Return the tasks whose data files have column files (V4 draft), and the locations of those that are needed.

    Needed are the column files with columns in ``field_ids``. Spark's readers take all columns of a row from one file,
    so workers read these tasks and combine the columns by position.
    """
    held = whole(tasks.files.entries["column_files"])
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.list_value_length(held), 0)) > 0)
    lists = build.to_pylist(held.take(build.array(rows)))
    return {
        int(row): [one["location"] for one in files if not set(one["field_ids"] or ()).isdisjoint(field_ids)]
        for row, files in zip(rows, lists, strict=True)
    }


def _look(
    state: TableState, locations: Sequence[str], row: int, workers: list[int], lost: list[tuple[str, IceexploreError]]
) -> None:
    """Leave a task to the workers without reading footers, or add it to ``lost`` if one of its files is missing."""
    for location in locations:
        try:
            state.storage.stat(location)
        except IceexploreError as e:
            if location != locations[0]:
                e = FileMissingError(f"{locations[0]}: its column file {location} cannot be read ({e})")
            lost.append((locations[0], e))
            return
    workers.append(row)


def _present_deletes(
    state: TableState,
    tasks: FileTasks,
    rows: list[int],
    equality: dict[int, tuple[int, ...]],
    lost: list[tuple[str, IceexploreError]],
) -> list[int]:
    """Return the tasks whose delete files exist; the live rows of the others are unknown, so they become ``lost``."""
    matched = tasks.matched
    if not len(matched):
        return rows
    names = matched.deletes.entries["location"].to_pylist()

    def fault(name: str) -> FileMissingError | None:
        try:
            state.storage.stat(name)
        except FileMissingError as e:
            return e
        return None

    # An inline vector has no location, and several vectors may share a Puffin file.
    files = sorted({name for name in names if name is not None})
    with ThreadPoolExecutor(max(_THREADS, state.storage.readers), "iceexplore-deletes") as pool:
        faults = {name: e for name, e in zip(files, pool.map(fault, files), strict=True) if e is not None}
    lost += faults.items()
    gone = {i for i, name in enumerate(names) if name in faults}
    if not gone:
        return rows
    locations = tasks.files.entries["location"]
    out = []
    for row in rows:
        needed = {*(matched.positions[row].as_py() or ()), *equality.get(row, ()), matched.vector[row].as_py()}
        if needed & gone:
            where = locations[row].as_py()
            lost.append((where, FileMissingError(f"{where}: its delete files are missing, so live rows are unknown")))
            equality.pop(row, None)
        else:
            out.append(row)
    return out


class _Sorting:
    """A builder that sorts tasks into groups."""

    def __init__(
        self,
        state: TableState,
        tasks: FileTasks,
        outputs: Sequence[Output],
        fields: list[NestedField],
        version: _Version,
        reader: TaskReader,
    ) -> None:
        self.groups: dict[Any, Group] = {}
        self._state = state
        self._tasks = tasks
        self._fields = [f for f in fields if f.field_id < RESERVED or f.field_id in STORED]
        self._version = version
        self._reader = reader
        self._places = any(f.field_id in PLACED for f in fields)
        self._marks = any(o.field.field_id == DELETED.field_id for o in outputs)
        self._naming = naming_of(state)
        self._known: dict[Any, tuple[_Found, dict[int, Projection | None]] | None] = {}
        self._identity = identity_sources(state)
        asks = tasks.residuals[0] if tasks.residuals else ALWAYS
        self._speaks = speaks(asks)
        self._clear = not names_collide(state.schema.fields)
        self._nameless: set[Any] = set()
        self.unnamed: list[int] = []

    def given(self, group: Group) -> bool:
        """Return whether an identity partition field gives the values of any column that a group's files lack."""
        return any(p is None and number in self._identity for number, p in group.columns.items())

    def placeless(self, row: int) -> bool:
        """Return whether the positions of rows in the file are not needed."""
        return not self._places and not self._reader.positions.any(row)

    def may_read(self, row: int, name: str | None) -> bool:
        """Return whether plain Spark reads files of this format, with the positions of rows where they are needed."""
        known = format_named(name)
        return known is not None and known.spark_source is not None and (known.spark_positions or self.placeless(row))

    def plain(self, row: int, equality: dict[int, tuple[int, ...]], footer: Footer) -> bool:
        """Return whether plain Spark may read a task's file, apart from the file's columns, which are checked later."""
        if not self._clear or not (self._speaks or self._tasks.whole[row].as_py()):
            return False
        if not self.may_read(row, footer.format):
            return False
        return not (self._marks and (row in equality or self._reader.positions.any(row)))

    def own(self, equality: dict[int, tuple[int, ...]]) -> dict[int, tuple[tuple[int, ...], ...] | None]:
        """Return the field ids that each task's equality deletes compare; None if workers have to apply them."""
        deletes = self._tasks.matched.deletes.entries
        out: dict[int, tuple[tuple[int, ...], ...] | None] = {}
        if not equality:
            return out
        counts = deletes["record_count"].to_pylist()
        used = {n for numbers in equality.values() for n in numbers}
        sets = Counter(equality.values())
        most = {s for s, _ in sets.most_common(_MOST_SETS)}
        fits = sum(counts[n] or 0 for n in used) <= _MOST_KEYS
        ids = deletes["equality_ids"].to_pylist()
        for row, numbers in equality.items():
            keys = tuple(sorted({tuple(sorted(set(ids[n] or ()))) for n in numbers}))
            out[row] = keys if fits and numbers in most and all(keys) else None
        return out

    def words(self, rows: Mapping[int, int]) -> dict[int, _Words | IceexploreError]:
        """Return the bits of the deleted rows of files, 64 rows to a word, up to `_MOST_WORDS` words in total.

        Parameters
        ----------
        rows
            The row count of each task's file.
        """
        positions: PositionDeletes = self._reader.positions
        chosen, left = [], _MOST_WORDS
        for row, count in rows.items():
            size = (count + 63) // 64
            if positions.any(row) and size <= left:
                left -= size
                chosen.append(row)

        def bits(row: int) -> _Words | IceexploreError:
            count = rows[row]
            marks = np.zeros((count + 63) // 64 * 64, dtype=np.bool_)
            try:
                for _, part in positions.of(row):
                    part.mark(marks[:count])
            except IceexploreError as e:
                return e
            return np.packbits(marks, bitorder="little").view(np.int64)

        if is_local(self._state.storage.resolve(self._state.metadata_location)):
            # Decoding takes most of the time; threads would not speed it up, but need more memory.
            return {row: bits(row) for row in chosen}
        with ThreadPoolExecutor(max(_THREADS, self._state.storage.readers), "iceexplore-deletes") as pool:
            return dict(zip(chosen, pool.map(bits, chosen), strict=True))

    def add(
        self, row: int, footer: Footer, words: _Words, keys: tuple[tuple[int, ...], ...] | None, workers: list[int]
    ) -> None:
        """Add a task to its group, or leave it to the workers."""
        if footer.nodes not in self._known:
            self._known[footer.nodes] = self._projected(footer.nodes or ())
            if self._without_ids(footer.nodes or ()):
                self._nameless.add(footer.nodes)
        found = self._known[footer.nodes]
        if footer.nodes in self._nameless:
            self.unnamed.append(row)
        unmarked = words is None and self._reader.positions.any(row)
        if found is None or unmarked or (keys is None and self._reader.equality.numbers(row)):
            workers.append(row)
            return
        marked = words is not None and bool(words.any())
        key = (found[0], marked, keys or (), footer.format)
        group = self.groups.setdefault(key, Group(*found, equality=keys or (), format=footer.format))
        group.rows.append(row)
        if marked:
            group.words[row] = words

    def _without_ids(self, nodes: tuple[Node, ...]) -> bool:
        """Return whether columns can be identified only by name, which is left to the workers."""
        return not self._naming.given and bool(nodes) and not has_ids([n.field() for n in nodes])

    def _projected(self, nodes: tuple[Node, ...]) -> tuple[_Found, dict[int, Projection | None]] | None:
        """Return the needed columns of these files and their projections; None if plain Spark cannot read them."""
        if self._without_ids(nodes):
            return None
        fields = [n.field() for n in nodes]
        mine = identified_nodes(nodes, identified(fields, self._naming))
        there = {n.number for n in walked(mine)}
        own = {n.number for n in walked(nodes)}
        if any(i in self._identity and i in there - own for f in self._fields for i in (f.field_id, *inside(f.type))):
            return None  # found by the name mapping, but a partition value takes precedence: workers decide per file
        columns: dict[int, Projection | None] = {}
        try:
            for f in self._fields:
                if any(i in self._identity and i not in there for i in inside(f.type)):
                    return None
                columns[f.field_id] = project(mine, f, self._version)
                if columns[f.field_id] is None and f.field_id not in STORED:
                    absent(f, self._version)
        except Unreadable:
            return None
        found = tuple(next((n for n in mine if n.number == f.field_id), None) for f in self._fields)
        return found, columns
