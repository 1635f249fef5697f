"""Check column metrics, partition values and sort order against the rows of a file, all of which are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyScalar, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import NestedField, Schema, StructType, Type, apply_transform, type_base
from iceexplore.planning import PartitionColumn, comparable, partition_columns
from iceexplore.reading import LAST_UPDATED, ROW_ID, read_data_file, with_ancestors
from iceexplore.verification._findings import Checked, Place
from iceexplore.verification._footers import quiet
from iceexplore.verification._row_lineage import LineageCheck
from iceexplore.verification._sort_order import OrderCheck, sort_columns
from iceexplore.writing import virtual_columns

__all__ = ["check_values"]

_BATCH_ROWS = 1 << 16
_COUNTS = ("value_count", "null_count", "nan_count")
#: Types whose bounds are not values of the type, or that have no bounds.
_NO_BOUNDS = frozenset(("variant", "geometry", "geography", "unknown"))


@dataclass(frozen=True)
class Leaf:
    """A primitive column outside of lists and maps.

    Its field, the path to it from the top of the schema, and whether it and all enclosing structs are required.
    """

    field: NestedField
    name: str
    top: int
    steps: tuple[int, ...]
    required: bool

    def of(self, table: pa.Table) -> AnyArray:
        """Return the column's values; null where an enclosing struct is null."""
        values = whole(table.column(self.top))
        for step in self.steps:
            values = pc.struct_field(values, [step])
        return values


@dataclass
class _Seen:
    """The counts and bounds of those values of a column that have been read so far."""

    values: int = 0
    nulls: int = 0
    nans: int = 0
    low: AnyScalar | None = None
    high: AnyScalar | None = None
    bounded: bool = True

    def add(self, values: AnyArray) -> None:
        self.values += len(values)
        self.nulls += values.null_count
        if pa.types.is_floating(values.type):
            nan = pc.fill_null(pc.is_nan(values), False)
            self.nans += pc.sum(nan).as_py() or 0
            values = values.filter(pc.invert(nan))
        if not self.bounded or values.null_count == len(values):
            return
        found = pc.min_max(comparable(values))
        low, high = found["min"], found["max"]
        if self.low is None or pc.less(low, self.low).as_py():
            self.low = low
        if self.high is None or pc.greater(high, self.high).as_py():
            self.high = high


@dataclass
class _Partition:
    """A partition field and the value that its transform must give for every row."""

    column: PartitionColumn
    leaf: Leaf
    recorded: AnyScalar
    wrong: int = 0
    example: str = ""
    failed: bool = field(default=False)

    def add(self, values: AnyArray, first: int) -> None:
        if self.failed or self.column.source is None:
            return
        try:
            made = apply_transform(self.column.field.transform, self.column.source.type, values)
            recorded = self.recorded.cast(made.type)
        except (IceexploreError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            self.failed = True  # an unknown transform, which cannot be checked
            return
        if not recorded.is_valid:
            bad = made.is_valid()
        else:
            equal = pc.equal(made, recorded)
            if pa.types.is_floating(made.type):
                equal = pc.or_kleene(equal, pc.and_(pc.is_nan(made), pc.is_nan(recorded)))
            bad = pc.invert(pc.fill_null(equal, False))
        count = pc.sum(bad).as_py() or 0
        if count and not self.wrong:
            at = pc.index(bad, True).as_py()
            self.example = f"row {first + at} has {values[at]}, which belongs to {made[at]}"
        self.wrong += count


def check_values(state: TableState, place: Place, file: EntryBatch, ids: frozenset[int], out: Checked) -> None:
    """Read every row of a data or equality delete file and compare the values with its manifest entry.

    Bounds may be truncated: they have to include all values of the column, but need not be equal to any, unless V4's
    ``tight_bounds`` is true. Bounds of virtual columns are compared with the results of their functions. Columns inside
    lists and maps, and types without an order, are not compared, but read nevertheless, because unreadable data is a
    finding. So is a page whose checksum does not match.
    """
    entry = file.entries.slice(0, 1).to_pylist()[0]
    is_data = entry["content_type"] == 0
    columns = _partitions(state, file, entry) if is_data else []
    order = sort_columns(state.metadata, entry["sort_order_id"]) if is_data else []
    if ids:
        _check_lost(state, place, file, ids, {c.source.field_id for c in columns if c.source is not None}, out)
    wanted = {i for i in file.stats if i in ids or not ids}
    wanted |= {c.source.field_id for c in columns if c.source is not None} | {c.field.field_id for c in order}
    virtual = virtual_columns(state.metadata, state.metadata.schema()) if is_data else []
    virtual = [v for v in virtual if v.column.field.field_id in file.stats]
    wanted |= {v.source.field.field_id for v in virtual}
    now = [leaf for f in state.metadata.schema().fields for leaf in _walk(f)] if is_data else []
    required = {leaf.field.field_id for leaf in now if leaf.required}
    wanted |= required
    tops, leaves = _leaves(state, wanted)
    tops += [f for f in (ROW_ID, LAST_UPDATED) if f.field_id in ids]
    by_id = {leaf.field.field_id: leaf for leaf in leaves}
    seen = {
        i: _Seen(bounded=i in file.stats and type_base(leaf.field.type) not in _NO_BOUNDS)
        for i, leaf in by_id.items()
        if i in file.stats or i in required
    }
    made = [(v, _Seen()) for v in virtual if v.source.field.field_id in by_id]
    partitions = [
        _Partition(
            c,
            by_id[c.source.field_id],
            pc.struct_field(file.partition, [file.partition.type.get_field_index(c.key)])[0],
        )
        for c in columns
        if c.source is not None and c.source.field_id in by_id and file.partition is not None
    ]
    lineage = LineageCheck(state, entry, ids) if is_data else None
    sorted_by = OrderCheck([c for c in order if c.field.field_id in by_id]) if order else None
    first = 0
    try:
        for table in read_data_file(quiet(state), file, tops, batch_rows=_BATCH_ROWS):
            values = {i: leaf.of(table) for i, leaf in by_id.items()}
            for i, one in seen.items():
                one.add(values[i])
            for v, one in made:
                one.add(v.of(values[v.source.field.field_id]))
            for partition in partitions:
                partition.add(values[partition.leaf.field.field_id], first)
            if sorted_by is not None:
                sorted_by.add(values, first)
            if lineage is not None:
                lineage.add(table)
            first += table.num_rows
    except IceexploreError as error:
        out.fail(place, error)
        return
    if lineage is not None:
        lineage.say(place, out)
    for i, one in seen.items():
        if i in file.stats:
            _check_column(place, by_id[i], file.stats[i], one, out)
        if i in required and one.nulls:
            name = by_id[i].name
            text = f"Column {name!r} is required but null in {one.nulls:,} rows: readers may fail."
            out.say(place, "null-in-required", text, field=f"{name} ({i})", found=one.nulls, expected=0)
    for v, one in made:
        leaf = replace(by_id[v.source.field.field_id], field=v.column.field, name=v.column.field.name)
        _check_column(place, leaf, file.stats[v.column.field.field_id], one, out)
    for partition in partitions:
        _check_partition(place, partition, out)
    if sorted_by is not None and sorted_by.wrong is not None:
        text = f"The rows do not follow the sort order of the manifest entry: {sorted_by.wrong}."
        out.say(place, "sort-order-untrue", text, field="sort_order_id", found=entry["sort_order_id"])


def _partitions(state: TableState, file: EntryBatch, entry: Mapping[str, Any]) -> list[PartitionColumn]:
    spec = state.metadata.spec(entry["partition_spec_id"])
    if spec is None or file.partition is None:
        return []
    return [
        c
        for c in partition_columns(state.metadata, spec)
        if c.source is not None and not c.transform.is_void and file.partition.type.get_field_index(c.key) >= 0
    ]


def _leaves(state: TableState, wanted: set[int]) -> tuple[list[NestedField], list[Leaf]]:
    """Return all top-level columns that can be read, and the wanted leaves among them."""
    fields = list(state.metadata.schema().fields)
    known = {f.field_id for _, f in state.metadata.schema().walk()}
    newest = sorted(state.metadata.schemas, key=lambda s: -s.schema_id)
    for number in sorted(wanted - known):  # dropped columns may still be sources of partition fields
        paths = (with_ancestors(schema.fields, number) for schema in newest)
        path = next((p for p in paths if p is not None), None)
        if path is not None:
            fields = _with(fields, path)
    tops: list[NestedField] = []
    leaves: list[Leaf] = []
    for top in fields:
        mine = [leaf for leaf in _walk(top, len(tops)) if leaf.field.field_id in wanted]
        # Leave out columns with variants: this library cannot read shredded ones, which is not a fault of the file.
        if mine or not any(type_base(f.type) == "variant" for _, f in Schema(0, (top,)).walk()):
            tops.append(top)
            leaves += mine
    return tops, leaves


def _with(fields: Sequence[NestedField], path: Sequence[NestedField]) -> list[NestedField]:
    """Return the fields, with the field at the end of a path added if they lack it."""
    first, *rest = path
    mine = next((f for f in fields if f.field_id == first.field_id), None)
    if mine is None or not isinstance(mine.type, StructType):
        inner = StructType(tuple(_with([], rest))) if rest else first.type
        return [*fields, replace(first, type=inner)]
    inside = replace(mine, type=StructType(tuple(_with(mine.type.fields, rest))))
    return [inside if f is mine else f for f in fields]


def _walk(
    found: NestedField, top: int = 0, around: str = "", steps: tuple[int, ...] = (), required: bool = True
) -> Iterator[Leaf]:
    name, required = around + found.name, required and found.required
    if isinstance(found.type, StructType):
        for i, child in enumerate(found.type.fields):
            yield from _walk(child, top, f"{name}.", (*steps, i), required)
    elif _is_primitive(found.type):
        yield Leaf(found, name, top, steps, required)


def _is_primitive(kind: Type) -> bool:
    return type_base(kind) not in ("list", "map", "struct", "variant", "unknown")


def _check_column(place: Place, leaf: Leaf, stats: pa.StructArray, seen: _Seen, out: Checked) -> None:
    recorded: dict[str, AnyScalar] = {f.name: pc.struct_field(stats, [i])[0] for i, f in enumerate(stats.type)}
    where = f"{leaf.name} ({leaf.field.field_id})"
    _check_counts(place, leaf, {name: recorded[name].as_py() for name in _COUNTS}, seen, out)
    if seen.low is None or seen.high is None or not seen.bounded:
        return
    tight = recorded["tight_bounds"].as_py() is True
    sides: tuple[tuple[str, AnyScalar, Any], ...] = (("lower", seen.low, pc.greater), ("upper", seen.high, pc.less))
    for name, real, outside in sides:
        bound = recorded[name]
        if not bound.is_valid:
            continue
        held: AnyScalar = comparable(_one(bound))[0]
        try:
            wrong = outside(held, real).as_py() or (tight and not pc.equal(held, real).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue  # the bound's type is not the column's current one, which is a separate finding
        if wrong:
            edge = "smallest" if name == "lower" else "greatest"
            text = f"The {name} bound of column {leaf.name!r} does not fit its {edge} value: pruning loses rows."
            out.say(
                place, "bounds-untrue", text, field=f"{name}_bound of {where}",
                found=_shown(bound), expected=_shown(_back(real, bound.type)),
            )  # fmt: skip


def _check_lost(
    state: TableState, place: Place, file: EntryBatch, ids: frozenset[int], partition: set[int], out: Checked
) -> None:
    """Report columns that have metrics for non-null values, but are neither in the file nor in the partition."""
    for leaf in _leaves(state, file.stats.keys() - ids - partition)[1]:
        stats = file.stats[leaf.field.field_id]
        recorded = {f.name: pc.struct_field(stats, [i])[0] for i, f in enumerate(stats.type)}
        values, nulls = recorded["value_count"].as_py(), recorded["null_count"].as_py()
        if recorded["lower"].is_valid or recorded["upper"].is_valid or (nulls is not None and (values or 0) > nulls):
            text = (
                f"The entry's metrics count values of column {leaf.name!r}, but the file lacks the column: it reads as "
                "null."
            )
            where = f"value_count of {leaf.name} ({leaf.field.field_id})"
            out.say(place, "count-mismatch", text, field=where, found=values, expected=0)


def _check_counts(place: Place, leaf: Leaf, recorded: Mapping[str, int | None], seen: _Seen, out: Checked) -> None:
    where = f"{leaf.name} ({leaf.field.field_id})"
    real = {"value_count": seen.values, "null_count": seen.nulls, "nan_count": seen.nans}
    values, nulls = recorded["value_count"], recorded["null_count"]
    if leaf.steps and values is not None and nulls is not None:
        # Some writers count only values within non-null structs, others also the rows of null structs; accept both.
        inside = values - nulls == seen.values - seen.nulls and nulls <= seen.nulls
        real |= {"value_count": values, "null_count": nulls if inside else seen.nulls}
    elif leaf.steps:
        real |= {"value_count": values or 0, "null_count": nulls or 0}
    for name, count in real.items():
        if recorded[name] is not None and recorded[name] != count:
            text = f"The {name.replace('_', ' ')} of column {leaf.name!r} differs from the file."
            out.say(place, "count-mismatch", text, field=f"{name} of {where}", found=recorded[name], expected=count)


def _one(value: AnyScalar) -> AnyArray:
    return build.repeat(value, 1)


def _back(value: AnyScalar, kind: pa.DataType) -> AnyScalar:
    """Undo the conversion by `comparable`: cast a value to its original type, or return it as it is if it cannot be."""
    try:
        return _one(value).cast(kind)[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return value


def _shown(value: AnyScalar) -> str:
    if pa.types.is_binary(value.type) or pa.types.is_fixed_size_binary(value.type):
        return "0x" + bytes(value.cast(pa.binary()).as_py()).hex()
    try:
        return str(value.cast(pa.string()).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return str(value)


def _check_partition(place: Place, found: _Partition, out: Checked) -> None:
    if not found.wrong:
        return
    made_of = f"{found.column.field.transform}({found.leaf.name})"
    text = (
        f"{found.wrong:,} rows do not belong to the entry's partition {found.column.field.name!r} = {made_of}: "
        f"{found.example}. Readers that prune by partition lose them."
    )
    recorded = _shown(found.recorded) if found.recorded.is_valid else "null"
    out.say(place, "partition-untrue", text, field=f"partition.{found.column.field.name}", found=recorded)
