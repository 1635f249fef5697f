"""Group data files by the deletes that apply to them.

The figure ``deletes`` has a bar for each group. The file map, a picture of the data files, can show only one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from iceexplore.arrow import compute as pc
from iceexplore.doctor.maintenance._size_based import Mask
from iceexplore.graph import TableState, percent
from iceexplore.planning import FileTasks, Stretches, counted, deleted_rows, plan_scan

__all__ = ["DELETE_GROUPS", "DELETE_RATIO", "DeleteGroups", "MANY_DELETES", "files_of_group"]

#: Java: ``BinPackRewriteFilePlanner.DELETE_RATIO_THRESHOLD_DEFAULT``.
DELETE_RATIO = 0.3
#: A data file should be rewritten if at least this many deletes (delete files and deletion vectors) apply to it.
#: Iceberg's option for this, ``delete-file-threshold``, sets no limit by default. So the number is the default of
#: another option, ``min-input-files`` (Java: ``SizeBasedFileRewritePlanner.MIN_INPUT_FILES_DEFAULT``).
MANY_DELETES = 5

_ANY = "with deletes"
_VECTOR, _POSITIONS = "with a deletion vector", "with position delete files"
_EQUALITY = "with equality delete files"
_FEW, _MANY = f"with 2 to {MANY_DELETES - 1} deletes", f"with {MANY_DELETES} deletes or more"
_SLIGHTLY, _PARTLY = "up to 10 % of rows deleted", f"10 to {percent(DELETE_RATIO)} of rows deleted"
_MOSTLY = f"{percent(DELETE_RATIO)} of rows deleted or more"
#: The names of the groups. A file may be in several.
DELETE_GROUPS = (_ANY, _VECTOR, _POSITIONS, _EQUALITY, _FEW, _MANY, _SLIGHTLY, _PARTLY, _MOSTLY)


@dataclass(frozen=True)
class DeleteGroups:
    """The data files of a scan plan, grouped by the deletes that apply to them.

    Attributes
    ----------
    tasks
        The data files of the scan, with the deletes that apply to each.
    rows
        The number of rows of each data file.
    gone
        The number of rows of each data file that deletion vectors and position deletes remove. It may be a fraction,
        because the rows of a delete file that applies to several data files are divided evenly among these.
    touched
        For each data file, whether any delete applies to it.
    """

    tasks: FileTasks
    rows: npt.NDArray[np.int64]
    gone: npt.NDArray[np.float64]
    touched: Mask

    @classmethod
    def of(cls, tasks: FileTasks) -> DeleteGroups:
        """Group the data files in the tasks of a scan; this counts the rows and the deleted rows of each file."""
        return cls(tasks, counted(tasks.files, "record_count"), *deleted_rows(tasks))

    @cached_property
    def masks(self) -> dict[str, Mask]:
        """A mask for each group, by the group's name: true for those data files in `tasks` that belong to the group.

        The names are those in `DELETE_GROUPS`. A data file may be in several groups, or in none.
        """
        matched, share = self.tasks.matched, self.gone / np.maximum(self.rows, 1)
        positions, equality = Stretches.of(matched.positions).size, Stretches.of(matched.equality).size
        vector: Mask = np.asarray(pc.is_valid(matched.vector)).astype(np.bool_)
        count = positions + equality + vector
        return {
            _ANY: self.touched,
            _VECTOR: vector,
            _POSITIONS: positions > 0,
            _EQUALITY: equality > 0,
            _FEW: (count > 1) & (count < MANY_DELETES),
            _MANY: count >= MANY_DELETES,
            _SLIGHTLY: self.touched & (share <= 0.1),
            _PARTLY: self.touched & (share > 0.1) & (share < DELETE_RATIO),
            _MOSTLY: self.touched & (share >= DELETE_RATIO),
        }


def files_of_group(state: TableState, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which manifests list the data files of a group, and the positions of their entries there.

    To find the files, a full scan is planned.

    Parameters
    ----------
    name
        The name of the group: one of `DELETE_GROUPS`.

    Returns
    -------
    tuple of numpy.ndarray
        Two numbers for each file. The first is the row of the file's manifest in the manifest list or root manifest,
        from 0, or -1 if a V4 root manifest lists the file directly. The second is the position of the file's entry in
        this manifest or root manifest, from 0.
    """
    tasks = plan_scan(state).files
    mask = DeleteGroups.of(tasks).masks[name]
    manifest = np.asarray(pc.fill_null(tasks.root_row, -1)).astype(np.int64)
    ordinal = np.asarray(tasks.files.entries["ordinal"]).astype(np.int64)
    return manifest[mask], ordinal[mask]
