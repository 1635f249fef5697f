"""Run experiments on V4's open questions, and write the report and its numbers.

``python -m benchmarks.evidence`` (``make evidence``) runs all experiments at full size and writes
``benchmarks/results/evidence.md`` and ``evidence.csv``. ``--only commits`` runs one, prints its part of the report, and
compares its numbers with the CSV; ``--update`` replaces its numbers there and writes the report anew.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version

from ._experiment import ConclusionError
from ._registry import EXPERIMENTS
from ._results import CSV, REPORT, compare, merged, read_csv, report, write_csv
from ._run import run

_NAMES = [e.name for e in EXPERIMENTS]


def about() -> str:
    """Return the head of the report."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "pyroaring", "numpy"))
    return (
        "# Evidence for V4's open questions\n\nMade by `make evidence` (`python -m benchmarks.evidence`) from "
        "[evidence.csv](evidence.csv), which has every number. A sentence is checked against its numbers when the "
        "report "
        "is written: numbers that do not support it are an error. Cells are means over the seeds, with the lowest and "
        "highest in parentheses where they differ.\n\n"
        "What is counted: manifest lists or roots, leaf manifests, and manifest deletion vectors (DVs) in Puffin "
        "files. "
        "Everything that a commit writes is a real file, and what a planner reads is counted from those files; a "
        "file or "
        "a blob is one request. Of the table's JSON the request is counted, the bytes are not: they grow with the "
        "retained snapshots, alike in every layout. Data files are synthetic: they have plausible statistics and are "
        "never read, except the real ones of [column files](#column-files-or-rewritten-data-files) and of "
        "[equality deletes](#equality-deletes-turned-into-dvs). A *cold* plan reads everything, a *warm* one what the "
        "last commit wrote. No time is measured but computed, by the [latency model](#the-latency-model) from these "
        "counts.\n\n"
        "An experiment whose command has `--quick` has been run at the notebook's size only.\n\n"
        f"{platform.system()} {platform.machine()}, {packages}."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=_NAMES, help="experiments to run; repeatable")
    parser.add_argument("--quick", action="store_true", help="the notebook's size instead of the full one")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="of the random choices (%(default)s)")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (%(default)s)")
    parser.add_argument(
        "--update", action="store_true", help="with --only or --quick: replace these numbers in the results"
    )
    given = parser.parse_args(arguments)
    old = read_csv(CSV.read_text("utf-8")) if CSV.exists() else None
    names = given.only or _NAMES
    if given.quick and any(e.derived for e in EXPERIMENTS if e.name in names):
        names = _NAMES  # they are computed from the others
    elif (
        given.update
        and old is not None
        and {e.name for e in EXPERIMENTS if not e.derived}
        <= {
            *names,
            *(r.experiment for r in old.rows),
        }
    ):
        names = [*names, *(e.name for e in EXPERIMENTS if e.derived and e.name not in names)]
    numbers = run(names, given.seeds, quick=given.quick, jobs=given.jobs, given=old)
    if not given.update and (given.quick or given.only):
        experiments = [e for e in EXPERIMENTS if e.name in names]
        print(report(merged(numbers, old), experiments, "# Evidence"))
        differences = [] if old is None else compare(numbers, old)
        print("\n".join(differences) or f"no difference from what {CSV.name} has of the same size and seeds")
        return 1 if differences else 0
    table = write_csv(merged(numbers, old if given.update else None).rows, _NAMES)
    whole = read_csv(table)
    CSV.write_text(table, "utf-8")  # first: numbers that support no sentence are to be looked at
    text = report(whole, [e for e in EXPERIMENTS if whole.of(e.name).rows], about())
    REPORT.write_text(text, "utf-8")
    print(f"written: {REPORT.name}, {CSV.name}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ConclusionError as error:
        sys.exit(f"the numbers do not support a sentence: {error}")
