"""Measure reading metadata, compared with PyIceberg: open, tree of the current snapshot, every file as pandas.

``python benchmarks/metadata.py`` makes the table (`generate.py`), runs every case in a process of its own, in turn,
prints a table and writes ``results/metadata.md``. Imports are done before the clock starts; the column "cold" is the
whole first call in a fresh interpreter, imports included, as in a notebook's first cell. Memory is the peak of the
process while the case ran (Linux: ``VmHWM``, reset before the case; elsewhere the process's maximum).
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
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
IMPORTS = {
    "iceexplore": ["iceexplore.table", "iceexplore.inspect", "iceexplore.graph", "pandas", "datafusion", "fastavro"],
    "pyiceberg": ["pyiceberg.table", "pyiceberg.table.inspect", "pyiceberg.io.pyarrow", "pandas"],
}
CASES = {
    "open": "open",
    "tree": "tree of the current snapshot",
    "files": "`inspect.files()` as pandas",
}


def _iceexplore(case: str, path: str) -> Callable[[], Any]:
    import iceexplore

    if case == "open":
        return lambda: iceexplore.open(path)
    table = iceexplore.open(path)
    if case == "tree":
        return lambda: table.tree().to_svg()
    return lambda: table.inspect.files()


def _pyiceberg(case: str, path: str) -> Callable[[], Any]:
    from pyiceberg.table import StaticTable

    if case == "open":
        return lambda: StaticTable.from_metadata(path)
    table = StaticTable.from_metadata(path)
    if case == "tree":  # PyIceberg draws none: the manifest list, which is all that a tree of this depth needs
        return lambda: table.current_snapshot().manifests(table.io)
    return lambda: table.inspect.files().to_pandas()


def _memory(reset: bool = False) -> float:
    """The most memory held so far, in MB; with ``reset`` it starts anew where the system can."""
    status = Path("/proc/self/status")
    if reset:
        if status.exists():
            Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM (proc(5))
        return 0.0
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _child(who: str, case: str, path: str, *, cold: bool) -> dict[str, Any]:
    if not cold:
        for name in IMPORTS[who]:
            import_module(name)
    make = {"iceexplore": _iceexplore, "pyiceberg": _pyiceberg}[who]
    start = time.perf_counter()
    if cold:
        result = make(case, path)()
    else:
        run = make(case, path)
        _memory(reset=True)
        start = time.perf_counter()
        result = run()
    seconds = time.perf_counter() - start
    rows = len(result) if case == "files" else None
    return {"seconds": seconds, "mb": _memory(), "rows": rows}


def _measure(who: str, case: str, path: str, cold: bool = False) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", who, case, path, *(["--cold"] if cold else [])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parent)})
    if done.returncode:
        raise SystemExit(f"{who}, {case}, failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _import_seconds(count: int, use: str = "") -> list[float]:
    """Seconds of ``import iceexplore``, each in a new interpreter; with ``use`` a face is loaded too."""
    code = f"import time; s = time.perf_counter(); import iceexplore; {use}\nprint(time.perf_counter() - s)"
    command = [sys.executable, "-c", code]
    return [float(subprocess.check_output(command, cwd=HERE.parent, text=True)) for _ in range(count)]


def run(path: str, repeat: int, slow_repeat: int) -> tuple[list[dict[str, Any]], list[float], list[float]]:
    """Measure every case of both, alternating; PyIceberg's slow ones ``slow_repeat`` times."""
    rows = []
    for case in CASES:
        runs: dict[str, list[dict[str, Any]]] = {who: [] for who in IMPORTS}
        for i in range(repeat):
            for who in IMPORTS:
                if i < slow_repeat or who == "iceexplore" or case != "files":
                    runs[who].append(_measure(who, case, path))
        counts = {who: r[0]["rows"] for who, r in runs.items()}
        if len(set(counts.values())) != 1:
            raise SystemExit(f"{case}: not the same number of rows: {counts}")
        for who in IMPORTS:
            seconds = [r["seconds"] for r in runs[who]]
            rows.append(
                {
                    "case": case,
                    "who": who,
                    "best": min(seconds),
                    "median": statistics.median(seconds),
                    "runs": len(seconds),
                    "mb": statistics.median(r["mb"] for r in runs[who]),
                    "cold": _measure(who, case, path, cold=True)["seconds"],
                }
            )
    return rows, _import_seconds(repeat), _import_seconds(repeat, "iceexplore.open")


def _report(rows: list[dict[str, Any]], imports: list[float], faces: list[float], path: Path) -> str:
    by = {(r["case"], r["who"]): r for r in rows}
    folder = path.parent.parent
    size = sum(f.stat().st_size for f in folder.rglob("*.avro")) / 1e6
    lines = [
        "# Reading metadata",
        "",
        "Made by `python benchmarks/metadata.py`; the top of that file describes how it measures.",
        "",
        f"Table: `{folder.name}` of `generate.py` (version, data files, delete files, columns with statistics, "
        f"manifests), {size:.0f} MB of manifests. "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("pyiceberg", "pandas", "pyarrow", "datafusion"))
        + ".",
        "",
        "| what | with | best, s | median, s | runs | memory, MB | cold, s |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for case, title in CASES.items():
        for who in IMPORTS:
            r = by[case, who]
            lines.append(
                f"| {title if who == 'iceexplore' else ''} | {who} | {r['best']:.3f} | {r['median']:.3f} | {r['runs']} "
                f"| {r['mb']:.0f} | {r['cold']:.2f} |"
            )
    ours, theirs = by["files", "iceexplore"], by["files", "pyiceberg"]
    faster, memory = theirs["median"] / ours["median"], ours["mb"] / theirs["mb"]
    checks = [
        (f"`files()` {faster:.1f} times as fast as PyIceberg (wanted: 10)", faster >= 10),
        (f"with {memory:.2f} times its memory (wanted: at most 1)", memory <= 1),
        ("open under 0.2 s", by["open", "iceexplore"]["median"] < 0.2),
        ("tree under 0.2 s", by["tree", "iceexplore"]["median"] < 0.2),
        (
            f"`import iceexplore` {statistics.median(imports):.3f} s (wanted: under 0.3); it loads little: "
            f"`iceexplore.open`, with what opening needs, takes {statistics.median(faces):.3f} s",
            statistics.median(imports) < 0.3,
        ),
    ]
    lines += ["", *[f"- {'met' if ok else '**missed**'}: {text}" for text, ok in checks], ""]
    lines += [
        "PyIceberg draws no tree; its row is reading the manifest list, which such a tree has to read.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="Time and memory of reading metadata, against PyIceberg.")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each case (%(default)s)")
    parser.add_argument("--slow-repeat", type=int, default=3, help="runs of PyIceberg's files() (%(default)s)")
    parser.add_argument("--files", type=int, default=100_000, help="data files of the table (%(default)s)")
    parser.add_argument("--manifests", type=int, default=11, help="manifests of the table (%(default)s)")
    parser.add_argument("--partitioned", action="store_true", help="a partitioned table")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "metadata.md", help="report (%(default)s)")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(_child(*options.child, cold=options.cold)))
        return
    from generate import Shape, generate

    path = generate(Shape(files=options.files, manifests=options.manifests, partitioned=options.partitioned))
    rows, imports, faces = run(str(path), options.repeat, options.slow_repeat)
    report = _report(rows, imports, faces, path)
    print(report)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report)


if __name__ == "__main__":
    main()
