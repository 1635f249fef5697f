"""Find out for each snapshot which deletes remove which of the rows that were found. Each delete file is read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import IceexploreError
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches
from iceexplore.planning import MatchedDeletes, match_deletes
from iceexplore.reading._equality_deletes import EqualityDeletes, equality_fields
from iceexplore.reading._position_deletes import PositionDeletes
from iceexplore.reading.columns._wanted import pruned
from iceexplore.reading.row_history._find import FoundFile, read_rows_at
from iceexplore.reading.row_history._history import DELETES, LeafKey, Step, file_keys, is_damaged, read_leaves

__all__ = ["AppliedDelete", "RowDeletes"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class AppliedDelete:
    """A delete that applies to some of the files: its entry as a batch of one row, and as a dictionary."""

    number: int
    kind: str
    file: EntryBatch
    entry: dict[str, Any]


class RowDeletes:
    """The deletes that apply to some data files in each snapshot of a `Line`.

    Parameters
    ----------
    files
        The data files in which rows were found.
    """

    def __init__(self, state: TableState, files: Sequence[FoundFile]) -> None:
        self._state = state
        self._files = {f.location: f for f in files}
        self._batch = concat_batches(f.file for f in files)
        self._names = pa.array(list(self._files), pa.string())
        self.deletes: list[AppliedDelete] = []
        self._numbers: dict[str, int] = {}
        self._held: dict[LeafKey, frozenset[str]] = {}
        self._damaged: dict[LeafKey, str] = {}
        self._of_file: dict[str, dict[int, None]] = {name: {} for name in self._files}
        self._by_position: dict[int, PositionDeletes] = {}
        self._masks: dict[tuple[int, str], Mask | None] = {}

    def at(self, step: Step) -> dict[str, tuple[int, ...]]:
        """Return by file the numbers of the deletes that apply in a snapshot; files without deletes are left out."""
        new = [key for key in step.deletes if key not in self._held]
        self._learn(step, new)
        live = {self._numbers[k] for key in step.deletes for k in self._held[key] if k in self._numbers}
        out = {}
        for name, numbers in self._of_file.items():
            mine = [n for n in numbers if n in live]
            # A deletion vector replaces the position delete files of its data file (spec, "Deletion Vectors").
            if any(self.deletes[n].kind == "deletion-vector" for n in mine):
                mine = [n for n in mine if self.deletes[n].kind != "position-delete"]
            if mine:
                out[name] = tuple(mine)
        return out

    def doubt(self, step: Step) -> str | None:
        """Return why some deletes of a step are unknown, None if all are known; call `at` first."""
        return next((self._damaged[key] for key in step.deletes if key in self._damaged), None)

    def mask(self, number: int, name: str) -> Mask | None:
        """Return a mask of the rows found in a file that a delete removes; None if the delete cannot be read."""
        key = (number, name)
        if key not in self._masks:
            try:
                self._masks[key] = self._read(self.deletes[number], self._files[name])
            except IceexploreError as error:
                self._state.problems.add_error(error, self.deletes[number].entry["location"])
                self._masks[key] = None
        return self._masks[key]

    def _learn(self, step: Step, keys: list[LeafKey]) -> None:
        if not keys:
            return
        for key, leaf, batch in read_leaves(step, keys, DELETES, partition=False):
            self._held[key] = frozenset(build.to_pylist(file_keys(batch.entries)))
            if is_damaged(leaf):
                self._damaged[key] = f"manifest {leaf.location} is partly unreadable"
        rows = [step.deletes[key] for key in keys if step.deletes[key] >= 0]
        matched = match_deletes(step.state, self._batch, manifests=rows)
        numbers = [self._number(matched.deletes.take([i]), k) for i, k in enumerate(self._keys(matched))]
        names = build.to_pylist(self._batch.entries["location"])
        for name, vector, positions, equality in zip(
            names,
            build.to_pylist(matched.vector),
            build.to_pylist(matched.positions),
            build.to_pylist(matched.equality),
            strict=True,
        ):
            every = [] if vector is None else [vector]
            self._of_file[name].update((numbers[i], None) for i in (*every, *positions, *equality))

    @staticmethod
    def _keys(matched: MatchedDeletes) -> list[str]:
        return build.to_pylist(file_keys(matched.deletes.entries)) if len(matched.deletes) else []

    def _number(self, file: EntryBatch, key: str) -> int:
        if key not in self._numbers:
            entry = file.entries.to_pylist()[0]
            self._numbers[key] = len(self.deletes)
            equality = entry["content_type"] == ContentType.EQUALITY_DELETE
            vector = not equality and (entry["deletion_vector"] is not None or entry["file_format"] == PUFFIN.name)
            kind = "equality-delete" if equality else "deletion-vector" if vector else "position-delete"
            self.deletes.append(AppliedDelete(len(self.deletes), kind, file, entry))
        return self._numbers[key]

    def _read(self, delete: AppliedDelete, found: FoundFile) -> Mask:
        matched = self._alone(delete)
        if delete.kind == "equality-delete":
            ids = sorted(set(delete.entry["equality_ids"] or ()))
            paths = equality_fields(self._state, ids)
            around = {path[0].field_id: path[0] for path in paths.values()}
            table = read_rows_at(self._state, found, pruned(around.values(), ids))
            return EqualityDeletes(self._state, matched).mask((0,), table, paths)
        if delete.number not in self._by_position:
            self._by_position[delete.number] = PositionDeletes(self._state, self._batch, matched)
        row = list(self._files).index(found.location)
        parts = [positions for _, positions in self._by_position[delete.number].of(row)]
        return parts[0].among(found.positions) if parts else np.zeros(len(found.positions), dtype=bool)

    def _alone(self, delete: AppliedDelete) -> MatchedDeletes:
        """Return matched deletes with only this delete, applied to every file."""
        n = len(self._batch)
        one, none = pa.array([[0]] * n, pa.list_(pa.int32())), pa.array([[]] * n, pa.list_(pa.int32()))
        vector = delete.kind == "deletion-vector"
        return MatchedDeletes(
            delete.file,
            pa.array([0 if vector else None] * n, pa.int32()),
            one if delete.kind == "position-delete" else none,
            one if delete.kind == "equality-delete" else none,
        )
