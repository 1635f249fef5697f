"""Filters on columns that are no partition: the metadata that plans open, version 3 beside the V4 proposal.

``python benchmarks/pruning.py`` makes a table of a million synthetic data files in 100 manifests, once with a manifest
list (v3) and once with a root manifest (V4), partitioned by `region`. Three columns are no partition: `id` grows from
file to file, as a key or a time of arrival does; `batch` covers a tenth of the table in each manifest; the values of
`noise` are spread over every file. It prints the metadata files and bytes that a cold plan opens for a filter on each,
and writes ``results/pruning.md``. The metadata JSON is not counted. Data files are never opened, and have no deletes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from _tables import forget

from iceexplore.arrow import AnyArray
from iceexplore.commits import Change, LayoutOptions, Sandbox, empty_state
from iceexplore.manifests import ENTRY_SCHEMA, EntryBatch, stats_type
from iceexplore.planning import plan_scan

HERE = Path(__file__).parent
SCHEMA = {"id": "long", "batch": "long", "noise": "long", "region": "string"}
ROWS = 1000
WHERE = {
    "`id`, a single value": "id = {middle}",
    "`id`, one in 1,000": "id between {middle} and {thousandth}",
    "`batch`, a single value": "batch = {tenth}",
    "`noise`, a single value": "noise = 77",
    "`region`, the partition": "region = 'r0'",
}


def files(first: int, count: int, total: int, region: str) -> EntryBatch:
    """Return the entries of some files in order, with statistics."""
    number = np.arange(first, first + count, dtype=np.int64)
    names = pa.array([f"/warehouse/t/data/region={region}/{n:08}.parquet" for n in number.tolist()])
    given: dict[str, AnyArray] = {
        "ordinal": pa.array(np.arange(count)),
        "content_type": pa.repeat(pa.scalar(0, pa.int32()), count),
        "location": names,
        "file_format": pa.repeat("parquet", count),
        "partition_spec_id": pa.repeat(pa.scalar(0, pa.int32()), count),
        "record_count": pa.repeat(pa.scalar(ROWS, pa.int64()), count),
        "file_size_in_bytes": pa.array(60_000 + number % 977),
    }
    columns = [given.get(f.name, pa.nulls(count, f.type)) for f in ENTRY_SCHEMA]
    tenth = number // max(1, total // 10)
    bounds: dict[int, tuple[AnyArray, AnyArray]] = {
        1: (pa.array(number * ROWS), pa.array(number * ROWS + ROWS - 1)),
        2: (pa.array(tenth * 1000), pa.array(tenth * 1000 + 999)),
        3: (pa.array(number % 7), pa.array(1_000_000 - number % 7)),
        4: (pa.repeat(region, count), pa.repeat(region, count)),
    }
    stats = {i: _stats(lower, upper, count) for i, (lower, upper) in bounds.items()}
    partition = pa.StructArray.from_arrays([pa.repeat(region, count)], ["1000"])
    return EntryBatch(pa.Table.from_arrays(columns, schema=ENTRY_SCHEMA), stats, partition)


def _stats(lower: AnyArray, upper: AnyArray, count: int) -> pa.StructArray:
    kind = stats_type(lower.type)
    full = {
        "lower": lower,
        "upper": upper,
        "value_count": pa.repeat(pa.scalar(ROWS, pa.int64()), count),
        "null_count": pa.repeat(pa.scalar(0, pa.int64()), count),
        "tight_bounds": pa.repeat(True, count),
    }
    return pa.StructArray.from_arrays([full.get(f.name, pa.nulls(count, f.type)) for f in kind], fields=list(kind))


def table(version: int, total: int, manifests: int) -> Sandbox:
    """Return a table of so many files, each manifest from a commit of its own."""
    layout = {"flush_data_files": 0, "leaf_entries": total} if version == 4 else {}
    properties = {"commit.manifest-merge.enabled": "false"}
    state = empty_state(
        SCHEMA, partition_by=["region"], format_version=version, properties=properties, location="/warehouse/t"
    )
    box = Sandbox(state, LayoutOptions.of(version, **layout), seed=1)
    each = total // manifests
    for i in range(manifests):
        change = Change("append", files(i * each, each, total, f"r{i % 4}"))

        def make(_: object, made: Change = change) -> Change:
            return made

        box.commit(make)
    return box


def opened(box: Sandbox, where: str) -> tuple[int, int, int]:
    """Return the metadata files and bytes that a cold plan opens, and the data files that it leaves."""
    forget()
    plan = plan_scan(box.state, where)
    reads = {r.location: r.length for r in plan.log if not r.cached and r.kind in ("manifest-list", "manifest")}
    return len(reads), sum(reads.values()), len(plan.files)


def report(found: Mapping[str, Mapping[int, tuple[int, int, int]]], total: int, manifests: int) -> str:
    """Return the report."""
    lines = [
        "# Filters on columns that are no partition",
        "",
        "Made by `python benchmarks/pruning.py`; the top of that file describes what it measures.",
        "",
        f"{total:,} data files in {manifests} manifests.",
        "",
        "| filter | files left | v3: metadata files | bytes | V4: metadata files | bytes | v3 / V4, bytes |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, by_version in found.items():
        v3, v4 = by_version[3], by_version[4]
        assert v3[2] == v4[2], name
        cells = (f"{v3[2]:,}", f"{v3[0]:,}", f"{v3[1]:,}", f"{v4[0]:,}", f"{v4[1]:,}", f"{v3[1] / v4[1]:.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="Bytes of metadata that filters on other columns open in v3 and V4.")
    parser.add_argument("--files", type=int, default=1_000_000, help="data files (%(default)s)")
    parser.add_argument("--manifests", type=int, default=100, help="manifests (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "pruning.md", help="report (%(default)s)")
    options = parser.parse_args()
    middle = options.files // 2 * ROWS
    names = {"middle": middle, "thousandth": middle + options.files * ROWS // 1000, "tenth": 3_500}
    found: dict[str, dict[int, tuple[int, int, int]]] = {name: {} for name in WHERE}
    for version in (3, 4):
        box = table(version, options.files, options.manifests)
        for name, where in WHERE.items():
            found[name][version] = opened(box, where.format(**names))
        box.close()
    text = report(found, options.files, options.manifests)
    print(text)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
