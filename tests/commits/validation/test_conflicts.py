"""Two writers: what the second may still do after the first, by the rules of the spec and of Java's validations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.commits import Change, LayoutOptions, Sandbox, new_table_document
from iceexplore.commits.validation._conflicts import steps_between, validate
from iceexplore.errors import CommitConflictError
from iceexplore.simulation import Simulation
from tests.helpers.tables.list_table import BY_KIND, SCHEMA, batch, entry

LAYOUTS = [
    (2, {}),
    (3, {}),
    (4, {}),
    (4, {"flush_data_files": 0, "flush_delete_files": 0}),
    (4, {"dialect": "v4-java"}),
]


def by_kind(folder: Path, version: int, **layout: Any) -> Simulation:
    """A table partitioned by kind with two files each of ``a`` and ``b``."""
    import json

    document = new_table_document(
        format_version=1 if version == 4 else version,
        location=str(folder),
        schema=SCHEMA,
        partition_spec=BY_KIND,
        table_uuid="00000000-0000-4000-8000-000000000000",
        timestamp_ms=1_700_000_000_000,
    )
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    s = ix.open(folder).simulate(version, seed=1, **layout)
    s.append([file(n, kind) for n, kind in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b"))])
    return s


def file(name: str, kind: str) -> dict[str, Any]:
    return {
        "location": f"s3://elsewhere/{name}.parquet",
        "record_count": 10,
        "file_size_in_bytes": 1000,
        "partition": {"kind": kind},
    }


def at(name: str) -> str:
    return f"s3://elsewhere/{name}.parquet"


def names(s: ix.Table) -> set[str]:
    return {p.rpartition("/")[2].removesuffix(".parquet") for p in s.inspect.data_files()["file_path"]}


@pytest.fixture(params=LAYOUTS, ids=lambda p: f"v{p[0]}" + "".join(f"-{k}" for k in p[1]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Simulation:
    version, layout = request.param
    return by_kind(tmp_path / "t", version, **layout)


def fails(rule: str, name: str | None, act: Callable[[], Any]) -> None:
    with pytest.raises(CommitConflictError) as failed:
        act()
    assert failed.value.rule == rule
    if name is not None:
        assert failed.value.files == (at(name),) and at(name) in str(failed.value)


# What always goes -----------------------------------------------------------------------------------------------------


def test_an_append_goes_on_top_of_anything(table: Simulation) -> None:
    two = table.fork()
    table.delete_files([at("a1")])
    table.overwrite([file("b3", "b")], delete=[at("b1")])
    two.append([file("a3", "a")])
    assert names(two) == {"a2", "b2", "b3", "a3"}


def test_a_delete_by_expression_goes_on_top_of_anything_and_takes_what_is_there(table: Simulation) -> None:
    two = table.fork()
    table.delete_files([at("a1")])
    table.append([file("a3", "a"), file("b3", "b")])
    two.delete_where("kind = 'a'")
    assert names(two) == {"b1", "b2", "b3"}


def test_removing_different_files(table: Simulation) -> None:
    two = table.fork()
    table.delete_files([at("a1")])
    two.delete_files([at("a2"), at("b1")])
    assert names(two) == {"b2"}


# Files that are no longer there ---------------------------------------------------------------------------------------


def test_both_remove_the_same_file(table: Simulation) -> None:
    two = table.fork()
    table.delete_files([at("a1")])
    before = len(two.writes)
    fails("files-exist", "a1", lambda: two.delete_files([at("a1"), at("a2")]))
    assert names(two.table) == {"a1", "a2", "b1", "b2"} and names(two.refresh()) == {"a2", "b1", "b2"}
    rows = two.cost().commits
    failed = rows[rows["commit"] == rows["commit"].max()]
    assert failed["attempt"].tolist() == [1, 2] and not failed["published"].any()
    assert failed["orphans"].tolist() == failed["files"].tolist() == [len(two.writes) - before, 0]


def test_one_compacts_what_the_other_removes(table: Simulation) -> None:
    two = table.fork()
    replace(table, ["a1", "a2"], "a12", "a")
    fails("files-exist", "a1", lambda: two.delete_files([at("a1")]))


def test_a_file_removed_and_added_again_is_there(table: Simulation) -> None:
    two = table.fork()
    table.delete_files([at("a1")])
    table.append([file("a1", "a")])
    two.delete_files([at("a1")])
    assert names(two) == {"a2", "b1", "b2"}


def test_deletes_for_a_file_that_went(table: Simulation) -> None:
    two = table.fork()
    table.delete_files([at("a1")])
    fails("data-files-still-there", "a1", lambda: two.row_delta(deletes={at("a1"): [1]}))


def replace(s: Simulation, old: list[str], new: str, kind: str, *, keep_sequence: bool = False) -> None:
    """A compaction by hand, without reading data."""

    def make(writer: Any) -> Change:
        row = entry(at(new), 20, **({"sequence_number": 1} if keep_sequence else {}))
        return Change("replace", batch([row], [kind]), remove_data=tuple(map(at, old)))

    s._commit_files(ix.commits.operation("compact"), make, "main")


# Deletes --------------------------------------------------------------------------------------------------------------


def test_two_delete_rows_of_one_file(table: Simulation) -> None:
    two = table.fork()
    table.row_delta(deletes={at("a1"): [1]})
    if table.format_version == 2:  # position deletes add up
        two.row_delta(deletes={at("a1"): [2]})
        assert len(two.inspect.delete_files()) == 2
    else:
        fails("no-concurrent-dv", "a1", lambda: two.row_delta(deletes={at("a1"): [2]}))


def test_two_delete_rows_of_different_files(table: Simulation) -> None:
    two = table.fork()
    table.row_delta(deletes={at("a1"): [1]})
    two.row_delta(deletes={at("a2"): [2]})
    assert len(two.inspect.delete_files()) == 2


def test_a_replaced_file_got_deletes(table: Simulation) -> None:
    two = table.fork()
    table.row_delta(deletes={at("a1"): [1]})
    fails("no-new-deletes", "a1", lambda: replace(two, ["a1", "a2"], "a12", "a"))
    fails("no-new-deletes", "a1", lambda: replace(two.fork(), ["a1"], "a11", "a", keep_sequence=True))


def test_an_overwritten_file_got_deletes(table: Simulation) -> None:
    two = table.fork()
    table.row_delta(deletes={at("b1"): [1]})
    fails("no-new-deletes", "b1", lambda: two.overwrite([file("b3", "b")], delete=[at("b1")], isolation="snapshot"))


def test_a_removed_file_may_have_got_deletes(table: Simulation) -> None:
    two = table.fork()
    table.row_delta(deletes={at("a1"): [1]})
    two.delete_files([at("a1")])
    assert names(two) == {"a2", "b1", "b2"}


@pytest.mark.parametrize("keep_sequence", [False, True])
def test_equality_deletes_reach_replaced_files_unless_they_keep_their_sequence(
    table: Simulation, keep_sequence: bool
) -> None:
    two, three = table.fork(), table.fork()
    table.row_delta(equality={"id": [1]}, equality_partition={"kind": "a"})
    if keep_sequence:
        replace(two, ["a1", "a2"], "a12", "a", keep_sequence=True)
        assert names(two) == {"a12", "b1", "b2"}
    else:
        fails("no-new-deletes", None, lambda: replace(two, ["a1", "a2"], "a12", "a"))
        replace(three, ["b1", "b2"], "b12", "b")  # another partition
        assert names(three) == {"a1", "a2", "b12"}


# Serializable ---------------------------------------------------------------------------------------------------------


def test_new_data_where_a_serializable_overwrite_has_read(table: Simulation) -> None:
    two, three, four = table.fork(), table.fork(), table.fork()
    table.append([file("b3", "b")])
    fails("no-new-conflicting-files", "b3", lambda: two.overwrite([file("b4", "b")], delete=[at("b1")]))
    three.overwrite([file("b4", "b")], delete=[at("b1")], isolation="snapshot")
    assert names(three) == {"a1", "a2", "b2", "b3", "b4"}
    four.overwrite([file("a4", "a")], where="kind = 'a'")
    assert names(four) == {"a4", "b2", "b3", "b4"}


def test_new_data_that_may_match_the_filter(table: Simulation) -> None:
    two = table.fork()
    table.append([file("a3", "a"), file("b3", "b")])
    fails("no-new-conflicting-files", "a3", lambda: two.overwrite([file("a4", "a")], where="kind = 'a'"))


def test_rewritten_data_is_not_new(table: Simulation) -> None:
    two = table.fork()
    replace(table, ["b1", "b2"], "b12", "b")
    two.overwrite([file("a4", "a")], delete=[at("a1")])
    assert names(two) == {"a2", "a4", "b12"}


def test_new_data_that_was_rewritten_since_is_still_new(table: Simulation) -> None:
    two = table.fork()
    table.append([file("b3", "b")])
    replace(table, ["b3"], "b33", "b")
    fails("no-new-conflicting-files", "b3", lambda: two.overwrite([file("a4", "a")], delete=[at("a1")]))


def test_rows_deleted_in_a_partition_that_got_data(table: Simulation) -> None:
    two, three, four = table.fork(), table.fork(), table.fork()
    table.append([file("a3", "a")])
    fails("no-new-conflicting-files", "a3", lambda: two.row_delta(deletes={at("a1"): [0]}))
    three.row_delta(deletes={at("a1"): [0]}, isolation="snapshot")
    four.row_delta(deletes={at("b1"): [0]})
    assert len(four.inspect.delete_files()) == 2


# More -----------------------------------------------------------------------------------------------------------------


def test_the_same_file_added_by_both(table: Simulation) -> None:
    two = table.fork()
    table.append([file("c", "a")])
    fails("duplicate-file", "c", lambda: two.overwrite([file("c", "a")], delete=[at("a1")], isolation="snapshot"))


def test_schema_and_spec(table: Simulation) -> None:
    two, three, four = table.fork(), table.fork(), table.fork()
    table.evolve_schema(add={"note": "string"})
    fails("schema-unchanged", None, lambda: two.evolve_schema(add={"other": "string"}))
    fails("schema-unchanged", None, lambda: three.evolve_spec(add=["bucket(4, id)"]))
    four.set_properties({"a": "b"})
    four.append([file("a3", "a")])
    assert "note" in {f.name for f in four.schema.fields} and four.properties["a"] == "b"


def test_a_branch_of_its_own_never_conflicts(table: Simulation) -> None:
    table.branch("audit")
    two = table.fork()
    table.delete_files([at("a1")])
    two.delete_files([at("a1")], ref="audit")
    assert names(two.at(ref="audit")) == {"a2", "b1", "b2"} == names(two)


def test_after_a_rollback_the_states_are_compared(table: Simulation) -> None:
    first = table.snapshot
    assert first is not None
    table.append([file("a3", "a")])
    two, three = table.fork(), table.fork()
    table.rollback(first.snapshot_id)
    fails("files-exist", "a3", lambda: two.delete_files([at("a3")]))
    three.delete_files([at("a1")])
    assert names(three) == {"a2", "b1", "b2"}


def test_steps_tell_commits_apart(table: Simulation) -> None:
    start = table.state
    table.append([file("a3", "a")])
    table.row_delta(deletes={at("a3"): [1]})
    table.delete_files([at("a3"), at("b1")])
    steps = steps_between(start, table.state)

    def seen(which: str) -> list[list[tuple[int, str | None]]]:
        out = []
        for step in steps:
            entries = getattr(step, which).entries
            kinds = entries["content_type"].to_pylist()
            named = [
                r or loc
                for r, loc in zip(entries["referenced_file"].to_pylist(), entries["location"].to_pylist(), strict=True)
            ]
            out.append(sorted(zip(kinds, named, strict=True)))
        return out

    assert [s.snapshot.operation for s in steps if s.snapshot] == ["append", "delete", "delete"]
    assert seen("added") == [[(0, at("a3"))], [(1, at("a3"))], []]
    gone = seen("removed")
    assert gone[:2] == [[], []] and [g for g in gone[2] if g[0] == 0] == [(0, at("a3")), (0, at("b1"))]


def test_only_what_differs_is_read(table: Simulation) -> None:
    for n in range(5):
        table.append([file(f"x{n}", "a")])
    two = table.fork()
    table.append([file("y", "b")])
    two.delete_files([at("a1")])
    record = two._sandbox.records[-1]
    assert record.attempts == 2
    assert sum(r.kind == "manifest" for r in record.reads[1]) <= 1


def test_unreadable_manifests_are_no_agreement(tmp_path: Path) -> None:
    table = by_kind(tmp_path / "t", 2)
    two = table.fork()
    table.append([file("a3", "a")])
    manifest = table.inspect.manifests()["path"].tolist()[0]
    Path(two.state.storage.resolve(manifest)).write_bytes(b"gone")
    from iceexplore.storage import CACHE

    CACHE.clear()
    with pytest.raises(ix.FormatError):
        two.delete_files([at("a1")])


def test_a_change_that_names_nothing_needs_nothing(table: Simulation) -> None:
    start = table.state
    table.delete_files([at("a1")])
    validate(Change("append"), start, table.state)
    with pytest.raises(CommitConflictError):
        validate(Change("delete", remove_data=(at("a1"),)), start, table.state)
    validate(Change("delete", remove_data=(at("a1"),), ignore_missing=True), start, table.state)


def test_many_writers_on_real_layouts(table: Simulation) -> None:
    import threading

    sandbox = Sandbox(
        table.state, LayoutOptions.of(table.format_version, dialect=table.options.dialect), max_attempts=50
    )
    forks = [Simulation(sandbox.fork()) for _ in range(3)]
    failures: list[BaseException] = []

    def work(n: int, s: Simulation) -> None:
        try:
            for i in range(3):
                s.append([file(f"w{n}-{i}", "a")])
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n, s)) for n, s in enumerate(forks)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    assert names(forks[0].refresh()) == names(table) | {f"w{n}-{i}" for n in range(3) for i in range(3)}
