"""A table of the V4 draft whose data files have column files, and what its rows are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iceexplore.arrow import build
from iceexplore.commits import new_table_document
from iceexplore.errors import Problems
from iceexplore.manifests import EntryBatch, stats_type, write_manifest
from iceexplore.metadata import parse_table_metadata

ROWS = 40
FIELDS = {"id": (1, pa.int64()), "name": (2, pa.string()), "price": (3, pa.float64()), "note": (4, pa.string())}
SNAPSHOT = 77
UPDATED = 2_147_483_539


def field(name: str) -> Any:
    number, kind = FIELDS[name]
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def write(path: Path, columns: Mapping[str, list[Any]], **how: Any) -> int:
    """Write some columns as Parquet; return the file's size."""
    fields = [field(name) for name in columns]
    pq.write_table(
        pa.Table.from_arrays(
            [pa.array(v, f.type) for f, v in zip(fields, columns.values(), strict=True)], schema=pa.schema(fields)
        ),
        path,
        **how,
    )
    return path.stat().st_size


def base(number: int) -> dict[str, list[Any]]:
    """The columns of a data file as written first; it has no column ``note``."""
    ids = [number * ROWS + i for i in range(ROWS)]
    return {"id": ids, "name": [f"old {i}" for i in ids], "price": [float(i) for i in ids]}


def column_file(path: Path, columns: Mapping[str, list[Any]], **more: Any) -> dict[str, Any]:
    """Write a column file, and return its record in the manifest."""
    size = write(path, columns)
    return {
        "field_ids": [FIELDS[name][0] for name in columns],
        "location": str(path),
        "file_format": "parquet",
        "file_size_in_bytes": size,
        "format_version": 4,
        **more,
    }


def make(folder: Path, manifest_format: str = "parquet", **wrong: Any) -> tuple[Path, list[dict[str, Any]]]:
    """Write the table; return its metadata file and its rows.

    File 0 has no column files, file 1 has two (the newer one without ``price``), file 2 has one with a new column.
    ``wrong`` replaces keys in the record of file 1's newer column file.
    """
    (folder / "data").mkdir(parents=True)
    (folder / "metadata").mkdir()
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": number, "name": name, "type": kind, "required": False}
            for (name, (number, _)), kind in zip(FIELDS.items(), ("long", "string", "double", "string"), strict=True)
        ],
    }
    files = [base(n) for n in range(3)]
    rows: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    first: dict[str, list[Any]] = {
        "name": [f"newer {i}" for i in range(ROWS)],
        "price": [-1.0 - i for i in range(ROWS)],
    }
    second: dict[str, list[Any]] = {"name": [f"newest {i}" if i % 3 else None for i in range(ROWS)]}
    added: dict[str, list[Any]] = {"note": [f"note {i}" for i in range(ROWS)]}
    places = [folder / "data" / f"column-{n}.parquet" for n in range(3)]
    held: list[list[dict[str, Any]] | None] = [
        None,
        [column_file(places[0], first), column_file(places[1], second) | wrong],
        [column_file(places[2], added)],
    ]
    newer: list[dict[str, list[Any]]] = [{}, {**first, **second}, added]
    for number, columns in enumerate(files):
        path = folder / "data" / f"file-{number}.parquet"
        size = write(path, columns, row_group_size=16)
        merged = {**{name: [None] * ROWS for name in FIELDS}, **columns, **newer[number]}
        rows += [{name: merged[name][i] for name in FIELDS} for i in range(ROWS)]
        entries.append(
            {
                "content_type": 0, "status": 1, "location": str(path), "file_format": "parquet",
                "record_count": ROWS, "file_size_in_bytes": size, "partition_spec_id": 0, "column_files": held[number],
                "column_files_snapshot_id": SNAPSHOT if held[number] else None, "sequence_number": 1,
                "file_sequence_number": 1, "snapshot_id": SNAPSHOT, "first_row_id": number * ROWS,
            }
        )  # fmt: skip
    document = dict(new_table_document(format_version=4, location=str(folder), schema=schema, timestamp_ms=1_000))
    bounds = [{"lower": n * ROWS, "upper": n * ROWS + ROWS - 1, "value_count": ROWS, "null_count": 0} for n in range(3)]
    batch = EntryBatch.of_rows(entries, stats={1: pa.array(bounds, stats_type(pa.int64()))})
    metadata = parse_table_metadata(document, "", Problems())
    root = folder / "metadata" / f"root.{manifest_format}"
    root.write_bytes(
        write_manifest(batch, content="root", metadata=metadata, spec_id=None, dialect="v4-draft",
                       manifest_format=manifest_format)
    )  # fmt: skip
    snapshot = {
        "snapshot-id": SNAPSHOT, "sequence-number": 1, "timestamp-ms": 2_000, "root-manifest": str(root),
        "summary": {"operation": "append"}, "schema-id": 0, "first-row-id": 0, "added-rows": 3 * ROWS,
    }  # fmt: skip
    document |= {
        "snapshots": [snapshot], "current-snapshot-id": SNAPSHOT, "last-sequence-number": 1, "last-updated-ms": 2_000,
        "next-row-id": 3 * ROWS, "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
    }  # fmt: skip
    place = folder / "metadata" / "v1.metadata.json"
    place.write_text(json.dumps(document))
    return place, rows


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in the order of their ids."""
    return sorted(build.to_pylist(table), key=lambda row: int(row["id"]))
