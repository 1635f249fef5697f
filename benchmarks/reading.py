"""Measure reading rows, compared with PyIceberg: whole tables, filters, counts, first rows, with and without deletes.

``python benchmarks/reading.py`` has PyIceberg write a table (version 2, ten appends, eight columns) and adds deletes to
it with simulations (one row in 20 by deletion vectors or position delete files, one in 200 by an equality delete). It
runs every case in a process of its own, both readers in turn. Both must find the same rows, which is compared after the
clock has stopped. When the clock starts, the table has been opened, imports are done, and the files are in the system's
cache. Memory is the peak of the process meanwhile (see `metadata.py`), including the result. Results go to
``results/reading.md``, which also lists what PyIceberg cannot read.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from metadata import _memory

HERE = Path(__file__).parent
APPENDS = 10
IMPORTS = {
    "iceexplore": ["iceexplore.table", "iceexplore.planning", "iceexplore.reading", "pandas", "pyarrow.parquet"],
    "pyiceberg": ["pyiceberg.table", "pyiceberg.io.pyarrow", "pandas"],
}
TABLES = {
    "plain": "no deletes",
    "vectors": "deletion vectors",
    "positions": "position delete files",
    "equality": "an equality delete",
}


@dataclass(frozen=True)
class Case:
    """One question to a table; a filter is asked with the table's number of rows in it."""

    name: str
    what: str
    where: str = ""
    columns: tuple[str, ...] = ()


CASES = (
    Case("rows", "every row and column"),
    Case("some", "two columns, a filter that one row in 100 matches", "qty = 7", ("id", "amount")),
    Case("near", "every column of a thousandth of the ids", "id >= {half} and id < {half} + {rows} / 1000"),
    Case("matching", "how many rows match", "qty < 50"),
    Case("count", "how many rows there are"),
    Case("head", "the first ten rows"),
)


def columns(start: int, stop: int) -> Any:
    """Some rows: numbers, texts, times, a decimal, with nulls; the same ones each time."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(start)
    n = stop - start
    region = pa.DictionaryArray.from_arrays(
        rng.integers(0, 8, n).astype("int32"), pa.array([f"region-{i}" for i in range(8)])
    )
    name = np.char.add("customer-", rng.integers(0, 1_000_000, n).astype("U7"))
    cents = rng.integers(0, 10_000_000, n)
    first = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1e6)
    return pa.table(
        {
            "id": pa.array(np.arange(start, stop)),
            "ts": pa.array(first + np.arange(start, stop) * 1_000_000, pa.timestamp("us", "UTC")),
            "region": region.cast(pa.string()),
            "name": pa.array(name, pa.string()),
            "qty": pa.array(rng.integers(0, 100, n).astype("int32")),
            "amount": pa.array(cents / 100, mask=rng.random(n) < 0.01),
            "price": pa.array(cents).cast(pa.decimal128(19, 0)).cast(pa.decimal128(14, 2)),
            "open": pa.array(rng.random(n) < 0.5),
        }
    )


def tables(rows: int) -> dict[str, Path]:
    """The folders (the metadata file of the first) of the tables, made where they are not there."""
    import iceexplore

    folder = HERE / "data" / f"rows-{rows}"
    base = folder / "plain"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        base.mkdir(parents=True)
        _write(base, rows)
        for name in ("vectors", "positions", "equality"):
            table = iceexplore.open(_newest(base))
            simulation = table.simulate(format_version=3 if name == "vectors" else 2, seed=1)
            if name == "equality":
                import pandas as pd

                simulation.row_delta(equality=pd.DataFrame({"id": range(0, rows, 200)}))
            else:
                files = table.inspect.files()
                pairs = zip(files["file_path"], files["record_count"], strict=True)
                simulation.row_delta(deletes={path: range(0, count, 20) for path, count in pairs})
            simulation.save(folder / name, data="refer")
            simulation.close()
        (folder / "done").touch()
    return {name: _newest(folder / name) for name in TABLES}


def _write(folder: Path, rows: int) -> None:
    """The rows in appends of PyIceberg."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("bench", uri="sqlite:///:memory:", warehouse=folder.resolve().as_uri())
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.t", columns(0, 1).schema, location=folder.resolve().as_uri())
    edges = [rows * i // APPENDS for i in range(APPENDS + 1)]
    for start, stop in pairwise(edges):
        table.append(columns(start, stop))


def _newest(folder: Path) -> Path:
    return max((folder / "metadata").glob("*.metadata.json"), key=lambda p: p.stat().st_mtime_ns)


def _where(case: Case, rows: int) -> str:
    half = rows // 2
    return case.where.replace("{half} + {rows} / 1000", str(half + rows // 1000)).replace("{half}", str(half))


def _iceexplore(path: str, case: Case, rows: int) -> Callable[[], Any]:
    import iceexplore

    table = iceexplore.open(path, allow=[str(HERE / "data" / f"rows-{rows}")])
    where = _where(case, rows) or None
    if case.name in ("matching", "count"):
        return lambda: table.count(where)
    if case.name == "head":
        return lambda: table.head(10)
    return lambda: table.to_arrow(where, list(case.columns) or None)


def _pyiceberg(path: str, case: Case, rows: int) -> Callable[[], Any]:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(path)
    options: dict[str, Any] = {"row_filter": _where(case, rows)} if case.where else {}
    if case.columns:
        options["selected_fields"] = case.columns
    if case.name in ("matching", "count"):
        return lambda: table.scan(**options).count()
    if case.name == "head":
        return lambda: table.scan(limit=10).to_pandas()
    return lambda: table.scan(**options).to_arrow()


def _summary(result: Any) -> str:
    """Return what must be equal for both readers: the number of rows, and the sum of ids."""
    import pandas as pd
    import pyarrow.compute as pc

    if isinstance(result, int):
        return str(int(result))
    if isinstance(result, pd.DataFrame):
        return f"{len(result)} rows"
    return f"{result.num_rows} rows, ids {pc.sum(result['id']).as_py()}"


def _child(who: str, path: str, name: str, rows: int) -> dict[str, Any]:
    for module in IMPORTS[who]:
        import_module(module)
    case = next(c for c in CASES if c.name == name)
    run = {"iceexplore": _iceexplore, "pyiceberg": _pyiceberg}[who](path, case, rows)
    _memory(reset=True)
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = run()
    except (NotImplementedError, ValueError) as error:
        if who == "iceexplore":
            raise
        return {"refused": f"{type(error).__name__}: {error}"}
    seconds, work, mb = time.perf_counter() - wall, time.process_time() - cpu, _memory()
    return {"seconds": seconds, "cpu": work, "mb": mb, "rows": _summary(result)}


def _measure(who: str, path: Path, case: Case, rows: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", who, str(path), case.name, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parent)})
    if done.returncode:
        raise SystemExit(f"{who}, {case.name} of {path}, failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(paths: dict[str, Path], rows: int, repeat: int) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Measure every case of every table with both, in turn.

    Raises
    ------
    SystemExit
        The two do not find the same rows.
    """
    out: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for name, path in paths.items():
        for case in CASES:
            found = {who: out.setdefault((name, case.name, who), []) for who in IMPORTS}
            for _ in range(repeat):
                for who, runs in found.items():
                    if not (runs and "refused" in runs[0]):
                        runs.append(_measure(who, path, case, rows))
            summaries = {r["rows"] for runs in found.values() for r in runs if "rows" in r}
            if len(summaries) != 1:
                raise SystemExit(f"{name}, {case.name}: not the same rows: {sorted(summaries)}")
    return out


def _report(found: dict[tuple[str, str, str], list[dict[str, Any]]], rows: int, load: str) -> str:
    lines = [
        "# Reading rows",
        "",
        "Made by `python benchmarks/reading.py`; the top of that file describes how it measures.",
        "",
        f"{rows:,} rows in {APPENDS} Parquet files of PyIceberg, eight columns; one row in 20 deleted by deletion "
        "vectors (version 3) or position delete files (version 2), one in 200 by an equality delete. "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores{load}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("pyiceberg", "pyarrow"))
        + ". Both found the same rows each time.",
    ]
    for name, title in TABLES.items():
        lines += [
            "",
            f"## With {title}",
            "",
            "| what | with | best, s | median, s | CPU, s | memory, MB |",
            "|---|---|--:|--:|--:|--:|",
        ]
        refused = set()
        for case in CASES:
            what = case.what + (f" (`{_where(case, rows)}`)" if case.where else "")
            for who in IMPORTS:
                runs = found[name, case.name, who]
                first = what if who == "iceexplore" else ""
                if "refused" in runs[0]:
                    refused.add(runs[0]["refused"])
                    lines.append(f"| {first} | {who} | refused | | | |")
                    continue
                best = min(r["seconds"] for r in runs)
                wall, cpu, mb = (statistics.median(r[key] for r in runs) for key in ("seconds", "cpu", "mb"))
                lines.append(f"| {first} | {who} | {best:.3f} | {wall:.3f} | {cpu:.3f} | {mb:.0f} |")
        lines += [f"\nPyIceberg: {text}" for text in sorted(refused)]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="Time and memory of reading rows, against PyIceberg.")
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of the tables (%(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each case (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "reading.md", help="report (%(default)s)")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        who, path, case, rows = options.child
        print(json.dumps(_child(who, path, case, int(rows))))
        return
    paths = tables(options.rows)
    before = os.getloadavg()[0]
    found = run(paths, options.rows, options.repeat)
    load = f" (load {before:.1f} before)"
    report = _report(found, options.rows, load)
    print(report)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report)


if __name__ == "__main__":
    main()
