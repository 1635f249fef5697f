"""Running experiments, in processes of their own."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from ._experiment import Numbers, Row
from ._registry import EXPERIMENTS
from ._results import merged

__all__ = ["run"]

_BY_NAME = {e.name: e for e in EXPERIMENTS}


def _task(name: str, seed: int, quick: bool) -> list[Row]:
    start = time.perf_counter()
    rows = _BY_NAME[name].run(seed, quick=quick)
    print(f"{time.perf_counter() - start:6.0f} s  {name}, seed {seed}", file=sys.stderr, flush=True)
    return rows


def run(
    names: Sequence[str], seeds: Sequence[int], *, quick: bool = False, jobs: int = 1, given: Numbers | None = None
) -> Numbers:
    """Run experiments, in the order of the report; derived ones take the others' numbers, or those given."""
    chosen = [e for e in EXPERIMENTS if e.name in names]
    tasks = [(e.name, seed, quick) for e in chosen if not e.derived for seed in seeds if seed <= e.seeds]
    if jobs > 1:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            found = list(pool.map(_task, *zip(*tasks, strict=True))) if tasks else []
    else:
        found = [_task(*task) for task in tasks]
    rows = [row for part in found for row in part]
    for e in chosen:
        if e.derived:
            rows += e.run(1, quick=quick, numbers=merged(Numbers(tuple(rows)), given))
    return Numbers(tuple(rows))
