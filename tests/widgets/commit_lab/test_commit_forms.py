"""The forms of the commit panel are those of the registered operations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.commits import OPERATIONS as REGISTERED
from iceexplore.commits import Parameter
from iceexplore.errors import OptionError
from iceexplore.widgets.commit_lab import _form
from iceexplore.widgets.commit_lab._file_operations import FORMS_OF, NO_FORM, OPERATIONS, calls_of, rival_calls
from iceexplore.widgets.commit_lab._registered import call, field_of, plain_form


def called_by(form: str) -> tuple[str, ...]:
    return FORMS_OF.get(form, (form,))


def test_every_operation_of_a_simulation_has_a_form_or_a_reason_why_not() -> None:
    offered = [name for form in OPERATIONS for name in called_by(form)]
    assert len(offered) == len(set(offered))
    assert not set(offered) & set(NO_FORM)
    assert {*offered, *NO_FORM} == {o.name for o in REGISTERED.values() if o.simulation is not None}
    assert all(reason.endswith(".") for reason in NO_FORM.values())
    assert set(FORMS_OF) <= set(OPERATIONS)


def test_titles_are_those_of_the_registry() -> None:
    for name, form in OPERATIONS.items():
        if name not in FORMS_OF:
            assert form.title == REGISTERED[name].title


#: What makes each form call each of its operations; plain forms need no values.
VALUES: list[tuple[str, dict[str, Any], str]] = [
    ("append", {}, "append"),
    ("row_delta", {}, "row_delta"),
    ("overwrite", {}, "overwrite"),
    ("delete", {}, "delete_files"),
    ("delete", {"by": "filter", "where": "true"}, "delete_where"),
    ("compact", {}, "compact"),
    ("update_columns", {"columns": ["x"]}, "update_columns"),
    ("rewrite_manifests", {}, "rewrite_manifests"),
    ("rewrite_position_deletes", {}, "rewrite_position_deletes"),
    ("expire_snapshots", {}, "expire_snapshots"),
    ("evolve_schema", {}, "evolve_schema"),
    ("evolve_spec", {"term": "id"}, "evolve_spec"),
    ("set_properties", {}, "set_properties"),
    ("ref", {}, "branch"),
    ("ref", {"change": "tag"}, "tag"),
    ("ref", {"change": "remove_ref"}, "remove_ref"),
    ("rollback", {}, "rollback"),
    ("upgrade", {}, "upgrade"),
]


def test_forms_call_what_they_name() -> None:
    s = ix.empty({"id": "long"}, format_version=2, seed=1)
    s.append(2, rows=10)
    s.row_delta(deletes={s.inspect.data_files()["file_path"][0]: [0]})
    draft = ix.empty({"id": "long", "x": "long"}, format_version=4, dialect="v4-draft", seed=1)
    draft.append(2, rows=10)
    with pytest.raises(OptionError, match="not possible in the table's present state"):
        calls_of("update_columns", s.state, {"columns": ["id"]})
    plain: list[tuple[str, dict[str, Any], str]] = [
        (name, {}, name) for name in OPERATIONS if name not in {form for form, _, _ in VALUES}
    ]
    tried = {(form, method) for form, _, method in (*VALUES, *plain)}
    assert tried == {(f, name) for f in OPERATIONS for name in called_by(f)}
    for form, values, method in (*VALUES, *plain):
        (made,) = calls_of(form, (draft if form == "update_columns" else s).state, values)
        assert made.method == method
        REGISTERED[method].check(made.kwargs, "simulation")
    (made,) = calls_of("update_columns", draft.state, {"columns": ["x"], "of": 1})
    assert made.run(draft) is not None
    (made,) = calls_of("update_columns", draft.state, {"columns": ["x"], "where": "id is not null"})
    assert made.kwargs["where"] == "id is not null" and "where='id is not null'" in made.code("s")
    with pytest.raises(OptionError, match="no data file may contain rows that match"):
        calls_of("update_columns", draft.state, {"columns": ["x"], "where": "id is null"})
    with pytest.raises(OptionError, match="give names of columns"):
        calls_of("update_columns", draft.state, {})


def test_a_second_writer_deletes_the_files_whose_columns_are_updated() -> None:
    draft = ix.empty({"k": "string", "x": "long"}, partition_by="k", format_version=4, dialect="v4-draft", seed=1)
    draft.append(2, rows=10, partitions=[{"k": "a"}, {"k": "b"}])
    files = draft.inspect.data_files().to_dict("records")
    last = files[-1]
    calls = calls_of("update_columns", draft.state, {"columns": ["x"], "where": f"k = '{last['partition']['k']}'"})
    (rival,) = rival_calls("delete", draft.state, calls)
    assert rival.args == ([last["file_path"]],)
    (rival,) = rival_calls("rows", draft.state, calls)
    assert list(rival.kwargs["deletes"]) == [last["file_path"]]


def test_what_finds_nothing_to_do_is_refused_with_the_reason_of_the_registry() -> None:
    s = ix.empty({"id": "long"}, format_version=2, seed=1)
    draft = ix.empty({"id": "long"}, format_version=4, dialect="v4-draft", seed=1)
    given = {"update_columns": (draft, {"columns": {"id": 1}, "where": "id = 3"})}
    for name in (o.name for o in REGISTERED.values() if o.simulation and o.nothing):
        table, values = given.get(name, (s, {}))
        with pytest.raises(OptionError, match=f"^{REGISTERED[name].nothing}: nothing to do, no commit was made"):
            call(name, **values).run(table)
    call("set_properties", properties={"a": "b"}).run(s)  # None: the table has no snapshot
    assert s.properties["a"] == "b"


def test_calls_are_written_as_by_hand() -> None:
    assert call("append", files=2, rows=5, materialize=False, ref="main").code("s") == "s.append(2, rows=5)"
    assert call("overwrite", files=None, delete=["a"], rows=None).code("s") == "s.overwrite(delete=['a'])"
    assert call("compact", where="", small_than=None, files=1).code("s") == "s.compact()"
    assert call("branch", name="b", min_snapshots_to_keep=2).code("s") == "s.branch('b', min_snapshots_to_keep=2)"
    assert call("branch", at=3).kwargs == {"at": 3}, "by name if a parameter before it is missing"
    with pytest.raises(OptionError, match="compact has no argument 'fils'; nearest: files"):
        call("compact", fils=2)


def test_fields_are_those_of_the_registry() -> None:
    field = field_of("overwrite", "isolation", "Isolation")
    assert (field.kind, field.default, [v for v, _ in field.choices]) == (
        "choice", "serializable", ["serializable", "snapshot"],
    )  # fmt: skip
    assert field.help == REGISTERED["overwrite"].parameter("isolation").help
    field = field_of("compact", "files", "Files", "", most=7)
    assert (field.kind, field.default, field.least, field.most, field.help) == ("int", 1, 1, 7, "")


def test_operations_without_a_form_of_their_own_get_a_plain_one() -> None:
    s = ix.empty({"id": "long"}, format_version=4, seed=1)
    s.append(4, rows=10)
    form = plain_form(REGISTERED["compact"])
    assert form is not None and form.help == REGISTERED["compact"].help
    fields = form.fields(s.state)
    assert fields is not None
    assert [f.name for f in fields] == ["where", "partition", "small_than", "files", "read"]
    assert fields[2].label == "Small than"
    values = _form.checked_values(fields, {"where": "id > 3", "small_than": 10**9})
    (made,) = form.calls(s.state, values)
    assert made.code("s") == "s.compact(where='id > 3', small_than=1000000000)"
    s.branch("audit")
    assert [f.name for f in form.fields(s.state) or ()][-1] == "ref"
    moving = plain_form(REGISTERED["fast_forward"])
    assert moving is not None
    assert moving.calls(s.state, {"name": "a", "to": "b"})[0].code("s") == "s.fast_forward('a', 'b')"
    with pytest.raises(OptionError, match=r"to: give a value\. The branch or tag to move it to\."):
        moving.calls(s.state, {"name": "a", "to": ""})
    assert plain_form(REGISTERED["delete_files"]) is None, "locations cannot be typed, and they are required"
    new = replace(REGISTERED["compact"], simulation=(Parameter("paths", "locations", "Files.", None),))
    plain = plain_form(new)
    assert plain is not None and plain.fields(s.state) == ()
