"""Affinity of delete manifests: what each policy writes, and what planners then open."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from iceexplore.arrow import build

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require
from .._tables import live_rows, planned, table, written

__all__ = ["AFFINITY"]

_NONE, _ADDED, _MERGED, _REWRITTEN = "none affiliated", "all, added", "all, merged above 4", "all, rewritten"
_DEFAULT, _V3 = "all but 2, merged above 4", "v3"
_POLICIES: dict[str, dict[str, Any]] = {
    _V3: {"format_version": 3},
    _NONE: {"affinity": "none"},
    _ADDED: {"affinity": "all", "affiliated_manifests": 0},
    _MERGED: {"affinity": "all", "affiliated_manifests": 4},
    _REWRITTEN: {"affinity": "all", "affiliated_manifests": 1},
    _DEFAULT: {"affinity": "some", "affiliated_manifests": 4},
}


def _measure(
    seed: int, *, leaves: int, entries: int, commits: int, each: int
) -> Iterator[tuple[Case, str, str, float]]:
    for clustered in (False, True):
        for policy, options in _POLICIES.items():
            layout = {} if policy == _V3 else {"flush_data_files": 0, "flush_delete_files": 20, "leaf_entries": entries}
            s = table(1, 2, **layout, **options)
            for _ in range(leaves):
                s.append(files=entries, rows=100)
            root = s.state.root()
            assert root is not None
            held = [build.to_pylist(leaf.entries["location"]) for leaf in s.state.reader.leaves(root)]
            chosen = random.Random(seed)
            for turn in range(commits):
                among = held[turn % leaves] if clustered else [name for names in held for name in names]
                s.row_delta(deletes={name: [turn] for name in chosen.sample(among, each)})
            rows = live_rows(s)
            deletes = [r for r in rows if r["content_type"] == 4]
            data = [r["location"] for r in rows if r["content_type"] == 3]
            beside = [r for r in deletes if r["referenced_file"] in (None, data[-1])]
            size, puts = written(s, leaves)
            cold = planned(s)["cold"]
            at = case(deletes_in="one leaf" if clustered else "any leaf", policy=policy)
            yield at, "written by a commit", "bytes", size
            yield at, "PUTs of a commit", "requests", puts
            yield at, "delete manifests", "files", len(deletes)
            yield at, "cold plan, GETs", "requests", cold["requests"]
            yield at, "cold plan", "bytes", cold["bytes"]
            yield at, "delete manifests for one leaf", "files", len(beside)
            yield at, "bytes of them", "bytes", sum(r["file_size_in_bytes"] for r in beside)
            s.close()


def _at(n: Numbers, metric: str, policy: str, place: str = "any leaf") -> float:
    return n.mean(metric, deletes_in=place, policy=policy)


def _opened(n: Numbers) -> Answer:
    none, default = (_at(n, "delete manifests for one leaf", p) for p in (_NONE, _DEFAULT))
    size = [_at(n, "written by a commit", p) for p in (_NONE, _DEFAULT)]
    v3 = _at(n, "written by a commit", _V3)
    require(default < none and size[1] > size[0], "affinity saves plans of one leaf, and costs commits")
    return Answer(
        f"{default:.0f} instead of {none:.0f}",
        f"If deletes fall in any leaf, the default affinity leaves a plan of one leaf {default:.0f} delete manifests "
        "to open "
        f"instead of {none:.0f}, and a commit writes {ratio(size[1], size[0])} times the bytes of no affinity "
        f"({ratio(size[1], v3)} times v3's).",
    )


def _clustered(n: Numbers) -> Answer:
    place = "one leaf"
    none, every = (_at(n, "delete manifests for one leaf", p, place) for p in (_NONE, _MERGED))
    size = [_at(n, "written by a commit", p, place) for p in (_NONE, _MERGED)]
    require(every < none and size[1] < 1.2 * size[0], "affinity costs little if deletes are in one leaf")
    return Answer(
        f"{size[1] / size[0]:.2f} times",
        f"If each commit's deletes are in one leaf, full affinity writes {size[1] / size[0]:.2f} times the bytes of "
        "none, and "
        f"a plan of one leaf opens {every:.0f} delete manifests instead of {none:.0f}.",
    )


def _merged(n: Numbers) -> Answer:
    added, merged, rewritten = (_at(n, "written by a commit", p) for p in (_ADDED, _MERGED, _REWRITTEN))
    gets = [_at(n, "cold plan, GETs", p) for p in (_ADDED, _MERGED, _REWRITTEN)]
    require(merged < 1.1 * added < 1.1 * rewritten, "merging writes about as much as adding, rewriting more")
    require(gets[2] <= gets[1] < gets[0], "plans read less")
    return Answer(
        f"{merged / added:.2f} times",
        f"If deletes fall in any leaf, merging a leaf's delete manifests above 4 writes {merged / added:.2f} times "
        "the bytes "
        f"of always adding one, and rewriting each time {rewritten / added:.2f} times; a cold plan then makes "
        f"{gets[1]:.0f} "
        f"and {gets[2]:.0f} GETs instead of {gets[0]:.0f}.",
    )


AFFINITY = Experiment(
    name="affinity",
    title="Affinity of delete manifests",
    method=(
        "Commits delete rows of a few data files each: of any leaf (as MERGE by a random key does), or of one leaf "
        "at a time. "
        "The root keeps 20 DVs; beyond that they move to delete manifests, which are affiliated with one data "
        "manifest or "
        "not, and added, merged or rewritten. v3 has no affinity: it merges delete manifests at 100."
    ),
    measure=_measure,
    findings=(
        Finding("What does affinity save, and cost?", _opened),
        Finding("What if deletes come leaf by leaf?", _clustered, first=False),
        Finding("How to rewrite affiliated delete manifests?", _merged, first=False),
    ),
    bars=("written by a commit", "delete manifests for one leaf"),
    quick={"leaves": 4, "entries": 40, "commits": 8, "each": 12},
    full={"leaves": 10, "entries": 200, "commits": 40, "each": 15},
)
