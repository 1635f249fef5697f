"""Redact the records of large Avro manifests column by column.

`_avro_schema` decides what is redacted and by which placeholder; its function for a single value is called once for
each distinct value of a column. Files with types that need more, such as maps and unions of several types, are redacted
record by record instead (`OtherWayError`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyField, DynamicArray, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._arrow import bool_array, offsets_of
from iceexplore.manifests.redaction._avro_schema import Schema
from iceexplore.manifests.redaction._places import PATH_ID, AvroType, Kind, Place, inside, kind_of_avro, statistic

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ColumnChange", "Columns", "OtherWayError"]

#: A function that redacts a column. None in its place means that the column stays as it is.
ColumnChange = Callable[[Any], Any]
_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    # Text is validated where it is changed; a decoder's own check would stop at damage.
    "string": pa.binary(),
}
#: Longest fixed type, in bytes: in Arrow, a null takes as many bytes as a value, but in the file only one.
_FIXED = 64


class OtherWayError(Exception):
    """Raised if the file must be redacted record by record."""


class Columns:
    """Builds the functions that redact columns, from the types of a schema in the form of `Schema.plain`."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.terms = schema.terms
        self.redactor = schema.redactor

    # Types ---------------------------------------------------------------------------------------------------------

    def avro(self, plain: AvroType) -> AvroType:
        """Return the schema to decode and encode with: that of `Schema.decode`, but with bytes instead of strings."""
        if isinstance(plain, list):
            return [self.avro(p) for p in plain]
        kind = plain["type"]
        if kind == "record":
            fields = [{"name": f"f{i}", "type": self.avro(f["type"])} for i, f in enumerate(plain["fields"])]
            return {"type": "record", "name": self._name(), "fields": fields}
        if kind == "array":
            return {"type": "array", "items": self.avro(plain["items"])}
        if kind == "fixed":
            return {"type": "fixed", "name": self._name(), "size": plain["size"]}
        return "bytes" if kind == "string" else kind

    def _name(self) -> str:
        self.schema.count += 1
        return f"C{self.schema.count}"

    def arrow(self, plain: AvroType) -> pa.DataType:
        """Return the Arrow type for an Avro type.

        Raises
        ------
        OtherWayError
            The type cannot be decoded and encoded by columns.
        """
        _, one = self._nullable(plain)
        kind = one["type"]
        if kind == "record" and one["fields"]:
            return pa.struct([self.field(i, f["type"]) for i, f in enumerate(one["fields"])])
        if kind == "array":
            return pa.list_(self.arrow(one["items"]))
        if kind == "fixed" and 0 < one["size"] <= _FIXED:
            return cast(pa.DataType, pa.binary(one["size"]))
        if kind not in _ARROW:
            raise OtherWayError(kind)
        return _ARROW[kind]

    def field(self, number: int, plain: AvroType) -> AnyField:
        """Return the Arrow field of a record's field."""
        return pa.field(f"f{number}", self.arrow(plain))

    @staticmethod
    def _nullable(plain: AvroType) -> tuple[bool, Any]:
        """Return whether a type is nullable, and the type without null."""
        if not isinstance(plain, list):
            return False, plain
        rest = [p for p in plain if p["type"] != "null"]
        if len(rest) != 1 or len(plain) != 2:
            raise OtherWayError("union")
        return True, rest[0]

    # Changes -------------------------------------------------------------------------------------------------------

    def change(self, plain: AvroType, place: Place, key: Hashable = None) -> ColumnChange | None:
        """Return the function that redacts a column with this role; None if the column stays as it is."""
        single = self.schema.change(plain, place, key)
        if single is None:
            return None
        nullable, one = self._nullable(plain)
        kind, blanks = one["type"], self.terms.values
        if kind not in ("record", "array"):
            return self._mapped(kind, single)
        if blanks and nullable and place in (Place.ANY, Place.SUMMARIES):
            return lambda array: pa.nulls(len(array), array.type)
        if place is Place.RECORD:
            return self._record(one) if kind == "record" else self._list(one, place)
        if place is Place.TUPLE and kind == "record":
            return self._tuple(one)
        if place is Place.BOUNDS:
            if not _is_bounds(one):
                raise OtherWayError("bounds of another form")
            return self._bounds
        if place is Place.SUMMARIES and not blanks:
            raise OtherWayError("summaries")
        if blanks:
            return self._blank(self.schema.blank(one))
        return self._list(one, Place.ANY) if kind == "array" else self._struct(one, lambda f: (Place.ANY, None))

    def _mapped(self, kind: str, single: Callable[[Any], Any]) -> ColumnChange:
        """Return a function that redacts a column by redacting each distinct value once."""

        def change(array: DynamicArray) -> DynamicArray:
            coded = array.dictionary_encode()
            values = coded.dictionary.cast(pa.string()) if kind == "string" else coded.dictionary
            made = pa.array([single(v) for v in values.to_pylist()], values.type).cast(array.type)
            return made.take(coded.indices)

        return change

    def _blank(self, blank: PlainValue) -> ColumnChange:
        """Return a function that replaces all values of a column, except nulls, by the same value."""

        def change(array: DynamicArray) -> DynamicArray:
            one = pa.array([blank], array.type)
            rows = pa.array(np.zeros(len(array), np.int64), mask=~np.asarray(array.is_valid()))
            return one.take(rows)

        return change

    def _list(self, plain: AvroType, place: Place) -> ColumnChange:
        inner = self.change(plain["items"], place)

        def change(array: DynamicArray) -> DynamicArray:
            if inner is None:
                return array
            return build.list_array(offsets_of(array), inner(array.values), array.type)

        return change

    def _struct(self, plain: AvroType, what: Callable[[Any], tuple[Place, Any]]) -> ColumnChange:
        changes = {i: self.change(f["type"], *what(f)) for i, f in enumerate(plain["fields"])}
        return lambda array: _changed(array, changes)

    def _tuple(self, plain: AvroType) -> ColumnChange:
        return self._struct(plain, lambda f: (Place.VALUE, self.schema.tuple_key(f)))

    def _record(self, plain: AvroType) -> ColumnChange:
        """Return the function that redacts a column of records with known fields, and updates lengths of files."""
        schema = self.schema
        at = schema.places(plain)
        sizes = schema.size_field(at)
        stats_at, kind_at = schema.stats_fields(at)
        changes: dict[int, ColumnChange | None] = {}
        stats: dict[int, Callable[[Any, Any], Any]] = {}
        for i, field in enumerate(plain["fields"]):
            place = inside(Place.RECORD, schema.id(field), kind_of_avro(field["type"]))
            if place is Place.STATS:
                stats[i] = self._stats(field["type"])
            else:
                changes[i] = self.change(field["type"], place)
        lengths, length_of = schema.lengths, self.redactor.length_of(schema.lengths)

        def change(array: DynamicArray) -> DynamicArray:
            children, made = array.flatten(), _changed(array, changes).flatten()
            if sizes and lengths:
                where, size = sizes
                pairs = zip(children[where].to_pylist(), children[size].to_pylist(), strict=True)
                now = [None if n is None else length_of(None if p is None else p.decode(), n) for p, n in pairs]
                made[size] = pa.array(now, children[size].type)
            for i, of_stats in stats.items():
                is_file = np.zeros(len(array), bool)
                if i == stats_at and kind_at is not None:
                    is_file = bool_array(pc.less(children[kind_at], 3))
                made[i] = of_stats(children[i], is_file)
            return _remade(array, made)

        return change

    def _bounds(self, array: DynamicArray) -> DynamicArray:
        """Redact maps of bounds: paths (in delete files) become redacted locations.

        Other bounds are removed if values are redacted, or if they contain a secret.
        """
        keys, bounds = array.values.flatten()
        columns = np.asarray(keys)
        path = columns == PATH_ID
        kept = path.copy()
        if not self.terms.values:
            plain = self.redactor.plain
            sought = ~path & ~np.isin(columns, np.fromiter(plain, np.int64, len(plain)))
            kept |= ~path
            kept[sought] &= ~self._secret(bounds.filter(pa.array(sought)))
        if path.any():
            rows = np.flatnonzero(path)
            places = [_location(self.terms.location, v) for v in bounds.take(pa.array(rows)).to_pylist()]
            kept[rows] = [p is not None for p in places]
            bounds = pc.replace_with_mask(bounds, pa.array(path), pa.array(places, bounds.type))
        if kept.all() and not path.any():
            return array
        ends = np.concatenate([[0], np.cumsum(kept)])[np.asarray(array.offsets)]
        pairs = pa.StructArray.from_arrays([keys, bounds], fields=list(array.type.value_type)).filter(pa.array(kept))
        nulls = array.is_null() if array.null_count else None
        return build.list_array(pa.array(ends, pa.int32()), pairs, array.type, mask=nulls)

    def _secret(self, bounds: DynamicArray) -> npt.NDArray[np.bool_]:
        coded = bounds.dictionary_encode()
        secret = np.array([self.redactor.has_secret(v) for v in coded.dictionary.to_pylist()], bool)
        return secret[np.asarray(coded.indices)] if len(secret) else np.zeros(len(bounds), bool)

    # Statistics of V4 ----------------------------------------------------------------------------------------------

    def _stats(self, plain: AvroType) -> Callable[[Any, Any], Any]:
        _, one = self._nullable(plain)
        columns: dict[int, Callable[[Any, Any], Any]] = {}
        others: dict[int, ColumnChange | None] = {}
        for i, field in enumerate(one["fields"]):
            found = statistic(self.schema.id(field))
            if found is not None and found[1] == 0 and kind_of_avro(field["type"]) is Kind.STRUCT:
                columns[i] = self._column_stats(field["type"], found[0])
            else:
                others[i] = self.change(field["type"], Place.ANY)

        def change(array: DynamicArray, is_file: npt.NDArray[np.bool_]) -> DynamicArray:
            children, made = array.flatten(), _changed(array, others).flatten()
            for i, of_column in columns.items():
                made[i] = of_column(children[i], is_file)
            return _remade(array, made)

        return change

    def _column_stats(self, plain: AvroType, column: int) -> Callable[[Any, Any], Any]:
        _, one = self._nullable(plain)
        bounds, others = self.schema.column_bounds(one, column)
        changes: dict[int, ColumnChange | None] = {}
        for i, place in others.items():
            field = one["fields"][i]["type"]
            if place is None:
                nullable, _ = self._nullable(field)
                changes[i] = _nulls if nullable else self._blank(self.schema.blank(field))
            else:
                changes[i] = self.change(field, place)
        valued: dict[int, tuple[int, Any, ColumnChange | None, ColumnChange]] = {}
        for offset, (i, key) in bounds.items():
            field = one["fields"][i]["type"]
            nullable, inner = self._nullable(field)
            if inner["type"] in ("record", "array"):
                raise OtherWayError("bounds of nested types")
            blank = _nulls if nullable else self._blank(self.schema.blank(field))
            valued[offset] = i, key, self.change(field, Place.VALUE, key), blank
        values = self.terms.values

        def change(array: DynamicArray, is_file: npt.NDArray[np.bool_]) -> DynamicArray:
            children, made = array.flatten(), _changed(array, changes).flatten()
            lower = children[valued[1][0]] if 1 in valued else None
            for offset, (i, key, single, blank) in valued.items():
                bound = children[i]
                if not values:
                    made[i] = bound if single is None else single(bound)
                    continue
                stay = np.zeros(len(array), bool) if key is None else is_file.copy()
                if offset == 2 and lower is not None:  # if the two bounds differ, only the lower is the partition value
                    if lower.type != bound.type:
                        raise OtherWayError("bounds of two types")
                    stay &= ~bool_array(lower.is_valid()) | bool_array(pc.equal(lower, bound))
                kept = pc.if_else(pa.array(stay), bound, pa.scalar(None, bound.type))
                made[i] = pc.if_else(pa.array(stay), kept if single is None else single(kept), blank(bound))
            return _remade(array, made)

        return change


def _is_bounds(plain: AvroType) -> bool:
    """Return whether a type is an array of pairs of a column id and its bound."""
    items = plain.get("items")
    if plain["type"] != "array" or not isinstance(items, dict) or len(items.get("fields", ())) != 2:
        return False
    key, bound = (f["type"] for f in items["fields"])
    return [None if isinstance(t, list) else t["type"] for t in (key, bound)] == ["int", "bytes"]


def _location(place: Callable[[str], str], bound: bytes) -> bytes | None:
    try:
        return place(bound.decode()).encode()
    except UnicodeDecodeError:
        return None


def _nulls(array: DynamicArray) -> DynamicArray:
    return pa.nulls(len(array), array.type)


def _changed(array: DynamicArray, changes: dict[int, ColumnChange | None]) -> DynamicArray:
    """Return a struct with some children changed."""
    children = array.flatten()
    for i, change in changes.items():
        if change is not None:
            children[i] = change(children[i])
    return _remade(array, children)


def _remade(array: DynamicArray, children: list[Any]) -> DynamicArray:
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
