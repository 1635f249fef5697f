"""Filters: text or PyIceberg expressions, bound to a table's columns, judged from partition tuples and statistics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import Schema, StructType, TableMetadata, type_base
from iceexplore.planning._evidence import Mask, comparable, known
from iceexplore.planning._expression import ALWAYS, NEVER, Expression, Op, Predicate, all_of, any_of, predicates
from iceexplore.planning._judge import satisfied
from iceexplore.planning._partition_values import PartitionColumn, nearest, partition_columns, tuples_of
from iceexplore.planning._witness import FileWitnesses, all_may, all_must

__all__ = ["Filter", "make_filter", "same_partition", "tuple_predicate"]

_OPS: dict[str, Op] = {
    "BoundEqualTo": "=", "BoundNotEqualTo": "!=", "BoundLessThan": "<", "BoundLessThanOrEqual": "<=",
    "BoundGreaterThan": ">", "BoundGreaterThanOrEqual": ">=", "BoundIn": "in", "BoundNotIn": "not-in",
    "BoundIsNull": "is-null", "BoundNotNull": "not-null", "BoundIsNaN": "is-nan", "BoundNotNaN": "not-nan",
    "BoundStartsWith": "starts-with", "BoundNotStartsWith": "not-starts-with",
}  # fmt: skip
#: What PyIceberg has no type for: such columns cannot stand in a filter.
_FOREIGN = frozenset(("geography", "geometry", "unknown", "variant"))


@dataclass(frozen=True)
class Filter:
    """A condition on rows: an expression, and a partial partition tuple, either of which may be missing.

    Attributes
    ----------
    text
        For people.
    expression
        `ALWAYS` matches every row.
    partition
        By partition field name; fields that are not named match anything.
    """

    text: str
    expression: Expression = ALWAYS
    partition: Mapping[str, Any] = field(default_factory=dict)

    @property
    def field_ids(self) -> list[int]:
        """The columns that the expression names."""
        return sorted({p.field_id for p in predicates(self.expression)})

    @property
    def names(self) -> list[str]:
        """Their dotted names, in the order of the expression."""
        return list(dict.fromkeys(p.name for p in predicates(self.expression)))

    def judge(self, batch: EntryBatch, metadata: TableMetadata) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """Per file: whether some row may match, and whether every row surely does.

        Parameters
        ----------
        batch
            Data files with their tuples, and the statistics of at least `field_ids`. Files without statistics (or a
            batch that leaves them out) are judged by their tuples alone.

        Notes
        -----
        A file of a negative record count (imported by old versions) is judged by its tuple alone. One without rows
        matches nothing, in neither sense.
        """
        n = len(batch)
        witnesses = FileWitnesses(batch, metadata)
        may = all_may(self.expression, n, witnesses)
        must = all_must(self.expression, n, witnesses)
        if self.partition:
            same, told = same_partition(self.partition, batch, metadata, witnesses)
            may, must = may & (same | ~told), must & same & told
        may &= np.asarray(pc.fill_null(pc.not_equal(witnesses.records, 0), True))
        return pa.array(may), pa.array(may & must)


def same_partition(
    partition: Mapping[str, Any], batch: EntryBatch, metadata: TableMetadata, witnesses: FileWitnesses
) -> tuple[Mask, Mask]:
    """Per file: whether its tuple is of a partial one, and whether that can be told."""
    n = len(batch)
    same, told = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    numbers = batch.entries["partition_spec_id"]
    for number in pc.unique(numbers).to_pylist():
        spec = None if number is None else metadata.spec(number)
        columns = {} if spec is None else {c.field.name: c for c in partition_columns(metadata, spec)}
        if not partition.keys() <= columns.keys():
            continue  # files of another spec: nobody knows without reading them
        mine = known(pc.equal(numbers, number))
        for name, given in partition.items():
            values = witnesses.value(columns[name].key)
            hit = None if values is None else satisfied(tuple_predicate(columns[name], given), values)
            if hit is None:
                break
            same &= ~mine | hit
        else:
            told |= mine
    return same, told


def tuple_predicate(column: PartitionColumn, given: Any) -> Predicate:
    """That a partition field has this value."""
    found = tuples_of([column], [{column.field.name: given}], "partition")
    wanted = comparable(pc.struct_field(found, [0]))[0].as_py()
    if wanted is None:
        return Predicate(0, "is-null")
    if isinstance(wanted, float) and wanted != wanted:
        return Predicate(0, "is-nan")
    return Predicate(0, "=", (wanted,))


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
    expression = ALWAYS if where is None else _converted(_bound(schema, where), schema)
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
                    tuple_predicate(column, given)


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


def _converted(bound: Any, schema: Schema) -> Expression:
    match type(bound).__name__:
        case "AlwaysTrue":
            return ALWAYS
        case "AlwaysFalse":
            return NEVER
        case "And":
            return all_of(_converted(bound.left, schema), _converted(bound.right, schema))
        case "Or":
            return any_of(_converted(bound.left, schema), _converted(bound.right, schema))
    found = getattr(bound, "literals", None)
    one = getattr(bound, "literal", None)
    literals = tuple(x.value for x in found) if found is not None else () if one is None else (one.value,)
    number = bound.term.ref().field.field_id
    name, column = schema.by_id()[number]
    op = _OPS[type(bound).__name__]
    return Predicate(number, op, literals, name, column.type, f"{name} {op} {', '.join(map(repr, literals))}".strip())
