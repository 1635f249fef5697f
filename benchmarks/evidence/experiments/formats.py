"""Parquet against Avro leaves: all columns or a projection, and requests with and without eager fetch."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from iceexplore.manifests import ContentType

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, require
from .._tables import table

__all__ = ["FORMATS"]

_EACH: dict[str, dict[str, Any]] = {
    "v3, Avro": {"format_version": 3},
    "V4, Avro": {"manifest_format": "avro", "flush_data_files": 0},
    "V4, Parquet": {"manifest_format": "parquet", "flush_data_files": 0},
}


def _measure(seed: int, *, shapes: tuple[tuple[int, int], ...]) -> Iterator[tuple[Case, str, str, float]]:
    for columns, files in shapes:
        for layout, options in _EACH.items():
            s = (
                table(seed, columns, leaf_entries=1 << 20, **options)
                if layout != "v3, Avro"
                else table(seed, columns, **options)
            )
            s.append(files=files, rows=1000)
            root = s.state.root()
            assert root is not None
            rows = root.entries.select(["location", "content_type"]).to_pylist()
            location = next(str(r["location"]) for r in rows if r["content_type"] == ContentType.DATA_MANIFEST)
            data = s.state.storage.read(location, kind="manifest")
            at = case(columns=columns, files=files, leaf=layout)
            yield at, "leaf", "bytes", len(data)
            if layout == "V4, Parquet":
                yield from ((at, *found) for found in _projected(data))
            else:
                yield at, "read for a filter on one column", "bytes", len(data)
                yield at, "GETs, eager or not", "requests", 1
            s.close()


def _projected(data: bytes) -> Iterator[tuple[str, str, float]]:
    """Yield what a reader reads that takes the footer, all columns that are no statistics, and one column's "
    "statistics."""
    file = pq.ParquetFile(io.BytesIO(data)).metadata
    footer = int.from_bytes(data[-8:-4], "little") + 8
    wanted, other = 0, 0
    first = None
    for group in range(file.num_row_groups):
        for i in range(file.row_group(group).num_columns):
            chunk = file.row_group(group).column(i)
            parts = chunk.path_in_schema.split(".")
            if parts[0].endswith("stats") and parts[0] != "manifest_stats":
                first = first or parts[1]
                if parts[1] != first:
                    other += chunk.total_compressed_size
                    continue
            wanted += chunk.total_compressed_size
    yield "footer", "bytes", footer
    yield "read for a filter on one column", "bytes", footer + wanted
    yield "GETs, eager", "requests", 1
    yield "GETs, projection", "requests", 3


def _at(n: Numbers, metric: str, leaf: str, at: int) -> float:
    shapes = list(dict.fromkeys((dict(c)["columns"], dict(c)["files"]) for c in n.cases()))
    return n.mean(metric, columns=shapes[at][0], files=shapes[at][1], leaf=leaf)


def _names(n: Numbers, at: int) -> str:
    shapes = list(dict.fromkeys((dict(c)["columns"], dict(c)["files"]) for c in n.cases()))
    return f"{shapes[at][1]} files and {shapes[at][0]} columns"


def _size(n: Numbers) -> Answer:
    shapes = list(dict.fromkeys((dict(c)["columns"], dict(c)["files"]) for c in n.cases()))
    times = [_at(n, "leaf", "V4, Parquet", i) / _at(n, "leaf", "V4, Avro", i) for i in range(len(shapes))]
    old = [_at(n, "leaf", "V4, Parquet", i) / _at(n, "leaf", "v3, Avro", i) for i in range(len(shapes))]
    require(times[-1] < 1, "large leaves are smaller in Parquet")
    texts = ", ".join(f"{times[i]:.2f} ({old[i]:.2f}) with {_names(n, i)}" for i in range(len(shapes)))
    return Answer(
        f"{min(times):.2f} to {max(times):.2f} times",
        f"A leaf in Parquet has of the bytes in Avro (of v3's manifest): {texts}.",
    )


def _projection(n: Numbers) -> Answer:
    whole, part = (_at(n, metric, "V4, Parquet", -1) for metric in ("leaf", "read for a filter on one column"))
    require(part < whole, "a projection reads less")
    milliseconds = (whole - part) / 100_000
    return Answer(
        f"{part / whole:.2f} times",
        f"For a filter on one column, a projection of a Parquet leaf of {_names(n, -1)} reads {part / whole:.2f} "
        "times its bytes "
        f"({part:,.0f} of {whole:,.0f}) in 3 GETs instead of 1: at 100 MB/s it saves {milliseconds:.1f} ms, less "
        "than a round "
        "trip of 50 ms."
        if milliseconds < 50
        else f"For a filter on one column, a projection of a Parquet leaf of {_names(n, -1)} reads {part / whole:.2f} "
        "times its bytes "
        f"({part:,.0f} of {whole:,.0f}) in 3 GETs instead of 1: at 100 MB/s it saves {milliseconds:.0f} ms.",
    )


FORMATS = Experiment(
    name="formats",
    title="Parquet or Avro leaves, and projection",
    method=(
        "One leaf of synthetic files. An Avro manifest is read whole. Of a Parquet leaf a reader takes everything in "
        "one GET "
        "(eager fetch), or the footer's length, the footer, and the column chunks that it needs (a projection: 3 "
        "GETs): here all "
        "columns that are no statistics and the statistics of one column."
    ),
    measure=_measure,
    findings=(
        Finding("Are leaves smaller in Parquet or in Avro?", _size, first=False),
        Finding("Does a projection of Parquet leaves pay?", _projection),
    ),
    bars=("leaf", "read for a filter on one column"),
    quick={"shapes": ((10, 100), (50, 500))},
    full={"shapes": ((10, 100), (10, 10_000), (100, 100), (100, 2000))},
    seeds=2,
)
