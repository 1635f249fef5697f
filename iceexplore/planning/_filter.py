"""Filters: text or PyIceberg expressions, bound to a table's columns, judged from partition tuples and statistics."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import PartitionSpec, Schema, StructType, TableMetadata, is_known_transform, type_base
from iceexplore.planning._evidence import Evidence, Predicate, comparable, may_match, must_match, satisfied
from iceexplore.planning._partition_values import nearest, partition_columns, tuples_of

__all__ = ["Filter", "make_filter", "row_evidence"]

_OPS = {
    "BoundEqualTo": "=", "BoundNotEqualTo": "!=", "BoundLessThan": "<", "BoundLessThanOrEqual": "<=",
    "BoundGreaterThan": ">", "BoundGreaterThanOrEqual": ">=", "BoundIn": "in", "BoundNotIn": "not-in",
    "BoundIsNull": "is-null", "BoundNotNull": "not-null", "BoundIsNaN": "is-nan", "BoundNotNaN": "not-nan",
    "BoundStartsWith": "starts-with", "BoundNotStartsWith": "not-starts-with",
}  # fmt: skip
#: What PyIceberg has no type for: such columns cannot stand in a filter.
_FOREIGN = frozenset(("geography", "geometry", "unknown", "variant"))


@dataclass(frozen=True)
class Filter:
    """A condition on rows: a bound expression, and a partial partition tuple, either of which may be missing.

    Attributes
    ----------
    text
        For people.
    expression
        PyIceberg's, bound to the schema, without ``not``; None matches every row.
    partition
        By partition field name; fields that are not named match anything.
    """

    text: str
    expression: Any = None
    partition: Mapping[str, Any] = field(default_factory=dict)

    @property
    def field_ids(self) -> list[int]:
        """The columns that the expression names."""
        return sorted({p.term.ref().field.field_id for p in _predicates(self.expression)})

    def judge(self, batch: EntryBatch, metadata: TableMetadata) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """Per file: whether some row may match, and whether every row surely does.

        Parameters
        ----------
        batch
            Data files with their tuples, and the statistics of at least `field_ids`.
        """
        n = len(batch)
        may, must = pa.repeat(pa.scalar(False), n), pa.repeat(pa.scalar(False), n)
        specs = batch.entries["partition_spec_id"]
        for number in pc.unique(specs).to_pylist():
            mine = pc.fill_null(pc.equal(specs, number), False) if number is not None else specs.is_null()
            mine = mine.combine_chunks() if isinstance(mine, pa.ChunkedArray) else mine
            spec = None if number is None else metadata.spec(number)
            found = self._judge_spec(batch, metadata, spec)
            may, must = pc.if_else(mine, found[0], may), pc.if_else(mine, found[1], must)
        rows = batch.entries["record_count"]
        rows = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        may = pc.and_(may, pc.fill_null(pc.not_equal(rows, 0), True))  # a file without rows has none that match
        return may, pc.and_(may, must)

    def _judge_spec(
        self, batch: EntryBatch, metadata: TableMetadata, spec: PartitionSpec | None
    ) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        n = len(batch)

        def value(key: str) -> pa.Array | None:
            at = -1 if batch.partition is None else batch.partition.type.get_field_index(key)
            return None if at < 0 else pc.struct_field(batch.partition, [at])

        def tuple_may(p: Predicate, key: str) -> pa.BooleanArray | None:
            values = value(key)
            return None if values is None else satisfied(p, values)

        def stats(p: Predicate) -> Evidence | None:
            found = batch.stats.get(p.field_id)
            return None if found is None else Evidence.of(found)

        may = self._walk(n, metadata, spec, "project", tuple_may, stats, may_match)
        must = self._walk(n, metadata, spec, "strict_project", tuple_may, stats, must_match)
        if self.partition:
            same, known = self._same_partition(n, metadata, spec, value)
            may = pc.and_(may, pc.or_(same, pc.invert(known)))
            must = pc.and_(must, pc.and_(same, known))
        return may, must

    def may_leaves(
        self, n: int, metadata: TableMetadata, spec: PartitionSpec | None, by_field: Any, by_column: Any
    ) -> Any:
        """Which manifests of a spec may hold a file with a matching row, from what their root says of them.

        Parameters
        ----------
        by_field, by_column
            `Evidence` by partition field id as text, and by column id; None where there is none.
        """

        def summary(p: Predicate, key: str) -> pa.BooleanArray | None:
            found = by_field(key)
            return None if found is None else may_match(p, found)

        may = self._walk(n, metadata, spec, "project", summary, lambda p: by_column(p.field_id), may_match)
        for name, given in self.partition.items():
            columns = [] if spec is None else partition_columns(metadata, spec)
            for column in (c for c in columns if c.field.name == name):
                found = by_field(column.key)
                if found is not None:
                    wanted = _tuple_value(column, given)
                    p = Predicate(0, "is-null") if wanted is None else Predicate(0, "=", (wanted,))
                    if not isinstance(wanted, float) or wanted == wanted:
                        may = pc.and_(may, may_match(p, found))
        return may

    def _same_partition(
        self, n: int, metadata: TableMetadata, spec: PartitionSpec | None, value: Callable[[str], pa.Array | None]
    ) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        same, known = pa.repeat(pa.scalar(True), n), pa.repeat(pa.scalar(True), n)
        columns = {} if spec is None else {c.field.name: c for c in partition_columns(metadata, spec)}
        for name, given in self.partition.items():
            column = columns.get(name)
            values = None if column is None else value(column.key)
            if column is None or values is None:
                known = pa.repeat(pa.scalar(False), n)  # files of another spec: nobody knows without reading them
                continue
            wanted = _tuple_value(column, given)
            if wanted is None:
                hit = satisfied(Predicate(0, "is-null"), values)
            elif isinstance(wanted, float) and wanted != wanted:
                hit = satisfied(Predicate(0, "is-nan"), values)
            else:
                hit = satisfied(Predicate(0, "=", (wanted,)), values)
            same = pc.and_(same, hit)
        return same, known

    def _walk(
        self,
        n: int,
        metadata: TableMetadata,
        spec: PartitionSpec | None,
        how: str,
        on_tuple: Any,
        stats: Any,
        judge: Any,
    ) -> pa.BooleanArray:
        """And, or and predicates; of a predicate the tuple and the statistics each say what they can."""
        inclusive = how == "project"

        def one(bound: Any) -> pa.BooleanArray:
            p = _predicate(bound)
            evidence = stats(p)
            said = [] if evidence is None else [judge(p, evidence)]
            for key, projected in _projections(bound, metadata, spec, how):
                mask = (
                    on_tuple(projected, key) if isinstance(projected, Predicate) else pa.repeat(pa.scalar(projected), n)
                )
                if mask is not None:
                    said.append(mask)
            out = pa.repeat(pa.scalar(inclusive), n)
            for mask in said:
                out = pc.and_(out, mask) if inclusive else pc.or_(out, mask)
            return out

        def visit(node: Any) -> pa.BooleanArray:
            match type(node).__name__:
                case "AlwaysTrue":
                    return pa.repeat(pa.scalar(True), n)
                case "AlwaysFalse":
                    return pa.repeat(pa.scalar(False), n)
                case "And":
                    return pc.and_(visit(node.left), visit(node.right))
                case "Or":
                    return pc.or_(visit(node.left), visit(node.right))
            return one(node)

        return pa.repeat(pa.scalar(True), n) if self.expression is None else visit(self.expression)


def make_filter(metadata: TableMetadata, schema: Schema, where: Any, partition: Any = None) -> Filter:
    """Parse and bind a filter.

    Parameters
    ----------
    where
        Text (``id > 5 and day = '2024-05-17'``, column names dotted or in double quotes), a PyIceberg expression, or
        None.
    partition
        A dictionary by partition field, of any of the table's specs, or None.

    Raises
    ------
    OptionError
        It cannot be parsed, names an unknown column, or a literal does not fit its column's type.
    """
    if partition is not None:
        _check_partition(metadata, partition)
    expression = None if where is None else _bound(schema, where)
    said = [] if where is None else [str(where)]
    if partition is not None:
        said.append(f"partition {dict(partition)}")
    return Filter(" in ".join(said) or "every row", expression, dict(partition or {}))


def _bound(schema: Schema, where: Any) -> Any:
    from pyiceberg.expressions import BooleanExpression, parser
    from pyiceberg.expressions.visitors import bind, rewrite_not
    from pyparsing import ParseException

    if isinstance(where, str):
        try:
            where = parser.parse(where)
        except ParseException as error:
            raise OptionError(
                f"the filter cannot be parsed at character {error.loc}: {where[: error.loc]}⟨here⟩{where[error.loc :]}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise OptionError(f"the filter {where!r} cannot be parsed: {error}") from None
    if not isinstance(where, BooleanExpression):
        raise OptionError(f"where={where!r}: give text or an expression of pyiceberg.expressions")
    library, names = _library_schema(schema)
    for unbound in _predicates(where):
        name = getattr(getattr(unbound, "term", None), "name", None)
        if isinstance(name, str) and name not in names:
            if any(name == n for n, _ in schema.walk()):
                raise OptionError(f"column {name!r} cannot be filtered by: its type has no order here")
            raise OptionError(f"no column {name!r}; {nearest(name, names)}")
    try:
        return bind(library, rewrite_not(where), True)
    except (ValueError, TypeError, RecursionError) as error:
        raise OptionError(f"the filter does not fit the schema: {error}") from None


def _check_partition(metadata: TableMetadata, partition: Any) -> None:
    names = list(dict.fromkeys(f.name for s in metadata.partition_specs for f in s.fields))
    if not isinstance(partition, Mapping) or not partition:
        raise OptionError(
            f"partition={partition!r}: give a dictionary by partition field: {', '.join(names) or 'none'}"
        )
    for name, given in partition.items():
        if name not in names:
            raise OptionError(f"no partition field {name!r}; {nearest(str(name), names)}")
        for spec in metadata.partition_specs:
            for column in partition_columns(metadata, spec):
                if column.field.name == name:
                    _tuple_value(column, given)


def _tuple_value(column: Any, given: Any) -> Any:
    """The value of one partition field as a literal."""
    found = tuples_of([column], [{column.field.name: given}], "partition")
    return comparable(pc.struct_field(found, [0]))[0].as_py()


def _library_schema(schema: Schema) -> tuple[Any, list[str]]:
    """The columns that a filter may name as a flat schema of PyIceberg's, and their names."""
    from pyiceberg.schema import Schema as LibrarySchema
    from pyiceberg.types import NestedField as LibraryField

    fields: dict[str, Any] = {}

    def add(prefix: str, children: Any) -> None:
        for f in children:
            name = f"{prefix}{f.name}"
            if isinstance(f.type, StructType):
                add(name + ".", f.type.fields)
            elif type_base(f.type) not in _FOREIGN and not hasattr(f.type, "element") and not hasattr(f.type, "key"):
                json = {"id": f.field_id, "name": name, "required": f.required and not prefix, "type": str(f.type)}
                with contextlib.suppress(ValueError):  # a type of a newer spec
                    fields.setdefault(name, LibraryField.model_validate(json))

    add("", schema.fields)
    return LibrarySchema(*fields.values()), list(fields)


def _predicates(expression: Any) -> Iterator[Any]:
    """The leaves of an expression."""
    match type(expression).__name__:
        case "NoneType" | "AlwaysTrue" | "AlwaysFalse":
            return
        case "And" | "Or":
            yield from _predicates(expression.left)
            yield from _predicates(expression.right)
        case "Not":
            yield from _predicates(expression.child)
        case _:
            yield expression


def _predicate(bound: Any) -> Predicate:
    found = getattr(bound, "literals", None)
    one = getattr(bound, "literal", None)
    literals = tuple(x.value for x in found) if found is not None else () if one is None else (one.value,)
    return Predicate(bound.term.ref().field.field_id, _OPS[type(bound).__name__], literals)


def _projections(
    bound: Any, metadata: TableMetadata, spec: PartitionSpec | None, how: str
) -> Iterator[tuple[str, Predicate | bool]]:
    """What a predicate says of the partition fields that are made of its column: key and predicate, or a certainty."""
    from pyiceberg.expressions.visitors import bind
    from pyiceberg.schema import Schema as LibrarySchema
    from pyiceberg.transforms import parse_transform
    from pyiceberg.types import NestedField as LibraryField

    for column in () if spec is None else partition_columns(metadata, spec):
        source = column.source
        if source is None or source.field_id != bound.term.ref().field.field_id:
            continue
        if not is_known_transform(column.field.transform) or column.field.transform == "void":
            continue
        projected = getattr(parse_transform(column.field.transform), how)("x", bound)
        if projected is None:
            continue
        json = {"id": column.field.field_id, "name": "x", "required": False, "type": str(column.type)}
        made = bind(LibrarySchema(LibraryField.model_validate(json)), projected, True)
        name = type(made).__name__
        yield column.key, (name == "AlwaysTrue") if name.startswith("Always") else _predicate(made)


def row_evidence(lower: pa.Array, upper: pa.Array, contains_null: pa.Array, contains_nan: pa.Array) -> Evidence:
    """Evidence from a manifest list's partition summaries: only whether there are nulls and NaN is known."""
    unknown = pa.nulls(len(lower), pa.int64())
    return Evidence(lower, upper, unknown, contains_null.cast(pa.int64()), contains_nan.cast(pa.int64()))
