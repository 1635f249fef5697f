"""Histories of small tables, with a model of every row's life kept beside them: what brute force would find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

import iceexplore as ix
from iceexplore.metadata import Snapshot
from iceexplore.simulation import Simulation

Place = tuple[str, int]


@dataclass
class Life:
    """A row at one place: its values, the snapshot that added it, and what ended it there, if anything did."""

    values: tuple[int, str]
    added: int
    ended: int | None = None
    how: str = "live"
    file_gone: int | None = None


@dataclass
class Lab:
    """A simulation and its model."""

    table: Simulation
    lives: dict[Place, Life] = field(default_factory=dict)
    commits: list[Snapshot] = field(default_factory=list)
    states: dict[int, list[tuple[int, str]]] = field(default_factory=dict)

    @classmethod
    def start(cls, version: int, *, partitioned: bool = False, **layout: Any) -> Lab:
        """A table of columns ``id`` and ``x``."""
        by = ["x"] if partitioned else []
        made = ix.empty({"id": "long", "x": "string"}, partition_by=by, format_version=version, seed=7, **layout)
        return cls(made)

    def live(self) -> dict[Place, Life]:
        """The rows that are there."""
        return {place: life for place, life in self.lives.items() if life.how == "live"}

    def files(self) -> list[str]:
        """The data files that are there, in order."""
        return sorted({place[0] for place, life in self.lives.items() if life.file_gone is None})

    def _note(self, snapshot: Snapshot) -> None:
        self.commits.append(snapshot)
        self.states[snapshot.snapshot_id] = sorted(life.values for life in self.live().values())

    def _learn(self, snapshot: Snapshot) -> None:
        """The files that a snapshot added, read by pyarrow alone."""
        for path in sorted(self._locations() - {place[0] for place in self.lives}):
            for position, values in enumerate(self._read(path)):
                self.lives[path, position] = Life(values, snapshot.snapshot_id)

    def _locations(self) -> set[str]:
        files = self.table.inspect.data_files()
        return set() if files.empty else set(files["file_path"])

    def _read(self, path: str) -> Iterator[tuple[int, str]]:
        import io

        import pyarrow.parquet as pq

        data = self.table.state.storage.read(path, kind="data-file")
        table = pq.ParquetFile(io.BytesIO(data)).read()
        yield from zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True)

    def append(self, rows: list[tuple[int, str]]) -> None:
        """Append rows."""
        self._after(self.table.append(_frame(rows)))

    def delete(self, places: list[Place], rows: list[tuple[int, str]] | None = None) -> None:
        """Delete rows by position, and add some in the same commit."""
        by_file: dict[str, list[int]] = {}
        for path, position in places:
            by_file.setdefault(path, []).append(position)
        snapshot = self.table.row_delta(None if rows is None else _frame(rows), deletes=by_file)
        self._end(places, snapshot, "position")
        self._after(snapshot)

    def delete_equal(self, gone: list[tuple[int, str]], rows: list[tuple[int, str]] | None = None) -> None:
        """Delete rows by their id (in a partitioned table by both columns), and add some in the same commit."""
        partitioned = self.table.spec is not None and not self.table.spec.is_unpartitioned
        columns = {"id": [v[0] for v in gone]} | ({"x": [v[1] for v in gone]} if partitioned else {})
        snapshot = self.table.row_delta(None if rows is None else _frame(rows), equality=columns)
        hit = [
            p for p, life in self.live().items() if any(life.values[: len(columns)] == v[: len(columns)] for v in gone)
        ]
        self._end(hit, snapshot, "equality")
        self._after(snapshot)

    def overwrite(self, path: str, rows: list[tuple[int, str]]) -> None:
        """Replace a file by these rows."""
        self._gone([path], self.table.overwrite(_frame(rows), delete=[path]), "removed")

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._gone([path], self.table.delete_files([path]), "removed")

    def compact(self) -> None:
        """Put all files together."""
        before = self._locations()
        snapshot = self.table.compact()
        if snapshot is not None:  # else no partition has several files
            self._gone(sorted(before - self._locations()), snapshot, "moved")

    def _end(self, places: list[Place], snapshot: Snapshot, how: str) -> None:
        for place in places:
            if self.lives[place].how == "live":
                self.lives[place].ended, self.lives[place].how = snapshot.snapshot_id, how

    def _gone(self, paths: list[str], snapshot: Snapshot, how: str) -> None:
        for place, life in self.lives.items():
            if place[0] in paths and life.file_gone is None:
                life.file_gone = snapshot.snapshot_id
                if life.how == "live":
                    life.ended, life.how = snapshot.snapshot_id, how
        self._after(snapshot)

    def _after(self, snapshot: Snapshot) -> None:
        self._learn(snapshot)
        self._note(snapshot)


def _frame(rows: list[tuple[int, str]]) -> pd.DataFrame:
    return pd.DataFrame({"id": pd.array([r[0] for r in rows], "int64"), "x": [r[1] for r in rows]})


def play(lab: Lab, draw: Any, steps: int) -> Lab:
    """A history by draws: ``draw(n)`` gives a number below ``n``."""
    fresh = iter(range(100, 10_000))

    def rows(n: int) -> list[tuple[int, str]]:
        # Some ids come again: the same row deleted and inserted, or several rows with one id.
        return [(draw(6) if draw(2) else next(fresh), "ab"[draw(2)]) for _ in range(n)]

    lab.append(rows(3 + draw(3)))
    for _ in range(steps):
        live, files = sorted(lab.live()), lab.files()
        kind = draw(7) if live else 0
        if kind <= 1:
            lab.append(rows(1 + draw(3)))
        elif kind == 2:
            chosen = sorted({live[draw(len(live))] for _ in range(1 + draw(3))})
            lab.delete(chosen, rows(1 + draw(2)) if draw(2) else None)
        elif kind == 3:
            gone = sorted({lab.lives[live[draw(len(live))]].values for _ in range(1 + draw(2))})
            lab.delete_equal(gone, rows(1) if draw(2) else None)
        elif kind == 4:
            path = files[draw(len(files))]
            kept = [life.values for place, life in lab.live().items() if place[0] == path]
            lab.overwrite(path, [*kept[draw(len(kept) + 1) :], *rows(1)])
        elif kind == 5:
            lab.remove(files[draw(len(files))])
        elif len(files) > 1:
            lab.compact()
    return lab
