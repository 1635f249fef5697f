"""PyIceberg's commits on a generated table, in a folder of their own: nothing is written beside the table.

The copy is the table's metadata JSON with another ``location``. PyIceberg's new files go there, and the manifests of
the original are read where they are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Measured", "Peer", "clocked"]


@dataclass(frozen=True)
class Measured:
    """One commit: seconds, seconds of CPU (all threads), and the size in bytes of each file written, by its kind.

    Kinds are ``json``, ``root`` (or manifest list), ``manifest`` and ``dv``.
    """

    wall: float
    cpu: float
    files: tuple[tuple[str, int], ...]

    def count(self, *kinds: str) -> int:
        """Files of these kinds; of all but the JSON if none is named."""
        return sum(1 for kind, _ in self.files if kind in kinds or (not kinds and kind != "json"))

    def size(self, *kinds: str) -> int:
        """Bytes of these kinds; of all but the JSON if none is named."""
        return sum(size for kind, size in self.files if kind in kinds or (not kinds and kind != "json"))


def clocked(run: Callable[[], Any]) -> tuple[float, float]:
    """Seconds and CPU seconds that a call takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


class Peer:
    """A table of PyIceberg's ``SqlCatalog`` (in memory), registered anew for each commit.

    Parameters
    ----------
    metadata
        Metadata JSON of a generated table.
    folder
        An empty folder for what is written.
    """

    def __init__(self, metadata: Path, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        self.folder = folder
        document = json.loads(metadata.read_text())
        document["location"] = folder.resolve().as_uri()
        (folder / "metadata").mkdir(parents=True)
        self._start = folder / "metadata" / metadata.name
        self._start.write_text(json.dumps(document))
        self._catalog = SqlCatalog("bench", uri="sqlite:///:memory:", warehouse=folder.resolve().as_uri())
        self._catalog.create_namespace("bench")
        self._tables = 0

    def append(self, files: Sequence[Any]) -> Measured:
        """Append data files to the generated table."""

        def act(update: Any) -> None:
            with update.fast_append() as append:
                for file in files:
                    append.append_data_file(file)

        return self._commit(act)

    def delete(self, locations: Iterable[str]) -> Measured:
        """Delete data files from the generated table: the manifests that hold them are rewritten."""
        files = [self.data_file(location) for location in locations]

        def act(update: Any) -> None:
            with update.overwrite() as overwrite:
                for file in files:
                    overwrite.delete_data_file(file)

        return self._commit(act)

    @staticmethod
    def data_file(location: str, stats: dict[int, tuple[bytes, bytes]] | None = None) -> Any:
        """A data file of an unpartitioned table, with bounds of these columns."""
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        columns = stats or {}
        made = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=location,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=1000,
            file_size_in_bytes=100_000,
            column_sizes=dict.fromkeys(columns, 10_000),
            value_counts=dict.fromkeys(columns, 1000),
            null_value_counts=dict.fromkeys(columns, 0),
            nan_value_counts={},
            lower_bounds={i: bounds[0] for i, bounds in columns.items()},
            upper_bounds={i: bounds[1] for i, bounds in columns.items()},
            sort_order_id=0,
        )
        made.spec_id = 0
        return made

    def _commit(self, act: Callable[[Any], None]) -> Measured:
        self._tables += 1
        table = self._catalog.register_table(f"bench.t{self._tables}", str(self._start))
        before = {path.name for path in (self.folder / "metadata").iterdir()}

        def run() -> None:
            with table.transaction() as transaction:
                act(transaction.update_snapshot())

        wall, cpu = clocked(run)
        new = [path for path in (self.folder / "metadata").iterdir() if path.name not in before]
        return Measured(wall, cpu, tuple(sorted((_kind(path), path.stat().st_size) for path in new)))


def _kind(path: Path) -> str:
    if path.suffix == ".json":
        return "json"
    return "root" if path.name.startswith("snap-") else "manifest"
