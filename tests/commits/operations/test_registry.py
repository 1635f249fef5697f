"""The registry of commit operations: the methods, the functions and the registered parameters are the same."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, get_args

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore import commits, labs
from iceexplore.commits import OPERATIONS, CommitOperation, Parameter, TableKind
from iceexplore.errors import OptionError, RuleError

KINDS: tuple[tuple[TableKind, Any], ...] = (("simulation", ix.Simulation), ("lab", ix.Lab))
METHODS = [(kind, owner, o) for kind, owner in KINDS for o in OPERATIONS.values() if getattr(o, kind) is not None]
POSITION, NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
EVERY, OPTIONS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def signature(function: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def commit_methods(owner: Any) -> set[str]:
    """The public methods that return what a commit makes: a snapshot, or what expired."""
    found = {name: f for name, f in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}
    made = re.compile(r"(Snapshot|(ix\.)?commits\.Expired)( \| None)?")
    return {name for name, f in found.items() if made.fullmatch(str(f.__annotations__.get("return")))}


@pytest.mark.parametrize(("kind", "owner"), KINDS)
def test_every_method_that_commits_is_registered(kind: TableKind, owner: Any) -> None:
    assert commit_methods(owner) == {o.name for o in OPERATIONS.values() if getattr(o, kind) is not None}


@pytest.mark.parametrize(("kind", "owner", "operation"), METHODS, ids=lambda x: getattr(x, "name", str(x)))
def test_methods_have_the_registered_parameters(kind: TableKind, owner: Any, operation: CommitOperation) -> None:
    found = signature(getattr(owner, operation.name))
    del found["self"]
    by_name = {"position": POSITION, "name": NAME}
    expected = [(p.name, EVERY if p.many else by_name[p.passed], p.default) for p in operation.parameters(kind)
                if p.passed != "option"]  # fmt: skip
    rest = [p for p in found.values() if p.kind is OPTIONS]
    assert [(p.name, p.kind, p.default) for p in found.values() if p.kind is not OPTIONS] == expected
    options = [p for p in operation.parameters(kind) if p.passed == "option"]
    assert bool(rest) == bool(options), "options are what a method takes as **how"
    assert all(p.name == rest[0].name for p in options if p.many)


def maker(operation: CommitOperation, kind: TableKind) -> dict[str, inspect.Parameter]:
    """What the function of an operation takes; what it hands on as **how is of the function that it calls."""
    handed_on = {"append": commits.new_files, "overwrite": commits.new_files, "row_delta": commits.new_files,
                 "evolve_schema": commits.evolve_schema, "evolve_spec": commits.evolve_spec,
                 "evolve_virtual_columns": commits.evolve_virtual_columns,
                 "branch": commits.set_ref, "tag": commits.set_ref, "compact": commits.compact}  # fmt: skip
    own = labs.ROW_OPERATIONS.get(operation.name) if kind == "lab" else None
    found = signature(own or operation.change or operation.update)
    if any(p.kind is OPTIONS for p in found.values()):
        found = {**signature(handed_on[operation.name]), **found}
    hidden = {"state", "writer", "rewrite", "document", "snapshot_id", "type", "timestamp_ms"}
    return {n: p for n, p in found.items() if n not in hidden and p.kind is not OPTIONS}


@pytest.mark.parametrize(("kind", "owner", "operation"), METHODS, ids=lambda x: getattr(x, "name", str(x)))
def test_functions_have_the_registered_parameters(kind: TableKind, owner: Any, operation: CommitOperation) -> None:
    if operation.name == "upgrade":
        assert operation.update is None and operation.change is None  # the committer's options do it
        return
    # The method itself handles the branch, the snapshot that a ref names, and the files that a lab removes.
    by_method = {"ref"} | ({"at"} if operation.update else set())
    if operation.name == "expire_snapshots":
        by_method |= {"files"}
    registered = {p.name: p for p in operation.parameters(kind) if p.name not in by_method}
    found = {n: p for n, p in maker(operation, kind).items() if n not in by_method}
    if operation.name == "tag":
        found = {n: p for n, p in found.items() if n not in ("min_snapshots_to_keep", "max_snapshot_age_ms")}
    assert set(found) == set(registered)
    for name, p in registered.items():
        assert found[name].default == p.default, name


@pytest.mark.parametrize(("kind", "owner", "operation"), METHODS, ids=lambda x: getattr(x, "name", str(x)))
def test_methods_return_none_if_the_registry_says_so(kind: TableKind, owner: Any, operation: CommitOperation) -> None:
    if operation.changes == "files":
        returned = getattr(owner, operation.name).__annotations__["return"]
        assert returned == ("Snapshot | None" if operation.nothing else "Snapshot")


def test_choices_are_those_of_the_functions() -> None:
    merge = signature(labs.merge_rows)
    for name in ("matched", "not_matched"):
        p = OPERATIONS["merge"].parameter(name, "lab")
        annotation = str(merge[name].annotation)
        literals = [*get_args(Literal["update", "delete"])] if name == "matched" else ["insert"]
        assert list(p.choices) == literals and p.optional
        assert "None" in annotation
    levels = get_args(commits.Isolation)
    for name in ("overwrite", "row_delta"):
        assert OPERATIONS[name].parameter("isolation").choices == levels


def test_lab_operations_are_complete() -> None:
    only_labs = {o.name for o in OPERATIONS.values() if o.change is None and o.update is None} - {"upgrade"}
    assert only_labs <= set(labs.ROW_OPERATIONS) <= {o.name for o in OPERATIONS.values() if o.lab is not None}
    assert {o.name for o in OPERATIONS.values() if o.simulation is None} == only_labs


TABLES = {v: ix.empty({"id": "long"}, partition_by="id", format_version=v, seed=1) for v in (1, 2, 3, 4)}
#: Of version 4, only the draft has some operations.
DRAFT = ix.empty({"id": "long", "x": "long"}, partition_by="id", format_version=4, dialect="v4-draft", seed=1)
IN_DRAFT = {"update_columns"}
#: A call of each operation or parameter that needs a format version.
SINCE: dict[str, Callable[[ix.Simulation], Any]] = {
    "rewrite_position_deletes": lambda s: s.rewrite_position_deletes(),
    "row_delta.deletes": lambda s: s.row_delta(deletes={s.inspect.data_files()["file_path"][0]: [0]}),
    "row_delta.equality": lambda s: s.row_delta(equality={"id": [1]}),
    "row_delta.equality_partition": lambda s: s.row_delta(equality={"id": [1]}, equality_partition={"id": 1}),
    "update_columns": lambda s: s.update_columns("x"),
    "evolve_virtual_columns": lambda s: s.evolve_virtual_columns(add=["truncate(10, id)"]),
    "evolve_schema.initial_default": lambda s: s.evolve_schema(add={"a": "int"}, initial_default={"a": 1}),
    "evolve_schema.write_default": lambda s: s.evolve_schema(add={"a": "int"}, write_default={"a": 1}),
}


def test_every_version_that_is_needed_is_tried() -> None:
    needed = {o.name: o.since for o in OPERATIONS.values()}
    needed |= {f"{o.name}.{p.name}": p.since for o in OPERATIONS.values() for p in o.simulation or ()}
    assert {name for name, since in needed.items() if since > 1} == set(SINCE)


@pytest.mark.parametrize("name", SINCE)
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_since_is_true(name: str, version: int) -> None:
    operation, _, parameter = name.partition(".")
    since = OPERATIONS[operation].parameter(parameter).since if parameter else OPERATIONS[operation].since
    s = (DRAFT if version == 4 and operation in IN_DRAFT else TABLES[version]).copy()
    s.append(1, rows=10)
    if version < since:
        with pytest.raises(RuleError, match=r"deletes-need-v2|default-values|column-updates|virtual-columns"):
            SINCE[name](s)
    else:
        SINCE[name](s)


def test_texts_are_one_sentence_each() -> None:
    for o in OPERATIONS.values():
        parameters: list[Parameter] = [*(o.simulation or ()), *(o.lab or ())]
        for text in (o.help, *(p.help for p in parameters)):
            assert re.fullmatch(r"[A-Zfst][^.]*\.", text.replace("option_docs()", "")), (o.name, text)
        assert o.title and not o.title.endswith(".")
        assert len({p.name for p in o.simulation or ()}) == len(o.simulation or ())


def test_the_list_is_a_frame_with_a_row_per_operation() -> None:
    frame = commits.operations()
    assert isinstance(frame, pd.DataFrame)
    assert frame["name"].tolist() == list(OPERATIONS)
    calls = frame.set_index("name")
    assert calls.loc["delete", "lab"] == "delete(where, *, spark=None, ref='main')"
    assert calls["simulation"].isna()["delete"]
    assert calls.loc["upgrade", "lab"] == "upgrade(format_version, **layout)"
    assert calls.loc["set_sort_order", "simulation"] == "set_sort_order(*fields)"
    assert calls.loc["append", "lab"] == "append(rows, *, ref='main')"
    for kind, owner in KINDS:  # each is valid Python
        for call in frame[kind].dropna():
            compile(f"def {call}: pass", "call", "exec")
            assert hasattr(owner, call.partition("(")[0])


def test_an_operation_displays_its_parameters() -> None:
    text = repr(commits.operation("overwrite"))
    assert text.startswith("overwrite\nReplaces data files")
    assert "In a simulation" in text and "In a lab" in text
    assert re.search(r"isolation +choice +'serializable'", text)
    assert "In a simulation" not in repr(commits.operation("merge"))
    assert "returns None if no row matches" in repr(commits.operation("merge"))
    assert "2 and later" in repr(commits.operation("rewrite_position_deletes"))
    assert "<table" in commits.operation("merge")._repr_html_()


def test_unknown_names_list_the_nearest() -> None:
    with pytest.raises(OptionError, match="no commit operation 'overwrit'; nearest: overwrite"):
        commits.operation("overwrit")
    for wrong in (None, ["append"]):
        with pytest.raises(OptionError, match=r"no commit operation .*append"):
            commits.operation(wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="append has no argument 'rwos'; nearest: rows"):
        OPERATIONS["append"].parameter("rwos")
    for method, given, near in (
        ("compact", "path", "paths"),
        ("row_delta", "delete", "deletes"),
        ("tag", "nam", "name"),
    ):
        with pytest.raises(OptionError, match=f"{method} has no argument '{given}'; nearest: {near}"):
            OPERATIONS[method].parameter(given)
    with pytest.raises(OptionError, match="a simulation has no operation 'merge'"):
        OPERATIONS["merge"].parameters("simulation")
