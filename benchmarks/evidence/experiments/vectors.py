"""Manifest DVs over a history: inline, in Puffin files, or by a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from iceexplore.arrow import build
from iceexplore.commits import LayoutOptions, plan_cost
from iceexplore.graph import live_manifests
from iceexplore.table import Simulation

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require
from .._tables import table

__all__ = ["VECTORS"]

_PLACES = {"inline": 1 << 40, "Puffin": 0}
_THRESHOLD = LayoutOptions.of(4).inline_dv_bytes
_SHAPES = ("random", "clustered", "runs")
_AFTER = (1, 2, 11)


def positions(shape: str, size: int, count: int, random: np.random.Generator) -> np.ndarray:
    """Return sorted positions: anywhere, in a tenth of the vector (or twice the count), or in runs of 50."""
    if shape == "random":
        return np.sort(random.choice(size, count, replace=False))
    if shape == "clustered":
        width = min(size, max(2 * count, size // 10))
        return np.sort(random.choice(width, count, replace=False)) + int(random.integers(0, size - width + 1))
    runs = max(1, count // 50)
    lengths = np.full(runs, count // runs) + (np.arange(runs) < count % runs)
    slot = size // runs
    starts = np.arange(runs) * slot + random.integers(0, slot - lengths + 1)
    return np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])


def _measure(
    seed: int, *, leaves: Mapping[int, int], shares: tuple[float, ...]
) -> Iterator[tuple[Case, str, str, float]]:
    for entries, count in leaves.items():
        base = table(seed, 1, flush_data_files=0, leaf_entries=entries)
        base.append(files=entries * count, rows=1000)
        base.set_layout(flush_data_files=10_000)
        held = _locations(base)
        for share in shares:
            for shape in _SHAPES:
                random = np.random.default_rng([seed, entries, round(100 * share), _SHAPES.index(shape)])
                gone = [
                    names[int(i)] for names in held for i in positions(shape, len(names), int(entries * share), random)
                ]
                for place, limit in _PLACES.items():
                    at = case(leaves=f"{count} of {entries:,}", deleted=f"{share:.0%}", positions=shape, place=place)
                    s = base.simulate(seed=seed, inline_dv_bytes=limit)
                    yield from ((at, *found) for found in _history(s, gone))
                    s.close()
        base.close()


def _locations(s: Simulation) -> list[list[str]]:
    root = s.state.root()
    assert root is not None
    leaves = s.state.reader.leaves(root, list(live_manifests(root)))
    return [[str(x) for x in build.to_pylist(leaf.entries["location"])] for leaf in leaves]


def _history(s: Simulation, gone: list[str]) -> Iterator[tuple[str, str, float]]:
    """Delete the files, then append a file ten times, and yield what is written and read."""
    before = len(s.cost().commits)
    s.delete_files(gone)
    cold = plan_cost(s.state).cold
    yield "cold plan, GETs", "requests", len(cold)
    yield "cold plan, GETs, blobs of a file in one", "requests", len({f.location for f in cold})
    for _ in range(max(_AFTER) - 1):
        s.append(files=1, rows=1000)
    made = s.cost().commits.iloc[before:]
    size = (made.metadata_bytes - made.json_bytes).cumsum().tolist()
    blobs = [f.size for f in cold if f.kind == "puffin"]
    if blobs:
        yield "largest DV", "bytes", max(blobs)
    yield "PUTs of the delete", "requests", float(made.metadata_files.iloc[0])
    for commits in _AFTER:
        yield f"written by {commits} commit{'s' if commits > 1 else ''}", "bytes", size[commits - 1]


def _at(n: Numbers, metric: str, place: str, leaves: str, positions: str = "random", deleted: str = "10%") -> float:
    return n.mean(metric, leaves=leaves, deleted=deleted, positions=positions, place=place)


def _large(n: Numbers) -> str:
    """Return the largest leaves of which there are several."""
    return [c for c in n.choices("leaves") if not c.startswith("1 of")][-1]


def _leaves(label: str) -> str:
    return label.replace(" of ", " leaf of " if label.startswith("1 of ") else " leaves of ")


def _flip(n: Numbers) -> Answer:
    leaves = _large(n)
    first, second, last = (
        [_at(n, f"written by {c}", place, leaves) for place in ("inline", "Puffin")]
        for c in ("1 commit", "2 commits", "11 commits")
    )
    require(first[0] < first[1] and second[0] > second[1] and last[0] > last[1], "the order flips at the second commit")
    return Answer(
        "second commit",
        f"With {_leaves(leaves)} entries of which a random 10% are deleted at once, inline DVs write fewer bytes "
        "than Puffin "
        f"with the deleting commit alone ({first[0]:,.0f} and {first[1]:,.0f}), and more as soon as one append follows "
        f"({second[0]:,.0f} and {second[1]:,.0f}); after ten appends it is {ratio(last[0], last[1])} times.",
    )


def _gets(n: Numbers) -> Answer:
    leaves = _large(n)
    inline, puffin = (_at(n, "cold plan, GETs", place, leaves) for place in ("inline", "Puffin"))
    joined = _at(n, "cold plan, GETs, blobs of a file in one", "Puffin", leaves)
    require(inline < joined < puffin, "Puffin costs requests, fewer if blobs are read together")
    return Answer(
        f"{puffin - inline:.0f}, or {joined - inline:.0f}",
        f"With {_leaves(leaves)} entries and a DV for each leaf, Puffin adds {puffin - inline:.0f} GETs to a cold "
        "plan, or "
        f"{joined - inline:.0f} if the blobs of one file are read together, and a PUT to the commit.",
    )


def _shapes(n: Numbers) -> Answer:
    leaves = n.choices("leaves")[-1]
    sizes = {
        s: (_at(n, "written by 11 commits", "inline", leaves, s), _at(n, "written by 11 commits", "Puffin", leaves, s))
        for s in n.choices("positions")
    }
    times = {s: a / b for s, (a, b) in sizes.items()}
    require(times["random"] > times["runs"], "random positions favour Puffin more than runs")
    texts = ", ".join(f"{times[s]:.2f} ({s})" for s in times)
    return Answer(
        f"{times['random']:.1f} to {times['runs']:.2f} times",
        f"With {_leaves(leaves)} entries, inline DVs write after eleven commits this many times the bytes of Puffin, "
        "by the "
        f"deleted positions: {texts}.",
    )


def _threshold(n: Numbers) -> Answer:
    worst, more, histories = 0.0, 0.0, 0
    for at in n.cases():
        names = dict(at)
        if names["place"] == "inline":
            same = {"leaves": names["leaves"], "positions": names["positions"], "deleted": names["deleted"]}
            inline, puffin = (_at(n, "written by 11 commits", place, **same) for place in _PLACES)
            limit = inline if _at(n, "largest DV", "Puffin", **same) <= _THRESHOLD else puffin
            better, histories = min(inline, puffin), histories + 1
            worst, more = max(worst, limit / better), max(more, (limit - better) / max(_AFTER))
    milliseconds = 2 * more / 100_000
    require(worst > 1 and milliseconds < 50, "the threshold costs bytes, and less time than a round trip")
    return Answer(
        f"up to {worst:.1f} times",
        f"By bytes, no: over {histories} histories of a delete and ten appends, the default threshold of 4,096 bytes "
        "for "
        f"each DV writes up to {worst:.1f} times the bytes of the better of inline and Puffin. By time, yes: these "
        "are at "
        f"most {more:,.0f} bytes more for a commit to read and write, {milliseconds:.2f} ms at 100 MB/s, while Puffin "
        "adds a PUT to the commit that deletes.",
    )


VECTORS = Experiment(
    name="vectors",
    title="Manifest DVs over a history",
    method=(
        "One commit removes a share of the entries of every leaf: at random, in a cluster (a tenth of the leaf, or "
        "twice the number), or in runs of 50. Ten appends of one file follow, which rewrite the root with its inline "
        "DVs. The DVs are portable roaring, inline in a zstd Parquet root, or in one Puffin file for each commit. v3 "
        "has "
        "no manifest DVs and rewrites manifests instead: see [leaves](#rewritten-leaves-or-manifest-dvs)."
    ),
    measure=_measure,
    findings=(
        Finding("Are manifest DVs smaller inline or in Puffin files?", _flip),
        Finding("What requests do DVs in Puffin files cost?", _gets, first=False),
        Finding("Does it depend on which entries are deleted?", _shapes, first=False),
        Finding("Is the threshold of 4,096 bytes justified?", _threshold),
    ),
    bars=("written by 1 commit", "written by 2 commits", "written by 11 commits"),
    quick={"leaves": {10_000: 2}, "shares": (0.1,)},
    full={"leaves": {1_000: 8, 10_000: 8, 100_000: 1, 1_000_000: 1}, "shares": (0.1,)},
    seeds=2,
)
