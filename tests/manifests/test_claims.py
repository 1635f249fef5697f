"""What a root claims of its manifests, held against their live entries: what is untrue shows, and nothing else does."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.commits import check_rules

Change = Callable[[dict[str, Any], dict[str, Any]], None]
_NAN = float("nan")


def _list(t: ix.Table) -> Path:
    assert t.snapshot is not None
    return Path(str(t.snapshot.root_location).removeprefix("file://"))


def _change_list(path: Path, change: Callable[[list[Any]], None]) -> None:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema: Any = reader.writer_schema
    change(rows)
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=header)


@pytest.fixture
def lab(tmp_path: Path) -> ix.Lab:
    """Two manifests: the first has nulls and NaN, the second neither."""
    made = ix.create(tmp_path / "t", {"id": "long", "k": "string", "x": "double"}, partition_by=["k", "x"])
    made.append({"id": [1, 2, 3, 4], "k": ["b", "d", None, "c"], "x": [1.0, 2.0, _NAN, None]})
    made.append({"id": [5], "k": ["c"], "x": [1.5]})
    return made


#: What the list says of k and x of the manifest with nulls; what is claimed; and a filter whose rows are lost by it.
UNTRUE: dict[str, tuple[Change, str, str, str, str]] = {
    "upper bound": (lambda k, x: k.update(upper_bound=b"c"), "'k'", "an upper bound of c", "d", "k = 'd'"),
    "lower bound": (lambda k, x: k.update(lower_bound=b"c"), "'k'", "a lower bound of c", "b", "k = 'b'"),
    "contains_null": (lambda k, x: k.update(contains_null=False), "'k'", "no null", "null", "k is null"),
    "contains_nan": (lambda k, x: x.update(contains_nan=False), "'x'", "no NaN", "NaN", "is_nan(x)"),
    "no bounds": (
        lambda k, x: k.update(lower_bound=None, upper_bound=None),
        "'k'", "only nulls and NaNs", "b", "k = 'b'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNTRUE)
def test_a_claim_that_leaves_out_a_live_entry(name: str, lab: ix.Lab) -> None:
    change, field, claimed, found, where = UNTRUE[name]
    _change_list(_list(lab), lambda rows: change(*rows[-1]["partitions"]))
    folder = lab.state.storage.folder

    t = ix.open(folder)
    assert t.to_arrow().num_rows == 5  # all manifests are read
    (problem,) = [p for p in t.problems if p.code == "summary-untrue"]
    assert (problem.severity, problem.field) == ("warning", "507 partitions")
    assert (problem.found, problem.expected) == (found, claimed)
    assert problem.where == f"{t.state.root().location}#entry 1"  # type: ignore[union-attr]
    assert field in problem.text
    for level in ("footers", "data"):
        assert "summary-untrue" in set(t.verify(level=level)["code"])
    assert "summaries-cover" in {b.rule for b in check_rules(t.state)}
    for use in ("to_arrow", "plan", "head"):
        strict = ix.open(folder, strict=True)
        for _ in range(2):
            with pytest.raises(ix.FormatError, match="filters skip the manifest"):
                getattr(strict, use)()

    t = ix.open(folder)
    assert t.to_arrow(where).num_rows == 0, "what a filter by it cannot see: the manifest is not read (Limits)"
    assert t.count(where) == 0
    t.to_arrow()
    with pytest.warns(UserWarning, match="filters skip the manifest"):  # now that it is known
        t.to_arrow(where)


def test_a_filter_that_reads_another_part_of_the_list_warns(lab: ix.Lab) -> None:
    """The first manifest is read, and contradicts its claim; the second one is left out by such a claim."""
    _change_list(_list(lab), lambda rows: rows[-1]["partitions"][0].update(contains_null=False))
    t = ix.open(lab.state.storage.folder)
    with pytest.warns(UserWarning, match="filters skip the manifest"):
        assert t.to_arrow("k = 'b'").num_rows == 1
    with pytest.warns(UserWarning, match="filters skip the manifest"):
        assert t.count("k = 'b'") == 1


def _claimed(t: ix.Table) -> int:
    """Compare every manifest of every snapshot with its root: how many were compared."""
    count = 0
    for snapshot in t.snapshots:
        root = t.state.reader.root(snapshot)
        for leaf in t.state.reader.leaves(root, parts={"entries", "partition", "stats"}):
            leaf.partition()
            for field_id in leaf.stat_field_ids():
                leaf.stats(field_id)
            assert leaf.untrue_claims() == []
            count += leaf.root_row is not None
    assert "summary-untrue" not in {p.code for p in t.problems}
    return count


TYPES = {
    "i": "int", "s": "string", "d": "date", "ts": "timestamp", "tz": "timestamptz", "x": "double", "dc": "decimal(9,2)",
    "b": "boolean", "u": "uuid", "bi": "binary", "fx": "fixed[4]",
}  # fmt: skip


def _rows(k: int) -> dict[str, list[Any]]:
    utc = datetime.timezone.utc  # noqa: UP017
    return {
        "i": [k, None, -k],
        "s": ["x" * 40 + str(k), None, ""],
        "d": [datetime.date(2020, 1, k), None, datetime.date(1969, 12, 31)],
        "ts": [datetime.datetime(2020, 1, 1, k), datetime.datetime(1969, 12, 31, 23), None],
        "tz": [datetime.datetime(2020, 1, 1, k, tzinfo=utc), None, None],
        "x": [_NAN, -0.0, None],
        "dc": [Decimal("1.23"), None, Decimal(-5)],
        "b": [True, False, None],
        "u": [uuid.UUID(int=k << 120 | 5).bytes, uuid.UUID(int=2**127 + k).bytes, None],
        "bi": [b"\xff" * 30, b"", None],
        "fx": [b"abcd", b"\xff\xff\xff\xff", None],
    }


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_healthy_list_is_believed(version: int, tmp_path: Path) -> None:
    specs = (["i", "s", "d"], ["x", "dc", "b"], ["u", "bi", "fx"], ["ts", "truncate(3, s)", "bucket(4, i)"],
             ["day(ts)", "hour(tz)", "truncate(2, bi)"])  # fmt: skip
    for number, spec in enumerate(specs if version == 2 else specs[:1]):
        lab = ix.create(tmp_path / str(number), TYPES, partition_by=spec, format_version=version)
        for k in (1, 2):
            lab.append(_rows(k))
        lab.delete("i = 2")  # leaves DELETED entries, whose tuples the summary need not cover
        assert _claimed(lab) >= 4


@pytest.mark.parametrize("version", [1, 2, 3])
def test_types_and_specs_that_changed_are_no_contradiction(version: int, tmp_path: Path) -> None:
    types = {"i": "int", "f": "float", "dc": "decimal(5,2)", "s": "string"}
    lab = ix.create(tmp_path / "t", types, partition_by=["i", "f", "dc"], format_version=version)
    rows = {"i": [1, None], "f": [1.5, _NAN], "dc": [Decimal("1.10"), None], "s": ["a", "b"]}
    lab.append(rows)
    lab.evolve_schema(update={"i": "long", "f": "double", "dc": "decimal(9,2)"})
    lab.append({**rows, "i": [2**40, None]})
    lab.evolve_spec(remove=["f"], add=["bucket(3, s)"])
    lab.append(rows)
    lab.evolve_schema(drop=["f"])
    lab.rewrite_manifests()
    assert _claimed(lab) >= 4


def _v4(folder: Path) -> Path:
    """A saved V4 table with files in leaves, partitioned by an identity and a derived value."""
    types = {"id": "long", "k": "string", "d": "date"}
    how: dict[str, Any] = {"partition_by": ["k", "month(d)"], "format_version": 4, "flush_data_files": 0}
    s = ix.empty(types, **how, location=str(folder))
    for k in (1, 2):
        d = [datetime.date(2020, month, 1) for month in (1, 2, 3)]
        s.append(pa.table({"id": [k, 10 * k, 100 * k], "k": ["a", "b", None], "d": d}))
    s.save(folder)
    return folder


def test_a_healthy_v4_root_is_believed(tmp_path: Path) -> None:
    t = ix.open(_v4(tmp_path / "t"))
    assert _claimed(t) >= 2
    assert t.verify(level="data").empty


@pytest.mark.parametrize("column", ["k", "id", "d_month"])
def test_a_v4_root_that_claims_too_little(column: str, tmp_path: Path) -> None:
    folder = _v4(tmp_path / "t")
    t = ix.open(folder)
    path = _list(t)
    rows = pq.read_table(path)
    changed = rows.to_pylist()
    hit = 0
    for row in changed:
        stats = (row["content_stats"] or {}).get(column)
        if stats and row["manifest_stats"]:
            stats["upper_bound"] = stats["lower_bound"]
            hit += 1
    assert hit
    pq.write_table(pa.Table.from_pylist(changed, schema=rows.schema), path)
    t = ix.open(folder)
    t.to_arrow("id >= 0")
    assert "summary-untrue" in {p.code for p in t.problems}
    assert "summary-untrue" in set(t.verify()["code"])
    assert "stats-cover" in {b.rule for b in check_rules(t.state)}
    with pytest.raises(ix.FormatError, match="filters skip the manifest"):
        ix.open(folder, strict=True).to_arrow("id >= 0")
