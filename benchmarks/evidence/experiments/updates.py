"""Updates of columns: column files of the V4 draft against rewritten data files and, for a few rows, merge-on-read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import operation
from iceexplore.labs import ROW_OPERATIONS
from iceexplore.metadata import Schema
from iceexplore.planning import plan_scan
from iceexplore.table import Simulation, Table

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, require
from .._fetched import Fetched, fetched
from .._tables import planned
from .latency import SETTINGS

__all__ = ["UPDATES"]

_V3, _REWRITTEN, _FILES = "v3, rewritten", "V4 draft, rewritten", "V4 draft, column files"
_MERGED = "v3, merge-on-read"
_DRAFT: dict[str, Any] = {"format_version": 4, "dialect": "v4-draft"}
_WAYS: dict[str, dict[str, Any]] = {_V3: {"format_version": 3}, _REWRITTEN: _DRAFT, _FILES: _DRAFT}
_SAME, _OTHER, _ANY = "the same column", "another column each time", "any column"
_ALL, _NEW, _OLD = "scan of all columns", "scan of the column updated last", "scan of a column never updated"
_STORE = next(s for s in SETTINGS if s.name == "object store")


def _measure(
    seed: int,
    *,
    columns: Sequence[int],
    files: int,
    rows: int,
    after: Sequence[int],
    shares: Sequence[float],
) -> Iterator[tuple[Case, str, str, float]]:
    for count in columns:
        for way, options in _WAYS.items():
            for updated in (_SAME, _OTHER) if way == _FILES else (_ANY,):  # a rewrite writes all columns
                s, random = _filled(seed, count, files, rows, **options)
                for turn in range(1, max(after) + 1):
                    name = _feature(0 if updated == _SAME else (turn - 1) % (count - 3))
                    _update(s, way, name, _new(random))
                    if turn in after:
                        at = case(columns=count, updated=updated, updates=turn, way=way)
                        yield from ((at, *found) for found in _costs(s, turn, name, _feature(count - 3)))
                s.close()
        for share in shares:
            for way, options in (_MERGED, _WAYS[_V3]), (_FILES, _DRAFT):
                properties = {"write.update.mode": "merge-on-read"} if way == _MERGED else {}
                s, random = _filled(seed, count, files, rows, properties=properties, **options)
                chosen = np.sort(random.choice(files * rows, round(files * rows * share), replace=False))
                _update(s, way, _feature(0), _some(chosen, random), chosen)
                at = case(columns=count, rows_updated=f"{share:.1%}", way=way)
                made = s.cost().commits.iloc[-1]
                yield at, "written", "bytes", float(made.bytes - made.json_bytes)
                every = _scan(s, s.schema.fields)
                yield at, _ALL, "bytes", every.size
                yield at, f"{_ALL}, GETs", "requests", every.gets
                s.close()


def _feature(number: int) -> str:
    return f"feature_{number}"


def _filled(seed: int, columns: int, files: int, rows: int, **options: Any) -> tuple[Simulation, np.random.Generator]:
    """Return a table with data files of an id, a partition column and random doubles, and the generator of them."""
    schema = {"part": "int", "id": "long"} | {_feature(i): "double" for i in range(columns - 2)}
    random = np.random.default_rng([seed, columns])
    s = ix.empty(schema, partition_by=["part"], seed=seed, **options)
    given: dict[str, Any] = {
        "part": pa.array(np.repeat(np.arange(files), rows), pa.int32()),
        "id": np.arange(files * rows),
    }
    s.append(pa.table(given | {_feature(i): random.random(files * rows) for i in range(columns - 2)}))
    return s, random


def _new(random: np.random.Generator) -> Callable[[pa.Table], Any]:
    """Return a function that gives new values to all rows."""
    return lambda table: random.random(table.num_rows)


def _some(chosen: np.ndarray, random: np.random.Generator) -> Callable[[pa.Table], Any]:
    """Return a function that gives new values to the rows with these ids, and leaves the others."""

    def values(table: pa.Table) -> Any:
        old = table[_feature(0)].to_numpy().copy()
        mine = np.isin(table["id"].to_numpy(), chosen)
        old[mine] = random.random(int(mine.sum()))
        return old

    return values


def _update(
    s: Simulation, way: str, name: str, values: Callable[[pa.Table], Any], chosen: np.ndarray | None = None
) -> None:
    """Update a column in all rows, or in those with some ids; rows that are written again keep their row ids."""
    if way == _FILES:
        s.update_columns({name: values})
        return
    where = None if chosen is None or len(chosen) == s.count() else f"id in ({', '.join(map(str, chosen))})"
    # The operation of labs: it writes _row_id and _last_updated_sequence_number, which an overwrite does not.
    s._commit_files(operation("update"), ROW_OPERATIONS["update"]({name: values}, where), "main")


def _costs(s: Simulation, updates: int, new: str, old: str) -> Iterator[tuple[str, str, float]]:
    made = s.cost().commits.iloc[-updates:]
    yield "data written by an update", "bytes", float(made.data_bytes.mean())
    yield "metadata written by an update", "bytes", float((made.metadata_bytes - made.json_bytes).mean())
    yield "PUTs of an update", "requests", float(made.files.mean())
    live = s.inspect.data_files.arrow()["file_size_in_bytes"]
    yield "data file", "bytes", sum(build.to_pylist(live)) / len(live)
    yield "data files", "files", len(live)
    fields = s.schema.fields
    for metric, wanted in ((_ALL, fields), (_NEW, [f for f in fields if f.name == new]),
                           (_OLD, [f for f in fields if f.name == old])):  # fmt: skip
        read = _scan(s, wanted)
        yield metric, "bytes", read.size
        yield f"{metric}, GETs", "requests", read.gets
    yield "cold plan", "bytes", planned(s)["cold"]["bytes"]


def _scan(t: Table, fields: Sequence[Any]) -> Fetched:
    """Return what a scan of some columns fetches of data files, column files and deletion vectors."""
    found = plan_scan(t.state).files
    schema: Schema = t.schema
    names = {f.field_id: f.name for f in schema.fields}
    out = Fetched()
    for entry in found.files.entries.select(["location", "column_files"]).to_pylist():
        left = {f.field_id for f in fields}
        for newer in reversed(entry["column_files"] or []):
            held = left & set(newer["field_ids"])
            left -= held
            out += _fetch(t, newer["location"], {names[i] for i in held})
        out += _fetch(t, entry["location"], {names[i] for i in left})
    used = build.to_pylist(found.matched.vector)
    vectors = found.matched.deletes.entries["deletion_vector"].to_pylist()
    for number in used:
        if number is not None:
            out += Fetched(vectors[number]["size_in_bytes"], 1)
    return out


def _fetch(t: Table, location: str, columns: set[str]) -> Fetched:
    return fetched(t.state.storage.read(location, kind="data-file"), columns) if columns else Fetched()


def _at(n: Numbers, metric: str, columns: str, way: str, updates: str = "1", updated: str = _OTHER) -> float:
    updated = updated if way == _FILES else _ANY
    return n.mean(metric, columns=columns, updated=updated, updates=updates, way=way)


def _put(n: Numbers, columns: str, way: str, updates: str) -> float:
    return sum(_at(n, f"{part} written by an update", columns, way, updates) for part in ("data", "metadata"))


def _last(n: Numbers) -> str:
    return n.choices("updates")[-1]


def _file(n: Numbers, columns: str) -> str:
    """Return the size of a data file, in words."""
    size = _at(n, "data file", columns, _V3)
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _written(n: Numbers) -> Answer:
    texts, times, last = [], [], _last(n)
    for columns in n.choices("columns"):
        new, v3, v4 = (_put(n, columns, way, last) for way in (_FILES, _V3, _REWRITTEN))
        parts = [_at(n, "metadata written by an update", columns, way, last) for way in (_FILES, _V3, _REWRITTEN)]
        require(new < min(v3, v4), "column files write less than rewritten data files")
        require(parts[0] > parts[2], "the entries of column files add to the root")
        times.append(new / v3)
        texts.append(
            f"{new / v3:.3f} times v3's rewrite with {columns} columns ({new:,.0f} instead of {v3:,.0f} bytes, of "
            f"which {parts[0]:,.0f} instead of {parts[1]:,.0f} are metadata; a rewrite in the draft writes {v4:,.0f})"
        )
    return Answer(
        f"{times[0]:.3f} to {times[-1]:.3f} times",
        f"Over {last} updates of one column in all rows, another column each time, an update in column files writes "
        f"{' and '.join(texts)}; data files have {' and '.join(_file(n, c) for c in n.choices('columns'))}.",
    )


def _read(n: Numbers) -> Answer:
    columns, last = n.choices("columns")[-1], _last(n)
    size, gets = ([_at(n, f"{_ALL}{m}", columns, way, last) for way in (_V3, _FILES)] for m in ("", ", GETs"))
    same = _at(n, f"{_ALL}, GETs", columns, _FILES, last, _SAME)
    new, one = ([_at(n, f"{_NEW}{m}", columns, way, last) for way in (_V3, _FILES)] for m in ("", ", GETs"))
    require(size[1] < 1.05 * size[0], "column files hardly add to the bytes of a scan")
    require(gets[1] > same > gets[0], "column files add GETs, more of them if more columns are updated")
    require(new[1] < new[0] and one[1] == one[0], "the updated column alone is read from a smaller file")
    return Answer(
        f"{gets[1]:.0f} instead of {gets[0]:.0f} GETs",
        f"After {last} updates of {columns} columns, another one each time, a scan of all columns fetches "
        f"{size[1] / size[0]:.4f} times the bytes of v3's rewritten files in {gets[1]:.0f} GETs instead of "
        f"{gets[0]:.0f} (if it was the same column each time, in {same:.0f}); a scan of the column updated last "
        f"fetches, from the column file alone, {new[1] / new[0]:.2f} times the bytes in as many GETs.",
    )


def _more(n: Numbers, columns: str, old: str, updates: str, updated: str = _OTHER) -> tuple[float, float]:
    """Return the bytes and GETs that a scan of all columns makes in addition to one of rewritten files."""
    size, gets = (
        sum(
            sign * _at(n, metric, columns, way, updates, updated)
            for sign, way in ((1, _FILES), (-1, old))
            for metric in metrics
        )
        for metrics in ((_ALL, "cold plan"), (f"{_ALL}, GETs",))
    )
    require(size > 0 and gets > 0, "column files make scans of all columns read more")
    return size, gets


def _saved(n: Numbers, columns: str, old: str, updates: str) -> float:
    """Return the bytes that an update saved, on average."""
    return _put(n, columns, old, updates) - _put(n, columns, _FILES, updates)


def _ms(size: float, gets: float, at_once: int) -> float:
    """Return a time in the object store of the latency model, with so many GETs at once."""
    return gets * _STORE.round_trip_ms / at_once + size / _STORE.megabytes_per_second / 1000


def _scans(n: Numbers, columns: str, updates: str, at_once: int, updated: str = _OTHER) -> float:
    """Return how many scans of all columns take in addition the time that so many updates saved."""
    saved = _ms(float(updates) * _saved(n, columns, _V3, updates), 0, at_once)
    return saved / _ms(*_more(n, columns, _V3, updates, updated), at_once)


def _begin(n: Numbers, columns: str, at_once: int) -> int | None:
    """Return from which update on scans have taken the time that updates saved, with one scan after each.

    None if that is not so within the measured updates. What is read between these is interpolated.
    """
    after = [int(u) for u in n.choices("updates")]
    more = [_ms(*_more(n, columns, _V3, str(u)), at_once) for u in after]
    saved = _ms(_saved(n, columns, _V3, _last(n)), 0, at_once)
    taken = np.cumsum(np.interp(np.arange(1, after[-1] + 1), after, more))
    paid = np.flatnonzero(taken >= saved * np.arange(1, after[-1] + 1))
    return int(paid[0]) + 1 if len(paid) else None


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.2g}"


def _paid(n: Numbers) -> Answer:
    columns, last, many = n.choices("columns")[-1], _last(n), _STORE.parallel
    alone, together = (_number(_scans(n, columns, last, at_once)) for at_once in (1, many))
    same = [_number(_scans(n, columns, last, at_once, _SAME)) for at_once in (1, many)]
    since = [
        f"not within {last} updates" if update is None else f"from update {update} on"
        for update in (_begin(n, columns, at_once) for at_once in (1, many))
    ]
    files = n.mean("data files", columns=columns, updated=_ANY, updates=last, way=_V3)
    return Answer(
        f"{alone} to {together} scans",
        f"Counted as time ({_STORE.round_trip_ms:.0f} ms for a GET, {_STORE.megabytes_per_second:.0f} MB/s), {last} "
        f"updates of another column each have saved what {alone} scans of all {columns} columns take in addition if a "
        f"scan makes its GETs one after the other, and {together} with {many} at once ({same[0]} and {same[1]} if it "
        f"is always the same column), in {files:.0f} data file{'s' * (files != 1)} of {_file(n, columns)}. With a scan "
        f"after each update, reading has cost what writing saved {since[0]} (one after the other) or {since[1]} "
        f"({many} at once).",
    )


def _paid_bytes(n: Numbers) -> Answer:
    columns, last = n.choices("columns")[-1], _last(n)
    v3, draft = (
        float(last) * _saved(n, columns, way, last) / _more(n, columns, way, last)[0] for way in (_V3, _REWRITTEN)
    )
    plans = [_at(n, "cold plan", columns, way, last) for way in (_FILES, _V3)]
    require(draft > v3 > 1, "many scans read in addition what the updates saved")
    require(2 * (plans[0] - plans[1]) > _more(n, columns, _V3, last)[0], "most of it is the root")
    return Answer(
        f"{_number(v3)} scans",
        f"By bytes, {last} updates of another of {columns} columns each have saved what {_number(v3)} scans of all "
        f"columns read in addition to v3's, most of it for the draft's root ({plans[0]:,.0f} instead of "
        f"{plans[1]:,.0f} bytes for a cold plan), and {_number(draft)} in addition to rewrites in the draft.",
    )


def _rows(n: Numbers) -> Answer:
    texts, shares = [], []
    for columns in n.choices("columns"):
        less: list[tuple[str, float, float]] = []
        more: list[tuple[str, float, float]] = []
        for share in n.choices("rows updated"):
            new, merged = (n.mean("written", columns=columns, rows_updated=share, way=way) for way in (_FILES, _MERGED))
            (more if merged < new else less).append((share, new, merged))
        require(bool(more) and bool(less), "merge-on-read writes less for few rows, column files for many")
        share, new, merged = more[-1]
        read = [n.mean(_ALL, columns=columns, rows_updated=share, way=way) for way in (_MERGED, _FILES)]
        shares.append(share)
        texts.append(
            f"with {columns} columns up to {share} of the rows ({merged:,.0f} instead of {new:,.0f} bytes; a scan of "
            f"all columns then fetches {read[0] / read[1]:.2f} times as much), but not at {less[0][0]} "
            f"({less[0][2]:,.0f} instead of {less[0][1]:,.0f})"
        )
    return Answer(
        f"up to {' and '.join(shares)}",
        "A column file has all rows of its data file, however few are updated: of the measured shares, merge-on-read "
        f"in v3, with new rows of all columns and a DV, writes less {' and '.join(texts)}.",
    )


UPDATES = Experiment(
    name="updates",
    title="Column files or rewritten data files",
    method=(
        "Real Parquet files of an id, a partition column and random doubles get new values of one column in all rows, "
        "in commits one after the other (apache/iceberg #15146): by column files of the V4 draft, or by rewriting the "
        "data files, with row ids kept, in v3 and in the draft. Then some rows are updated, chosen at random, by "
        "column files or, in v3, by merge-on-read. What an update reads is not counted. A scan reads the newest chunks "
        "of its columns, by the files' footers; the footer's length, the footer, and each run of neighbouring chunks "
        "is a GET, and none is made of a file that has none of its columns. Updated columns are neighbours; of 10 "
        "columns, seven are updated in turn."
    ),
    measure=_measure,
    findings=(
        Finding("What do column files save on an update?", _written),
        Finding("What do column files cost a scan?", _read, first=False),
        Finding("When has reading cost what column files saved?", _paid),
        Finding("When, counted in bytes?", _paid_bytes, first=False),
        Finding("What if only some rows are updated?", _rows),
    ),
    metrics=(
        "data written by an update",
        "metadata written by an update",
        "PUTs of an update",
        _ALL,
        f"{_ALL}, GETs",
        _NEW,
        f"{_NEW}, GETs",
        "cold plan",
        "written",
    ),
    bars=("data written by an update", "metadata written by an update", f"{_ALL}, GETs"),
    quick={"columns": (10, 20), "files": 1, "rows": 2000, "after": (1, 2), "shares": (0.01, 1)},
    full={"columns": (10, 100), "files": 2, "rows": 20_000, "after": (1, 2, 5, 10), "shares": (0.001, 0.01, 0.1, 1)},
    seeds=2,
)
