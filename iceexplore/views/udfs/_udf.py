"""The metadata of a SQL user-defined function: overloads, their versions, and which were selected when.

The UDF spec calls an overload a definition. A name is not part of the metadata: catalogs have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import FormatError, Problems, UnsupportedError
from iceexplore.metadata import JsonObjectReader, Reporter, format_ms
from iceexplore.render import Card, CardTable, CardText, card_html, card_text, escape, shown_frame
from iceexplore.storage import JsonValue

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Udf", "UdfOverload", "UdfParameter", "UdfVersion", "is_udf_metadata", "parse_udf"]

_CODE = "udf-invalid"
_NOTE = "The UDF spec is new (adopted in February 2026): engines may not read or write such functions yet."
_REQUIRED = ("function-uuid", "format-version", "definitions", "definition-log")
_LATEST = 1
INT = 31
_SHOWN = 40
_SHOWN_TEXTS = 6
#: The maximum depth of nested types.
_MOST_LEVELS = 50

VERSIONS = build.schema(
    [
        ("overload", pa.string()),
        ("specific_name", pa.string()),
        ("version_id", pa.int64()),
        ("is_current", pa.bool_()),
        ("created_at", pa.timestamp("ms", tz="UTC")),
        ("dialect", pa.string()),
        ("sql", pa.string()),
        ("deterministic", pa.bool_()),
        ("on_null_input", pa.string()),
    ]
)
_PARAMETERS = build.schema(
    [
        ("overload", pa.string()),
        ("position", pa.int64()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("doc", pa.string()),
    ]
)
_LOG = build.schema(
    [
        ("selected_at", pa.timestamp("ms", tz="UTC")),
        ("overload", pa.string()),
        ("version_id", pa.int64()),
    ]
)


@dataclass(frozen=True)
class UdfParameter:
    """A parameter of an overload; ``type`` is written as in a definition id."""

    name: str
    type: str
    doc: str | None = None


@dataclass(frozen=True)
class UdfVersion:
    """A version of an overload: the function's body in one or several dialects.

    Attributes
    ----------
    sql
        The SQL expressions by dialect, as stored; if a dialect occurs twice, the first one counts.
    """

    version_id: int
    timestamp_ms: int
    sql: Mapping[str, str] = field(hash=False)
    deterministic: bool = False
    on_null_input: str = "call"


@dataclass(frozen=True)
class UdfOverload:
    """A definition of the function: one signature, and its versions.

    Attributes
    ----------
    definition_id
        The types of the parameters, separated by commas.
    function_type
        ``udf`` (returns a value) or ``udtf`` (returns a table).
    """

    definition_id: str
    parameters: tuple[UdfParameter, ...]
    return_type: str
    function_type: str
    current_version_id: int | None
    versions: tuple[UdfVersion, ...]
    specific_name: str | None = None
    return_nullable: bool = True
    doc: str | None = None

    @property
    def current(self) -> UdfVersion | None:
        """The current version; None if there is none."""
        return next((v for v in self.versions if v.version_id == self.current_version_id), None)


@dataclass(frozen=True, eq=False)
class Udf:
    """A SQL user-defined function, as its metadata file describes it. Displays as a card.

    Attributes
    ----------
    log
        The entries of the definition log: a time in milliseconds since the epoch, and the versions of overloads that
        were selected then, by definition id.
    """

    metadata_location: str
    uuid: str | None
    format_version: int
    overloads: tuple[UdfOverload, ...]
    log: tuple[tuple[int, Mapping[str, int]], ...]
    problems: Problems
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    secure: bool = False
    doc: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)

    def overload(self, *types: str) -> UdfOverload | None:
        """Return the overload with these parameter types (``u.overload("int", "string")``); None if there is none."""
        wanted = ",".join(types)
        return next((one for one in self.overloads if one.definition_id == wanted), None)

    def versions_arrow(self) -> pa.Table:
        """Return every version of every overload as an Arrow table, with a row for each dialect."""
        rows = [
            {
                "overload": one.definition_id,
                "specific_name": one.specific_name,
                "version_id": v.version_id,
                "is_current": v.version_id == one.current_version_id,
                "created_at": v.timestamp_ms,
                "dialect": dialect,
                "sql": sql,
                "deterministic": v.deterministic,
                "on_null_input": v.on_null_input,
            }
            for one in self.overloads
            for v in one.versions
            for dialect, sql in _texts(v)
        ]
        return pa.Table.from_pylist(rows, schema=VERSIONS)

    def parameters_arrow(self) -> pa.Table:
        """Return the parameters of every overload as an Arrow table."""
        rows = [
            {"overload": one.definition_id, "position": i, "name": p.name, "type": p.type, "doc": p.doc}
            for one in self.overloads
            for i, p in enumerate(one.parameters)
        ]
        return pa.Table.from_pylist(rows, schema=_PARAMETERS)

    def log_arrow(self) -> pa.Table:
        """Return the times at which versions of overloads were selected, as an Arrow table."""
        rows = [
            {"selected_at": ms, "overload": name, "version_id": version}
            for ms, chosen in self.log
            for name, version in chosen.items()
        ]
        return pa.Table.from_pylist(rows, schema=_LOG)

    def versions(self) -> pd.DataFrame:
        """Return `versions_arrow` as a data frame."""
        return _frame(self.versions_arrow())

    def parameters(self) -> pd.DataFrame:
        """Return `parameters_arrow` as a data frame."""
        return _frame(self.parameters_arrow())

    def definition_log(self) -> pd.DataFrame:
        """Return `log_arrow` as a data frame."""
        return _frame(self.log_arrow())

    def card(self) -> Card:
        """Return the card: overloads, parameters, versions and problems."""
        facts = [("Overloads", str(len(self.overloads)))]
        facts += [("UUID", self.uuid)] if self.uuid else []
        facts += [("Comment", self.doc)] if self.doc else []
        facts += [(name, value) for name, value in list(self.properties.items())[:10]]
        rows = tuple(
            (
                f"({', '.join(f'{p.name} {p.type}' for p in one.parameters)})",
                f"{one.return_type}{'' if one.return_nullable else ' not null'}",
                one.function_type,
                str(one.current_version_id),
                f"{len(one.versions):,}",
                ", ".join({d: None for v in one.versions for d in v.sql}),
                one.specific_name or "",
                one.doc or "",
            )
            for one in self.overloads[:_SHOWN]
        )
        heading = ("parameters", "returns", "type", "version", "of", "dialects", "specific name", "doc")
        more = f"first {_SHOWN} of {len(self.overloads):,}" if len(self.overloads) > _SHOWN else ""
        log = tuple(
            (format_ms(ms), "; ".join(f"({name}) version {version}" for name, version in chosen.items()))
            for ms, chosen in self.log[: -_SHOWN - 1 : -1]
        )
        texts = [
            CardText(f"SQL of ({one.definition_id}), {dialect}", sql)
            for one in self.overloads
            if one.current is not None
            for dialect, sql in one.current.sql.items()
        ]
        problems = tuple((p.severity, f"{p.text} [{p.code}]", p.where) for p in list(self.problems)[:20])
        return Card(
            title=self.metadata_location.rstrip("/").rpartition("/")[2] or "UDF",
            badges=("Iceberg UDF v1", "new spec", *(("secure",) if self.secure else ())),
            subtitle=self.location or self.metadata_location,
            facts=tuple(facts),
            texts=tuple(texts[:_SHOWN_TEXTS]),
            tables=(
                CardTable("Overloads", heading, rows, more, code=frozenset({0, 1})),
                *((CardTable("Selected versions", ("from", "versions"), log),) if log else ()),
            ),
            notes=(_NOTE,),
            problems=problems,
        )

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def _texts(version: UdfVersion) -> Iterable[tuple[str | None, str | None]]:
    """Return each dialect with its SQL; for a version without SQL, a single pair of Nones."""
    return version.sql.items() or ((None, None),)


def _frame(table: pa.Table) -> pd.DataFrame:
    import pandas as pd

    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return shown_frame(frame)


def is_udf_metadata(document: JsonValue) -> bool:
    """Return whether a JSON document looks like the metadata of a function, however damaged."""
    return isinstance(document, dict) and (
        "function-uuid" in document or ("definitions" in document and "definition-log" in document)
    )


def parse_udf(document: JsonValue, location: str, problems: Problems) -> Udf:
    """Parse the metadata of a function; invalid values are reported as ``udf-invalid`` and replaced or left out.

    Raises
    ------
    FormatError
        The document is not such metadata.
    UnsupportedError
        A ``format-version`` above 1.
    """
    if not is_udf_metadata(document):
        raise FormatError("not UDF metadata: it has no function-uuid", location=location, code=_CODE)
    reporter = Reporter(problems, location, _CODE)
    keys = JsonObjectReader(document, reporter, "UDF metadata")
    version = keys.integer("format-version")
    if version is not None and version > _LATEST:
        raise UnsupportedError(
            f"format-version {version} of the function {location} is not supported: iceexplore reads version "
            f"{_LATEST}, the only one that the UDF spec defines"
        )
    if version is not None and version < _LATEST:
        reporter.error(f"format-version must be {_LATEST}, found {version}", "format-version")
    missing = [key for key in _REQUIRED if keys.json.get(key) is None]
    if missing:
        reporter.error(f"UDF metadata lacks {', '.join(missing)}", ", ".join(missing))
    found = [_overload(item, i, reporter) for i, item in enumerate(keys.items("definitions"))]
    overloads = tuple(one for one in found if one is not None)
    _check_unique(overloads, reporter)
    udf = Udf(
        metadata_location=location,
        uuid=keys.text("function-uuid"),
        format_version=_LATEST,
        overloads=overloads,
        log=tuple(_log(keys, overloads)),
        problems=problems,
        location=keys.text("location"),
        properties=keys.string_map("properties"),
        secure=_flag(keys, "secure", False),
        doc=keys.text("doc"),
        raw=document,
    )
    return udf


def _overload(json: JsonValue, number: int, reporter: Reporter) -> UdfOverload | None:
    named = json.get("definition-id") if isinstance(json, dict) else None
    part = reporter.at(f"definition {escape.shorten(named, 80) if isinstance(named, str) else number}")
    keys = JsonObjectReader(json, part, "a definition")
    if not keys.json:
        return None
    parameters = tuple(
        p for item in keys.items("parameters", required=True) if (p := _parameter(item, part)) is not None
    )
    for name in _repeated(p.name.lower() for p in parameters):
        part.error(f"two parameters have the name {name!r}", "name")
    canonical = ",".join(p.type for p in parameters)
    definition_id = keys.text("definition-id", required=True)
    if definition_id is not None and definition_id != canonical:
        part.warning(f"definition-id must be the types of the parameters, {canonical!r}", "definition-id",
                     found=definition_id)  # fmt: skip
    kind = keys.text("function-type", required=True)
    if kind is not None and kind not in ("udf", "udtf"):
        part.error(f"function-type must be udf or udtf, found {kind!r}", "function-type")
    returned = keys.json.get("return-type")
    if returned is None:
        part.error("a definition lacks return-type", "return-type")
    is_struct = isinstance(returned, dict) and returned.get("type") == "struct"
    if kind == "udtf" and not is_struct:
        part.error("the return-type of a udtf must be a struct", "return-type")
    found = [_version(item, part) for item in keys.items("versions", required=True)]
    versions = tuple(v for v in found if v is not None)
    for version_id in _repeated(v.version_id for v in versions):
        part.error(f"several versions have the id {version_id}: the first is shown", "version-id")
    if any(b.version_id < a.version_id for a, b in pairwise(sorted(versions, key=lambda v: v.timestamp_ms))):
        part.warning("version ids do not increase in time", "version-id")
    current = keys.integer("current-version-id", bits=INT, required=True)
    if current is not None and current not in {v.version_id for v in versions}:
        part.error(f"current-version-id {current} is not the id of a version", "current-version-id")
    return UdfOverload(
        definition_id=canonical if definition_id is None else definition_id,
        parameters=parameters,
        return_type="?" if returned is None else _type(returned, part),
        function_type=kind or "?",
        current_version_id=current,
        versions=versions,
        specific_name=keys.text("specific-name"),
        return_nullable=_flag(keys, "return-nullable", True),
        doc=keys.text("doc"),
    )


def _parameter(json: JsonValue, reporter: Reporter) -> UdfParameter | None:
    keys = JsonObjectReader(json, reporter, "a parameter")
    name = keys.text("name", required=True)
    if name is None:
        return None
    kind = keys.json.get("type")
    if kind is None:
        reporter.error(f"the parameter {name} has no type", "type")
    return UdfParameter(name, "?" if kind is None else _type(kind, reporter), keys.text("doc"))


def _type(json: JsonValue, reporter: Reporter, level: int = 0) -> str:
    """Return a type as a definition id spells it."""
    if isinstance(json, str):
        if not json or set(json) & set(" \t\n\"'`"):
            reporter.error(f"the type {escape.shorten(json, 60)!r} must have no spaces or quotes", "type")
        return json
    kind = json.get("type") if isinstance(json, dict) else None
    if level >= _MOST_LEVELS or not isinstance(json, dict) or kind not in ("list", "map", "struct"):
        reporter.error(f"a type is nested too deeply or unknown: {escape.shorten(str(kind), 60)}", "type")
        return "?"
    if kind == "list":
        return f"list<{_type(json.get('element'), reporter, level + 1)}>"
    if kind == "map":
        inner = (_type(json.get(key), reporter, level + 1) for key in ("key", "value"))
        return f"map<{','.join(inner)}>"
    fields = json.get("fields")
    if not isinstance(fields, list) or not all(isinstance(f, dict) and isinstance(f.get("name"), str) for f in fields):
        reporter.error("a struct needs fields with names and types", "fields")
        return "struct<?>"
    named = (f"{one['name']}:{_type(one.get('type'), reporter, level + 1)}" for one in fields)
    return f"struct<{','.join(named)}>"


def _version(json: JsonValue, reporter: Reporter) -> UdfVersion | None:
    keys = JsonObjectReader(json, reporter, "a version")
    version_id = keys.integer("version-id", bits=INT, required=True)
    if version_id is None:
        return None
    part = reporter.at(f"version {version_id}")
    sql: dict[str, str] = {}
    for item in keys.items("representations", required=True):
        inner = JsonObjectReader(item, part, "a representation")
        kind = inner.text("type", required=True)
        if kind != "sql":
            if kind is not None:
                part.warning(f"a representation has the unknown type {kind!r}", "type")
            continue
        dialect, text = inner.text("dialect", required=True), inner.text("sql", required=True)
        if dialect is None or text is None:
            continue
        if dialect.lower() in {one.lower() for one in sql}:
            part.error(
                f"version {version_id} has several texts for the dialect {dialect!r}: the first is shown", "dialect"
            )
            continue
        sql[dialect] = text
    null_input = keys.text("on-null-input") or "call"
    if null_input not in ("call", "return-null"):
        part.error(f"on-null-input must be call or return-null, found {null_input!r}", "on-null-input")
    return UdfVersion(
        version_id,
        keys.integer("timestamp-ms", required=True) or 0,
        sql,
        _flag(keys, "deterministic", False),
        null_input,
    )


def _flag(keys: JsonObjectReader, key: str, default: bool) -> bool:
    value = keys.json.get(key)
    if value is None or isinstance(value, bool):
        return default if value is None else value
    keys.reporter.error(f"{key} of {keys.what} must be true or false", key)
    return default


def _check_unique(overloads: tuple[UdfOverload, ...], reporter: Reporter) -> None:
    for name in _repeated(one.definition_id for one in overloads):
        reporter.error(f"several definitions have the id {name!r}: one is allowed for each signature", "definition-id")
    for name in _repeated(one.specific_name for one in overloads if one.specific_name is not None):
        reporter.error(f"several definitions have the specific name {name!r}", "specific-name")


def _log(keys: JsonObjectReader, overloads: tuple[UdfOverload, ...]) -> Iterable[tuple[int, Mapping[str, int]]]:
    known = {one.definition_id: {v.version_id for v in one.versions} for one in overloads}
    for number, item in enumerate(keys.items("definition-log")):
        part = keys.reporter.at(f"definition-log {number}")
        entry = JsonObjectReader(item, part, "a definition-log entry")
        ms = entry.integer("timestamp-ms", required=True)
        chosen: dict[str, int] = {}
        for one in entry.items("definition-versions", required=True):
            inner = JsonObjectReader(one, part, "a definition version")
            name = inner.text("definition-id", required=True)
            version = inner.integer("version-id", bits=INT, required=True)
            if name is None or version is None:
                continue
            chosen[name] = version
            if version not in known.get(name, {version}):  # overloads that were dropped are not checked
                part.warning(f"version {version} of ({name}) is not in the metadata any more", "version-id")
        if ms is not None:
            yield ms, chosen


def _repeated(values: Iterable[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]
