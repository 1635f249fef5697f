"""Virtual columns: made, with statistics of new files, read back, planned with, refused, and gone again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules, evolve_virtual_columns
from iceexplore.errors import IceexploreError, OptionError, RuleError
from iceexplore.manifests import EntryBatch, write_manifest
from iceexplore.storage import CACHE
from tests.helpers.hostile import HOSTILE

SCHEMA = {"s": "string", "i": "int", "b": "binary", "ts": "timestamptz", "d": "double"}
COLUMNS = ["lower(s)", ("char_length(s)", "length"), "octet_length(b)", "bucket(4, s)", "truncate(10, i)", "day(ts)"]
#: By the name of a virtual column: what Python says of a value of its source.
PYTHON: dict[str, tuple[str, Any]] = {
    "lower_s": ("s", str.lower),
    "length": ("s", len),
    "octet_length_b": ("b", len),
    "i_trunc_10": ("i", lambda i: i // 10 * 10),
    "ts_day": ("ts", lambda ts: ts.date()),
}
WORDS = ["a", "Ab", "aB", "zz", "É", "日本", "", "LONGER than sixteen characters", "longer THAN sixteen characters!"]


def call(name: str, column: str, *parameters: int) -> dict[str, Any]:
    """A function in the JSON of a filter."""
    catalog = "iceberg_functions" if name in ("bucket", "truncate", "day") else "sql_functions"
    reference = {"type": "reference", "term": column}
    return {
        "type": "apply", "function": {"catalog": catalog, "identifier": [name]}, "arguments": [*parameters, reference],
    }  # fmt: skip


def equals(function: dict[str, Any], value: Any) -> dict[str, Any]:
    return {"type": "eq", "left": function, "right": value}


def table(*, columns: Any = COLUMNS, schema: Any = None, **layout: Any) -> Any:
    return ix.empty(schema or SCHEMA, virtual_columns=columns, seed=1, **layout)


def rows(*words: str | None, first: int = 0) -> pa.Table:
    n = len(words)
    return pa.table(
        {
            "s": pa.array(words, pa.string()),
            "i": pa.array(range(first, first + n), pa.int32()),
            "b": pa.array([None if w is None else w.encode() for w in words], pa.binary()),
            "ts": pa.array([86_400_000_000 * (first + k) for k in range(n)], pa.timestamp("us", "UTC")),
            "d": pa.array([float("nan")] * n),
        }
    )


def faults(t: Any) -> list[tuple[str, str | None]]:
    """What a check that reads every row finds, but for what is untidy."""
    return [(f.code, f.field) for f in t.check(level="rows") if f.severity != "untidy"]


def ids(t: Any) -> dict[str, int]:
    return {e.name: e.expr_id for e in t.metadata.expressions}


def structs(path: str) -> dict[int, list[Any]]:
    """The statistics of each column by its id, as pyarrow alone reads them."""
    found: Any = pq.read_table(path)["content_stats"].combine_chunks()
    out = {}
    for field in found.type:
        base = int(field.metadata[b"PARQUET:field_id"])
        out[(base - 10_000) // 200] = found.field(field.name).to_pylist()
    return out


def test_expressions_are_those_of_the_proposal() -> None:
    t = table(columns=["lower(s)", "bucket(4, s)"])
    assert t.metadata.raw["expressions"] == [
        {"expr-id": 6, "expr": {"source-id": 1, "transform": "lower"}, "name": "lower_s"},
        {"expr-id": 7, "expr": {"source-id": 1, "transform": "bucket[4]"}, "name": "s_bucket_4"},
    ]
    assert t.metadata.raw["last-column-id"] == 7
    t.evolve_schema(add={"n": "int"})
    assert t.schema.find(8).name == "n"  # one id space
    found = t.inspect.expressions.arrow().to_pylist()
    assert [(r["name"], r["used_by_specs"], r["has_statistics"]) for r in found] == [
        ("lower_s", [], False),
        ("s_bucket_4", [], False),
    ]


@pytest.mark.parametrize("storage", ["derived", "source", "tuple"])
@pytest.mark.parametrize("flush", [0, 100])
def test_files_and_manifests_have_their_statistics(flush: int, storage: str) -> None:
    t = table(flush_data_files=flush, partition_storage=storage, partition_by=["truncate(1, s)"])
    given = [rows("Apple", "axe"), rows(None, "BANANA", "banana", first=30)]
    for part in given:
        t.append(part)
    root = [w.real for w in t.writes if w.kind == "manifest-list"][-1]
    leaves = [w.real for w in t.writes if w.kind == "manifest"]
    assert bool(leaves) == (flush == 0)
    names = ids(t)
    lower = names["lower_s"]
    kept = [v for path in ([root] if flush else leaves) for v in structs(path)[lower]]
    bounds = [(v.get("lower_bound"), v.get("upper_bound")) for v in kept]
    assert sorted(bounds, key=str) == sorted(
        [("apple", "apple"), ("axe", "axe"), (None, None), ("banana", "banana"), ("banana", "banana")], key=str
    )
    assert sum(v["value_count"] for v in kept) == 5 and sum(v["null_count"] or 0 for v in kept) == 1
    if not flush:  # aggregated, one row for each manifest
        found = [(v["lower_bound"], v["upper_bound"], v["null_count"]) for v in structs(root)[lower]]
        assert sorted(found) == [("apple", "axe", 0), ("banana", "banana", 1)]
        lengths = [(v["average_uncompressed_length"], v["max_uncompressed_length"]) for v in structs(root)[lower]]
        assert sorted(lengths) == [(4, 5), (6, 6)]
        assert all("max_uncompressed_length" not in v for v in structs(root)[names["length"]])  # ints
    assert check_rules(t.state) == [] and not t.problems
    assert t.to_arrow().num_rows == 5


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.sampled_from([*WORDS, None]), min_size=1, max_size=4), min_size=1, max_size=5), st.data())
def test_statistics_are_those_that_python_finds_and_no_row_is_lost(files: list[list[Any]], data: st.DataObject) -> None:
    flush = data.draw(st.sampled_from([0, 100]))
    t = table(flush_data_files=flush)
    for k, words in enumerate(files):
        t.append(rows(*words, first=10 * k))
    names = ids(t)
    for leaf in t.state.leaves(parts={"entries", "stats"}):
        for name, (source, function) in PYTHON.items():
            stats = leaf.stats(names[name])
            for at, path in enumerate(build.to_pylist(leaf.entries["location"])):
                values = pq.read_table(t.state.storage.resolve(path))[source].to_pylist()
                made = [function(v) for v in values if v is not None]
                assert stats.value_count[at].as_py() == len(values)
                assert stats.null_count[at].as_py() == len(values) - len(made)
                if not made:
                    assert not stats.lower[at].is_valid and not stats.upper[at].is_valid
                    continue
                low, high = stats.lower[at].as_py(), stats.upper[at].as_py()
                assert low <= min(made) and (high is None or high >= max(made))
                if name != "lower_s" or max(map(len, made)) <= 16:
                    assert (low, high) == (min(made), max(made))
    word = data.draw(st.sampled_from(WORDS))
    for name, value, function in (("lower", word.lower(), str.lower), ("char_length", len(word), len)):
        where = equals(call(name, "s"), value)
        wanted = sum(w is not None and function(w) == value for words in files for w in words)
        assert t.to_arrow(where=where).num_rows == wanted
    assert faults(t) == []


def test_filters_on_the_function_open_only_what_matches() -> None:
    t = table(flush_data_files=0)
    words = ["Apple", "BANANA", "cherry", "Date"]
    for k, word in enumerate(words):
        t.append(rows(word, word.swapcase(), first=k))
    for name, value, kept in (
        ("lower", "banana", 1),
        ("char_length", 5, 1),
        ("char_length", 6, 2),
        ("upper", "BANANA", 4),
    ):
        CACHE.clear()
        t.state.storage.reads.clear()
        plan = t.plan(equals(call(name, "s"), value))
        assert len(t.state.storage.reads.of_kind("manifest")) == kept == len(plan.roots[0].kept), name
    one = t.plan(equals(call("lower", "s"), "banana"))
    assert len(one.files) == 1 and t.count(equals(call("lower", "s"), "banana")) == 2
    plain = table(flush_data_files=0, columns=())
    for k, word in enumerate(words):
        plain.append(rows(word, word.swapcase(), first=k))
    assert len(plain.plan(equals(call("lower", "s"), "banana")).files) == 4


def test_a_table_that_is_there_gets_them_with_new_and_rewritten_files(tmp_path: Path) -> None:
    old = ix.empty({"s": "string"}, format_version=3, seed=1)
    old.append(pa.table({"s": ["OLD"]}))
    s = old.table.simulate(format_version=4, flush_data_files=0)
    s.evolve_virtual_columns(add=["lower(s)"])
    expression = s.metadata.expressions[0]
    s.append(pa.table({"s": ["New"]}))
    where = equals(call("lower", "s"), "neither")
    assert len(s.plan(where).files) == 1  # nothing is known of the old file
    s.compact()
    assert len(s.plan(where).files) == 0 and s.count() == 2
    t = ix.open(s.save(tmp_path / "t").path)
    assert t.metadata.expressions == s.metadata.expressions and len(t.plan(where).files) == 0
    assert t.rules().ok and not t.problems
    again = t.simulate()
    again.append(pa.table({"s": ["more"]}))
    assert len(again.plan(equals(call("lower", "s"), "more")).files) == 1
    again.evolve_virtual_columns(remove=["lower_s"])
    assert again.metadata.expressions == () and again.metadata.raw["last-column-id"] == expression.expr_id
    again.append(pa.table({"s": ["last"]}))
    again.rewrite_manifests()
    root = again.state.root()
    assert root is not None and expression.expr_id not in root.stat_field_ids()
    again.evolve_virtual_columns(add=["lower(s)"])
    assert again.metadata.raw["expressions"][0]["expr-id"] == expression.expr_id + 1  # an id is given once
    assert again.rules().ok


def test_labs_have_them_too(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "lab", {"s": "string"}, format_version=4, virtual_columns="lower(s)", flush_data_files=0)
    lab.append(pa.table({"s": ["A"]}))
    lab.append(pa.table({"s": ["B"]}))
    t = ix.open(tmp_path / "lab")
    assert len(t.plan(equals(call("lower", "s"), "b")).roots[0].kept) == 1
    assert faults(t) == []
    lab.evolve_virtual_columns(add=["upper(s)"], remove=["lower(s)"])
    assert [e.name for e in lab.metadata.expressions] == ["upper_s"]


def test_records_may_have_them() -> None:
    t = table(columns=["lower(s)"])
    record = {"location": "data/a.parquet", "record_count": 3, "file_size_in_bytes": 9}
    known = {"lower_bounds": {"lower_s": "a"}, "upper_bounds": {"lower_s": "c"}, "null_value_counts": {"lower_s": 0}}
    t.append([{**record, **known}])
    assert len(t.plan(equals(call("lower", "s"), "d")).files) == 0
    with pytest.raises(OptionError, match="no column 'lower_x'"):
        t.append([{**record, "location": "data/b.parquet", "lower_bounds": {"lower_x": "a"}}])


def test_verification_finds_statistics_that_are_not_the_functions(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"s": "string"}, format_version=4, virtual_columns=["lower(s)"])
    lab.append(pa.table({"s": ["Apple", "Pear"]}))
    assert faults(ix.open(tmp_path / "t")) == []
    state = lab.state
    root = state.root()
    assert root is not None
    batch = EntryBatch.of(root)
    (expression,) = state.metadata.expressions
    kind = batch.stats[expression.expr_id].type
    wrong = [{**v, "lower": "b"} for v in build.to_pylist(batch.stats[expression.expr_id])]
    stats: Any = {**batch.stats, expression.expr_id: pa.array(wrong, kind)}
    data = write_manifest(
        EntryBatch(batch.entries, stats), content="root", metadata=state.metadata, spec_id=0, dialect="v4-proposal",
        manifest_format="parquet",
    )  # fmt: skip
    Path(state.storage.resolve(root.location)).write_bytes(data)
    CACHE.clear()
    assert ("bounds-untrue", "lower_bound of lower_s (2)") in faults(ix.open(tmp_path / "t"))


WRONG: list[tuple[Any, type[IceexploreError], str]] = [
    ("s", OptionError, "'s' is no virtual column: give a function of one column"),
    ("void(s)", OptionError, "no virtual column"),
    ("lower()", OptionError, "a function of one column"),
    ("lower(s, s)", OptionError, "a function of one column"),
    ("lower(upper(s))", OptionError, "a function of one column"),
    ("coalesce(s)", OptionError, "a function of one column"),
    ("bucket(4, s, i)", OptionError, "no virtual column"),
    ("reverse(s)", OptionError, "is not a transform of a column"),
    ("", OptionError, "neither a column nor a transform"),
    ("lower(nope)", RuleError, "there is no column 'nope'"),
    ("lower(i)", RuleError, "lower does not accept int"),
    ("day(s)", RuleError, "does not accept string"),
    ("lower(l.element)", RuleError, "must be a primitive outside lists and maps"),
    ("lower(l)", RuleError, "must be a primitive outside lists and maps"),
    ("bucket(8, s)", RuleError, "or a partition field"),
    (("lower(s)", "i"), RuleError, "'i' is taken"),
    (("lower(s)", "s_bucket_8"), RuleError, "'s_bucket_8' is taken"),
    (("lower(s)", ""), RuleError, "is empty"),
    (("lower(s)", "\ud800"), OptionError, "lone surrogate"),
    (("lower(s)",), OptionError, "is not a virtual column"),
    (7, OptionError, "expected, for example"),
    ([7], OptionError, "7 is not a virtual column"),
]


@pytest.mark.parametrize(("term", "error", "text"), WRONG, ids=lambda x: str(x).encode("ascii", "replace").decode())
def test_what_is_refused(term: Any, error: type[IceexploreError], text: str) -> None:
    schema = {**SCHEMA, "l": "list<string>"}
    t = table(schema=schema, columns=(), partition_by=["bucket(8, s)"])
    before = t.metadata_location
    with pytest.raises(error, match=text) as refusal:
        t.evolve_virtual_columns(add=term if isinstance(term, (list, int)) else [term])
    if isinstance(refusal.value, RuleError):
        assert refusal.value.rule == "virtual-columns"
    assert t.metadata_location == before and t.metadata.expressions[-1].name == "s_bucket_8"


def test_what_is_there_already_and_what_is_not() -> None:
    t = table(columns=["lower(s)"])
    for again in ("lower(s)", ("LOWER( s )", "other")):
        with pytest.raises(RuleError, match="already exists"):
            t.evolve_virtual_columns(add=[again])
    with pytest.raises(RuleError, match=r"no virtual column 'x'; existing ones: lower_s"):
        t.evolve_virtual_columns(remove=["x"])
    with pytest.raises(RuleError, match="'lower_s' uses column 1, which would no longer exist"):
        t.evolve_schema(drop=["s"])
    t.evolve_schema(rename={"s": "t"}, update={"i": "long"})
    assert t.inspect.expressions.arrow()["expression"].to_pylist() == ["lower(t)"]
    t.evolve_virtual_columns(remove=["lower(t)"], add=["lower(t)"])
    t.evolve_virtual_columns(remove="lower_t")
    t.evolve_schema(drop=["t"])
    assert evolve_virtual_columns(t.metadata.raw) == t.metadata.raw


@pytest.mark.parametrize(
    "how", [{"format_version": 2}, {"format_version": 3}, {"dialect": "v4-java"}, {"dialect": "v4-draft"}]
)
def test_only_the_proposal_has_them(how: dict[str, Any]) -> None:
    with pytest.raises(RuleError, match="the table has no expressions"):
        ix.empty({"s": "string"}, virtual_columns=["lower(s)"], **how)
    t = ix.empty({"s": "string"}, **how)
    with pytest.raises(RuleError, match="need format version 4"):
        t.evolve_virtual_columns(add=["lower(s)"])
    t.evolve_virtual_columns()


def test_two_writers_conflict() -> None:
    t = table(columns=())
    other = t.fork()
    t.evolve_virtual_columns(add=["lower(s)"])
    with pytest.raises(IceexploreError, match=r"expressions|last-column-id"):
        other.evolve_virtual_columns(add=["upper(s)"])


def test_promoted_sources_and_metrics_modes() -> None:
    modes = {
        "write.metadata.metrics.column.s": "counts", "write.metadata.metrics.column.b": "none",
        "write.metadata.metrics.column.t": "truncate(2)",
    }  # fmt: skip
    t = ix.empty(
        {"s": "string", "b": "binary", "t": "string", "i": "int", "p": "struct<q: string>"}, properties=modes, seed=1,
        virtual_columns=["lower(s)", "octet_length(b)", "upper(t)", "truncate(10, i)", "lower(p.q)"],
    )  # fmt: skip
    nested = pa.array([{"q": "Q"}, None, {"q": None}])
    t.append(
        pa.table(
            {
                "s": ["A", None, "b"],
                "b": [b"x"] * 3,
                "t": ["abc", "abd", "b"],
                "i": pa.array([1, 25, 3], pa.int32()),
                "p": nested,
            }
        )
    )
    t.evolve_schema(update={"i": "long"})
    t.append(pa.table({"s": ["C"], "i": [2**40]}))
    names = ids(t)
    root = t.state.root()
    assert root is not None
    (first, second) = (build.to_pylist(EntryBatch.of(root).stats[names["i_trunc_10"]])[i] for i in (0, 1))
    assert (first["lower"], first["upper"], second["lower"]) == (0, 20, 2**40 // 10 * 10)
    counts = build.to_pylist(EntryBatch.of(root).stats[names["lower_s"]])[0]
    assert (counts["value_count"], counts["null_count"], counts["lower"]) == (3, 1, None)
    assert names["octet_length_b"] not in root.stat_field_ids()
    cut = build.to_pylist(EntryBatch.of(root).stats[names["upper_t"]])[0]
    assert (cut["lower"], cut["upper"], cut["tight_bounds"]) == ("AB", "B", False)
    inner = build.to_pylist(EntryBatch.of(root).stats[names["lower_p.q"]])[0]
    assert (inner["lower"], inner["null_count"]) == ("q", 2)
    assert t.rules().ok and faults(t) == []


@pytest.mark.parametrize("manifest_format", ["parquet", "avro"])
def test_hostile_names_are_written_and_read(manifest_format: str, tmp_path: Path) -> None:
    t = ix.empty({"s": "string"}, seed=1, manifest_format=manifest_format, flush_data_files=0)
    kept: list[str] = []
    for name in HOSTILE.values():
        try:
            t.evolve_virtual_columns(add=[(f"truncate({len(kept) + 1}, s)", name)])
            kept.append(name)
        except (OptionError, RuleError):
            assert not name or any(0xD800 <= ord(c) < 0xE000 for c in name)
    assert len(kept) > 5
    t.append(pa.table({"s": ["x" * 50]}))
    saved = ix.open(t.save(tmp_path / "t").path)
    assert [e.name for e in saved.metadata.expressions] == kept and not saved.problems
    root = saved.state.root()
    assert root is not None
    for k, name in enumerate(kept):
        stats = root.stats(ids(saved)[name])
        assert stats.upper[0].is_valid and stats.lower[0].as_py() == "x" * min(k + 1, 16)
    page = saved.inspect.expressions._repr_html_()
    assert "<script" not in page and "<img" not in page
    saved.tree().to_svg()


def test_a_redacted_bundle_hides_names_and_bounds(tmp_path: Path) -> None:
    t = ix.empty({"s": "string"}, seed=1, virtual_columns=[("lower(s)", "confidentialname")])
    t.append(pa.table({"s": ["SECRETVALUE"]}))
    path = t.bundle(tmp_path / "b.zip", redact=True)
    import zipfile

    with zipfile.ZipFile(path if isinstance(path, (str, Path)) else tmp_path / "b.zip") as file:
        everything = b"".join(file.read(name) for name in file.namelist())
    for word in (b"secretvalue", b"SECRETVALUE", b"confidentialname"):
        assert word not in everything
    shown = ix.open(tmp_path / "b.zip")
    assert [e.transform for e in shown.metadata.expressions] == ["lower"]  # a function of SQL is no secret
    root = shown.state.root()
    assert root is not None and root.stats(2).lower[0].as_py() != "secretvalue" and not shown.problems


def test_documents_of_others_are_left_as_they_are() -> None:
    """Unknown functions, missing sources and several columns: nothing is written for them, and nothing fails."""
    t = table(columns=["lower(s)"])
    document = json.loads(json.dumps(t.metadata.raw))
    document["expressions"] += [
        {"expr-id": 50, "expr": {"source-id": 1, "transform": "soundex"}, "name": "x"},
        {"expr-id": 51, "expr": {"source-id": 99, "transform": "lower"}},
        {"expr-id": 52, "expr": {"source-ids": [1, 2], "transform": "bucket[4]"}, "name": "two"},
        {"expr-id": 53, "expr": {"source-id": 2, "function": "lower"}},
        {"expr-id": 1, "expr": {"source-id": 1, "transform": "upper"}, "name": "taken id"},
    ]
    state = ix.empty(SCHEMA).state
    from dataclasses import replace

    from iceexplore.graph import state_of

    made = ix.Table(state_of(replace(state.opened, document=document))).simulate()
    made.append(rows("A", "b"))
    root = made.state.root()
    assert root is not None
    assert set(root.stat_field_ids()) == {1, 2, 3, 4, 5, 6}
    made.evolve_schema(drop=["i"])
    made.evolve_virtual_columns(add=["upper(s)"])
    assert made.metadata.expressions[-1].expr_id == 54
