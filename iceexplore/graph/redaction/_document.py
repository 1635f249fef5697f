"""Redact the JSON documents of a table: its metadata, and the schemas and specs in the headers of manifests.

A document is walked along the structure that the spec defines. Numbers and words that the format defines are kept where
it defines them; everything else may be data of the table and is redacted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from iceexplore.formats import json_texts
from iceexplore.graph.redaction._redactor import Redaction, Walk, walked
from iceexplore.graph.redaction._secrets import BLANK
from iceexplore.graph.redaction._words import (
    COLUMN_PROPERTIES,
    COUNTS,
    HEADER_NUMBERS,
    LOCATION_PROPERTIES,
    PROPERTIES,
    SUMMARY_WORDS,
    TYPE,
    UUID,
    WHOLE,
    WORDS,
    is_setting,
)
from iceexplore.metadata import SQL_FUNCTIONS, TRANSFORM_PATTERN
from iceexplore.storage import JsonValue

__all__ = ["DocumentRedactor", "to_json"]

#: A step of the walk: redacts one part of a document.
Step = Callable[["DocumentRedactor", Any], Walk]


class DocumentRedactor:
    """Redacts JSON documents.

    Parameters
    ----------
    lengths
        New lengths of rewritten statistics files, by location: documents that state the old lengths are corrected.
    """

    def __init__(self, redaction: Redaction, lengths: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self.redaction = redaction
        self.lengths = {} if lengths is None else lengths  # filled later

    def table(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return redacted table metadata."""
        made: dict[str, Any] = walked(_record(self, document, _TABLE))
        return made

    def puffin(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the redacted footer of a Puffin file."""
        made: dict[str, Any] = walked(_record(self, document, _PUFFIN))
        return made

    def header(self, pairs: Mapping[str, str]) -> dict[str, str]:
        """Return the redacted key-value metadata of a manifest, a manifest list or a root manifest."""
        out = {}
        for key, value in pairs.items():
            if key in ("schema", "iceberg.schema", "partition-spec"):
                out[key] = self._parsed(value, _spec_or_fields if key == "partition-spec" else _schema)
            elif key in HEADER_NUMBERS and (WHOLE.fullmatch(value) or value == "null"):
                out[key] = value
            elif (key == "content" and value in WORDS) or (key in ("manifest-list", "manifest_list")):
                out[key] = value if value in WORDS else self.redaction.location(value)
            else:
                made, text = self._entry(key, value)
                out[made] = text
        return out

    def properties(self, pairs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the redacted properties of a table, a file or a blob."""
        made: dict[str, Any] = walked(_properties(self, pairs))
        return made

    def _parsed(self, text: str, step: Step) -> str:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.redaction.text(text)
        made = walked(step(self, value))
        texts = json_texts(value)
        # JSON in which nothing is redacted keeps its exact text. JSON with duplicate keys never equals one of `texts`.
        return json_texts(made)[texts.index(text)] if text in texts else to_json(made)

    def _entry(self, key: str, value: str) -> tuple[str, str]:
        """Return the redacted key and value of a property."""
        it = self.redaction
        prefix = next((p for p in COLUMN_PROPERTIES if key.startswith(p)), None)
        known = key in PROPERTIES or prefix is not None
        if prefix is not None:
            made = prefix + ".".join(map(it.name, key[len(prefix) :].split(".")))
        elif known or key in LOCATION_PROPERTIES or key in _PARSED or key in SUMMARY_WORDS:
            made = key
        else:
            made = it.key(key)
        if known and is_setting(value):
            return made, value
        if it.is_secret(key):
            return made, BLANK
        if key in LOCATION_PROPERTIES or key == "referenced-data-file":
            return made, it.location(value)
        if key in _PARSED:
            return made, self._parsed(value, _PARSED[key])
        if key in SUMMARY_WORDS and SUMMARY_WORDS[key].fullmatch(value):
            return made, value
        return made, it.text(value)


def to_json(value: JsonValue) -> str:
    """Return a value as JSON text, even if it is nested too deeply for the recursive writer of Python's ``json``."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        out: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if type(item) is _Written:
            out.append(item)
        elif isinstance(item, dict):
            todo.append(_Written("}"))
            for i, (key, inner) in reversed(list(enumerate(item.items()))):
                todo += [inner, _Written(f"{', ' if i else ''}{json.dumps(str(key), ensure_ascii=False)}: ")]
            out.append("{")
        elif isinstance(item, list):
            todo.append(_Written("]"))
            for i, inner in reversed(list(enumerate(item))):
                todo += [inner, _Written(", ")] if i else [inner]
            out.append("[")
        else:
            out.append(json.dumps(item, ensure_ascii=False))
    return "".join(out)


class _Written(str):
    """Text that is part of the JSON syntax, to be written without quotes."""

    __slots__ = ()


def _record(self: DocumentRedactor, value: JsonValue, fields: Mapping[str, Step]) -> Walk:
    """Redact an object whose keys the spec defines; other keys, and their values, are redacted as unknown data."""
    if not isinstance(value, dict):
        return (yield _anything(self, value))
    out: dict[str, Any] = {}
    for key, inner in value.items():
        step = fields.get(key)
        if step is None:
            out[self.redaction.key(key)] = yield _anything(self, inner, self.redaction.is_secret(key))
        else:
            out[key] = yield step(self, inner)
    return out


def _anything(self: DocumentRedactor, value: JsonValue, secret: bool = False) -> Walk:
    """Redact a value that no spec defines."""
    it = self.redaction
    if isinstance(value, dict):
        out = {}
        for key, inner in value.items():
            out[it.key(key)] = yield _anything(self, inner, secret or it.is_secret(key))
        return out
    if isinstance(value, list):
        made = []
        for inner in value:
            made.append((yield _anything(self, inner, secret)))
        return made
    if isinstance(value, str):
        return BLANK if secret else it.text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0 if secret or it.values else value
    return value


def _leaf(keep: Callable[[DocumentRedactor, str], str]) -> Step:
    def step(self: DocumentRedactor, value: JsonValue) -> Walk:
        if isinstance(value, str):
            return keep(self, value)
        return (yield _anything(self, value))

    return step


def _number(self: DocumentRedactor, value: JsonValue) -> Walk:
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str) and WHOLE.fullmatch(value):
        return value
    return (yield _anything(self, value))


def _word(self: DocumentRedactor, value: str) -> str:
    return value if value in WORDS else self.redaction.token(value)


def _uuid(self: DocumentRedactor, value: str) -> str:
    return value if UUID.fullmatch(value) else self.redaction.token(value)


def _transform(self: DocumentRedactor, value: str) -> str:
    known = value in SQL_FUNCTIONS or TRANSFORM_PATTERN.fullmatch(value)
    return value if known else self.redaction.token(value)


def _secret(self: DocumentRedactor, value: JsonValue) -> Walk:
    """Redact a file's encryption key or a wrapped key, which every kind of redaction removes."""
    yield from ()  # makes this function a generator, like every step
    return None if value is None else BLANK


def _list(step: Step) -> Step:
    def steps(self: DocumentRedactor, value: JsonValue) -> Walk:
        if not isinstance(value, list):
            return (yield _anything(self, value))
        out = []
        for inner in value:
            out.append((yield step(self, inner)))
        return out

    return steps


def _of(fields: Mapping[str, Step]) -> Step:
    return lambda self, value: _record(self, value, fields)


def _named(step: Step) -> Step:
    """Return a step for an object whose keys are names."""

    def steps(self: DocumentRedactor, value: JsonValue) -> Walk:
        if not isinstance(value, dict):
            return (yield _anything(self, value))
        out = {}
        for key, inner in value.items():
            out[self.redaction.name(key)] = yield step(self, inner)
        return out

    return steps


def _type(self: DocumentRedactor, value: JsonValue) -> Walk:
    if isinstance(value, str):
        it = self.redaction
        if TYPE.fullmatch(value):
            return value
        if it.blanks and (base := re.match("geometry|geography", value)):
            return base[0]  # the CRS parameter may be any text
        return it.token(value)
    return (yield _record(self, value, _TYPE))


def _field(self: DocumentRedactor, value: JsonValue) -> Walk:
    out = yield _record(self, value, _FIELD)
    if not isinstance(value, dict) or not isinstance(out, dict):
        return out
    for key in ("initial-default", "write-default"):
        if key in value and value[key] is not None and self.redaction.values:
            made = _blank_default(value.get("type"))
            if made is None:
                del out[key]
            else:
                out[key] = made
    return out


_DEFAULTS: dict[str, Any] = {
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01T00:00:00",
    "timestamptz": "1970-01-01T00:00:00+00:00",
    "timestamp_ns": "1970-01-01T00:00:00",
    "timestamptz_ns": "1970-01-01T00:00:00+00:00",
    "string": BLANK,
    "uuid": "00000000-0000-0000-0000-000000000000",
    "binary": "",
}


def _blank_default(kind: JsonValue) -> JsonValue:
    """Return a neutral default value of a type; None if the type has none, so that the field gets no default."""
    if not isinstance(kind, str):
        return None
    if found := re.fullmatch(r"fixed\[\s*(\d{1,4})\s*\]", kind):
        return "00" * int(found[1])
    if found := re.fullmatch(r"decimal\(\s*\d+\s*,\s*(\d{1,2})\s*\)", kind):
        return f"0.{'0' * int(found[1])}" if int(found[1]) else "0"
    return _DEFAULTS.get(kind)


def _spec_or_fields(self: DocumentRedactor, value: JsonValue) -> Walk:
    """Redact a partition spec as manifests store it: a list of its fields, or the whole object."""
    return (yield (_list(_of(_SPEC_FIELD)) if isinstance(value, list) else _of(_SPEC))(self, value))


def _schema(self: DocumentRedactor, value: JsonValue) -> Walk:
    return (yield _record(self, value, _SCHEMA))


def _properties(self: DocumentRedactor, value: JsonValue) -> Walk:
    if not isinstance(value, Mapping):
        return (yield _anything(self, value))
    out = {}
    for key, inner in value.items():
        if isinstance(inner, str):
            made, text = self._entry(key, inner)
            out[made] = text
        else:
            out[self.redaction.key(key)] = yield _anything(self, inner, self.redaction.is_secret(key))
    return out


def _summary(self: DocumentRedactor, value: JsonValue) -> Walk:
    if not isinstance(value, dict):
        return (yield _anything(self, value))
    out: dict[str, Any] = {}
    for key, inner in value.items():
        if key in COUNTS and isinstance(inner, str | int) and WHOLE.fullmatch(str(inner)):
            out[key] = inner
        elif isinstance(inner, str):
            made, text = self._entry(key, inner) if key not in COUNTS else (key, self.redaction.text(inner))
            out[made] = text
        else:
            out[self.redaction.key(key)] = yield _anything(self, inner, self.redaction.is_secret(key))
    return out


def _statistics(self: DocumentRedactor, value: JsonValue) -> Walk:
    """Redact a statistics file's entry and update the lengths if the file was rewritten."""
    out = yield _record(self, value, _STATISTICS)
    if isinstance(value, dict) and isinstance(path := value.get("statistics-path"), str):
        out |= {k: v for k, v in self.lengths.get(path, {}).items() if k in value}
    return out


def _mapping(self: DocumentRedactor, value: JsonValue) -> Walk:
    return (yield _list(_of(_MAPPED))(self, value))


_location = _leaf(lambda self, value: self.redaction.location(value))
_name = _leaf(lambda self, value: self.redaction.name(value))
_text = _leaf(lambda self, value: self.redaction.text(value))
_token = _leaf(lambda self, value: self.redaction.token(value))
_words = _leaf(_word)
_transforms = _leaf(_transform)
_numbers = _list(_number)

_SCHEMA: dict[str, Step] = {
    "type": _words,
    "schema-id": _number,
    "identifier-field-ids": _numbers,
    "fields": _list(_field),
}
_TYPE: dict[str, Step] = {
    "type": _words,
    "fields": _list(_field),
    "element-id": _number,
    "element": _type,
    "element-required": _number,
    "key-id": _number,
    "key": _type,
    "value-id": _number,
    "value": _type,
    "value-required": _number,
}
_FIELD: dict[str, Step] = {
    "id": _number,
    "name": _name,
    "required": _number,
    "type": _type,
    "doc": _text,
    "initial-default": lambda self, value: _anything(self, value),
    "write-default": lambda self, value: _anything(self, value),
}
_SPEC_FIELD: dict[str, Step] = {
    "name": _name,
    "transform": _transforms,
    "source-id": _number,
    "source-ids": _numbers,
    "field-id": _number,
    "expr-id": _number,
}
_SPEC: dict[str, Step] = {"spec-id": _number, "fields": _list(_of(_SPEC_FIELD))}
_ORDER: dict[str, Step] = {
    "order-id": _number,
    "fields": _list(_of({**_SPEC_FIELD, "direction": _words, "null-order": _words})),
}
_SNAPSHOT: dict[str, Step] = {
    **dict.fromkeys(
        ("snapshot-id", "parent-snapshot-id", "sequence-number", "timestamp-ms", "schema-id", "first-row-id"), _number
    ),
    "added-rows": _number,
    "manifest-list": _location,
    "root-manifest": _location,
    "manifests": _list(_location),
    "summary": _summary,
    "key-id": _token,
}
_BLOB: dict[str, Step] = {
    "type": _words,
    "snapshot-id": _number,
    "sequence-number": _number,
    "fields": _numbers,
    "offset": _number,
    "length": _number,
    "properties": _properties,
}
_PUFFIN: dict[str, Step] = {
    "blobs": _list(_of({**_BLOB, "compression-codec": _words})),
    "properties": _properties,
}
_STATISTICS: dict[str, Step] = {
    "snapshot-id": _number,
    "statistics-path": _location,
    "file-size-in-bytes": _number,
    "file-footer-size-in-bytes": _number,
    "key-metadata": _secret,
    "blob-metadata": _list(_of(_BLOB)),
}
_EXPRESSION: dict[str, Step] = {
    "expr-id": _number,
    "name": _name,
    "partition-field-id": _number,
    "expr": _of(
        {
            "transform": _transforms,
            "function": _transforms,
            "name": _name,
            "source-id": _number,
            "source-ids": _numbers,
            "partition-field-id": _number,
            "type": _words,
        }
    ),
}
_REF: dict[str, Step] = {
    "snapshot-id": _number,
    "type": _words,
    "min-snapshots-to-keep": _number,
    "max-snapshot-age-ms": _number,
    "max-ref-age-ms": _number,
}
_MAPPED: dict[str, Step] = {"field-id": _number, "names": _list(_name), "fields": _mapping}
_TABLE: dict[str, Step] = {
    **dict.fromkeys(
        [
            "format-version",
            "last-sequence-number",
            "last-updated-ms",
            "last-column-id",
            "current-schema-id",
            "default-spec-id",
            "last-partition-id",
            "current-snapshot-id",
            "default-sort-order-id",
            "next-row-id",
        ],
        _number,
    ),
    "table-uuid": _leaf(_uuid),
    "location": _location,
    "schema": _schema,
    "schemas": _list(_schema),
    "partition-spec": _spec_or_fields,
    "partition-specs": _list(_of(_SPEC)),
    "sort-orders": _list(_of(_ORDER)),
    "expressions": _list(_of(_EXPRESSION)),
    "properties": _properties,
    "snapshots": _list(_of(_SNAPSHOT)),
    "snapshot-log": _list(_of({"timestamp-ms": _number, "snapshot-id": _number})),
    "metadata-log": _list(_of({"timestamp-ms": _number, "metadata-file": _location})),
    "refs": _named(_of(_REF)),
    "statistics": _list(_statistics),
    "partition-statistics": _list(_statistics),
    "encryption-keys": _list(
        _of(
            {
                "key-id": _token,
                "encrypted-key-metadata": _secret,
                "encrypted-by-id": _token,
                "properties": _properties,
            }
        )
    ),
}
_PARSED: dict[str, Step] = {"schema.name-mapping.default": _mapping}
