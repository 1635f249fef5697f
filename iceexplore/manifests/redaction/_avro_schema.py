"""Redaction driven by an Avro schema: how records are decoded and changed, and how the schema itself is redacted.

A function per field is built from the schema; most fields need none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from iceexplore.arrow import PlainValue
from iceexplore.errors import UnsupportedError
from iceexplore.manifests.model._field_ids import partition_part
from iceexplore.manifests.redaction._places import (
    FIELD_NAMES,
    FORMATS,
    PATH_ID,
    AvroType,
    Kind,
    Place,
    ids_by_name,
    inside,
    kind_of_avro,
    one_of,
    statistic,
)
from iceexplore.manifests.redaction._redactor import Redactor

__all__ = ["Change", "Schema"]

#: A function that redacts a value. None in its place means that the field stays as it is.
Change = Callable[[Any], Any]
_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NUMBERS = frozenset({"boolean", "int", "long"})
_BLANKS: dict[str, Any] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": b"",
    "string": "",
}
_LOGICAL = frozenset(
    [
        "date",
        "time-millis",
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "timestamp-nanos",
        "local-timestamp-micros",
        "local-timestamp-millis",
        "decimal",
        "uuid",
        "map",
    ]
)
_RECORD_NAME = re.compile(r"r\d{1,10}|k\d{1,10}_v\d{1,10}|fixed_\d{1,10}|decimal_\d{1,3}_\d{1,3}|uuid_fixed", re.A)
#: Field names in decoded records (`Schema.decode`); any other name is the key of a map.
_OURS = re.compile(r"f\d+", re.A)
#: Limits: nesting of types, and number of types once names are resolved.
_DEPTH, _TYPES = 100, 1_000_000


class Schema:
    """An Avro schema to redact: it makes the functions that redact its records, and the schema to write."""

    def __init__(self, redactor: Redactor, schema: AvroType, lengths: Mapping[str, int]) -> None:
        self.redactor = redactor
        self.terms = redactor.terms
        self.lengths = lengths
        self.count = 0
        self._named: dict[str, Any] = {}
        self.has_ids = _has_ids(schema)
        #: The schema with every name resolved.
        self.plain = self._plain(schema, 0)

    def _plain(self, schema: AvroType, depth: int) -> AvroType:
        self.count += 1
        if depth > _DEPTH or self.count > _TYPES:
            raise UnsupportedError("the Avro schema is nested too deeply to be redacted")
        if isinstance(schema, str):
            if schema in _PRIMITIVE:
                return {"type": schema}
            if schema not in self._named:
                raise UnsupportedError("the Avro schema refers to a type that it does not define")
            return self._plain(self._named[schema], depth + 1)
        if isinstance(schema, list):
            return [self._plain(s, depth + 1) for s in schema]
        kind = schema.get("type")
        if isinstance(kind, dict | list):
            return self._plain({**schema, **kind} if isinstance(kind, dict) else kind, depth + 1)
        if kind not in ("record", "error", "array", "map", "enum", "fixed"):
            if kind in _PRIMITIVE:
                return {"type": kind, "logical": schema.get("logicalType")}
            return self._plain(kind, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            name, space = str(schema.get("name", "")), schema.get("namespace")
            self._named[name] = schema
            if space:
                self._named[f"{space}.{name}"] = schema
        if kind in ("record", "error"):
            fields = [{**f, "type": self._plain(f["type"], depth + 1)} for f in schema["fields"]]
            return {"type": "record", "fields": fields}
        if kind == "array":
            items = self._plain(schema["items"], depth + 1)
            _refuse_empty(items)
            return {"type": "array", "items": items, "element-id": schema.get("element-id")}
        if kind == "map":
            return {"type": "map", "values": self._plain(schema["values"], depth + 1)}
        if kind == "enum":
            return {"type": "enum", "symbols": len(schema["symbols"])}
        return {"type": "fixed", "size": int(schema["size"]), "logical": schema.get("logicalType")}

    def decode(self, plain: AvroType) -> AvroType:
        """Return the schema used for decoding: generated names, and no documentation, defaults or logical types."""
        if isinstance(plain, list):
            return [self.decode(p) for p in plain]
        kind = plain["type"]
        self.count += 1
        name = f"R{self.count}"
        if kind == "record":
            fields = [{"name": f"f{i}", "type": self.decode(f["type"])} for i, f in enumerate(plain["fields"])]
            return {"type": "record", "name": name, "fields": fields}
        if kind == "array":
            return {"type": "array", "items": self.decode(plain["items"])}
        if kind == "map":
            return {"type": "map", "values": self.decode(plain["values"])}
        if kind == "enum":
            return {"type": "enum", "name": name, "symbols": [f"s{i}" for i in range(plain["symbols"])]}
        if kind == "fixed":
            return {"type": "fixed", "name": name, "size": plain["size"]}
        return kind

    # Records -------------------------------------------------------------------------------------------------------

    def change(self, plain: AvroType, place: Place, key: Hashable = None) -> Change | None:
        """Return the function that redacts a value of this type with this role; None if it stays as it is."""
        if isinstance(plain, list):
            return self._union(plain, place, key)
        kind = plain["type"]
        if place is Place.RECORD:
            if kind == "array":
                inner = self.change(plain["items"], place)
                return None if inner is None else lambda v: [inner(x) for x in v]
            return self._record(plain) if kind == "record" else self._any(plain)
        if place is Place.KEEP:
            return None if _only_numbers(plain) else self._any(plain)
        if place is Place.LOCATION:
            return self.terms.location
        if place is Place.FORMAT:
            return lambda v: v if v.lower() in FORMATS else self.terms.text(v)
        if place is Place.FILE_KEY:
            return self._gone(_blank(plain))
        if place is Place.VECTOR:
            return self.redactor.vector
        if place is Place.TUPLE:
            return self._tuple(plain)
        if place is Place.VALUE:
            return self._value(plain, key)
        if place is Place.BOUNDS:
            return self._bounds(plain)
        if place is Place.SUMMARIES:
            return self._summaries(plain)
        return self._any(plain)

    def _union(self, plain: list[Any], place: Place, key: Hashable) -> Change | None:
        nullable = any(p == {"type": "null"} or (isinstance(p, dict) and p["type"] == "null") for p in plain)
        rest = [p for p in plain if not (isinstance(p, dict) and p["type"] == "null")]
        if len(rest) != 1:
            if self.terms.values and nullable and place is not Place.RECORD:
                return lambda v: None
            return self._loose
        if nullable and place is Place.FILE_KEY:
            return self._gone(None)
        if nullable and place in (Place.ANY, Place.SUMMARIES) and self.terms.values:
            return lambda v: None
        inner = self.change(rest[0], place, key)
        if inner is None:
            return None
        return lambda v: None if v is None else inner(v)

    def _gone(self, blank: PlainValue) -> Change:
        def change(value: PlainValue) -> PlainValue:
            self.terms.touched += value not in (None, blank)
            return blank

        return change

    def _record(self, plain: AvroType) -> Change | None:
        changes: list[tuple[str, Change]] = []
        for i, field in enumerate(plain["fields"]):
            place = inside(Place.RECORD, self.id(field), kind_of_avro(field["type"]))
            change = self._stats(field["type"]) if place is Place.STATS else self.change(field["type"], place)
            if change is not None:
                changes.append((f"f{i}", change))
        at = self.places(plain)
        sized = self.size_field(at)
        where, size = (f"f{i}" for i in sized or (0, 0))
        stats_at, kind_at = ("" if i is None else f"f{i}" for i in self.stats_fields(at))
        lengths, length_of = self.lengths, self.redactor.length_of(self.lengths)

        def change_record(record: dict[str, Any]) -> dict[str, Any]:
            if sized and lengths and record[size] is not None:
                record[size] = length_of(record[where], record[size])
            if stats_at and kind_at and isinstance(record[stats_at], dict):
                record[stats_at]["is_file"] = record[kind_at] is not None and record[kind_at] < 3
            for name, change in changes:
                record[name] = change(record[name])
            return record

        return change_record if changes or (sized and lengths) else None

    def places(self, plain: AvroType) -> dict[int, int]:
        """Return the positions of a record's fields by id; of a duplicate id, the first."""
        out: dict[int, int] = {}
        for i, field in enumerate(plain["fields"]):
            if (number := self.id(field)) is not None:
                out.setdefault(number, i)
        return out

    @staticmethod
    def size_field(at: Mapping[int, int]) -> tuple[int, int] | None:
        """Return the positions of a file's location and length in a record; None if it does not have both."""
        return next(((at[a], at[b]) for a, b in ((500, 501), (100, 104)) if a in at and b in at), None)

    @staticmethod
    def stats_fields(at: Mapping[int, int]) -> tuple[int | None, int | None]:
        """Return the positions of the statistics and of the content type in a V4 record; None for a missing one."""
        return next((at[i] for i in (149, 146, 10_000) if i in at), None), at.get(134)

    def id(self, field: Mapping[str, Any]) -> int | None:
        number = field.get("field-id")
        if isinstance(number, int):
            return number
        return None if self.has_ids else ids_by_name.get(str(field.get("name")))

    def tuple_key(self, field: Mapping[str, Any]) -> Hashable:
        """Return the key that identifies a partition field's values, so that equal ones get equal placeholders."""
        number = self.id(field)
        key: Hashable = self.redactor.field_keys.get(number, ("field", number, field.get("name")))  # type: ignore[arg-type]
        return key

    def _tuple(self, plain: AvroType) -> Change | None:
        if plain["type"] != "record":
            return self._any(plain)
        changes = []
        for i, field in enumerate(plain["fields"]):
            change = self.change(field["type"], Place.VALUE, self.tuple_key(field))
            if change is not None:
                changes.append((f"f{i}", change))
        return _each(changes)

    def _value(self, plain: AvroType, key: Hashable) -> Change | None:
        """Return the function that replaces a partition value by a placeholder of its type, or only removes secrets."""
        kind, logical = plain["type"], plain.get("logical")
        number = self.terms.number
        if not self.terms.values:
            return self._secretless(plain)
        if kind == "boolean":
            return lambda v: bool(number(key, v) % 2)
        if kind in ("int", "long"):
            return lambda v: number(key, v)
        if kind in ("float", "double"):
            return lambda v: float(number(key, v))
        if kind == "string":
            return lambda v: f"value-{number(key, v)}"
        if kind == "bytes":
            if logical == "decimal":
                return lambda v: _whole(number(key, int.from_bytes(v, "big", signed=True)))
            return lambda v: b"%d" % number(key, v)
        if kind == "fixed":
            size = plain["size"]
            if logical == "decimal":
                return lambda v: _fixed(number(key, int.from_bytes(v, "big", signed=True)), size)
            return lambda v: _fixed(number(key, v), size)
        blank = _blank(plain)
        return lambda v: blank

    def _secretless(self, plain: AvroType) -> Change | None:
        """Return a function that redacts only secrets in values of this type; None if they cannot contain any."""
        kind = plain["type"]
        if not self.terms.credentials or _only_numbers(plain) or kind in ("float", "double"):
            return None
        if kind == "string":
            return self.redactor.value_text
        if kind == "bytes":
            return lambda v: b"" if self.redactor.has_secret(v) else v
        if kind == "fixed":
            return lambda v: bytes(len(v)) if self.redactor.has_secret(v) else v
        return self._loose

    def _bounds(self, plain: AvroType) -> Change | None:
        """Return the function that redacts maps of bounds: paths (in delete files) become redacted locations.

        Other bounds are removed if values are redacted, or if they contain a secret.
        """
        items = plain.get("items")
        if plain["type"] != "array" or not isinstance(items, dict) or len(items.get("fields", ())) != 2:
            return self._any(plain)
        redactor, location, values = self.redactor, self.terms.location, self.terms.values
        plain_columns = redactor.plain

        def change(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
            out = []
            for pair in pairs:
                column, bound = pair["f0"], pair["f1"]
                if column == PATH_ID and isinstance(bound, bytes):
                    try:
                        out.append({"f0": column, "f1": location(bound.decode()).encode()})
                    except UnicodeDecodeError:
                        continue
                elif not values and (column in plain_columns or not redactor.has_secret(bound)):
                    out.append(pair)
            return out

        return change

    def _summaries(self, plain: AvroType) -> Change | None:
        """Return the function that redacts partition summaries.

        If a bound must be removed, the whole list is removed, because summaries without bounds would mean that a
        partition field has no values.
        """
        items = plain.get("items")
        if isinstance(items, list):
            items = next((p for p in items if p["type"] == "record"), None)
        if plain["type"] != "array" or not isinstance(items, dict) or items["type"] != "record":
            return self._any(plain)
        if self.terms.values:
            return lambda v: []
        bounds = [f"f{i}" for i, f in enumerate(items["fields"]) if self.id(f) in (510, 511)]
        others = [
            (f"f{i}", made)
            for i, f in enumerate(items["fields"])
            if f"f{i}" not in bounds and self.id(f) not in (509, 518) and (made := self._any(f["type"]))
        ]
        if not self.terms.credentials and not others:
            return None

        def change(summaries: list[Any]) -> list[Any]:
            for summary in summaries:
                if any(isinstance(summary[b], bytes) and self.redactor.has_secret(summary[b]) for b in bounds):
                    return []
                for name, other in others:
                    summary[name] = other(summary[name])
            return summaries

        return change

    def _stats(self, plain: AvroType) -> Change | None:
        """Return the function that redacts V4 statistics.

        Counts stay. If values are redacted, bounds are removed or, where they are partition values, become
        placeholders.
        """
        if isinstance(plain, list):
            inner = self._stats(next(p for p in plain if p["type"] == "record"))
            return None if inner is None else lambda v: None if v is None else inner(v)
        columns: list[tuple[str, Callable[[Any, bool], Any]]] = []
        others: list[tuple[str, Change]] = []
        for i, field in enumerate(plain["fields"]):
            found = statistic(self.id(field))
            if found is not None and found[1] == 0 and kind_of_avro(field["type"]) is Kind.STRUCT:
                columns.append((f"f{i}", self._column_stats(field["type"], found[0])))
            elif (other := self._any(field["type"])) is not None:
                others.append((f"f{i}", other))

        def change(stats: dict[str, Any]) -> dict[str, Any]:
            is_file = stats.pop("is_file", False)
            for name, of_column in columns:
                stats[name] = of_column(stats[name], is_file)
            for name, other in others:
                stats[name] = other(stats[name])
            return stats

        return change

    def _column_stats(self, plain: AvroType, column: int) -> Callable[[Any, bool], Any]:
        if isinstance(plain, list):
            plain = next(p for p in plain if p["type"] == "record")
        valued, rest = self.column_bounds(plain, column)
        keys = {offset: key for offset, (_, key) in valued.items()}
        kinds = [field["type"] for field in plain["fields"]]
        bounds = {
            offset: (f"f{i}", self.change(kinds[i], Place.VALUE, key), _blank(kinds[i]))
            for offset, (i, key) in valued.items()
        }
        others: list[tuple[str, Change]] = []
        for i, place in rest.items():
            change = _always(_blank(kinds[i])) if place is None else self.change(kinds[i], place)
            if change is not None:
                others.append((f"f{i}", change))
        values = self.terms.values

        def change_column(stats: PlainValue, is_file: bool) -> PlainValue:
            if stats is None:
                return None
            for name, other in others:
                stats[name] = other(stats[name])
            lower = stats[bounds[1][0]] if 1 in bounds else None
            same = 2 in bounds and stats[bounds[2][0]] == lower
            for offset, (name, change, blank) in bounds.items():
                if not values:
                    stats[name] = stats[name] if change is None else change(stats[name])
                elif keys[offset] is None or not is_file or (offset == 2 and not same and lower is not None):
                    stats[name] = blank
                elif change is not None:
                    stats[name] = change(stats[name])
            return stats

        return change_column

    def column_bounds(self, plain: AvroType, column: int) -> tuple[dict[int, tuple[int, Any]], dict[int, Place | None]]:
        """Return the positions of a column's bounds in its statistics, and the roles of the other fields.

        Bounds are given by offset, each as the field's position and the key of its values (see `tuple_key`), which is
        None if they are not partition values. A field that is always blanked has the role None.
        """
        keys = {offset: self.redactor.stats_keys.get(column) for offset in (1, 2)}
        keys[9] = self.redactor.derived_keys.get(column)
        bounds: dict[int, tuple[int, Any]] = {}
        others: dict[int, Place | None] = {}
        for i, field in enumerate(plain["fields"]):
            found = statistic(self.id(field))
            offset = found[1] if found is not None and found[0] == column else -1
            held = partition_part(offset)
            if held is not None and held[1] == "value":
                keys[offset] = self.redactor.field_keys.get(held[0])
            if offset in keys and offset not in bounds:
                bounds[offset] = (i, keys[offset])
            elif offset in range(3, 9) or (held is not None and held[1] == "null_count"):
                others[i] = Place.KEEP if _only_numbers(one_of(field["type"])) else Place.ANY
            else:
                others[i] = None if self.terms.values else Place.ANY
        return bounds, others

    @staticmethod
    def blank(plain: AvroType) -> PlainValue:
        """Return a neutral value of a type."""
        return _blank(plain)

    def _any(self, plain: AvroType) -> Change | None:
        """Return the function that redacts a value of unknown meaning."""
        if isinstance(plain, list):
            return self._union(plain, Place.ANY, None)
        if self.terms.values:
            blank = _blank(plain)
            return lambda v: blank
        return None if _only_numbers(plain) or plain["type"] in ("float", "double", "null") else self._loose

    def _loose(self, value: PlainValue) -> PlainValue:
        """Redact a value of unknown meaning according to its Python type."""
        if isinstance(value, str):
            return self.terms.text(value)
        if isinstance(value, bytes):
            made = self.redactor.data(value)
            return value if made == value else made[: len(value)].ljust(len(value), b"\0")  # keeps a fixed length
        if isinstance(value, list):
            return [self._loose(v) for v in value]
        if isinstance(value, dict):
            return {k if _OURS.fullmatch(k) else self.terms.key(k): self._loose(v) for k, v in value.items()}
        return value

    # The schema ----------------------------------------------------------------------------------------------------

    def shown(self, schema: AvroType, *, named: bool = False) -> AvroType:
        """Return the schema to write: redact names and documentation, and remove attributes unknown to the format."""
        if isinstance(schema, str):
            return schema if schema in _PRIMITIVE else self._type_name(schema)
        if isinstance(schema, list):
            return [self.shown(s) for s in schema]
        out: dict[str, Any] = {}
        for key, value in schema.items():
            if key in ("type", "items", "values"):
                structural = isinstance(value, str) and value in ("record", "error", "array", "map", "enum", "fixed")
                out[key] = value if structural else self.shown(value)
            elif key == "fields" and isinstance(value, list):
                out[key] = [self._shown_field(f) for f in value]
            elif key == "name":
                out[key] = self._type_name(str(value))
            elif key == "symbols":
                out[key] = [f"s{i}" for i in range(len(value))] if self.terms.blanks else [*map(self.terms.text, value)]
            elif key == "logicalType":
                out[key] = value if value in _LOGICAL else self.terms.text(str(value))
            elif key in _ATTRIBUTES and isinstance(value, int):
                out[key] = value
            elif key == "doc" and isinstance(value, str) and not self.terms.blanks:
                out[key] = self.terms.text(value)
        return out

    def _shown_field(self, field: Mapping[str, Any]) -> dict[str, Any]:
        out = self.shown(field)
        name = str(field.get("name", ""))
        out["name"] = name if name in FIELD_NAMES else _avro_name(self.terms.name(name))
        if isinstance(column := field.get("iceberg-field-name"), str):
            out["iceberg-field-name"] = self.terms.name(column)
        if "default" in field:
            value = field["default"]
            known = value is None or (isinstance(value, bool | int) and not self.terms.values)
            out["default"] = value if known else _json_blank(one_of(self._plain_of(field["type"])))
        ordered = {"name": out.pop("name"), "type": out.pop("type")}
        return {**ordered, **out}

    def _plain_of(self, schema: AvroType) -> AvroType:
        try:
            return self._plain(schema, 0)
        except (UnsupportedError, KeyError):
            return {"type": "null"}

    def _type_name(self, name: str) -> str:
        if name in FIELD_NAMES or _RECORD_NAME.fullmatch(name):
            return name
        return ".".join(_avro_name(self.terms.name(part)) for part in name.split("."))


_ATTRIBUTES = frozenset(
    ["field-id", "element-id", "key-id", "value-id", "size", "precision", "scale", "adjust-to-utc", "order"]
)


def _avro_name(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _has_ids(schema: AvroType) -> bool:
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if isinstance(item.get("field-id"), int):
                return True
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return False


def _always(made: PlainValue) -> Change:
    return lambda v: made


def _each(changes: list[tuple[str, Change]]) -> Change | None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        for name, one in changes:
            record[name] = one(record[name])
        return record

    return change if changes else None


def _refuse_empty(items: AvroType) -> None:
    """Refuse arrays whose items take no bytes: a few bytes could claim any number of items, all to be created."""
    todo = [items]
    while todo:
        item = todo.pop()
        if isinstance(item, list) or item["type"] not in ("record", "null", "fixed"):
            return
        if item["type"] == "fixed" and item["size"] > 0:
            return
        todo += [f["type"] for f in item.get("fields", ())]
    raise UnsupportedError("the Avro schema has arrays of values that take no bytes")


def _only_numbers(plain: AvroType) -> bool:
    """Return whether a type holds only whole numbers and booleans."""
    if isinstance(plain, list):
        return all(_only_numbers(p) for p in plain)
    kind = plain["type"]
    if kind == "record":
        return all(_only_numbers(f["type"]) for f in plain["fields"])
    if kind == "array":
        return _only_numbers(plain["items"])
    return kind in _NUMBERS or kind == "null"


def _blank(plain: AvroType) -> PlainValue:
    """Return a neutral value of a type."""
    if isinstance(plain, list):
        return None if any(p["type"] == "null" for p in plain) else _blank(plain[0])
    kind = plain["type"]
    if kind == "record":
        return {f"f{i}": _blank(f["type"]) for i, f in enumerate(plain["fields"])}
    if kind == "fixed":
        return bytes(plain["size"])
    return [] if kind == "array" else {} if kind == "map" else "s0" if kind == "enum" else _BLANKS[kind]


def _json_blank(plain: AvroType) -> PlainValue:
    """Return a neutral value in the form of a field's default in JSON."""
    made = _blank(plain) if plain["type"] != "union" else None
    return made.decode("latin-1") if isinstance(made, bytes) else {} if isinstance(made, dict) else made


def _whole(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _fixed(number: int, size: int) -> bytes:
    return (number % (1 << max(0, 8 * size - 1))).to_bytes(size, "big")
