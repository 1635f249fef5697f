"""Run a table's life on Spark and measure its metadata: ``notebooks/06_spark_pipeline.ipynb`` at full size.

``python benchmarks/pipeline.py`` runs the notebook's cells with 20 million rows in 100 commits (``PIPELINE_ROWS``,
``PIPELINE_COMMITS``) and writes ``results/pipeline.md``: how long each chapter took in each lab, and the notebook's
table of what metadata cost. The notebook explains what is counted, and how. Counts and bytes are the same on any
machine, except for the random file names; seconds are those of one run. It takes some GB of the temporary folder.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import time
from pathlib import Path
from typing import Any

import nbformat

HERE = Path(__file__).parent
NOTEBOOK = HERE.parent / "notebooks" / "06_spark_pipeline.ipynb"
RESULTS = HERE / "results" / "pipeline.md"
FULL = {"PIPELINE_ROWS": "20000000", "PIPELINE_COMMITS": "100"}
#: Columns of the notebook's `COSTS`: what a commit writes and reads, and what plans read.
COSTS = (
    ("commits", "commits"),
    ("files written", "files written"),
    ("bytes written", "KB written"),
    ("files read", "files read"),
    ("bytes read", "KB read"),
    ("all rides: files", "plan of all: files"),
    ("all rides: bytes", "KB"),
    ("one ride: files", "plan of one ride: files"),
    ("one ride: bytes", "KB"),
)


def run() -> tuple[dict[str, Any], str]:
    """Run the notebook's cells one by one; its names, and the sentences that it ends in."""
    namespace: dict[str, Any] = {"__name__": "pipeline"}
    words = ""
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        start, printed = time.perf_counter(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(cell.source, f"<cell {cell.id}>", "exec"), namespace)
        print(f"{time.perf_counter() - start:7.1f} s  {cell.source.splitlines()[0][:90]}", flush=True)
        if "words" in cell.metadata.get("tags", ()):
            words = printed.getvalue()
    return namespace, words


def table(costs: list[dict[str, Any]]) -> list[str]:
    """The costs of each chapter and lab; bytes in thousands."""
    heads = ["chapter", "lab", "s", *(head for _, head in COSTS)]
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "--:|" * (len(heads) - 2)]
    for row in costs:
        numbers = [row[name] / (1000 if "bytes" in name else 1) for name, _ in COSTS]
        shown = [f"{row['seconds']:,.1f}", *(f"{n:,.0f}" for n in numbers)]
        lines.append(f"| {row['chapter']} | {row['lab']} | {' | '.join(shown)} |")
    return lines


def main() -> None:
    """Run, and write the results."""
    for name, value in FULL.items():
        os.environ.setdefault(name, value)
    start = time.perf_counter()
    namespace, words = run()
    minutes = (time.perf_counter() - start) / 60
    import pyspark

    about = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, PySpark {pyspark.__version__}"
    text = [
        "# A table's life on Spark, and what its metadata costs",
        "",
        "Made by `python benchmarks/pipeline.py`, which runs the cells of `notebooks/06_spark_pipeline.ipynb`; the "
        "notebook explains what is counted.",
        "",
        f"{namespace['ROWS']:,} rows landed in {namespace['COMMITS']:,} commits, in a lab of version 3 and one of V4. "
        f"{about}; all of it took {minutes:.0f} minutes. Load of the machine when it ended: {os.getloadavg()[1]:.1f}.",
        "",
        *words.splitlines(),
        "",
        *table(namespace["COSTS"]),
        "",
        "Metadata without the table's JSON, of all commits of a chapter together. Seconds are of commits with their "
        "data files. In every chapter the rows of both labs were compared, by counts and by a checksum of every value.",
        "",
    ]
    RESULTS.write_text("\n".join(text), encoding="utf-8")
    print(f"written: {RESULTS.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
