"""One latency model over the counted requests and bytes of the other experiments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._experiment import Answer, Case, Experiment, Finding, Numbers, ratio, require

__all__ = ["LATENCY", "SETTINGS", "Setting"]


@dataclass(frozen=True)
class Setting:
    """A store, as a client sees it: the parameters of the model.

    Attributes
    ----------
    round_trip_ms
        From a request to the first byte of its answer.
    megabytes_per_second
        Of all requests together, each way.
    parallel
        How many requests are made at once.
    """

    name: str
    round_trip_ms: float
    megabytes_per_second: float
    parallel: int

    def plan_ms(self, requests: float, size: float) -> float:
        """Return the time of a plan: the JSON, then the root or list, then all else in parallel, and the transfer."""
        rounds = 2 + math.ceil(max(0.0, requests - 2) / self.parallel)
        return rounds * self.round_trip_ms + size / self.megabytes_per_second / 1000

    def commit_ms(self, puts: float, size: float) -> float:
        """Return the time of a commit's writes: manifests and vectors in parallel, then root or list, then JSON."""
        rounds = min(puts, 2) + math.ceil(max(0.0, puts - 2) / self.parallel)
        return rounds * self.round_trip_ms + size / self.megabytes_per_second / 1000


SETTINGS: tuple[Setting, ...] = (
    Setting("same zone", 10, 500, 32),
    Setting("object store", 50, 100, 16),
    Setting("far away", 150, 20, 8),
)


def _measure(
    seed: int, *, numbers: Numbers, settings: Sequence[Setting] = SETTINGS
) -> Iterator[tuple[Case, str, str, float]]:
    metrics = (
        ("commits", "cold plan", "cold plan, GETs", "written by a commit", "PUTs of a commit"),
        ("histories", "cold plan, mean", "cold plan, GETs, mean", "written by a commit", "PUTs of a commit"),
        ("leaves", "cold plan, mean", "cold plan, GETs, mean", "written by a commit", "PUTs of a commit"),
        ("affinity", "cold plan", "cold plan, GETs", "written by a commit", "PUTs of a commit"),
    )
    for experiment, size, gets, written, puts in metrics:
        mine = numbers.of(experiment)
        for at in mine.cases():
            means = {
                m: [r.value for r in mine.rows if r.case == at and r.metric == m] for m in (size, gets, written, puts)
            }
            if not all(means.values()):
                continue
            of = {m: sum(v) / len(v) for m, v in means.items()}
            for setting in settings:
                where = (("experiment", experiment), *at, ("store", setting.name))
                yield where, "cold plan", "ms", setting.plan_ms(of[gets], of[size])
                yield where, "commit", "ms", setting.commit_ms(of[puts], of[written])


def _find(n: Numbers, metric: str, **wanted: str) -> float:
    given = {k.replace("_", " "): v for k, v in wanted.items()}
    for row in n.rows:
        names = dict(row.case)
        if row.experiment == "latency" and row.metric == metric and all(names.get(k) == v for k, v in given.items()):
            return row.value
    require(False, f"no {metric} for {wanted}")
    return 0.0


def _commit(n: Numbers) -> Answer:
    columns = n.of("commits").choices("columns")
    found = {
        (setting.name, c, layout): _find(
            n, "commit", experiment="commits", columns=c, statistics="all columns", layout=layout, store=setting.name
        )
        for setting in SETTINGS
        for c in (columns[0], columns[-1])
        for layout in ("v3", "V4, Parquet")
    }
    saved = {
        (s.name, c): found[s.name, c, "v3"] - found[s.name, c, "V4, Parquet"]
        for s in SETTINGS
        for c in (columns[0], columns[-1])
    }
    require(all(v > 0 for v in saved.values()), "V4's commits are quicker by the model")
    middle = SETTINGS[1].name
    return Answer(
        f"{found[middle, columns[0], 'V4, Parquet']:.0f} instead of {found[middle, columns[0], 'v3']:.0f} ms",
        f"By the model, writing a one-file commit takes {found[middle, columns[0], 'V4, Parquet']:.0f} ms instead of "
        "v3's "
        f"{found[middle, columns[0], 'v3']:.0f} in the object store with {columns[0]} columns, and "
        f"{found[middle, columns[-1], 'V4, Parquet']:.0f} instead of {found[middle, columns[-1], 'v3']:.0f} with "
        f"{columns[-1]}: the PUT "
        f"that V4 saves is worth more than the bytes that it adds, in all {len(SETTINGS)} settings.",
    )


def _even(n: Numbers) -> Answer:
    columns = n.of("commits").choices("columns")[-1]
    mine = n.of("commits")
    at = next(dict(c) for c in mine.cases() if dict(c)["columns"] == columns)
    more = [
        mine.mean(
            "written by a commit", columns=columns, commits=at["commits"], statistics="all columns", layout=layout
        )
        for layout in ("V4, Parquet", "v3")
    ]
    require(more[0] > more[1], "V4 writes more")
    even = (more[0] - more[1]) / (SETTINGS[1].round_trip_ms * 1000)
    return Answer(
        f"below {even:.1f} MB/s",
        f"With {columns} columns and a round trip of {SETTINGS[1].round_trip_ms:.0f} ms, the bytes that a one-file "
        "commit of V4 adds "
        f"({more[0] - more[1]:,.0f}) take longer than the PUT that it saves below {even:.1f} MB/s.",
    )


def _plan(n: Numbers) -> Answer:
    middle, shapes = SETTINGS[1].name, n.of("histories").choices("history")
    pairs = {
        shape: tuple(
            _find(n, "cold plan", experiment="histories", history=shape, layout=layout, store=middle)
            for layout in ("V4", "v3")
        )
        for shape in shapes
    }
    require(all(a < b for a, b in pairs.values()), "V4's cold plans are quicker by the model")
    texts = ", ".join(f"{shape} {a:,.0f} instead of {b:,.0f}" for shape, (a, b) in pairs.items())
    return Answer(
        f"{ratio(*pairs[shapes[0]])} times",
        f"By the model, a cold plan takes, in the object store and in ms, {texts}.",
    )


LATENCY = Experiment(
    name="latency",
    title="The latency model",
    method=(
        "No time is measured: a plan's is the round trips of the JSON, of the root or list, and of all other "
        "requests in parallel, "
        "and the transfer of all bytes; a commit's, of its writes, those of manifests and vectors in parallel, of "
        "the root or list, and of "
        "the JSON. Everything is computed from the counts above, for "
        + "; ".join(
            f"*{s.name}*: {s.round_trip_ms:.0f} ms, {s.megabytes_per_second:.0f} MB/s, {s.parallel} requests at once"
            for s in SETTINGS
        )
        + ". `Setting` in `benchmarks/evidence/experiments/latency.py` takes other parameters. CPU time is not in it."
    ),
    measure=_measure,
    findings=(
        Finding("How long does a one-file commit write?", _commit),
        Finding("When do the bytes outweigh the saved request?", _even),
        Finding("How long is a cold plan?", _plan, first=False),
    ),
    bars=("commit", "cold plan"),
    seeds=1,
    derived=True,
)
