"""Measure views of many versions, and queries of many lines.

``python benchmarks/views.py`` writes the views' metadata itself. Every case runs in a process of its own, imports not
included, and opens its view; the best and the median of several runs. Each limit is what the view's user is to wait at
most. There is no peer: no other tool opens a view's metadata file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
QUERY = "SELECT day, count(*) AS trips FROM trips WHERE day >= date '2026-01-01' GROUP BY day"

#: What is measured: title, and the limit in seconds.
CASES = {
    "open": ("open 1,000 versions, show the view as text and HTML, and make its six tables", 1.0),
    "commit": ("simulate a commit on 1,000 versions", 1.0),
    "tree": ("draw the tree of 5,000 versions", 3.0),
    "diff": ("compare two queries of 4,000 lines, unified and side by side", 5.0),
}


def _metadata(sqls: list[str]) -> dict[str, Any]:
    """Return a view's metadata with one version, schema and log entry for each text."""
    fields = [
        {"id": 1, "name": "day", "required": False, "type": "date"},
        {"id": 2, "name": "trips", "required": False, "type": "long"},
    ]
    ids = range(1, len(sqls) + 1)
    stamp = 1_760_000_000_000
    return {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": "/warehouse/db/daily",
        "current-version-id": len(sqls),
        "properties": {"version.history.num-entries": str(len(sqls))},
        "versions": [
            {
                "version-id": i,
                "timestamp-ms": stamp + i,
                "schema-id": i,
                "summary": {"engine-name": "Spark", "engine-version": "4.1.0"},
                "default-catalog": "prod",
                "default-namespace": ["db"],
                "representations": [{"type": "sql", "sql": sql, "dialect": d} for d in ("spark", "trino")],
            }
            for i, sql in zip(ids, sqls, strict=True)
        ],
        "version-log": [{"timestamp-ms": stamp + i, "version-id": i} for i in ids],
        "schemas": [{"schema-id": i, "type": "struct", "fields": fields} for i in ids],
    }


def _work(case: str, folder: Path, scale: int) -> float:
    """Write the case's view at 1/`scale` of its size; return the seconds that the case takes."""
    import iceexplore as ix

    many = 1_000 // scale
    long = "SELECT 1,\n" * (4 * many)
    texts = {"tree": [QUERY] * 5 * many, "diff": [f"{long}2", f"0 {long}3"]}.get(case, [QUERY] * many)
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(_metadata(texts)), encoding="utf-8")
    simulation = ix.open_view(folder).simulate() if case == "commit" else None
    begin = time.perf_counter()
    view = ix.open_view(folder)
    if case == "open":
        assert len(repr(view) + view._repr_html_()) < 100_000
        assert len([view.inspect[name].arrow() for name in view.inspect]) == 6
    elif simulation is not None:
        simulation.replace({"spark": f"{QUERY} LIMIT 1", "trino": f"{QUERY} LIMIT 1"})
        assert len(simulation.versions) == many
    elif case == "tree":
        assert f"of {5 * many:,} versions" in view.tree(versions="all", open_sources=False).scene.description
    else:
        diff = view.diff(1, 2)
        assert all(len(repr(one)) < 100_000 for one in (diff, diff.unified("spark"), diff.side_by_side("spark")))
    return time.perf_counter() - begin


def _child(case: str, folder: Path) -> dict[str, float]:
    _work(case, folder / "small", 100)  # what is imported at first use is not the view's
    seconds = _work(case, folder / "large", 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "mb": peak / (2**20 if sys.platform == "darwin" else 2**10)}


def _measure(case: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="iceexplore-") as folder:
        command = [sys.executable, __file__, "--child", case, f"{folder}/daily"]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{case} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Measure, print, write the report; return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each case (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "views.md", help="report (%(default)s)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(_child(args.child[0], Path(args.child[1]))))
        return 0
    lines = [
        "# Views",
        "",
        "Made by `python benchmarks/views.py`; the top of that file describes how it measures. "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.",
        "",
        "| what | best, s | median, s | runs | memory, MB | limit, s | |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    all_met = True
    for case, (title, limit) in CASES.items():
        runs = [_measure(case) for _ in range(args.repeat)]
        seconds = [run["seconds"] for run in runs]
        met = statistics.median(seconds) <= limit
        all_met = all_met and met
        lines.append(
            f"| {title} | {min(seconds):.2f} | {statistics.median(seconds):.2f} | {len(runs)} "
            f"| {max(run['mb'] for run in runs):.0f} | {limit:g} | {'met' if met else '**missed**'} |"
        )
    text = "\n".join([*lines, ""])
    print(text)
    args.out.write_text(text, encoding="utf-8")
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
