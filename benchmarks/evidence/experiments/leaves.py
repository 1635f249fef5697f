"""Rewritten leaves against manifest DVs: when to rewrite a leaf instead of growing its DV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from iceexplore.arrow import build
from iceexplore.graph import live_manifests

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require
from .._tables import planned, table, written

__all__ = ["LEAVES"]

_POLICIES: dict[str, dict[str, Any]] = {
    "v3: rewritten by the commit": {"format_version": 3},
    "after any change": {"rewrite_leaf_at": 1e-9},
    "from 10%": {"rewrite_leaf_at": 0.1},
    "from 25%": {"rewrite_leaf_at": 0.25},
    "from 50%": {"rewrite_leaf_at": 0.5},
    "never": {"rewrite_leaf_at": None},
}
_V3, _ANY, _DELTA, *_ = _POLICIES


def _measure(
    seed: int, *, entries: int, leaves: int, steps: int, places: tuple[str, ...]
) -> Iterator[tuple[Case, str, str, float]]:
    for place in places:
        for policy, options in _POLICIES.items():
            if place == "any leaf" and policy not in (_V3, "never"):
                continue  # each commit changes every leaf, and a leaf is rewritten by a commit that does not change it
            layout = {} if policy == _V3 else {"flush_data_files": 0, "leaf_entries": entries}
            s = table(seed, 5, **layout, **options)
            for _ in range(leaves):
                s.append(files=entries, rows=1000)
            root = s.state.root()
            assert root is not None
            held = [
                build.to_pylist(m.entries["location"]) for m in s.state.reader.leaves(root, list(live_manifests(root)))
            ]
            plans = []
            for gone in _deletes(held, place, steps, np.random.default_rng([seed, entries])):
                s.delete_files(gone)
                plans.append(planned(s))
            size, puts = written(s, leaves)
            at = case(leaves=leaves, entries=entries, deletes_in=place, leaf_rewritten=policy)
            yield at, "commits", "commits", len(plans)
            yield at, "written by a commit", "bytes", size
            yield at, "PUTs of a commit", "requests", puts
            for name in ("cold", "warm"):
                yield at, f"{name} plan, mean", "bytes", sum(p[name]["bytes"] for p in plans) / len(plans)
            yield at, "cold plan, GETs, mean", "requests", sum(p["cold"]["requests"] for p in plans) / len(plans)
            s.close()


def _deletes(held: list[list[str]], place: str, steps: int, random: np.random.Generator) -> Iterator[list[str]]:
    """Yield the files that each commit removes: six tenths of every leaf in the end."""
    orders = [random.permutation(names)[: len(names) * 6 // 10] for names in held]
    if place == "one leaf":
        parts = [np.array_split(order, steps) for order in orders]
        for step in range(steps):
            for leaf in range(len(held)):
                yield [str(x) for x in parts[leaf][step]]
    else:
        together = random.permutation(np.concatenate(orders))
        for part in np.array_split(together, steps * len(held)):
            yield [str(x) for x in part]


def _at(n: Numbers, metric: str, policy: str, place: str = "one leaf") -> float:
    names = dict(n.cases()[0])
    return n.mean(metric, leaves=names["leaves"], entries=names["entries"], deletes_in=place, leaf_rewritten=policy)


def _about(n: Numbers) -> str:
    names = dict(n.cases()[0])
    return f"{names['leaves']} leaves of {names['entries']} entries"


def _written(n: Numbers) -> Answer:
    never, rewritten, v3 = (_at(n, "written by a commit", p) for p in ("never", _ANY, _V3))
    a, b = (_at(n, "written by a commit", p, "any leaf") for p in ("never", _V3))
    require(never < rewritten < v3 and a < b, "manifest DVs write less than rewritten leaves")
    return Answer(
        f"{ratio(rewritten, never)} and {ratio(v3, never)} times",
        f"While commits remove 60% of {_about(n)}, each from one leaf, rewriting a leaf after any change writes "
        f"{ratio(rewritten, never)} times the bytes of manifest DVs, and v3, which rewrites manifests in Avro at once, "
        f"{ratio(v3, never)} times ({ratio(b, a)} times if each commit removes files from any leaf).",
    )


def _read(n: Numbers) -> Answer:
    never, rewritten = (_at(n, "cold plan, mean", p) for p in ("never", _ANY))
    require(rewritten < never, "rewritten leaves are smaller to read")
    return Answer(
        f"{rewritten / never:.2f} times",
        f"In the same history, a cold plan reads {rewritten / never:.2f} times the bytes on average if leaves are "
        "rewritten "
        f"after any change instead of never ({rewritten:,.0f} and {never:,.0f}).",
    )


def _ten(n: Numbers) -> Answer:
    rules = [p for p in _POLICIES if p != _V3]
    total = {
        p: {k: _at(n, "written by a commit", p) + k * _at(n, "cold plan, mean", p) for k in (0, 1, 10)} for p in rules
    }
    best = {k: min(rules, key=lambda p: total[p][k]) for k in (0, 1, 10)}
    require(best[0] == "never" and total[_DELTA][0] > total["never"][0], "without cold plans, never is best")
    more = _at(n, "written by a commit", _DELTA) - _at(n, "written by a commit", "never")
    less = _at(n, "cold plan, mean", "never") - _at(n, "cold plan, mean", _DELTA)
    require(more > 0 and less > 0, "a rewrite costs commits, and saves plans")
    return Answer(
        f"from {more / less:.2f} cold plans",
        "Rewriting a leaf from 10% invalidated entries (Delta's rule) pays, in bytes and against never rewriting, "
        "from "
        f"{more / less:.2f} cold plans for each commit; with 1 cold plan for each commit the fewest bytes are moved by "
        f"rewriting {best[1]}, with 10 by rewriting {best[10]}.",
    )


LEAVES = Experiment(
    name="leaves",
    title="Rewritten leaves or manifest DVs",
    method=(
        "Leaves of equal size lose six tenths of their entries, in commits whose deletes are in one leaf or in any. "
        "The "
        "commit after the one by which a leaf's DV reaches a share of its entries rewrites the leaf with what is left "
        "(EXISTING entries only, as the proposal allows); `after any change` is closest to milestone 1 of the write "
        "plan, "
        "which has no manifest DVs. v3 rewrites each manifest in the commit that changes it, in Avro."
    ),
    measure=_measure,
    findings=(
        Finding("Rewritten leaves or manifest DVs: what do commits write?", _written),
        Finding("Rewritten leaves or manifest DVs: what do plans read?", _read, first=False),
        Finding("Is rewriting at about 10% invalidated entries a good rule?", _ten),
    ),
    bars=("written by a commit", "cold plan, mean"),
    quick={"entries": 200, "leaves": 2, "steps": 3, "places": ("one leaf", "any leaf")},
    full={"entries": 2000, "leaves": 2, "steps": 12, "places": ("one leaf", "any leaf")},
)
