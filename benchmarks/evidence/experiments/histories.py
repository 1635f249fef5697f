"""Synthetic histories of a stated shape over many commits, v3 beside V4."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from iceexplore.table import Simulation

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require
from .._tables import columns_of, planned, table

__all__ = ["HISTORIES"]

_LAYOUTS: dict[str, dict[str, Any]] = {"v3": {"format_version": 3}, "V4": {"format_version": 4}}
_STREAMING, _HOURLY, _CDC, _NIGHTLY = "streaming appends", "hourly batches", "CDC with deletes", "nightly compaction"
_SHAPES = {
    _STREAMING: "1 file",
    _HOURLY: "20 files",
    _CDC: "1 file, and deletes in 5 of the newest 200",
    _NIGHTLY: "1 file, and each 24th commit replaces the last 23 by 1",
}
_RETAINED = 100
_COLUMNS = 6


class History:
    """A table that is committed to, turn by turn."""

    def __init__(self, shape: str, seed: int, layout: str) -> None:
        self.s: Simulation = table(seed, _COLUMNS, **_LAYOUTS[layout])
        self._shape, self._chosen = shape, random.Random(seed)
        self._names: list[str] = []
        self._number = 0

    def commit(self, turn: int) -> None:
        """Make one commit."""
        if self._shape == _NIGHTLY and turn % 24 == 23:
            gone, self._names = self._names[-23:], self._names[:-23]
            self.s.overwrite(self._new(1), delete=gone, check_duplicates=False)
        elif self._shape == _CDC:
            recent = self._names[-200:]
            deletes = {name: [turn % 100] for name in self._chosen.sample(recent, min(5, len(recent)))}
            self.s.row_delta(self._new(1), deletes=deletes or None, check_duplicates=False)
        else:
            self.s.append(self._new(20 if self._shape == _HOURLY else 1), check_duplicates=False)

    def _new(self, count: int) -> list[dict[str, Any]]:
        found = []
        for _ in range(count):
            self._number += 1
            name = f"/warehouse/db/events/data/{self._number:06}-{self._chosen.getrandbits(64):016x}.parquet"
            self._names.append(name)
            low = self._number * 1000
            found.append(
                {
                    "location": name,
                    "record_count": 1000,
                    "file_size_in_bytes": 100_000 + self._chosen.randrange(10_000),
                    "lower_bounds": {
                        "id": low,
                        "region": f"region {self._chosen.randrange(100):03}",
                        "user": f"user {low:07}",
                    }
                    | {f"measure_{i}": self._chosen.random() for i in range(_COLUMNS - 4)},
                    "upper_bounds": {
                        "id": low + 999,
                        "region": f"region {self._chosen.randrange(100, 200)}",
                        "user": f"user {low + 999:07}",
                    }
                    | {f"measure_{i}": 1 + self._chosen.random() for i in range(_COLUMNS - 4)},
                    "value_counts": dict.fromkeys(columns_of(_COLUMNS), 1000),
                }
            )
        return found


def _measure(
    seed: int, *, commits: dict[str, int], plans: int, retained: int = _RETAINED
) -> Iterator[tuple[Case, str, str, float]]:
    for shape, count in commits.items():
        for layout in _LAYOUTS:
            history = History(shape, seed, layout)
            s, found, size, puts = history.s, [], 0, 0
            for turn in range(count):
                since = len(s.writes)
                history.commit(turn)
                made = [w for w in list(s.writes)[since:] if w.kind in ("manifest-list", "manifest")]
                size, puts = size + sum(w.length for w in made), puts + len(made) + 1
                if turn % retained == retained - 1:
                    s.expire_snapshots(
                        older_than=4_000_000_000_000, retain_last=2
                    )  # the JSON would be most of the work
                if turn % max(1, count // plans) == 0 or turn == count - 1:
                    found.append(planned(s))
            at = case(history=shape, a_commit=_SHAPES[shape], commits=count, layout=layout)
            yield at, "written by a commit", "bytes", size / count
            yield at, "PUTs of a commit", "requests", puts / count
            for name in ("cold", "warm"):
                yield at, f"{name} plan, mean", "bytes", sum(p[name]["bytes"] for p in found) / len(found)
                yield at, f"{name} plan, GETs, mean", "requests", sum(p[name]["requests"] for p in found) / len(found)
            yield at, "last cold plan", "bytes", found[-1]["cold"]["bytes"]
            yield at, "last cold plan, GETs", "requests", found[-1]["cold"]["requests"]
            s.close()


def _at(n: Numbers, metric: str, shape: str, layout: str) -> float:
    names = next(dict(c) for c in n.cases() if dict(c)["history"] == shape)
    return n.mean(metric, history=shape, a_commit=names["a commit"], commits=names["commits"], layout=layout)


def _pair(n: Numbers, metric: str, shape: str) -> tuple[float, float]:
    return _at(n, metric, shape, "V4"), _at(n, metric, shape, "v3")


def _commits(n: Numbers, shape: str) -> str:
    return next(dict(c)["commits"] for c in n.cases() if dict(c)["history"] == shape)


def _written(n: Numbers) -> Answer:
    times = {shape: _pair(n, "written by a commit", shape) for shape in n.choices("history")}
    texts = ", ".join(f"{shape} ({_commits(n, shape)} commits) {ratio(*pair)}" for shape, pair in times.items())
    most = ratio(*max(times.values(), key=lambda pair: pair[0] / pair[1]))
    least = ratio(*min(times.values(), key=lambda pair: pair[0] / pair[1]))
    return Answer(
        f"{least} to {most} times",
        f"With {_COLUMNS} columns and the default thresholds, V4 writes this many times v3's bytes: {texts}.",
    )


def _span(values: Iterable[float]) -> str:
    """Return the least and the greatest value as text, or the one that both are."""
    texts = sorted({f"{value:.1f}" for value in values}, key=float)
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _requests(n: Numbers) -> Answer:
    pairs = {shape: _pair(n, "cold plan, GETs, mean", shape) for shape in n.choices("history")}
    puts = [_pair(n, "PUTs of a commit", shape) for shape in pairs]
    require(all(a <= b for a, b in pairs.values()) and all(a < b for a, b in puts), "V4 needs fewer requests")
    texts = ", ".join(f"{shape} {a:,.0f} instead of {b:,.0f}" for shape, (a, b) in pairs.items())
    return Answer(
        f"{min(a for a, _ in pairs.values()):.0f} to {max(a for a, _ in pairs.values()):.0f} GETs",
        f"A cold plan makes on average these GETs in V4 instead of v3's: {texts}; a commit makes "
        f"{_span(a for a, _ in puts)} PUTs instead of {_span(b for _, b in puts)}.",
    )


def _read(n: Numbers) -> Answer:
    pairs = {shape: _pair(n, "warm plan, mean", shape) for shape in n.choices("history")}
    cold = {shape: _pair(n, "cold plan, mean", shape) for shape in n.choices("history")}
    require(cold[_STREAMING][0] < cold[_STREAMING][1], "cold plans of streaming appends read fewer bytes in V4")
    texts = ", ".join(f"{shape} {ratio(*cold[shape])} and {ratio(*pairs[shape])}" for shape in pairs)
    return Answer(
        f"{ratio(*cold[_STREAMING])} and {ratio(*pairs[_STREAMING])} times",
        f"Cold and warm plans in V4 read on average this many times v3's bytes: {texts}.",
    )


HISTORIES = Experiment(
    name="histories",
    title="Histories of many commits",
    method=(
        f"A table of {_COLUMNS} columns with statistics gets commits of a stated shape: "
        + "; ".join(f"*{name}*: {text}" for name, text in _SHAPES.items())
        + ". All options are defaults: V4 keeps up to 4,000 data files and 8,000 deletes in the root, v3 merges "
        "manifests "
        "at 100. Every 100 commits all but two snapshots are expired, so that the JSON stays small; it is not counted. "
        "Puffin files of data DVs are alike in both and not counted. Plans are sampled along the history."
    ),
    measure=_measure,
    findings=(
        Finding("What do long histories write?", _written),
        Finding("What requests do they save?", _requests),
        Finding("What do plans of them read?", _read, first=False),
    ),
    bars=("written by a commit", "cold plan, mean", "cold plan, GETs, mean"),
    quick={"commits": {_STREAMING: 24, _CDC: 12}, "plans": 4},
    full={"commits": {_STREAMING: 2000, _HOURLY: 480, _CDC: 600, _NIGHTLY: 480}, "plans": 12},
    seeds=2,
)
