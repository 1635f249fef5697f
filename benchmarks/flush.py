"""When to flush: the cost of reading and writing a V4 root by its content, and where that is one round trip.

The proposal: "Ideally the time to do I/O on the root node should be close to the round trip latency of cloud storage
systems. Past this point, the CoW at the root level will be so expensive [...] it makes sense to flush to a leaf."

``python benchmarks/flush.py`` commits roots with 100 leaves and a growing number of data files (ten columns with
statistics) or deletion vectors. It reads each root as a commit does (every row with its statistics, decoded), writes it
again, prints the tables and writes ``results/flush.md``. Times are CPU seconds in this library, the best of several
rounds over all roots, plus the transfer at ``--bandwidth`` both ways; a line is fitted to them.

The cost of the leaves' rows, and of a root without any row, does not depend on its content: a flush saves what files
and vectors add. So only these are counted, and each of the two may add half a round trip. The defaults of
`iceexplore.commits.LayoutOptions`, and its ``for_round_trip``, are rounded from the Parquet lines.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from _tables import forget, v4_table

import iceexplore
from iceexplore.graph import live_manifests
from iceexplore.manifests import EntryBatch, write_manifest

HERE = Path(__file__).parent
TABLE = (100_000, 100)
ROWS = (0, 100, 1000, 3000, 10_000)
ROUND_TRIPS_MS = (10, 50, 100)
FORMATS = ("parquet", "avro")
KINDS = {"data": "data files", "dv": "deletion vectors"}


@dataclass(frozen=True)
class Point:
    """A root: rows beside the leaves, its bytes, CPU seconds to read and to write it."""

    rows: int
    size: int
    read: float
    write: float

    def milliseconds(self, bandwidth: float) -> float:
        """Reading and writing it, with transfer at so many MB/s; without the round trips themselves."""
        return 1000 * (self.read + self.write) + 2 * self.size / (bandwidth * 1000)


class Root:
    """A root with 100 leaves and so many rows of a kind, made by commits."""

    def __init__(self, kind: str, rows: int, manifest_format: str) -> None:
        table = iceexplore.open(v4_table(*TABLE)[0])
        self._simulation = table.simulate(
            manifest_format=manifest_format,
            flush_data_files=0,
            flush_delete_files=1 << 40,
            leaf_entries=1 << 20,
            seed=2,  # not the one that the table was made with: names of files would be the same
        )
        simulation, self.rows = self._simulation, rows
        simulation.append(max(ROWS), rows=1000)  # a leaf: what the vectors are for
        if kind == "dv":
            state = simulation.table._state
            root = state.root()
            assert root is not None
            names = state.reader.leaf(root, live_manifests(root)[-1]).entries["location"][:rows].to_pylist()
            if rows:
                simulation.row_delta(deletes={name: [0] for name in names})
        elif rows:
            simulation.set_layout(flush_data_files=1 << 40)
            simulation.append(rows, rows=1000)
        self._state = simulation.table._state
        self.times: dict[str, float] = {}
        self._batch = self._read()
        self.size = len(self._write())

    def round(self) -> None:
        """Time it once more."""
        for name, run in (("read", self._read), ("write", self._write)):
            start = time.process_time()
            run()
            self.times[name] = min(time.process_time() - start, self.times.get(name, 1e9))

    @property
    def point(self) -> Point:
        """What was measured."""
        return Point(self.rows, self.size, self.times["read"], self.times["write"])

    def _read(self) -> EntryBatch:
        forget()
        snapshot = self._state.snapshot
        assert snapshot is not None
        return EntryBatch.of(self._state.reader.root(snapshot))

    def _write(self) -> bytes:
        metadata, snapshot = self._state.metadata, self._state.snapshot
        assert snapshot is not None
        return write_manifest(
            self._batch,
            content="root",
            metadata=metadata,
            spec_id=metadata.default_spec_id,
            dialect="v4-proposal",
            manifest_format=self._simulation.options.manifest_format,
            snapshot_id=snapshot.snapshot_id,
        )


def line(points: Sequence[Point], bandwidth: float) -> tuple[float, float]:
    """Milliseconds of a root without rows, and of each row: least squares, relative to the time."""
    times = np.array([p.milliseconds(bandwidth) for p in points])
    slope, start = np.polyfit([p.rows for p in points], times, 1, w=1 / times)
    return float(start), float(slope)


def _tables(found: dict[tuple[str, str], list[Point]], bandwidth: float) -> list[str]:
    lines = []
    for (kind, manifest_format), points in found.items():
        lines += [
            f"## {KINDS[kind].capitalize()} in a root of 100 leaves, {manifest_format.capitalize()}",
            "",
            "| rows | bytes | read, ms CPU | write, ms CPU | with transfer, ms |",
            "|--:|--:|--:|--:|--:|",
        ]
        lines += [
            f"| {p.rows:,} | {p.size:,} | {p.read * 1000:.1f} | {p.write * 1000:.1f} "
            f"| {p.milliseconds(bandwidth):.1f} |"
            for p in points
        ]
        lines.append("")
    lines += [
        "## One round trip",
        "",
        "| | format | without rows, ms | each row, \u00b5s | "
        + " | ".join(f"rows that add {ms / 2:g} ms" for ms in ROUND_TRIPS_MS)
        + " | "
        + " | ".join(f"rows of a whole root of {ms} ms" for ms in ROUND_TRIPS_MS)
        + " |",
        "|---|---|" + "--:|" * (2 + 2 * len(ROUND_TRIPS_MS)),
    ]
    for (kind, manifest_format), points in found.items():
        start, slope = line(points, bandwidth)
        added = [f"{ms / 2 / slope:,.0f}" for ms in ROUND_TRIPS_MS]
        whole = [f"{max(0, (ms - start) / slope):,.0f}" for ms in ROUND_TRIPS_MS]
        cells = " | ".join([f"{start:.1f}", f"{1000 * slope:.2f}", *added, *whole])
        lines.append(f"| {KINDS[kind]} | {manifest_format} | {cells} |")
    return [*lines, ""]


def report(repeat: int, bandwidth: float) -> str:
    """Measure everything and give the report."""
    found: dict[tuple[str, str], list[Point]] = {}
    for kind in KINDS:
        for manifest_format in FORMATS:
            roots = [Root(kind, rows, manifest_format) for rows in ROWS]
            for _ in range(repeat if manifest_format == "parquet" else 2):  # Avro, row by row, takes seconds
                for root in roots:
                    root.round()
            found[kind, manifest_format] = [root.point for root in roots]
    lines = [
        "# When to flush",
        "",
        "Made by `python benchmarks/flush.py`; the top of that file describes what it measures.",
        "",
        f"Transfer at {bandwidth:g} MB/s each way. {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, pyarrow {version('pyarrow')}.",
        "",
        *_tables(found, bandwidth),
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="Rows in a V4 root whose reading and writing takes one round trip.")
    parser.add_argument("--repeat", type=int, default=15, help="runs of each reading (%(default)s)")
    parser.add_argument("--bandwidth", type=float, default=100, help="MB per second, each way (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "flush.md", help="report (%(default)s)")
    options = parser.parse_args()
    text = report(options.repeat, options.bandwidth)
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
