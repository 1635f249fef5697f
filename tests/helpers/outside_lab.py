"""A lab one of whose data files is outside its folder, as an import that copies nothing leaves it behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro

import iceexplore as ix

__all__ = ["change_manifests", "outside_lab"]


def change_manifests(folder: Path, change: Any) -> None:
    """Write the manifests of a table of version 2 or 3 anew, with each record given to a function first."""
    for path in (folder / "metadata").glob("*-m*.avro"):
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            records = list(reader)
            header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
            schema: Any = reader.writer_schema
        for record in records:
            change(record)
        with path.open("wb") as out:
            fastavro.writer(out, schema, records, metadata=header)


def outside_lab(folder: Path) -> tuple[Path, Path]:
    """Make a lab of the ids 1, 2 and 3; give its folder, and the other one that has its data file."""
    table, other = folder / "t", folder / "other"
    lab = ix.create(table, {"id": "long"})
    lab.append({"id": [1, 2, 3]})
    lab.close()
    other.mkdir()
    (path,) = (table / "data").glob("*.parquet")
    moved = path.rename(other / path.name)

    def change(record: dict[str, Any]) -> None:
        record["data_file"]["file_path"] = str(moved)

    change_manifests(table, change)
    return table, other
