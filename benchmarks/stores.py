"""Measure a table in a remote store, read by iceexplore and by PyIceberg: seconds, requests, and concurrent requests.

The store answers each request after 50 ms (see `_store_server`). Each line is measured in processes of its own, which
have done their imports and read nothing; both tools in turn, the median of several runs. The store counts the requests.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _store_server import elsewhere, properties

RESULTS = Path(__file__).parent / "results" / "stores.md"
COMMITS = 20
FILES_OF_A_COMMIT = 2
WHERE = "part = 30"


def make_table(port: int, folder: str) -> str:
    """Write the table by PyIceberg: 20 commits of two files, so 20 manifests; its metadata file."""
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import LongType, NestedField, StringType

    catalog = _catalog(port, folder)
    catalog.create_namespace("db")
    schema = Schema(
        NestedField(1, "number", LongType()), NestedField(2, "part", LongType()), NestedField(3, "text", StringType())
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
    made = catalog.create_table("db.far", schema, "s3://bucket/wh/far", spec)
    for commit in range(COMMITS):
        numbers = list(range(commit * 100, commit * 100 + 100))
        parts = [commit * FILES_OF_A_COMMIT + n % FILES_OF_A_COMMIT for n in numbers]
        made.append(pa.table({"number": numbers, "part": parts, "text": [f"row {n}" for n in numbers]}))
    return str(made.metadata_location)


def _catalog(port: int, folder: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("far", uri=f"sqlite:///{folder}/catalog.db", warehouse="s3://bucket/wh", **properties(port))


def _import_all() -> None:
    """What both tools import while they work: imports are not measured."""
    for name in ("pyarrow.dataset", "pyarrow.parquet", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow"):
        importlib.import_module(name)


class Ours:
    """What iceexplore does."""

    def __init__(self, port: int, folder: str, metadata: str) -> None:
        import iceexplore as ix

        _import_all()

        self.ix, self.port, self.folder, self.metadata = ix, port, folder, metadata
        self.properties = properties(port)
        self.table = "s3://bucket/wh/far"
        ix.sample("trips").count()  # so that imports and Arrow's threads are there

    def open_file(self) -> Any:
        return self.ix.open(self.metadata, properties=self.properties)

    def open_folder(self) -> Any:
        return self.ix.open(self.table, properties=self.properties)

    def open_catalog(self) -> Any:
        return self.ix.open("db.far", catalog=_catalog(self.port, self.folder))

    def refresh(self) -> Any:
        return self.open_catalog().refresh()

    def tree(self) -> Any:
        return self.open_file().tree().to_text()

    def plan(self) -> Any:
        return self.open_file().plan(WHERE).tasks

    def files(self) -> Any:
        return self.open_file().inspect.files()

    def count(self) -> Any:
        return self.open_file().count()

    def count_where(self) -> Any:
        return self.open_file().count("text like 'row 1%'")

    def head(self) -> Any:
        return self.open_file().head(5)

    def to_arrow(self) -> Any:
        return self.open_file().to_arrow()

    def one_column(self) -> Any:
        return self.open_file().to_arrow(columns=["number"])

    def all_files(self) -> Any:
        return self.open_file().inspect.all_files()

    def verify(self) -> Any:
        return self.open_file().verify()


class Theirs:
    """What PyIceberg does."""

    def __init__(self, port: int, folder: str, metadata: str) -> None:
        _import_all()
        self.port, self.folder, self.metadata = port, folder, metadata
        self.properties = properties(port)

    def open_file(self) -> Any:
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(self.metadata, self.properties)

    def open_catalog(self) -> Any:
        return _catalog(self.port, self.folder).load_table("db.far")

    def refresh(self) -> Any:
        return self.open_catalog().refresh()

    def plan(self) -> Any:
        return list(self.open_file().scan(WHERE).plan_files())

    def files(self) -> Any:
        return self.open_file().inspect.files().to_pandas()

    def count(self) -> Any:
        return self.open_file().scan().count()

    def count_where(self) -> Any:
        return self.open_file().scan("text like 'row 1%'").count()

    def head(self) -> Any:
        return self.open_file().scan(limit=5).to_pandas()

    def to_arrow(self) -> Any:
        return self.open_file().scan().to_arrow()

    def one_column(self) -> Any:
        return self.open_file().scan(selected_fields=("number",)).to_arrow()

    def all_files(self) -> Any:
        return self.open_file().inspect.all_files().to_pandas()


TOOLS: dict[str, Any] = {"iceexplore": Ours, "PyIceberg": Theirs}
LINES = {
    "open_file": "open a metadata file",
    "open_folder": "open a folder",
    "open_catalog": "open by a SQL catalog",
    "refresh": "the same, and refresh",
    "tree": "tree",
    "plan": "plan with a filter",
    "files": "inspect.files()",
    "count": "count()",
    "count_where": "count(\"text like 'row 1%'\")",
    "head": "head(5)",
    "to_arrow": "to_arrow()",
    "one_column": "to_arrow(columns=[...])",
    "all_files": "inspect.all_files()",
    "verify": "verify(), footers",
}


def counts(port: int) -> tuple[int, int, int, str]:
    """What was asked of the store since the last call: requests, most at once, bytes, by method."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_counts") as answer:
        requests, most, received, *methods = answer.read().decode().split(" ")
    return int(requests), int(most), int(received), " ".join(methods)


def one(tool: str, line: str, port: int, folder: str, metadata: str) -> dict[str, Any]:
    """Measure one operation in this process."""
    prepared = TOOLS[tool](port, folder, metadata)
    work: Callable[[], Any] = getattr(prepared, line)
    counts(port)
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    requests, most, received, methods = counts(port)
    return {"seconds": seconds, "requests": requests, "most": most, "bytes": received, "methods": methods}


def measured(tool: str, line: str, port: int, folder: str, metadata: str) -> dict[str, Any] | None:
    """Measure one operation in a process of its own."""
    if not hasattr(TOOLS[tool], line):
        return None
    asked = [sys.executable, __file__, "--one", tool, line, str(port), folder, metadata]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{tool}, {line}: {done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(LINES))
    parser.add_argument("--dry", action="store_true", help="write no results")
    given = parser.parse_args()
    if given.one:
        tool, line, port, folder, metadata = given.one
        print(json.dumps(one(tool, line, int(port), folder, metadata)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder, elsewhere(given.delay) as port:
        metadata = make_table(port, folder)
        for line in given.only:
            cells = [LINES[line]]
            # In turn, so that what else the machine does meets both.
            turns = [{tool: measured(tool, line, port, folder, metadata) for tool in TOOLS} for _ in range(given.runs)]
            for tool in TOOLS:
                found = [r for r in (turn[tool] for turn in turns) if r is not None]
                if not found:
                    cells += ["–", "–", "–"]
                    continue
                seconds = statistics.median(r["seconds"] for r in found)
                asked = max(r["requests"] for r in found)
                cells += [f"{seconds:.2f} s", f"{asked} ({found[-1]['methods']})", str(max(r["most"] for r in found))]
            rows.append("| " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    if not given.dry:
        RESULTS.write_text(_report(rows, given.delay, given.runs), encoding="utf-8")


def _report(rows: list[str], delay: float, runs: int) -> str:
    import platform
    from importlib.metadata import version

    packages = ", ".join(f"{n} {version(n)}" for n in ("pyiceberg", "pyarrow"))
    return "\n".join(
        [
            "# A store far away",
            "",
            f"`make bench-stores`: a table of {COMMITS} manifests and {COMMITS * FILES_OF_A_COMMIT} data files in an "
            f"S3 that answers each request after {delay * 1000:.0f} ms. Each operation in a process of its own, with "
            f"nothing read before; the median of {runs} runs. Both tools read through PyIceberg's `PyArrowFileIO`, "
            "whose Arrow asks for the size (HEAD) with every file that it opens.",
            "",
            f"Python {platform.python_version()}, {packages}, two cores.",
            "",
            "| | iceexplore | requests | most at once | PyIceberg | requests | most at once |",
            "|---|--:|--:|--:|--:|--:|--:|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    main()
