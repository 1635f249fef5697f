"""Histories of real tables, committed again as V4."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import iceexplore as ix
from iceexplore.table import Table

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, require

__all__ = ["REPLAYS"]

_LAYOUTS = {"defaults": {}, "leaves from 8 files": {"flush_data_files": 8, "flush_delete_files": 8}}
_METRICS = {
    "files": "files written",
    "bytes": "bytes written",
    "plan_cold_files": "cold plans, GETs",
    "plan_cold_bytes": "cold plans",
}


def _tables(folder: str | None) -> Iterator[tuple[str, Table]]:
    """Yield the sample, and the tables in a folder that have at least three snapshots and can be replayed."""
    yield "trips", ix.sample("trips")
    for metadata in sorted(Path(folder).rglob("metadata")) if folder else ():
        try:
            t = ix.open(metadata.parent)
            if len(t.snapshots) >= 3:
                yield str(metadata.parent.relative_to(folder or "")), t
        except ix.errors.IceexploreError:
            continue


def _measure(seed: int, *, real: bool) -> Iterator[tuple[Case, str, str, float]]:
    for name, t in _tables(os.environ.get("EVIDENCE_TABLES") if real else None):
        found = []
        try:
            for layout, options in _LAYOUTS.items():
                r = t.replay(format_version=4, seed=seed, **options)
                require(not r.differences, f"{name}: {r.differences}")
                pairs = [(s.before, s.after) for s in r.snapshots if s.after is not None]
                at = case(table=name, version=t.format_version, layout=layout)
                found.append((at, "snapshots", "commits", float(len(pairs))))
                for side, then in enumerate(("before", "after")):
                    for attribute, metric in _METRICS.items():
                        unit = "bytes" if "bytes" in attribute else "files"
                        found.append(
                            (at, f"{metric}, {then}", unit, float(sum(getattr(p[side], attribute) for p in pairs)))
                        )
                r.close()
        except ix.errors.IceexploreError:
            continue  # for example a table whose manifests are missing
        yield from found


def _sums(n: Numbers, metric: str) -> float:
    return sum(r.value for r in n.rows if r.metric == metric and dict(r.case)["layout"] == "defaults") / len(n.seeds())


def _replayed(n: Numbers) -> Answer:
    files, size, gets, read = (
        _sums(n, f"{m}, after") / _sums(n, f"{m}, before")
        for m in ("files written", "bytes written", "cold plans, GETs", "cold plans")
    )
    require(files < 1 and gets < 1, "fewer files")
    most = max(r.value for r in n.rows if r.metric == "snapshots")
    count = len(n.choices("table"))
    return Answer(
        f"{size:.2f} times",
        f"Committed again as V4, the {_sums(n, 'snapshots'):.0f} snapshots of {count} table{'s' * (count > 1)} write "
        f"{files:.2f} times "
        f"the metadata files and {size:.2f} times the bytes, and their cold plans read {gets:.2f} times the files "
        f"and {read:.2f} "
        f"times the bytes. These are test tables with few columns and at most {most:.0f} snapshots.",
    )


REPLAYS = Experiment(
    name="replays",
    title="Real histories, replayed as V4",
    method=(
        "`t.replay(format_version=4)` commits a table's own history again: the sample, and "
        "(`EVIDENCE_TABLES=folder`) every table "
        "in a folder that has at least three snapshots. Numbers are sums over the snapshots; `before` are the "
        "table's own files, in "
        "the version and by the engine that wrote them. They are small tables, with few columns and few commits."
    ),
    measure=_measure,
    findings=(Finding("What do real histories write as V4?", _replayed),),
    bars=("bytes written, before", "bytes written, after", "cold plans, before"),
    quick={"real": False},
    full={"real": True},
    seeds=1,
)
