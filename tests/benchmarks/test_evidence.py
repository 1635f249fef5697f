"""The evidence about V4: its numbers repeat, and the report's sentences follow from them."""

from __future__ import annotations

import csv
import importlib
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.evidence")


@pytest.fixture
def results(evidence: Any) -> Any:
    return importlib.import_module("benchmarks.evidence._results")


def experiment(evidence: Any, name: str) -> Any:
    return next(e for e in evidence.EXPERIMENTS if e.name == name)


def commits(evidence: Any, seed: int) -> Any:
    """Return the numbers of a few commits."""
    rows = experiment(evidence, "commits").run(seed, quick=True, commits={10: 3, 50: 2})
    return evidence.Numbers(tuple(rows))


def test_two_runs_have_equal_numbers(evidence: Any, results: Any) -> None:
    first, second, other = (commits(evidence, seed) for seed in (3, 3, 4))
    assert results.compare(first, second) == [] and first.rows
    assert {r.value for r in first.rows} != {r.value for r in other.rows}


def test_a_sentence_follows_from_its_numbers(evidence: Any) -> None:
    tested, numbers = experiment(evidence, "commits"), commits(evidence, 1)
    before = [a.sentence for _, a in tested.answers(numbers)]
    assert len(before) == len(tested.findings) and all(s.endswith(".") for s in before)
    more = [
        _times(r, 1.3 if dict(r.case)["layout"] == "V4, Parquet" and r.metric == "written by a commit" else 1)
        for r in numbers.rows
    ]
    after = [a.sentence for _, a in tested.answers(evidence.Numbers(tuple(more)))]
    assert after[0] != before[0]
    less = [_times(r, 0.1 if dict(r.case)["layout"].startswith("V4") else 1) for r in numbers.rows]
    with pytest.raises(evidence.ConclusionError, match="V4 writes more than v3"):
        list(tested.answers(evidence.Numbers(tuple(less))))


def _times(row: Any, factor: float) -> Any:
    return type(row)(row.experiment, row.size, row.case, row.seed, row.metric, row.unit, row.value * factor)


def test_bytes_are_those_of_the_files(evidence: Any) -> None:
    import iceexplore as ix

    found = {
        (dict(r.case)["layout"], r.metric): r.value
        for r in commits(evidence, 1).rows
        if dict(r.case)["columns"] == "10"
    }
    tables = importlib.import_module("benchmarks.evidence._tables")
    for layout, options in tables.LAYOUTS.items():
        s = tables.table(1, 10, **options)
        for _ in range(3):
            s.append(files=1, rows=1000)
        sizes = [p.stat().st_size for p in Path(s.overlay).rglob("*") if p.suffix in (".avro", ".parquet")]
        count = len(s.snapshots)
        assert sum(sizes) / count == pytest.approx(found[layout, "written by a commit"], abs=0.01)
        assert (len(sizes) + count) / count == found[layout, "PUTs of a commit"]
        assert isinstance(s, ix.Simulation)
        s.close()


def test_the_csv_is_tidy(results: Any) -> None:
    text = results.CSV.read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["experiment", "size", "case", "seed", "metric", "unit", "value"]
    keys = [(r["experiment"], r["case"], r["seed"], r["metric"]) for r in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        assert float(row["value"]) >= 0 and int(row["seed"]) >= 1 and row["unit"]
        assert all("=" in part for part in row["case"].split("; "))
    assert results.write_csv(results.read_csv(text).rows) == text
    with pytest.raises(ValueError, match="columns"):
        results.read_csv("a,b\n")


def test_the_report_follows_from_the_csv(evidence: Any, results: Any) -> None:
    numbers = results.read_csv(results.CSV.read_text("utf-8"))
    kept = results.REPORT.read_text("utf-8")
    head, _, rest = kept.partition("\n\n| question |")
    assert results.report(numbers, evidence.EXPERIMENTS, head) == kept and rest
    assert {r.experiment for r in numbers.rows} == {e.name for e in evidence.EXPERIMENTS}


def test_derived_numbers_follow_from_the_others(evidence: Any, results: Any) -> None:
    numbers = results.read_csv(results.CSV.read_text("utf-8"))
    derived = [e.name for e in evidence.EXPERIMENTS if e.derived]
    again = evidence.run(derived, [1], given=numbers)
    assert derived == ["latency", "helps"] and results.compare(again, numbers) == []


def test_the_latency_model() -> None:
    latency = importlib.import_module("benchmarks.evidence.experiments.latency")
    store = latency.Setting("s", 50, 100, 4)
    assert store.plan_ms(2, 1_000_000) == 2 * 50 + 10
    assert store.plan_ms(2 + 5, 0) == 4 * 50  # JSON, list, and five manifests in two rounds
    assert store.commit_ms(2, 0) == 100 and store.commit_ms(3, 100_000) == 151


def test_differences_between_runs_are_listed(evidence: Any, results: Any) -> None:
    row = evidence.Row("commits", "full", (("columns", "10"),), 1, "written by a commit", "bytes", 5)
    other = _times(row, 2)
    assert results.compare(evidence.Numbers((row,)), evidence.Numbers((other,))) == [
        "commits (('columns', '10'),) 1 written by a commit: 5 and 10"
    ]


def test_values_keep_the_separator_of_the_csv_out(evidence: Any, results: Any) -> None:
    experiments = importlib.import_module("benchmarks.evidence._experiment")
    with pytest.raises(ValueError, match="'a commit' must not contain '; '"):
        experiments.case(a_commit="1 file; 2 files", commits=3)
    row = evidence.Row("commits", "full", experiments.case(a_commit="1 file, or 2", commits=3), 1, "m", "bytes", 5)
    assert results.read_csv(results.write_csv((row,), ["commits"])).rows == (row,)
    histories = experiment(evidence, "histories")
    rows = histories.run(1, commits=dict.fromkeys(histories.full["commits"], 2), plans=1)
    shapes = set(evidence.Numbers(tuple(rows)).choices("history"))
    assert results.read_csv(results.write_csv(rows, ["histories"])).rows == tuple(rows) and len(shapes) == 4


def test_column_chunks_and_footers_are_counted(evidence: Any) -> None:
    module = importlib.import_module("benchmarks.evidence._fetched")
    out = io.BytesIO()
    table = pa.table({name: [float(i) for i in range(10)] for name in "abcd"})
    pq.write_table(table, out, row_group_size=5)
    data = out.getvalue()
    assert module.fetched(data) == module.Fetched(len(data) - 4, 3)  # all but the magic, in one run of chunks
    one, two = module.fetched(data, {"a"}), module.fetched(data, {"a", "d"})
    assert one.gets == 2 + 2 and two.gets == 2 + 3  # d of the first row group is beside a of the second
    footer = int.from_bytes(data[-8:-4], "little") + 8
    assert two.size - footer == module.fetched(data, {"a"}).size + module.fetched(data, {"d"}).size - 2 * footer
    assert module.fetched(data, set()) == module.Fetched()


def test_written_again_a_manifest_is_the_one_that_was_written(evidence: Any) -> None:
    """What paths and positions compare differs in nothing but what they change."""
    tables = importlib.import_module("benchmarks.evidence._tables")
    paths, positions = (importlib.import_module(f"benchmarks.evidence.experiments.{n}") for n in ("paths", "positions"))
    s = tables.table(1, 3, format_version=4, dialect="v4-draft", flush_data_files=0, leaf_entries=4)
    s.append(files=8, rows=10)
    s.delete_files(positions._names(s)[0][1])
    known: dict[str, bytes] = {}
    forms = positions._forms(s, known, "parquet")
    assert forms[positions._DRAFT] == s.state.storage.read(s.state.root().location, kind="manifest-list")
    assert len(known) == 1 and forms[positions._DRAFT] != forms[positions._NO_ID] == forms[positions._CARRIED]
    leaf, batch = paths.leaf_of(s)
    again = paths.encoded(s, batch, paths._LEAF, paths._PARQUET, s.metadata.location)
    assert again == s.state.storage.read(leaf, kind="manifest")
    s.close()


def test_a_scan_reads_each_column_once(evidence: Any) -> None:
    updates = importlib.import_module("benchmarks.evidence.experiments.updates")
    s, random = updates._filled(1, 5, 1, 10, **updates._DRAFT)
    assert updates._scan(s, s.schema.fields).gets == 3
    for name in ("feature_0", "feature_1", "feature_0"):
        updates._update(s, updates._FILES, name, updates._new(random))
    every, each = updates._scan(s, s.schema.fields), [updates._scan(s, [f]) for f in s.schema.fields]
    assert every.gets == 3 + 3 + 4  # two column files; two columns of the data file before them, and one after
    assert [one.gets for one in each] == [3] * 5
    data = s.state.storage.read(s.inspect.data_files.arrow()["file_path"][0].as_py(), kind="data-file")
    footer = int.from_bytes(data[-8:-4], "little") + 8
    assert sum(one.size for one in each) == every.size + 2 * footer  # three columns of the data file, each with it
    s.close()
