"""Equality deletes turned into DVs: what a converter reads and writes, and what scans pay without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.planning import plan_scan
from iceexplore.table import Simulation

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require
from .._fetched import Fetched, fetched
from .._tables import written

__all__ = ["CONVERSION"]

_EQUALITY, _V3, _V4 = "v3, equality deletes", "v3, DVs", "V4 draft, DVs"
_WAYS: dict[str, dict[str, Any]] = {
    _EQUALITY: {"format_version": 3},
    _V3: {"format_version": 3},
    _V4: {"format_version": 4, "dialect": "v4-draft"},
}
_RECENT, _ORDERED, _ANYWHERE = "newest tenth, keys in order", "any rows, keys in order", "any rows, keys anywhere"
_ALL, _OTHER = "scan of all columns", "scan of a column that is no key"


@dataclass(frozen=True)
class _Keys:
    """The key of each row, by data file."""

    of: np.ndarray  # files × rows

    def files_of(self, gone: np.ndarray) -> dict[int, np.ndarray]:
        """Return the positions of some keys by data file."""
        hit = np.isin(self.of, gone)
        return {int(i): np.flatnonzero(hit[i]) for i in np.flatnonzero(hit.any(axis=1))}

    def may_have(self, gone: np.ndarray) -> list[int]:
        """Return the files with bounds between which one of the keys lies: a converter has to read these."""
        low, high = self.of.min(axis=1), self.of.max(axis=1)
        return [i for i in range(len(self.of)) if ((gone >= low[i]) & (gone <= high[i])).any()]


def _measure(
    seed: int, *, files: int, rows: int, columns: int, commits: int, each: int
) -> Iterator[tuple[Case, str, str, float]]:
    for deletes in (_RECENT, _ORDERED, _ANYWHERE):
        random = np.random.default_rng([seed, files, rows])
        numbers = np.arange(files * rows)
        keys = _Keys((random.permutation(numbers) if deletes == _ANYWHERE else numbers).reshape(files, rows))
        among = np.arange(files * rows * 9 // 10, files * rows) if deletes == _RECENT else np.arange(files * rows)
        gone = np.sort(random.choice(among, (commits, each), replace=False))
        left = set()
        for way, options in _WAYS.items():
            s, names = _filled(seed, keys, columns, **options)
            read = Fetched()
            for part in gone:
                if way == _EQUALITY:
                    s.row_delta(equality={"id": part.tolist()})
                else:
                    s.row_delta(deletes={names[i]: at.tolist() for i, at in keys.files_of(part).items()})
                    for i in keys.may_have(part):
                        read += _fetch(s, names[i], {"id"})
            left.add(s.count())
            at = case(files=files, deletes=deletes, commits=commits, keys_in_a_commit=each, way=way)
            yield from ((at, *found) for found in _costs(s, commits))
            if way != _EQUALITY:
                yield at, "read to convert a commit", "bytes", read.size / commits
                yield at, "read to convert a commit, GETs", "requests", read.gets / commits
            if way == _V3:
                once = Fetched()
                for i in keys.may_have(gone.reshape(-1)):
                    once += _fetch(s, names[i], {"id"})
                yield at, "read to convert all commits at once", "bytes", once.size
                yield at, "read to convert all commits at once, GETs", "requests", once.gets
            s.close()
        require(left == {files * rows - commits * each}, "all ways delete the same number of rows")


def _filled(seed: int, keys: _Keys, columns: int, **options: Any) -> tuple[Simulation, list[str]]:
    """Return a table with a data file for each row of keys, and the files' locations."""
    files, rows = keys.of.shape
    random = np.random.default_rng([seed, 7])
    schema = {"part": "int", "id": "long"} | {f"measure_{i}": "double" for i in range(columns - 2)}
    s = ix.empty(schema, seed=seed, **options)
    for part in range(files):
        given = {"part": pa.array(np.full(rows, part), pa.int32()), "id": keys.of[part]}
        s.append(pa.table(given | {f"measure_{i}": random.random(rows) for i in range(columns - 2)}))
    entries = plan_scan(s.state).files.files.entries
    numbers = build.to_pylist(entries["sequence_number"])  # a file for each commit
    names = build.to_pylist(entries["location"])
    return s, [str(name) for _, name in sorted(zip(numbers, names, strict=True))]


def _costs(s: Simulation, commits: int) -> Iterator[tuple[str, str, float]]:
    made = s.cost().commits.iloc[-commits:]
    yield "deletes written by a commit", "bytes", float(made.data_bytes.mean())
    yield "metadata written by a commit", "bytes", written(s, len(s.cost().commits) - commits)[0]
    found = plan_scan(s.state).files
    deletes = found.matched.deletes.entries
    applied: set[int] = set()
    compared = 0
    apply = Fetched()
    for row in range(len(found)):
        vector, equality = found.matched.vector[row].as_py(), found.matched.equality[row].as_py()
        applied.update(equality)
        compared += sum(deletes["record_count"][i].as_py() for i in equality)
        if vector is not None:
            apply += Fetched(deletes["deletion_vector"][vector].as_py()["size_in_bytes"], 1)
    for number in applied:  # once for all data files: a task of a distributed scan may have to read it again
        apply += _fetch(s, deletes["location"][number].as_py(), None)
    names = [f.name for f in s.schema.fields]
    for metric, wanted in ((_ALL, set(names)), (_OTHER, {names[-1]})):
        read = apply
        for row in range(len(found)):
            key = {"id"} if found.matched.equality[row].as_py() else set()
            read += _fetch(s, found.files.entries["location"][row].as_py(), wanted | key)
        yield metric, "bytes", read.size
        yield f"{metric}, GETs", "requests", read.gets
    vectors = len(found) - found.matched.vector.null_count
    yield "delete files or DVs in a scan", "files", len(applied) + vectors
    yield "delete rows compared in a scan", "rows", compared


def _fetch(s: Simulation, location: str, columns: set[str] | None) -> Fetched:
    return fetched(s.state.storage.read(location, kind="data-file"), columns)


def _at(n: Numbers, metric: str, way: str, deletes: str = _ANYWHERE) -> float:
    names = dict(n.cases()[0])
    given = {"commits": names["commits"], "keys_in_a_commit": names["keys in a commit"]}
    return n.mean(metric, files=names["files"], deletes=deletes, **given, way=way)


def _commits(n: Numbers) -> str:
    names = dict(n.cases()[0])
    return f"{names['commits']} commits of {names['keys in a commit']} keys each"


def _cost(n: Numbers) -> Answer:
    files = dict(n.cases()[0])["files"]
    texts = []
    read = {d: _at(n, "read to convert a commit", _V4, d) for d in n.choices("deletes")}
    for rows, size in read.items():
        gets = _at(n, "read to convert a commit, GETs", _V4, rows)
        made, equality = (_at(n, "deletes written by a commit", way, rows) for way in (_V4, _EQUALITY))
        texts.append(f"{size:,.0f} bytes in {gets:.0f} GETs ({rows}), and writes {made:,.0f} bytes of DVs instead of "
                     f"{equality:,.0f} of keys")  # fmt: skip
    ways = (_EQUALITY, _V3, _V4)
    deletes = [_at(n, "deletes written by a commit", way) for way in ways]
    metadata = [_at(n, "metadata written by a commit", way) for way in ways]
    require(read[_RECENT] < read[_ORDERED] <= read[_ANYWHERE], "keys in order let a converter skip data files")
    require(deletes[0] < min(deletes[1:]), "DVs of many files write more than a file of keys")
    return Answer(
        f"{read[_RECENT]:,.0f} to {read[_ANYWHERE]:,.0f} bytes",
        f"A commit that turns the keys that it deletes into DVs reads, of the key column of {files} data files, "
        f"{'; '.join(texts)}. Beside the last, manifests and roots or lists take {metadata[2]:,.0f} bytes in the V4 "
        f"draft and {metadata[1]:,.0f} in v3, instead of {metadata[0]:,.0f} with equality deletes in v3.",
    )


def _scans(n: Numbers) -> Answer:
    texts = []
    for metric, what in ((_OTHER, "one column that is no key"), (_ALL, "all columns")):
        size, gets = ([_at(n, f"{metric}{m}", way) for way in (_EQUALITY, _V4)] for m in ("", ", GETs"))
        texts.append(
            f"of {what} {ratio(size[0], size[1])} times the bytes and {gets[0]:.0f} instead of {gets[1]:.0f} GETs"
        )
    other = [_at(n, _OTHER, way) for way in (_EQUALITY, _V4)]
    compared = _at(n, "delete rows compared in a scan", _EQUALITY)
    held = [_at(n, "delete files or DVs in a scan", way) for way in (_EQUALITY, _V4)]
    require(other[0] > other[1], "equality deletes make a scan read key columns")
    return Answer(
        f"{ratio(other[0], other[1])} times the bytes",
        f"After {_commits(n)}, of any rows and with keys anywhere, a scan with equality deletes fetches, beside one "
        f"with DVs, {' and '.join(texts)}; {held[0]:.0f} delete files, each read once, instead of {held[1]:.0f} DVs. "
        f"It compares {compared:,.0f} delete rows with data files (the same one for each file that it may apply to).",
    )


def _pays(n: Numbers) -> Answer:
    commits = float(dict(n.cases()[0])["commits"])
    each, once = {}, {}
    for deletes in n.choices("deletes"):
        for metric in (_OTHER, _ALL):
            paid = _at(n, metric, _EQUALITY, deletes) - _at(n, metric, _V4, deletes)
            require(paid > 0, "equality deletes cost every scan")
            made, equality = (_at(n, "deletes written by a commit", way, deletes) for way in (_V4, _EQUALITY))
            read = _at(n, "read to convert a commit", _V4, deletes)
            each[deletes, metric] = commits * (read + made - equality) / paid
            once[deletes, metric] = _at(n, "read to convert all commits at once", _V3, deletes) / paid
    each_of = n.choices("deletes")
    others = sorted(each[d, _OTHER] for d in n.choices("deletes"))
    require(once[_ANYWHERE, _OTHER] < each[_ANYWHERE, _OTHER], "converting several commits at once reads less")
    return Answer(
        f"{others[0]:.1f} to {others[-1]:.1f} scans",
        f"By bytes of data and delete files, converting each of {_commits(n)} has read and written in addition what so "
        "many scans after them read in addition for equality deletes, if they read a column that is no key (all "
        f"columns): {'; '.join(f'{each[d, _OTHER]:.1f} ({each[d, _ALL]:,.0f}) for {d}' for d in each_of)}. "
        "The key column read once for all commits, as by a conversion in the background, is "
        f"{once[_ANYWHERE, _OTHER]:.1f} scans ({once[_ANYWHERE, _ALL]:,.0f}) for {_ANYWHERE}.",
    )


CONVERSION = Experiment(
    name="conversion",
    title="Equality deletes turned into DVs",
    method=(
        "Real Parquet files of a key, a number and random doubles; each commit deletes rows by their keys. V4 takes no "
        "new equality deletes (apache/iceberg #17783), so that a writer has to find the rows first (#17142): it reads "
        "the key column of each data file whose bounds one of the keys is in, and writes DVs. v3 may do the same, or "
        "write the keys alone; every scan then reads the key columns, too, and compares them. Keys are in order over "
        "the data files, or anywhere. The footer's length, the footer, and each run of neighbouring column chunks is a "
        "GET, and a DV is one; a delete file is read once in a scan. An index of keys, and taking converted equality "
        "deletes out of the table, are not measured."
    ),
    measure=_measure,
    findings=(
        Finding("What does turning equality deletes into DVs cost a commit?", _cost),
        Finding("What do scans pay for equality deletes?", _scans, first=False),
        Finding("When does turning them into DVs pay?", _pays),
    ),
    bars=("read to convert a commit", "scan of a column that is no key"),
    quick={"files": 4, "rows": 1000, "columns": 6, "commits": 2, "each": 10},
    full={"files": 40, "rows": 20_000, "columns": 10, "commits": 20, "each": 50},
    seeds=2,
)
