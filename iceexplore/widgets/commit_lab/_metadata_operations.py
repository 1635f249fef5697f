"""Operations of the commit lab that change only metadata: schema, spec, properties, refs, history, format version."""

from __future__ import annotations

from itertools import islice
from typing import Any

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, format_ms
from iceexplore.metadata import ancestry
from iceexplore.widgets.commit_lab._form import Calls, Field, Operation, Values
from iceexplore.widgets.commit_lab._registered import call, field_of, form

__all__ = ["evolutions"]

_ANY_AGE = "9999-12-31"


def _choices(names: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names)


def _when(*changes: str) -> tuple[str, tuple[str, ...]]:
    return "change", changes


def _one_of(name: str, label: str, names: list[str], *changes: str) -> Field:
    return Field(name, label, "choice", names[0] if names else "", choices=_choices(names), when=_when(*changes))


def _schema_fields(state: TableState) -> tuple[Field, ...]:
    ways = {"add": "add a column", "rename": "rename a column", "drop": "drop a column", "update": "promote a type"}
    kinds = "long, double, decimal(10,2), string, list<int>, struct<a: int>, …"
    return (
        Field("change", "Change", "choice", "add", choices=tuple(ways.items())),
        Field("name", "New column", "text", "note", when=_when("add")),
        _one_of("column", "Column", [name for name, _ in state.schema.walk()], "rename", "drop", "update"),
        Field("type", "Type", "text", "string", kinds, when=_when("add", "update")),
        Field("to", "New name", "text", "", when=_when("rename")),
    )


def _schema(state: TableState, values: Values) -> Calls:
    column = values["name"] if values["change"] == "add" else values["column"]
    if not column:
        raise OptionError("name: give the column's name")
    changes: dict[str, dict[str, Any]] = {
        "add": {"add": {column: values["type"]}},
        "rename": {"rename": {column: values["to"]}},
        "drop": {"drop": [column]},
        "update": {"update": {column: values["type"]}},
    }
    return (call("evolve_schema", **changes[values["change"]]),)


def _spec_fields(state: TableState) -> tuple[Field, ...]:
    spec = state.metadata.spec()
    names = [f.name for f in spec.fields] if spec else []
    ways = [("add", "add a partition field")]
    if names:
        ways += [("remove", "remove a partition field"), ("rename", "rename a partition field")]
    text = "A column or a transform of one: day(ts), bucket(16, id), truncate(4, name)."
    return (
        Field("change", "Change", "choice", "add", choices=tuple(ways)),
        Field("term", "Field", "text", "", text, when=_when("add")),
        _one_of("field", "Field", names, "remove", "rename"),
        Field("to", "New name", "text", "", when=_when("rename")),
    )


def _spec(state: TableState, values: Values) -> Calls:
    if values["change"] == "add" and not values["term"]:
        raise OptionError("term: give a column or a transform of one, such as day(ts)")
    changes: dict[str, dict[str, Any]] = {
        "add": {"add": [values["term"]]},
        "remove": {"remove": [values["field"]]},
        "rename": {"rename": {values["field"]: values["to"]}},
    }
    return (call("evolve_spec", **changes[values["change"]]),)


def _property_fields(state: TableState) -> tuple[Field, ...]:
    return (
        Field("name", "Property", "text", "commit.retry.num-retries"),
        Field("remove", "Remove it", "flag", False),
        Field("value", "Value", "text", "4"),
    )


def _property(state: TableState, values: Values) -> Calls:
    if not values["name"]:
        raise OptionError("name: give the property's name")
    if values["remove"]:
        return (call("set_properties", remove=[values["name"]]),)
    return (call("set_properties", properties={values["name"]: values["value"]}),)


def _ref_fields(state: TableState) -> tuple[Field, ...]:
    names = sorted(state.metadata.refs, key=lambda name: name == "main")
    ways = [("branch", "create or move a branch"), ("tag", "create or move a tag")]
    if names:
        ways.append(("remove_ref", "remove a branch or tag"))
    return (
        Field("change", "Change", "choice", "branch", choices=tuple(ways)),
        Field("name", "Name", "text", "audit", "For the snapshot shown.", when=_when("branch", "tag")),
        _one_of("ref", "Branch or tag", names, "remove_ref"),
    )


def _ref(state: TableState, values: Values) -> Calls:
    name = values["ref"] if values["change"] == "remove_ref" else values["name"]
    if not name:
        raise OptionError("name: give the branch's or tag's name")
    return (call(values["change"], name=name),)


def _expire_fields(state: TableState) -> tuple[Field, ...]:
    text = "An ISO date or time; empty for any age. Snapshots that branches and tags name are kept."
    return (
        field_of("expire_snapshots", "retain_last", "Newest to keep", "Per branch.", default=1, most=1_000_000),
        field_of("expire_snapshots", "older_than", "Only older than", text),
    )


def _expire(state: TableState, values: Values) -> Calls:
    how = {"older_than": values["older_than"] or _ANY_AGE, "retain_last": values["retain_last"]}
    return (call("expire_snapshots", **how),)


def _ancestors(state: TableState) -> list[tuple[str, str]]:
    """Return up to 50 ancestors of the snapshot shown, newest first, as ids with descriptions."""
    out: list[tuple[str, str]] = []
    for at in islice(ancestry(state.metadata, state.snapshot), 1, 51):
        words = f"{format_ms(at.timestamp_ms)} {at.operation or ''}".replace(".000 UTC", " UTC")
        out.append((str(at.snapshot_id), words))
    return out


def _rollback_fields(state: TableState) -> tuple[Field, ...] | None:
    found = _ancestors(state)
    return (Field("to", "Back to", "choice", found[0][0], choices=tuple(found)),) if found else None


def _upgrade_fields(state: TableState) -> tuple[Field, ...] | None:
    version = state.metadata.format_version
    higher = tuple((str(v), f"version {v}") for v in range(version + 1, 5))
    return (Field("to", "To", "choice", higher[-1][0], choices=higher),) if higher else None


def evolutions() -> tuple[Operation, ...]:
    """Return the forms, in the order in which they are offered."""
    return (
        form(
            "expire_snapshots",
            "Removes snapshots from the metadata, but no files. A root that no snapshot names is no longer needed.",
            _expire_fields, _expire,
        ),
        form(
            "evolve_schema",
            "Columns are identified by id, so a rename rewrites no data. Changes that the spec forbids are refused.",
            _schema_fields, _schema,
        ),
        form(
            "evolve_spec",
            "Sets a new spec for future files; other files keep theirs. "
            "In V4 a new field is an expression of the table.",
            _spec_fields, _spec,
        ),
        form(
            "set_properties",
            "Sets or removes a property of the table in the metadata file.", _property_fields, _property,
        ),
        form(
            "ref",
            "Names a snapshot. Commits to another branch do not move main.", _ref_fields, _ref,
            title="Branch or tag",
        ),
        form(
            "rollback",
            "Makes an earlier snapshot the current one again; the later ones stay until they expire.",
            _rollback_fields, lambda state, values: (call("rollback", snapshot=int(values["to"])),),
        ),
        form(
            "upgrade",
            "Writes only a new metadata file. Manifests stay unchanged; the next commit to V4 writes the first root.",
            _upgrade_fields, lambda state, values: (call("upgrade", format_version=int(values["to"])),),
        ),
    )  # fmt: skip
