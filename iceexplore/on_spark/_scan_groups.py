"""Which files of a plan plain Spark reads together, and which the workers read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iceexplore.errors import FileMissingError, IceexploreError, UnsupportedError
from iceexplore.graph import TableState
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type
from iceexplore.on_spark._scan_frames import spark_reads
from iceexplore.on_spark._scan_physical import Node, footers_of
from iceexplore.on_spark._scan_project import Projection, Unreadable, absent, identified_nodes, project
from iceexplore.on_spark._scan_values import speaks
from iceexplore.planning import ALWAYS, FileTasks, partition_columns
from iceexplore.reading import (
    DELETED,
    Output,
    PositionDeletes,
    TaskReader,
    equality_fields,
    has_ids,
    identified,
    is_made_up,
    naming_of,
    pruned,
)

__all__ = ["Group", "ScanParts", "scan_parts"]

#: Groups at most: what is over goes to the workers, so that a plan stays small.
_MOST_GROUPS = 24
#: Words of 64 rows that bitsets may take together: 32 MiB.
_MOST_WORDS = 1 << 22
#: Keys that equality deletes may have together.
_MOST_KEYS = 8_000_000
#: Different sets of equality deletes in a group: bits of a mask.
_MOST_SETS = 62

_Version = tuple[int, int]
_Words = Any
_Found = tuple[Node | None, ...]


@dataclass(eq=False)
class Group:
    """Files that are read in one go.

    Attributes
    ----------
    found
        The files' columns that are needed; None for what they lack.
    rows
        Tasks.
    columns
        How each field is made; None where these files lack it.
    words
        By task the bits of its deleted rows, 64 to a word; empty where none is deleted by position.
    equality
        By the columns they go by, rows of the plan's deletes.
    """

    found: _Found
    columns: dict[int, Projection | None]
    rows: list[int] = field(default_factory=list)
    words: dict[int, _Words] = field(default_factory=dict)
    equality: tuple[tuple[int, ...], ...] = ()


@dataclass(eq=False)
class ScanParts:
    """How the tasks of a scan are read.

    Attributes
    ----------
    fields
        What is read of the table, for the result, the filter and equality deletes.
    paths
        Columns that equality deletes go by.
    workers
        Tasks that Python workers read.
    lost
        What cannot be read: where, and why. Tasks that need it are left out.
    """

    fields: list[NestedField]
    paths: dict[int, tuple[NestedField, ...]]
    groups: list[Group]
    workers: list[int]
    lost: list[tuple[str, IceexploreError]]


def scan_parts(
    state: TableState, reader: TaskReader, outputs: Sequence[Output], version: _Version, *, native: bool = True
) -> ScanParts:
    """Sort the tasks of a scan by how they are read. Footers and deletes by position are read.

    Parameters
    ----------
    native
        False: workers read everything.

    Raises
    ------
    UnsupportedError
        A file is made up by a simulation.
    """
    tasks = reader.tasks
    entries = tasks.files.entries.select(["location", "file_format", "record_count"]).to_pydict()
    locations: list[str] = entries["location"]
    made_up = next((x for x in locations if is_made_up(x)), None)
    if made_up is not None:
        raise UnsupportedError(
            f"{made_up} is made up by a simulation (append(files=...)): it has no rows; append a data frame for data "
            "that can be read"
        )
    lost: list[tuple[str, IceexploreError]] = []
    equality: dict[int, tuple[int, ...]] = {}
    rows = []
    for row in range(len(tasks)):
        if entries["file_format"][row] == "puffin" and not reader.is_data(row):
            continue
        rows.append(row)
        numbers = reader.equality.numbers(row)
        if numbers:
            equality[row] = numbers
    used = sorted({n for numbers in equality.values() for n in numbers})
    paths = equality_fields(state, reader.equality.ids(used)) if used else {}
    fields = wanted_fields(state, outputs, tasks, paths)
    rows = _present_deletes(state, tasks, rows, equality, lost)
    chosen = [r for r in rows if native and entries["file_format"][r] == "parquet"]
    told = footers_of(state, [locations[r] for r in chosen])
    sorting = _Sorting(state, tasks, outputs, fields, version, reader)
    twice = Counter(locations)
    own = sorting.own(equality)
    workers = []
    for row, footer in zip(chosen, told, strict=True):
        if isinstance(footer, IceexploreError):
            lost.append((locations[row], footer))
            continue
        named = spark_reads(state.storage.resolve(locations[row])) and twice[locations[row]] == 1
        if footer.nodes is None or not named or not sorting.plain(row, equality):
            workers.append(row)
            continue
        try:
            words = sorting.words(row, footer.rows)
        except IceexploreError as e:
            lost.append((locations[row], e))
            continue
        sorting.add(row, footer.nodes, words, own.get(row), workers)
    done = set(chosen)
    for row in rows:
        if row not in done:
            _look(state, locations[row], row, workers, lost)
    groups = sorted(sorting.groups.values(), key=lambda g: -len(g.rows))
    for group in groups[_MOST_GROUPS:]:
        workers += group.rows
    return ScanParts(fields, paths, groups[:_MOST_GROUPS], sorted(workers), lost)


def wanted_fields(
    state: TableState, outputs: Iterable[Output], tasks: FileTasks, paths: dict[int, tuple[NestedField, ...]]
) -> list[NestedField]:
    """What is read of the files: columns, cut down to what is needed, and metadata columns."""
    from iceexplore.planning import predicates

    asked = [tasks.residuals[0]] if tasks.residuals and not all(tasks.whole.to_pylist()) else []
    wanted = {o.field.field_id for o in outputs} | {p.field_id for e in asked for p in predicates(e)} | set(paths)
    fields = pruned(state.schema.fields, wanted)
    known = {f.field_id for f in state.schema.fields}
    fields += [o.path[0] for o in outputs if o.path[0].field_id not in known]
    for path in paths.values():  # of columns that were dropped since
        if not pruned(state.schema.fields, {path[-1].field_id}):
            fields += pruned([path[0]], {path[-1].field_id})
    return list({f.field_id: f for f in fields}.values())


def _look(
    state: TableState, location: str, row: int, workers: list[int], lost: list[tuple[str, IceexploreError]]
) -> None:
    """A file that is not opened here is there, or is not."""
    try:
        state.storage.stat(location)
        workers.append(row)
    except IceexploreError as e:
        lost.append((location, e))


def _present_deletes(
    state: TableState,
    tasks: FileTasks,
    rows: list[int],
    equality: dict[int, tuple[int, ...]],
    lost: list[tuple[str, IceexploreError]],
) -> list[int]:
    """The tasks whose delete files are there; of the others the rows that are left cannot be known."""
    matched = tasks.matched
    if not len(matched):
        return rows
    names = matched.deletes.entries["location"].to_pylist()
    gone: set[int] = set()
    for number in range(len(names)):
        if names[number] is None:
            continue  # inline in a manifest
        try:
            state.storage.stat(names[number])
        except FileMissingError as e:
            gone.add(number)
            lost.append((names[number], e))
    if not gone:
        return rows
    locations = tasks.files.entries["location"]
    out = []
    for row in rows:
        needed = {*(matched.positions[row].as_py() or ()), *equality.get(row, ()), matched.vector[row].as_py()}
        if needed & gone:
            where = locations[row].as_py()
            lost.append((where, FileMissingError(f"{where}: its deletes are missing, so its rows are not known")))
            equality.pop(row, None)
        else:
            out.append(row)
    return out


class _Sorting:
    """Puts tasks into groups."""

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
        self._fields = [f for f in fields if f.field_id < _RESERVED or f.field_id in _STORED]
        self._version = version
        self._reader = reader
        self._marks = any(o.field.field_id == DELETED.field_id for o in outputs)
        self._naming = naming_of(state)
        self._known: dict[tuple[Node, ...], tuple[_Found, dict[int, Projection | None]] | None] = {}
        self._left = _MOST_WORDS
        self._identity = _identity_sources(state)
        asks = tasks.residuals[0] if tasks.residuals else ALWAYS
        self._speaks = speaks(asks)
        self._clear = not _collide(state.schema.fields)

    def plain(self, row: int, equality: dict[int, tuple[int, ...]]) -> bool:
        """Whether plain Spark may read it, as far as its entry tells."""
        if not self._clear or not (self._speaks or self._tasks.whole[row].as_py()):
            return False
        return not (self._marks and (row in equality or self._reader.positions.any(row)))

    def own(self, equality: dict[int, tuple[int, ...]]) -> dict[int, tuple[tuple[int, ...], ...] | None]:
        """The columns by which the equality deletes of each task go; None where workers should apply them."""
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

    def words(self, row: int, rows: int) -> _Words:
        """The bits of a file's deleted rows."""
        positions: PositionDeletes = self._reader.positions
        if not positions.any(row):
            return None
        parts = [p for _, p in positions.of(row)]
        bits = np.zeros((rows + 63) // 64 * 64, dtype=np.uint8)
        for part in parts:
            bits[part[part < rows]] = 1
        return np.packbits(bits, bitorder="little").view(np.int64) if bits.any() else None

    def add(
        self, row: int, nodes: tuple[Node, ...], words: _Words, keys: tuple[tuple[int, ...], ...] | None,
        workers: list[int],
    ) -> None:  # fmt: skip
        """Put a task into its group, or leave it to the workers."""
        if nodes not in self._known:
            self._known[nodes] = self._projected(nodes)
        found = self._known[nodes]
        size = 0 if words is None else len(words)
        if found is None or size > self._left or (keys is None and self._reader.equality.numbers(row)):
            workers.append(row)
            return
        self._left -= size
        key = (found[0], size > 0, keys or ())
        group = self.groups.setdefault(key, Group(*found, equality=keys or ()))
        group.rows.append(row)
        if size:
            group.words[row] = words

    def _projected(self, nodes: tuple[Node, ...]) -> tuple[_Found, dict[int, Projection | None]] | None:
        """The columns that are needed as these files have them, and how they are made."""
        fields = [n.field() for n in nodes]
        if not self._naming.given and fields and not has_ids(fields):
            return None  # reading says what is wrong with them
        mine = identified_nodes(nodes, identified(fields, self._naming))
        there = {n.number for n in _walk(mine)}
        columns: dict[int, Projection | None] = {}
        try:
            for f in self._fields:
                if any(i in self._identity and i not in there for i in _inside(f.type)):
                    return None
                columns[f.field_id] = project(mine, f, self._version)
                if columns[f.field_id] is None and f.field_id not in _STORED:
                    absent(f, self._version)
        except Unreadable:
            return None
        found = tuple(next((n for n in mine if n.number == f.field_id), None) for f in self._fields)
        return found, columns


#: Ids from here on are reserved for metadata columns (spec, "Reserved Field IDs"); of these, files may hold two.
_RESERVED = 2147483447
_STORED = frozenset((2147483540, 2147483539))


def _walk(nodes: Iterable[Node]) -> Iterator[Node]:
    for n in nodes:
        yield n
        yield from _walk(n.children)


def _inside(kind: Type) -> Iterator[int]:
    """Ids of fields inside a type."""
    match kind:
        case StructType(fields):
            inner = fields
        case ListType(element):
            inner = (element,)
        case MapType(key, value):
            inner = (key, value)
        case _:
            return
    for f in inner:
        yield f.field_id
        yield from _inside(f.type)


def _identity_sources(state: TableState) -> frozenset[int]:
    """Columns that some spec partitions by as they are."""
    return frozenset(
        c.source.field_id
        for spec in state.metadata.partition_specs
        for c in partition_columns(state.metadata, spec)
        if c.field.transform == "identity" and c.source is not None
    )


def _collide(fields: Iterable[NestedField]) -> bool:
    """Whether names of one level differ in case alone: then what they mean depends on the session."""
    fields = list(fields)
    if len({f.name.casefold() for f in fields}) < len(fields):
        return True
    inner: list[Type] = [f.type for f in fields]
    while inner:
        kind = inner.pop()
        match kind:
            case StructType(children):
                if _collide(children):
                    return True
            case ListType(element):
                inner.append(element.type)
            case MapType(key, value):
                inner += [key.type, value.type]
    return False
