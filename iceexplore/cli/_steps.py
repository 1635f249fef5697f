"""The options that make commits: each option is a commit, in the order given on the command line."""

from __future__ import annotations

import ast
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import click

import iceexplore as ix
from iceexplore.cli._options import pairs

if TYPE_CHECKING:
    import pyarrow as pa

    from iceexplore.table import CommittedTable

__all__ = ["Made", "StepsCommand", "make_steps", "read_rows", "step_options"]

F = TypeVar("F", bound=Callable[..., Any])
Kind: TypeAlias = Literal["simulation", "lab"]
_STEPS = "iceexplore.steps"
#: Maximum number of characters of a call in ``--commit``, because Python's parser needs memory for each character.
_MOST_CALL = 100_000
#: The kinds of written files in the order in which they are listed.
_KINDS = ("data-file", "delete-file", "puffin", "manifest", "manifest-list", "metadata")


class _StepOption(click.Option):
    """An option that makes a commit."""


class StepsCommand(click.Command):
    """A command that remembers the order of the options that make commits."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            ctx.meta[_STEPS] = [one.name for one in order if isinstance(one, _StepOption)]
        return super().parse_args(ctx, args)


def step_options(kind: Kind) -> Callable[[F], F]:
    """Return a decorator that adds an option for each commit that a simulation or a lab can make."""
    rows = "a number of synthetic files, or " if kind == "simulation" else ""
    delete = (
        ("--delete-where", "WHERE", "Remove data files whose rows all match, using metadata only.")
        if kind == "simulation"
        else ("--delete", "WHERE", "Delete the rows that match.")
    )
    options = (
        ("--append", "FILES", f"Add data: {rows}a Parquet, CSV or JSON file of rows."),
        delete,
        ("--compact", None, "Rewrite data files into fewer, larger ones."),
        ("--rewrite-manifests", None, "Rewrite manifests without changing the data."),
        ("--rewrite-position-deletes", None, "Merge position delete files, or convert them to deletion vectors."),
        ("--expire-snapshots", None, "Expire snapshots, by the table's properties or the two options below."),
        ("--set-properties", "NAME=VALUE", "Set a table property."),
        ("--upgrade", "VERSION", "Raise the format version."),
        ("--commit", "CALL", "Any commit, as a Python call: \"evolve_schema(add={'tip': 'double'})\"."),
    )  # fmt: skip
    more = (
        click.option("--older-than", metavar="TIME",
                     help="For --expire-snapshots: now, an age such as 5d, or a time (ISO text, UTC)."),
        click.option("--retain-last", type=click.IntRange(min=1), metavar="N",
                     help="For --expire-snapshots: the number of snapshots to keep in each branch."),
        click.option("--ref", default="main", show_default=True, metavar="BRANCH", help="The branch to commit to."),
    )  # fmt: skip

    def add(command: F) -> F:
        for option in reversed(more):
            command = option(command)
        for name, value, text in reversed(options):
            how: dict[str, Any] = {"count": True} if value is None else {"multiple": True, "metavar": value}
            command = click.option(name, cls=_StepOption, help=f"{text} Repeatable.", **how)(command)
        return command

    return add


@dataclass(frozen=True)
class Made:
    """The result of one step.

    Attributes
    ----------
    call
        The commit as a Python call.
    operation
        The snapshot's operation; None without a new snapshot.
    snapshot_id, summary
        Id and summary of the new snapshot.
    written
        Files and bytes by kind.
    note
        A remark, such as why nothing was committed; may be empty.
    """

    call: str
    operation: str | None
    snapshot_id: int | None
    summary: dict[str, str]
    written: dict[str, tuple[int, int]]
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return the step as plain values."""
        written = [{"kind": kind, "files": files, "bytes": size} for kind, (files, size) in self.written.items()]
        return {
            "call": self.call,
            "operation": self.operation,
            "snapshot_id": self.snapshot_id,
            "summary": self.summary,
            "written": written,
            "note": self.note,
        }


@dataclass(frozen=True)
class _Call:
    """A call of a method; ``shown`` is the text of its arguments, where that is not their `repr`."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None
    shown: str | None = None

    @property
    def text(self) -> str:
        if self.shown is not None:
            return f"{self.name}({self.shown})"
        parts = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in (self.kwargs or {}).items())]
        return f"{self.name}({', '.join(parts)})"


def make_steps(table: CommittedTable, kind: Kind, how: Mapping[str, Any]) -> Iterator[Made]:
    """Make the commits that the options ask for, in the order of the options; yield each once it is made.

    Raises
    ------
    OptionError, RuleError
        A step is invalid, or breaks a rule.
    """
    calls = list(_calls(kind, how))  # all options are checked before the first commit
    for number, call in enumerate(calls, 1):
        try:
            yield _make(table, call, kind)
        except ix.IceexploreError as error:
            stay = "" if kind == "simulation" or number == 1 else f" (the {number - 1} commits before it stay)"
            error.args = (f"{call.text}{stay}: {error.args[0]}", *error.args[1:])
            raise


def _calls(kind: Kind, how: Mapping[str, Any]) -> Iterator[_Call]:
    given: dict[str, Iterator[Any]] = {}
    for name in click.get_current_context().meta.get(_STEPS, []):
        values = given.setdefault(name, iter(how[name] if not isinstance(how[name], int) else [None] * how[name]))
        yield _call(name, next(values), kind, how)


def _call(name: str, value: Any, kind: Kind, how: Mapping[str, Any]) -> _Call:  # noqa: ANN401  (an option's)
    ref = {} if how["ref"] == "main" else {"ref": how["ref"]}
    if name == "commit":
        return _parsed(value, kind)
    if name == "append":
        if kind == "simulation" and value.isdecimal():
            return _Call("append", (int(value),), {"rows": how["rows"], **ref})
        more = "".join(f", {name}={text!r}" for name, text in ref.items())
        return _Call("append", (read_rows(value),), ref, f"{value!r}{more}")
    if name == "expire_snapshots":
        older = {} if how["older_than"] is None else {"older_than": _time(how["older_than"])}
        last = {} if how["retain_last"] is None else {"retain_last": how["retain_last"]}
        return _Call("expire_snapshots", (), {**older, **last})
    if name == "set_properties":
        context = click.get_current_context()
        return _Call(name, (pairs(context, next(p for p in context.command.params if p.name == name), [value]),))
    if name == "upgrade":
        if not value.isdecimal():
            raise ix.OptionError(f"--upgrade {value}: expected a format version, 1 to 4")
        return _Call("upgrade", (int(value),))
    return _Call(name, () if value is None else (value,), ref)


def _time(text: str) -> object:
    """Return the value of --older-than as `expire_snapshots` takes it: milliseconds, or the text of a time."""
    from datetime import timedelta

    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    now = time.time_ns() // 1_000_000
    if text == "now":
        return now
    if text[:-1].isdecimal() and text[-1:] in units and len(text) < 12:
        try:
            return now - timedelta(**{units[text[-1]]: int(text[:-1])}) // timedelta(milliseconds=1)
        except OverflowError as error:
            raise ix.OptionError(f"--older-than {text}: {error}") from error
    return text


def _parsed(text: str, kind: Kind) -> _Call:
    """Parse a call whose arguments are literals; nothing in the text is evaluated."""
    from iceexplore.commits import OPERATIONS, operation

    wrong = ix.OptionError(
        f"--commit {text[:200]!r}: give a call with literals, such as \"delete_where('day < 7')\" or \"tag('v1')\""
    )
    if len(text) > _MOST_CALL:
        raise wrong
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise wrong
        args = tuple(ast.literal_eval(arg) for arg in node.args)
        kwargs = {str(one.arg): ast.literal_eval(one.value) for one in node.keywords if one.arg is not None}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise wrong from error
    if len(kwargs) < len(node.keywords):
        raise wrong  # keyword arguments unpacked from a dictionary, `**options`: only literals are accepted
    found = operation(node.func.id)
    if (found.simulation if kind == "simulation" else found.lab) is None:
        names = [o.name for o in OPERATIONS.values() if (o.simulation if kind == "simulation" else o.lab) is not None]
        raise ix.OptionError(f"a {kind} has no {found.name}: choose from {', '.join(names)}")
    return _Call(found.name, args, kwargs)


def _make(table: CommittedTable, call: _Call, kind: Kind) -> Made:
    from iceexplore.commits import operation

    method = getattr(table, call.name)
    kwargs = dict(call.kwargs or {})
    try:
        inspect.signature(method).bind(*call.args, **kwargs)
    except TypeError as error:
        raise ix.OptionError(f"{error}; {operation(call.name).signature(kind)}") from None
    before = len(table.writes)
    was = table.metadata_location
    known = {s.snapshot_id for s in table.snapshots}
    result = method(*call.args, **kwargs)
    written: dict[str, tuple[int, int]] = {}
    for one in list(table.writes)[before:]:
        files, size = written.get(one.kind, (0, 0))
        written[one.kind] = files + 1, size + one.length
    new = next((s for s in reversed(list(table.snapshots)) if s.snapshot_id not in known), None)
    summary = {} if new is None else dict(new.summary or {})
    note = ""
    if call.name == "expire_snapshots":
        note = repr(result).splitlines()[1].rstrip(":")
    elif table.metadata_location == was:
        note = f"nothing was committed: {operation(call.name).nothing or 'nothing changes'}"
    elif call.name == "append" and call.args and isinstance(call.args[0], int):
        note = "synthetic data files, which are not written"
    return Made(
        call.text,
        summary.get("operation"),
        None if new is None else new.snapshot_id,
        {name: str(value) for name, value in summary.items() if name != "operation"},
        {name: written[name] for name in dict.fromkeys((*_KINDS, *written)) if name in written},
        note,
    )


def read_rows(path: str) -> pa.Table:
    """Return the rows of a Parquet, CSV or JSON file (a JSON object per line); the file name's ending tells the format.

    Raises
    ------
    OptionError
        The file has another ending, or cannot be read.
    """
    read = next((read for suffixes, read in _READERS if path.lower().endswith(suffixes)), None)
    if read is None:
        raise ix.OptionError(f"{path}: give a file of rows whose name ends in .parquet, .csv, .csv.gz, .json or .jsonl")
    import pyarrow as pa

    try:
        return read(path)
    except (OSError, pa.ArrowException) as error:
        raise ix.OptionError(f"{path} cannot be read: {error}") from error


def _parquet(path: str) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:  # `read_table` would also take partition columns from the path
        return file.read()


def _csv(path: str) -> pa.Table:
    from pyarrow import csv

    return csv.read_csv(path)


def _json(path: str) -> pa.Table:
    from pyarrow import json

    return json.read_json(path)


_READERS: tuple[tuple[tuple[str, ...], Callable[[str], pa.Table]], ...] = (
    ((".parquet", ".parq"), _parquet),
    ((".csv", ".csv.gz"), _csv),
    ((".json", ".jsonl", ".ndjson"), _json),
)
