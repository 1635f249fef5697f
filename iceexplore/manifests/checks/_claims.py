"""Compare a root's claims about the values in a manifest with the manifest's live entries.

Readers skip a manifest by the partition summaries of its manifest list, or by the statistics of its row in a V4 root,
without opening it: a bound that is too narrow, or a false ``contains_null``, loses rows without any other sign. Claims
are compared whenever a manifest is read, column by column: the root's claims are decoded once for all manifests.

A claim is untrue only if readers could lose a live entry because of it. Bounds may be wider than the values (deletes
cause this), and bounds of strings or binary values may be truncated. Nulls, lower bounds above upper bounds, bounds
that cannot be decoded, and bounds of types that engines order differently make no claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, AnyScalar, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, problem
from iceexplore.manifests.column_stats._maps import ColumnStats
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import live
from iceexplore.manifests.model._table_context import TableTypes
from iceexplore.metadata import (
    Dialect,
    PartitionField,
    Type,
    arrow_type,
    decode_values,
    human_value,
    is_known_transform,
    parse_transform,
    type_base,
)

__all__ = ["RootClaims"]

#: The code of these problems. They are warnings, because the manifest can be read in full; strict reading raises them.
SUMMARY_UNTRUE = "summary-untrue"
#: Types whose bounds are not compared: Java orders UUIDs differently, and bounds of the other types are not values of
#: the type.
_UNORDERED = frozenset({"uuid", "geometry", "geography", "variant", "unknown"})
_INCOMPARABLE = (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError)
_LONG = 60


class Entries(Protocol):
    """The manifest to compare: the attributes of `iceexplore.manifests.Manifest` that are used here."""

    location: str
    entries: pa.Table
    dialect: Dialect
    root_row: int | None

    def __len__(self) -> int: ...

    def stats(self, field_id: int) -> ColumnStats:
        """Return the statistics of one column."""


@dataclass(frozen=True)
class _Claim:
    """What a root claims about one column or partition field: arrays with a value per row of the root; null is unknown.

    Attributes
    ----------
    no_null, no_nan
        True where the claim is that no live entry has a null (or a NaN).
    nothing
        True where the claim is that all values of live entries are null or NaN.
    """

    type: Type
    lower: AnyArray
    upper: AnyArray
    no_null: AnyArray
    no_nan: AnyArray
    nothing: AnyArray | None = None


class RootClaims:
    """The claims of a root about its manifests; those about a field are decoded when they are first compared.

    Parameters
    ----------
    root
        A manifest list, or a V4 root.
    """

    def __init__(self, root: Entries, meaning: TableTypes) -> None:
        self._root = root
        self._meaning = meaning
        self._fields: dict[int, list[tuple[PartitionField, int | None, _Claim]]] = {}
        self._columns: dict[int, _Claim | None] = {}

    def against_tuples(self, leaf: Entries, tuples: pa.StructArray | None) -> list[Problem]:
        """Compare a manifest's partition tuples with the claims; return a problem for each claim that is too narrow."""
        row = leaf.root_row
        if row is None or tuples is None or not len(leaf):
            return []
        # Entries of a V4 leaf may have several specs; each entry is compared by the fields of its own spec.
        specs = build.to_pylist(pc.unique(leaf.entries["partition_spec_id"]).drop_null())
        out = []
        for spec_id in specs:
            mine = live(leaf.entries)
            if len(specs) > 1:
                mine = pc.and_(mine, whole(pc.fill_null(pc.equal(leaf.entries["partition_spec_id"], spec_id), False)))
            for field, column, claim in self._of_spec(spec_id):
                at = tuples.type.get_field_index(str(field.field_id))
                if at < 0:
                    continue
                values = pc.struct_field(tuples, [at])
                if column is None:
                    nulls = values.is_null()
                else:  # V4 tuples are rebuilt and are null also where statistics are missing, so use the null count
                    nulls = pc.fill_null(pc.greater(leaf.stats(column).null_count, 0), False)
                found = _untrue(claim, row, values.filter(mine), nulls.filter(mine), field.transform)
                if found is not None:
                    what = f"partition field {field.name!r}"
                    out.append(self._problem(leaf, row, what, found, column))
        return out

    def against_stats(self, leaf: Entries, stats: ColumnStats) -> Problem | None:
        """Compare the statistics of one column of a V4 leaf with those of its row in the root; None if they agree."""
        row = leaf.root_row
        if row is None or not len(leaf) or stats.field_id in self._partitioned:
            return None  # sources of partition fields are checked by partition tuples, as bounds may be truncated
        claim = self._column(stats.field_id)
        if claim is None or stats.lower.type != claim.lower.type:
            return None
        mine = live(leaf.entries)
        values = pa.concat_arrays([stats.lower.filter(mine), stats.upper.filter(mine)])
        nulls = pc.fill_null(pc.greater(stats.null_count, 0), False).filter(mine)
        found = _untrue(claim, row, values, nulls, "identity")
        return None if found is None else self._problem(leaf, row, f"column {stats.field_id}", found, stats.field_id)

    def _problem(self, leaf: Entries, row: int, what: str, found: tuple[str, str], column: int | None) -> Problem:
        has, claimed = found
        name, field = ("manifest list", "507 partitions") if column is None else ("root", "146 content_stats")
        where = f"{self._root.location}#entry {self._root.entries['ordinal'][row].as_py()}"
        text = (
            f"The {name} claims {claimed} for {what}, but live entries of {leaf.location} have {has}: filters skip "
            "the manifest because of that claim, and its rows or deletes are missing."
        )
        return problem(SUMMARY_UNTRUE, where, text, field=field, found=has, expected=claimed)

    @cached_property
    def _partitioned(self) -> set[int]:
        """Columns and expressions that are sources of partition fields."""
        return {n for s in self._meaning.specs.values() for f in s.fields for n in (self._number(f), *f.source_ids)
                if n is not None}  # fmt: skip

    def _number(self, field: PartitionField) -> int | None:
        """Return the column or expression id whose V4 statistics cover a partition field; None if there is none."""
        if parse_transform(field.transform).is_identity:
            return field.source_id
        made = (
            e.expr_id
            for e in self._meaning.expressions.values()
            if (e.source_ids, e.transform) == (field.source_ids, field.transform)
        )
        return next(made, None)

    def _of_spec(self, spec_id: int) -> list[tuple[PartitionField, int | None, _Claim]]:
        """Return the claims for a spec's fields, each with its column's id (None in a manifest list)."""
        if spec_id not in self._fields:
            spec = self._meaning.specs.get(spec_id)
            fields = [] if spec is None else list(spec.fields)
            listed = self._root.dialect in ("v1", "v2", "v3", "v4-java")
            self._fields[spec_id] = self._of_list(fields) if listed else self._of_root(fields)
        return self._fields[spec_id]

    def _of_root(self, fields: Sequence[PartitionField]) -> list[tuple[PartitionField, int | None, _Claim]]:
        out = []
        for field in fields:
            number = self._number(field) if len(field.source_ids) == 1 and is_known_transform(field.transform) else None
            claim = None if number is None else self._column(number)
            if claim is not None and not parse_transform(field.transform).is_void:
                out.append((field, number, claim))
        return out

    def _column(self, number: int) -> _Claim | None:
        """Return the claims of a V4 root's rows for a column or an expression; None if it has no comparable type."""
        if number not in self._columns:
            found = self._root.stats(number)
            made = None
            if found.type is not None and not pa.types.is_nested(found.lower.type):
                none = [pc.equal(count, 0) for count in (found.null_count, found.nan_count)]
                made = _Claim(found.type, found.lower, found.upper, *none)
            self._columns[number] = made
        return self._columns[number]

    def _of_list(self, fields: Sequence[PartitionField]) -> list[tuple[PartitionField, int | None, _Claim]]:
        summaries = whole(self._root.entries["partition_summaries"])
        right = pc.fill_null(pc.equal(pc.list_value_length(summaries), len(fields)), False)
        if not fields or not right.true_count:
            return []
        # `places`: for each row, the position of its list among those in `flat`; null where the number of summaries
        # does not fit the spec.
        count = pc.cumulative_sum(right.cast(pa.int64()))
        places = pc.if_else(right, pc.subtract(count, 1), pa.scalar(None, pa.int64()))
        flat = cast(AnyListArray, summaries.filter(right)).flatten()
        out: list[tuple[PartitionField, int | None, _Claim]] = []
        for i, field in enumerate(fields):
            source = self._meaning.types.get(field.source_ids[0]) if field.source_ids else None
            transform = parse_transform(field.transform)
            if source is None or transform.is_void or not transform.is_known:
                continue
            kind = transform.result_type(source)
            if pa.types.is_null(arrow_type(kind)):
                continue
            at = pc.add(pc.multiply(places, len(fields)), i)
            part = flat.take(at)
            raw = {child.name: pc.struct_field(part, [j]) for j, child in enumerate(part.type)}
            lower, upper = (decode_values(kind, raw[name])[0] for name in ("lower_bound", "upper_bound"))
            null, nan = raw["contains_null"], raw["contains_nan"]
            floating = pa.types.is_floating(lower.type)
            # Spec: a lower bound is "null if all values are null or NaN". Believe this only if the field may have nulls
            # or NaN.
            may = pc.or_(pc.fill_null(null, False), pc.fill_null(nan, True)) if floating else pc.fill_null(null, False)
            nothing = pc.and_(pc.and_(at.is_valid(), raw["lower_bound"].is_null()), may)
            out.append((field, None, _Claim(kind, lower, upper, pc.invert(null), pc.invert(nan), nothing)))
        return out


def _untrue(
    claim: _Claim, row: int, values: AnyArray, nulls: pa.BooleanArray, transform: str
) -> tuple[str, str] | None:
    """Return, as texts, a value that contradicts a claim, and the claim; None if the claim holds."""
    if claim.no_null[row].as_py() and nulls.true_count:
        return "null", "no null"
    values = values.drop_null()
    if values.type != claim.lower.type:
        return None
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        if nan.true_count:
            if claim.no_nan[row].as_py():
                return "NaN", "no NaN"
            values = values.filter(pc.invert(nan))
    if not len(values):
        return None

    def words(value: AnyScalar) -> str:
        text = human_value(claim.type, transform, value.as_py())
        return text if len(text) <= _LONG else text[:_LONG] + "…"

    if claim.nothing is not None and claim.nothing[row].as_py():
        return words(values[0]), "only nulls and NaNs"
    if type_base(claim.type) in _UNORDERED:
        return None
    try:
        return _outside(claim.lower.slice(row, 1), claim.upper.slice(row, 1), values, words)
    except _INCOMPARABLE:
        return None


def _outside(
    lower: AnyArray, upper: AnyArray, values: AnyArray, words: Callable[[PlainValue], str]
) -> tuple[str, str] | None:
    low, high = _comparable(lower), _comparable(upper)
    if pa.types.is_floating(low.type):
        low, high = (pc.if_else(pc.is_nan(b), pa.scalar(None, b.type), b) for b in (low, high))
    if pc.greater(low, high)[0].as_py():
        return None
    ends = pc.min_max(_comparable(values))
    least, most = ends["min"], ends["max"]
    below, above = pc.less(least, low)[0].as_py(), pc.greater(most, high)[0].as_py()
    if above and _begins(most.as_py(), high[0].as_py()):
        above = False  # the writer truncated the upper bound without incrementing it
    if not (below or above):
        return None
    order = _comparable(values)
    first = values.filter(pc.equal(order, least if below else most))[0]
    claimed = f"a lower bound of {words(lower[0])}" if below else f"an upper bound of {words(upper[0])}"
    return words(first), claimed


def _comparable(values: AnyArray) -> AnyArray:
    return values.cast(pa.binary()) if pa.types.is_fixed_size_binary(values.type) else values


def _begins(value: PlainValue, bound: PlainValue) -> bool:
    return isinstance(value, (str, bytes)) and len(bound) > 0 and value.startswith(bound)
