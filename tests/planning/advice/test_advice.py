"""What would help a filter: each estimate held against the same rows written as it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.metadata import BlobMetadata, StatisticsFile
from iceexplore.planning import Advice
from iceexplore.planning.advice._advise import _scene
from iceexplore.planning.advice._columns import distinct_by_statistics
from iceexplore.planning.advice._suggestion import Suggestion
from tests.helpers.hostile import HOSTILE
from tests.helpers.tables import advice_table as lab

#: How far an estimate of files may be off: by this factor, or by two files.
FACTOR = 2.0
#: What is special about a column, a filter on it, and the partition fields and orders that are advised.
CASES: list[tuple[str, str, set[str]]] = [
    ("shuffled", "x = 77", {"sort", "bucket(16, x)"}),
    ("shuffled", "x in (5, 1400, 2900)", {"sort", "bucket(16, x)"}),
    ("shuffled", f"x in ({', '.join(map(str, range(3, 3600, 40)))})", set()),
    ("shuffled", "x between 1000 and 1600", {"sort", "truncate(1000, x)"}),
    ("shuffled", "x < 50", {"sort", "truncate(1000, x)"}),
    ("clustered", "x between 1000 and 1600", set()),
    ("nearly clustered", "x between 1000 and 1100", {"sort"}),
    ("half null", "x between 1000 and 1600", {"sort", "truncate(1000, x)"}),
    ("half null", "x is null", {"sort", "truncate(1000, x)"}),
    ("half null", "x is not null", {"sort", "truncate(1000, x)"}),
    ("half null", "x is null or x > 3400", {"sort", "truncate(1000, x)"}),
    ("outliers", "x > 2", {"sort"}),
    ("outliers", "x between -0.2 and 0.2", {"sort"}),
    ("few numbers", "x = 3", {"sort", "x"}),
    ("few numbers", "x in (1, 2)", {"sort", "x"}),
    ("few numbers", "x <> 3", {"sort"}),
    ("few texts", "x = 'oslo'", {"sort", "x"}),
    ("few texts", "x in ('rome', 'oslo')", {"sort", "x"}),
    ("prefix", "x = 'user-00000077'", {"sort", "bucket(16, x)"}),
    ("prefix", "x like 'user-000030%'", {"sort", "truncate(11, x)"}),
    ("prefix", "x > 'user-00003000'", {"sort", "truncate(11, x)"}),
    ("accented prefix", "x > 'üsér-00003000'", {"sort", "truncate(11, x)"}),
    ("long prefix", "x = 'https://www.example.org/shop/00000077'", {"bucket(16, x)"}),
    ("hex", "x like 'a%'", {"sort", "truncate(1, x)"}),
    ("days", "x = date '2024-01-20'", {"sort", "days(x)"}),
    ("days", "x between date '2024-01-10' and date '2024-01-19'", {"sort", "days(x)"}),
    ("times", "x >= timestamp '2024-01-18 00:00:00'", {"sort", "days(x)"}),
    ("decimals", "x between 5 and 8", {"sort", "truncate(1000, x)"}),
]
_DONE: dict[tuple[str, str], ix.Simulation] = {}


def made(advice: Advice) -> set[str]:
    """Orders and partition fields that are advised."""
    return {s.title.removeprefix("partition by ") if s.kind == "partition" else s.kind for s in movers(advice)}


def movers(advice: Advice) -> list[Suggestion]:
    return [s for s in advice.suggestions if s.kind in ("sort", "partition")]


def assert_near(guess: int, real: int, what: str) -> None:
    assert abs(guess - real) <= 2 or 1 / FACTOR <= guess / max(real, 1) <= FACTOR, (
        f"{what}: {guess} expected, {real} read"
    )


@pytest.mark.parametrize(("name", "where", "wanted"), CASES)
def test_following_the_advice_reads_what_it_predicted(name: str, where: str, wanted: set[str]) -> None:
    kind, values = lab.column(name)
    plan = lab.one_column(name).plan(where)
    advice = plan.advice()
    assert made(advice) == wanted
    assert (advice.now.files, advice.now.bytes) == lab.read(plan)
    for s in movers(advice):
        key = (name, s.title)
        if key not in _DONE:
            _DONE[key] = lab.taken({"x": kind}, pa.table({"x": values}), (), s)
        then = _DONE[key].plan(where)
        assert s.after is not None
        assert_near(s.after.files, len(then), s.title)
        assert lab.read(then)[1] < lab.read(plan)[1]


@pytest.mark.parametrize(
    ("where", "by", "titles"),
    [
        ("id = 77", ("region",), {"sort by id", "partition by bucket(4, id)"}),
        ("region = 'b' and id between 100 and 400", ("region",), {"sort by id", "partition by truncate(1000, id)"}),
        ("id = 77", ("bucket(4, id)",), {"sort by id", "partition by bucket(16, id)"}),
        ("t between timestamp '2024-01-10 00:00:00' and timestamp '2024-01-10 12:00:00'", ("month(t)",),
         {"sort by t", "partition by days(t)"}),
    ],
)  # fmt: skip
def test_of_a_partitioned_table(where: str, by: tuple[str, ...], titles: set[str]) -> None:
    schema = {"id": "long", "region": "string", "t": "timestamp"}
    ids, times = lab.column("shuffled")[1], lab.column("times")[1]
    rows = pa.table({"id": ids, "region": pa.array(list("abcd") * (lab.ROWS // 4)), "t": times})
    rows = rows.select([name for name in schema if name in where or any(name in b for b in by)])
    schema = {name: schema[name] for name in rows.column_names}
    plan = lab.written(schema, rows, by=by).plan(where)
    advice = plan.advice()
    assert {s.title for s in movers(advice)} == titles
    for s in movers(advice):
        assert s.after is not None
        assert_near(s.after.files, len(lab.taken(schema, rows, by, s).plan(where)), s.title)


def test_a_frequent_value_and_a_dense_middle_are_not_seen() -> None:
    """The limits that the docstring of `Advice` names: bounds do not show them, and the advice says what it assumes."""
    kind, values = lab.column("one frequent")
    advice = lab.one_column("one frequent").plan("x = 'city-001'").advice()
    order = next(s for s in advice.suggestions if s.kind == "sort")
    real = len(lab.taken({"x": kind}, pa.table({"x": values}), (), order).plan("x = 'city-001'"))
    assert order.after is not None
    assert real > 3 * order.after.files
    assert "equally frequent" in order.assumes
    assert "bounds do not show how values are distributed in a partition" in order.assumes


@pytest.mark.parametrize(
    ("name", "where", "why"),
    [
        ("clustered", "x = 77", "sorting by x is not worth a rewrite: 1 file would be read (no change)"),
        ("shuffled", "x = 99999", "the plan reads no data file"),
        ("shuffled", "x >= 0", "the plan reads|about 100 % of the rows match"),
        ("shuffled", "x <> 77", "a file is skipped only if every row has this one value"),
        (
            "prefix",
            "x not like 'user-000000%'",
            "only files in which every value begins with the excluded prefix are skipped",
        ),
        ("shuffled", "x is not null", "a file is skipped only if the column is null in every row"),
        ("outliers", "isnan(x)", "NaN use only NaN counts, not bounds|the plan reads no data file"),
        ("shuffled", None, "without a filter, every file is read"),
    ],
)
def test_where_nothing_helps_the_advice_explains_why(name: str, where: str | None, why: str) -> None:
    advice = lab.one_column(name).plan(where).advice()
    assert not movers(advice)
    assert any(word in note for note in advice.notes for word in why.split("|"))
    assert any(word in repr(advice) for word in why.split("|"))


def test_an_or_over_columns_an_empty_table_and_a_type_without_bounds() -> None:
    table = ix.empty({"a": "long", "b": "long", "flags": "struct<on: boolean>"}, format_version=2, seed=1)
    assert table.plan("a = 1").advice().notes == ("the table has no data files",)
    table.append(pa.table({"a": [1, 9], "b": [2, 3], "flags": [{"on": True}, {"on": None}]}))
    advice = table.plan("a = 1 or b = 3").advice()
    assert "OR over several columns (a, b)" in advice.notes[0]
    assert not advice.suggestions
    assert not table.plan("flags.on = true").advice().suggestions


def test_what_the_table_has_is_not_advised() -> None:
    rows = pa.table({"x": lab.column("few texts")[1]})
    table = lab.written({"x": "string"}, rows, by=("x",))
    advice = table.plan("x = 'oslo'").advice()
    assert not movers(advice)
    assert "x: the table is already partitioned by it" in advice.notes
    ordered = lab.one_column("shuffled").fork()
    ordered.set_sort_order("x")
    statements = next(s for s in ordered.plan("x = 77").advice().suggestions if s.kind == "sort").statements
    assert len(statements) == 1, "the table already has the sort order; files are to be rewritten"


def test_files_of_an_older_spec() -> None:
    schema, rows = {"x": "long"}, pa.table({"x": lab.column("shuffled")[1]})
    table = lab.written(schema, rows)
    table.evolve_spec(add=["bucket(16, x)"])
    advice = table.plan("x = 77").advice()
    old = next(s for s in advice.suggestions if s.kind == "old-spec")
    assert "23 of the 23 files read were written before the table was partitioned by bucket(16, x)" in old.why
    assert old.after is not None
    assert_near(old.after.files, len(lab.written(schema, rows, by=("bucket(16, x)",)).plan("x = 77")), old.title)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_bounds_that_nobody_wrote(version: int) -> None:
    none = {"write.metadata.metrics.column.x": "none"}
    half = lab.ROWS // 2
    rows = pa.table({"x": lab.column("clustered")[1]})
    table = lab.written({"x": "long"}, rows.slice(0, half), files=12, version=version, properties=none)
    table.set_properties({"write.metadata.metrics.column.x": "full"})
    table.append(rows.slice(half))
    plan = table.plan("x between 3000 and 3100")
    missing = next(s for s in plan.advice().suggestions if s.kind == "metrics")
    assert missing.after is not None
    assert "12 of the" in missing.why
    real = lab.written({"x": "long"}, rows, files=24).plan("x between 3000 and 3100")
    assert len(plan) == 12 + len(real)
    assert_near(missing.after.files, len(real), "with bounds")


def test_columns_of_nothing_but_nulls_and_nan_cannot_have_bounds() -> None:
    table = ix.empty({"x": "double"}, format_version=2)
    table.append(pa.table({"x": [float("nan"), None]}))
    table.append(pa.table({"x": [5.0, 6.0]}))
    plan = table.plan("x is null")
    assert len(plan) == 1
    assert [s.kind for s in plan.advice().suggestions] == []


def test_of_several_statistics_files_that_of_the_newest_snapshot_counts() -> None:
    table = ix.empty({"x": "long"}, format_version=2)
    old, new = (table.append(pa.table({"x": [1, 2, 3]})).snapshot_id for _ in range(2))

    def statistics(snapshot: int, distinct: int) -> StatisticsFile:
        blob = BlobMetadata("apache-datasketches-theta-v1", snapshot, 1, (1,), {"ndv": str(distinct)})
        return StatisticsFile(snapshot, f"{snapshot}.puffin", 1, 1, (blob,))

    for files in ((statistics(old, 7), statistics(new, 9)), (statistics(new, 9), statistics(old, 7))):
        assert distinct_by_statistics(replace(table.metadata, statistics=files), 1) == 9
    assert distinct_by_statistics(replace(table.metadata, statistics=(statistics(5, 7),)), 1) == 7
    assert distinct_by_statistics(table.metadata, 1) is None
    table.close()


def test_bounds_that_are_cut() -> None:
    kind, values = lab.column("long prefix")
    order = np.argsort(np.asarray(values))
    rows = pa.table({"x": values.take(build.array(order))})
    where = "x = 'https://www.example.org/shop/00000077'"
    plan = lab.written({"x": kind}, rows).plan(where)
    cut = next(s for s in plan.advice().suggestions if s.kind == "bounds")
    whole = {"write.metadata.metrics.column.x": "full"}
    then = lab.written({"x": kind}, rows, properties=whole).plan(where)
    assert cut.basis == "at most"
    assert cut.after is not None
    assert cut.after.files <= len(then) == 1 < len(plan) == 24


def test_small_files() -> None:
    table = lab.written({"x": "long", "r": "string"}, _regions(), by=("r",), files=40)
    table.set_properties({"write.target-file-size-bytes": str(1 << 20)})
    small = next(s for s in table.plan().advice().suggestions if s.kind == "small-files")
    assert small.after is not None
    before = len(table.plan())
    table.compact()
    assert len(table.plan()) == small.after.files == 4 < before


@pytest.mark.parametrize("version", [2, 3])
def test_deletes(version: int) -> None:
    rows = pa.table({"x": lab.column("clustered")[1]})
    table = lab.written({"x": "long"}, rows, version=version)
    files = table.plan().tasks["file_path"].tolist()
    table.row_delta(deletes={name: list(range(90)) for name in files})
    plan = table.plan()
    dead = next(s for s in plan.advice().suggestions if s.kind == "deletes")
    assert dead.title == "rewrite data files that have deletes"
    assert dead.before is not None
    assert dead.after is not None
    assert dead.before.files == len(plan) + 24
    assert "remove 2,160 of their rows (60.0 %)" in dead.why
    then = lab.read(lab.written({"x": "long"}, table.to_arrow(), files=24).plan())
    assert dead.after.files == then[0]
    assert 0.5 < dead.after.bytes / then[1] < 2


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, ("1 delete (", ") applies to ", "It is an equality delete, which must")),
        (2, ("2 deletes (", ") apply to ", "2 of them are equality deletes, which must")),
    ],
)
def test_one_delete_is_described_in_the_singular(count: int, words: tuple[str, ...]) -> None:
    table = lab.written({"x": "long"}, pa.table({"x": [1, 2, 3]}), version=2)
    for number in range(count):
        table.row_delta(equality={"x": [number + 1]})
    dead = next(s for s in table.plan().advice().suggestions if s.kind == "deletes")
    for part in words:
        assert part in dead.why


def test_few_deletes_of_version_2_are_put_together() -> None:
    table = lab.written({"x": "long", "r": "string"}, _regions(), by=("r",))
    for name in table.plan().tasks["file_path"].tolist()[:12]:
        table.row_delta(deletes={name: [0]})
    plan = table.plan()
    together = next(s for s in plan.advice().suggestions if s.kind == "deletes")
    assert together.title == "rewrite position deletes"
    partitions = set(plan.tasks.loc[plan.tasks["deletes"] > 0, "partition"])
    assert together.after is not None
    assert together.after.files == len(plan) + len(partitions)


@pytest.mark.parametrize("version", [2, 4])
def test_scattered_manifests(version: int) -> None:
    layout: dict[str, Any] = {"flush_data_files": 1, "leaf_entries": 4, "affinity": "none"} if version == 4 else {}
    keep = {"commit.manifest-merge.enabled": "false"}
    table = ix.empty(
        {"x": "long", "r": "string"}, partition_by="r", format_version=version, seed=1, properties=keep, **layout
    )
    for n in range(12):
        table.append(pa.table({"x": [n] * 4, "r": list("abcd")}))
    plan = table.plan("r = 'a'")
    found = [s for s in plan.advice().suggestions if s.kind == "manifests"]
    assert len(found) == 1
    assert found[0].before is not None
    assert found[0].after is not None
    assert found[0].before.files == plan.totals["manifests"] == 12
    assert found[0].after.files == 3


def test_frames() -> None:
    advice = lab.one_column("shuffled").plan("x = 77").advice()
    assert len(advice) == len(advice.frame) == len(advice.suggestions)
    assert advice.frame["files_after"].iloc[0] == advice.suggestions[0].after.files  # type: ignore[union-attr]
    row = advice.columns.iloc[0]
    assert (row["column"], row["files"], row["with_bounds"], row["deepest"]) == ("x", 24, 24, 24)
    assert row["depth"] == pytest.approx(24, abs=0.5)
    assert (row["reads"], row["sorted"]) == (23, 1)


@pytest.mark.parametrize("name", [n for n in HOSTILE if n not in ("empty", "surrogate")])
def test_hostile_names_stay_text(name: str) -> None:
    text = HOSTILE[name][:3000].replace(".", ",")  # a dot is a struct's
    place = f"/warehouse/db/{text[:100]}" if name != "nul" else "/warehouse/db/events"
    table = ix.empty(
        {text: "long"}, format_version=2, seed=1, location=place, properties={"write.target-file-size-bytes": "16"}
    )
    table.append(pa.table({text: [0, 100, 1, 99]}))
    quoted = "`" + text.replace("`", "``") + "`"
    advice = table.plan(f"{quoted} = 30").advice()
    assert advice.suggestions
    shown = advice._repr_mimebundle_()
    assert_harmless(shown)


def assert_harmless(shown: dict[str, str]) -> None:
    """Nothing runs in a notebook, and nothing drives a terminal."""
    for tag in ("<script", "<img", "<svg o", "<style>*", "onerror=alert(1)>", "<foreignObject", "<b>bold"):
        assert tag not in shown["text/html"]
    assert 'href="javascript' not in shown["text/html"]
    for sign in "\x1b\x07\x9b\r\x08\u202e\u2066\x00":
        assert sign not in shown["text/plain"]


def _regions() -> pa.Table:
    regions = pa.array(list("abcd") * (lab.ROWS // 4))
    return pa.table({"x": lab.column("shuffled")[1], "r": regions})


def test_only_what_is_counted_is_copied() -> None:
    """Of a million files, locations alone are 100 MB, which advice would copy twice."""
    table = ix.sample("trips")
    plan = table.plan("km > 5")
    scene = _scene(plan)
    entries = scene.batch.entries
    assert entries.num_rows == len(table.plan().files)
    kept = {name for name in entries.column_names if entries[name].null_count < entries.num_rows}
    assert kept == {"ordinal", "partition_spec_id", "record_count", "file_size_in_bytes"}
