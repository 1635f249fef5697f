"""The operations of the commit lab: their form fields, and the simulation calls that they translate to.

Each form calls operations of `iceexplore.commits.OPERATIONS`; `FORMS_OF` lists those that share a form, and `NO_FORM`
those without one. An operation that has no form of its own here gets a plain form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from iceexplore.arrow import PlainValue
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.widgets.commit_lab._form import (
    Call,
    Calls,
    Field,
    Operation,
    Values,
    branch_field,
    checked_values,
    live_data,
)
from iceexplore.widgets.commit_lab._metadata_operations import evolutions
from iceexplore.widgets.commit_lab._registered import call, field_of, form, plain_form

__all__ = ["FORMS_OF", "NO_FORM", "OPERATIONS", "RIVALS", "calls_of", "operation", "rival_calls"]

_MOST_NAMED = 1000  # the maximum number of files that a call names one by one
_FIELDS_NAMED, _LONG_NAME = 6, 60  # maximum partition fields in a hint, and characters of each


def _made_up(files: int, label: str = "Data files to add") -> tuple[Field, ...]:
    text = "Synthetic files: plausible statistics, but no data."
    return (
        Field("files", label, "int", files, text, least=0 if label != "Data files" else 1, most=1_000_000),
        Field("rows", "Rows per file", "int", 1000, least=1, most=1_000_000_000),
    )


def _partitions(state: TableState) -> tuple[Field, ...]:
    spec = state.metadata.spec()
    if spec is None or not spec.fields:
        return ()
    named = [f'"{f.name if len(f.name) <= _LONG_NAME else f.name[:_LONG_NAME] + "…"}": …' for f in spec.fields]
    left = [f"and {len(named) - _FIELDS_NAMED} more"] if len(named) > _FIELDS_NAMED else []
    names = ", ".join([*named[:_FIELDS_NAMED], *left])  # a longer hint would push the button Apply out of view
    text = f"One JSON object, or a list of them: {{{names}}}. Empty: the newest partitions, one after the other."
    return (field_of("append", "partitions", "Partitions", text),)


def _add_fields(state: TableState) -> tuple[Field, ...]:
    real = field_of(
        "append", "materialize", "Write real Parquet files", "Random rows as Parquet in the simulation's folder."
    )
    return (*_made_up(3, "Data files"), *_partitions(state), real, *branch_field(state))


def _append(state: TableState, values: Values) -> Calls:
    how = {"partitions": _listed(values.get("partitions")), "materialize": values["materialize"]}
    return (call("append", files=values["files"], rows=values["rows"], **how, ref=values.get("ref")),)


def _listed(partitions: PlainValue) -> PlainValue:
    return [partitions] if isinstance(partitions, Mapping) else partitions


_WHERE = "A filter such as fare > 10, which selects files that may contain such rows; empty for all files."


def _delta_fields(state: TableState) -> tuple[Field, ...]:
    ways = (("positions", "by position"), ("values", "by value (equality delete)"))
    by = ("by", ("positions",))
    return (
        Field("by", "Delete rows", "choice", "positions", choices=ways),
        Field("of", "In data files", "int", 2, "The first live ones.", least=1, most=_MOST_NAMED, when=by),
        Field("where", "Only files that may match", "text", "", _WHERE, when=by),
        Field("positions", "Positions", "text", "0", "Row positions in each file, from 0: 0, 5, 10-19.", when=by),
        Field("values", "Values", "json", "", 'JSON by column: {"id": [1, 2]}.', when=("by", ("values",))),
        *_made_up(0, "Data files to add (an update)"),
        *branch_field(state),
    )


def _delta(state: TableState, values: Values) -> Calls:
    how: dict[str, Any] = {}
    if values["by"] == "positions":
        rows = _positions(values["positions"])
        how["deletes"] = dict.fromkeys(live_data(state, values["of"], values["where"]), rows)
    else:
        if not isinstance(values["values"], Mapping):
            raise OptionError('values: give a dictionary by column: {"id": [1, 2]}')
        how["equality"] = dict(values["values"])
    return (call("row_delta", **_adding(values, how)),)


def _adding(values: Values, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that may add files."""
    files = values["files"] or None
    return {"files": files, **how, "rows": values["rows"] if files else None, "ref": values.get("ref")}


def _positions(text: str) -> list[int]:
    """Parse positions such as ``0, 5, 10-12``.

    Raises
    ------
    OptionError
        The text is invalid, or has more than 10,000 positions.
    """
    out: list[int] = []
    for part in text.replace(",", " ").split():
        low, _, high = part.partition("-")
        ends = [low, high or low]
        if not all(e.isascii() and e.isdecimal() and len(e) < 16 for e in ends):
            raise OptionError(f"positions={text[:80]!r}: give positions from 0, such as 0, 5, 10-19")
        first, last = map(int, ends)
        if last < first or last - first + len(out) >= 10_000:
            raise OptionError(f"positions={text[:80]!r}: give at most 10,000, in ascending ranges")
        out += range(first, last + 1)
    if not out:
        raise OptionError("positions: give at least one, such as 0, 5, 10-19")
    return out


def _gone_fields(state: TableState, *, by: str) -> tuple[Field, ...]:
    ways = (("filter", "by a filter"), ("files", "the first ones"))
    text = "Selects the files whose metadata proves that all of their rows match; true selects all files."
    return (
        Field("by", "Files to remove", "choice", by, choices=ways),
        Field("where", "Filter", "text", "", text, when=("by", ("filter",))),
        Field(
            "of",
            "How many",
            "int",
            1,
            "The call lists the paths of these files.",
            least=1,
            most=_MOST_NAMED,
            when=("by", ("files",)),
        ),
    )


def _delete(state: TableState, values: Values) -> Calls:
    if values["by"] == "files":
        return (call("delete_files", paths=live_data(state, values["of"]), ref=values.get("ref")),)
    if not values["where"]:
        raise OptionError("where: give a filter, such as region = 'eu'; true removes everything")
    return (call("delete_where", where=values["where"], ref=values.get("ref")),)


def _overwrite_fields(state: TableState) -> tuple[Field, ...]:
    text = "serializable: data added concurrently by another writer is a conflict; snapshot: it is not."
    isolation = field_of("overwrite", "isolation", "Isolation", text)
    more = (*_made_up(1), *_partitions(state), isolation, *branch_field(state))
    return (*_gone_fields(state, by="files"), *more)


def _overwrite(state: TableState, values: Values) -> Calls:
    how: dict[str, Any] = {}
    if values["by"] == "files":
        how["delete"] = live_data(state, values["of"])
    else:
        how["where"] = values["where"] or "true"
    if values["files"] and values.get("partitions"):
        how["partitions"] = _listed(values["partitions"])
    how["isolation"] = values["isolation"]
    return (call("overwrite", **_adding(values, how)),)


def _compact_fields(state: TableState) -> tuple[Field, ...]:
    return (
        field_of("compact", "where", "Only files that may match", _WHERE),
        field_of("compact", "small_than", "Only files below", "Bytes; empty for any size.", least=1),
        field_of("compact", "files", "Files per partition", "", most=100_000),
        *branch_field(state),
    )


def _compact(state: TableState, values: Values) -> Calls:
    return (call("compact", **values),)


def _manifest_fields(state: TableState) -> tuple[Field, ...]:
    text = "Moves data files and deletes in the root to leaves (V4)."
    return (Field("flush", "Also flush the root", "flag", False, text), *branch_field(state))


def _manifests(state: TableState, values: Values) -> Calls:
    rewrite = call("rewrite_manifests", ref=values.get("ref"))
    if not values["flush"]:
        return (rewrite,)
    return (Call("set_layout", (), {"flush_data_files": 0, "flush_delete_files": 0}), rewrite)


_MATCHING = (
    "A filter such as fare > 10; the other rows keep their values. Synthetic files have no rows: those whose "
    "statistics allow such rows are updated."
)


def _column_fields(state: TableState) -> tuple[Field, ...] | None:
    root = state.root()
    if root is None or not root.dialect.deletion_vectors_on_entries:
        return None  # only the V4 draft has column files
    text = 'JSON: names, such as ["price"], for synthetic files, or values by column: {"price": 0}.'
    return (
        field_of("update_columns", "columns", "Columns", text),
        Field("of", "In data files", "int", 2, "The first live ones.", least=1, most=_MOST_NAMED),
        field_of("update_columns", "where", "Only rows that match", _MATCHING),
        *branch_field(state),
    )


def _columns(state: TableState, values: Values) -> Calls:
    if not values["columns"]:
        raise OptionError('columns: give names of columns, such as ["price"], or values by column')
    where = values["where"]
    files = live_data(state, values["of"], where)
    return (call("update_columns", columns=values["columns"], paths=files, where=where, ref=values.get("ref")),)


def _vector_fields(state: TableState) -> tuple[Field, ...] | None:
    return branch_field(state) if state.metadata.has_deletes else None


#: Operations of the registry that share a form, by the form's name.
FORMS_OF: dict[str, tuple[str, ...]] = {
    "delete": ("delete_files", "delete_where"),
    "ref": ("branch", "tag", "remove_ref"),
}

#: Operations of simulations that the commit panel does not offer, each with the reason.
NO_FORM: dict[str, str] = {
    "cherry_pick": "It takes a snapshot from a different line of history, but the tree shows only those of the branch.",
    "fast_forward": "The operation “Branch or tag” can move a branch to the snapshot shown.",
    "set_sort_order": "Synthetic files have no rows, so the order changes nothing in the tree.",
}


def _file_forms() -> tuple[Operation, ...]:
    return (
        form(
            "append",
            "V4 adds the files to the root, so a commit writes only the root and the metadata file, until the root has "
            "more than the layout option “Data files in the root” allows. Below V4 each append writes a manifest and a "
            "manifest list.",
            _add_fields, _append,
        ),
        form(
            "row_delta",
            "Data files are kept. Positions become position delete files in version 2, deletion vectors from 3 on, "
            "each merged with the one before it. Adding files in the same commit makes it an update.",
            _delta_fields, _delta,
        ),
        form(
            "overwrite",
            "Removes some files and adds others in one commit. In V4 a manifest DV removes a file from a leaf, "
            "so the leaf is not rewritten.",
            _overwrite_fields, _overwrite,
        ),
        form(
            "delete",
            "Removes whole files by changing metadata. In V4 this takes a row of the root, or a manifest DV of a leaf.",
            lambda state: (*_gone_fields(state, by="files"), *branch_field(state)), _delete,
            title="Delete data files",
        ),
        form(
            "compact",
            "Rewrites the files of a partition into fewer files, without deleted rows. Synthetic files stay synthetic.",
            _compact_fields, _compact,
        ),
        form(
            "update_columns",
            "Adds a column file to each data file, whose other columns stay where they are. The data file gets a "
            "MODIFIED entry, which replaces the entry before it.",
            _column_fields, _columns,
        ),
        form(
            "rewrite_manifests",
            "Rewrites leaves that are small, old or have a manifest DV; the data is not touched. "
            "In V4 any commit may do this as well.",
            _manifest_fields, _manifests,
        ),
        form(
            "rewrite_position_deletes",
            "Reads position delete files of version 2 and writes deletion vectors (from version 3 on).",
            _vector_fields, lambda state, values: (call("rewrite_position_deletes", **values),),
        ),
    )  # fmt: skip


class _Forms(Mapping[str, Operation]):
    """The form of every operation, built when first used, because importing `iceexplore.commits` is slow."""

    @cached_property
    def _by_name(self) -> dict[str, Operation]:
        from iceexplore.commits import OPERATIONS as REGISTERED

        files, metadata = _file_forms(), evolutions()
        written = {called for f in (*files, *metadata) for called in FORMS_OF.get(f.name, (f.name,))}
        missing = [o for o in REGISTERED.values() if o.simulation is not None and o.name not in {*written, *NO_FORM}]
        plain = [(o, found) for o in missing if (found := plain_form(o)) is not None]
        of_files = [found for o, found in plain if o.changes == "files"]
        others = [found for o, found in plain if o.changes != "files"]
        return {f.name: f for f in (*files, *of_files, *metadata, *others)}

    def __getitem__(self, name: str) -> Operation:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


#: Every form, by name, in the order in which they are offered.
OPERATIONS: Mapping[str, Operation] = _Forms()


def operation(name: str) -> Operation:
    """Return an operation by name.

    Raises
    ------
    OptionError
        There is no operation of this name.
    """
    found = OPERATIONS.get(name)
    if found is None:
        raise OptionError(f"no operation {str(name)[:60]!r}; the operations are {', '.join(OPERATIONS)}")
    return found


def calls_of(name: str, state: TableState, values: Mapping[str, Any]) -> Calls:
    """Return the calls to which an operation with these form values translates, in this state of the table.

    Raises
    ------
    IceexploreError
        The operation or a value is not valid for this state.
    """
    chosen = operation(name)
    fields = chosen.fields(state)
    if fields is None:
        raise OptionError(f"{chosen.title}: not possible in the table's present state")
    return chosen.calls(state, checked_values(fields, values))


# A second writer ------------------------------------------------------------------------------------------------------

#: The commits that another writer may make concurrently, from the same state.
RIVALS: tuple[tuple[str, str], ...] = (
    ("", "none"),
    ("append", "appends a file first"),
    ("rows", "deletes rows of the same files first"),
    ("delete", "deletes the same files first"),
    ("compact", "compacts first"),
    ("schema", "adds a column first"),
)


def rival_calls(rival: str, state: TableState, calls: Calls) -> Calls:
    """Return the other writer's calls, for the files that ``calls`` name or, if they name none, the first data file.

    Raises
    ------
    OptionError
        An unknown rival, or a table without data files.
    """
    if rival not in dict(RIVALS):
        raise OptionError(f"rival={rival[:60]!r}: choose one of {', '.join(repr(name) for name, _ in RIVALS)}")
    if rival == "append":
        return (Call("append", (1,), {"rows": 1000}),)
    if rival == "compact":
        return (Call("compact"),)
    if rival == "schema":
        taken = {f.name for f in state.schema.fields}
        name = next(n for n in (f"added_meanwhile{i or ''}" for i in range(len(taken) + 1)) if n not in taken)
        return (Call("evolve_schema", (), {"add": {name: "string"}}),)
    paths = [path for call in calls for path in _named(call)] or live_data(state, 1)
    if rival == "rows":
        return (Call("row_delta", (), {"deletes": {path: [1] for path in paths}}),)
    return (Call("delete_files", (paths,)),)


def _named(call: Call) -> list[str]:
    """Return the data files that a call deletes, updates, or of which it deletes rows, if it names them."""
    if call.method == "delete_files":
        return list(call.args[0])
    if call.method == "update_columns":
        return list(call.args[1])  # the form always names them
    return list(call.kwargs.get("delete") or call.kwargs.get("deletes") or ())
