"""Gains of rewrites, from their maintenance plans: files, bytes and planning requests before and after a rewrite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from iceexplore.arrow import compute as pc
from iceexplore.commits import Sandbox
from iceexplore.doctor.figures._figure import FigureKey, HealthGain
from iceexplore.doctor.maintenance._plan import Plan
from iceexplore.doctor.maintenance._rewrite_data_files import RewriteDataFilesPlan, plan_rewrite_data_files
from iceexplore.doctor.maintenance._rewrite_deletes import plan_rewrite_position_deletes
from iceexplore.doctor.maintenance._rewrite_manifests import plan_rewrite_manifests
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import whole
from iceexplore.planning import ScanPlan, content_sizes, counted
from iceexplore.writing import default_order

__all__ = ["gain_of"]

#: A rewrite of at most this number of data files is simulated to count the manifests after it. A simulation takes time
#: for each file.
_MOST_SIMULATED = 2_000
#: A rewrite that would open more delete files than this is not simulated.
_MOST_DELETES = 100


def gain_of(key: FigureKey, state: TableState, scan: ScanPlan) -> HealthGain | None:
    """Return the gain of a figure: what the maintenance procedure for this figure would improve.

    These are the procedures, by the key of the figure:

    - ``sizes``: ``rewrite_data_files``.
    - ``deletes``: ``rewrite_position_delete_files``, or ``rewrite_data_files`` if the former would do nothing. None if
      no deletes apply to data files.
    - ``manifests``: ``rewrite_manifests``. None if there is no snapshot.
    - ``clustering``: ``rewrite_data_files``, which sorts the files by the table's sort order. None if there is no sort
      order, or if there are no data files.
    - ``partitions``: always None.

    Parameters
    ----------
    key
        The key of the figure.
    scan
        The plan of a full scan. It must have all data files, so make it from a state returned by
        `iceexplore.doctor.maintenance._files.strict`: with this state, planning fails if a manifest cannot be read
        completely.

    Raises
    ------
    IceexploreError
        The procedure cannot be planned; engines would refuse it or fail, too.
    """
    makers: dict[str, Callable[[], HealthGain | None]] = {
        "sizes": lambda: _of_data(state, scan, plan_rewrite_data_files(state, _state, scan=scan)),
        "deletes": lambda: _of_deletes(state, scan),
        "manifests": lambda: _of_manifests(state),
        "clustering": lambda: _of_sort(state, scan),
    }
    make = makers.get(key)
    return None if make is None else make()


def _state(sandbox: Sandbox) -> TableState:
    return sandbox.state


def _of_data(
    state: TableState, scan: ScanPlan, plan: RewriteDataFilesPlan[TableState], unit: str = "data files"
) -> HealthGain:
    deletes = scan.files.matched.deletes
    held = int(counted(scan.files.files, "file_size_in_bytes").sum())
    size = (held, held - plan.rewritten_bytes + (plan.cost.bytes_written or 0))
    count = len(scan.files)
    files = (count, count - plan.rewritten_data_files + plan.added_data_files)
    if unit != "data files":
        own = int(content_sizes(deletes).sum())
        files = (files[0] + len(deletes), files[1] + len(deletes) - plan.removed_delete_files)
        size = (size[0] + own, size[1] + own - _removed_bytes(plan))
    opened = _deletes_read(plan)
    simulated = plan.rewritten_data_files <= _MOST_SIMULATED and opened <= _MOST_DELETES
    return _made(state, plan, unit, files, size, simulated=simulated, accuracy=plan.accuracy)


def _rows(plan: RewriteDataFilesPlan[TableState]) -> Any:  # noqa: ANN401  an array of row numbers
    return pc.index_in(plan.files["file_path"], value_set=whole(plan.tasks.files.entries["location"]))


def _removed_bytes(plan: RewriteDataFilesPlan[TableState]) -> int:
    """Return the total size, in bytes, of the deletion vectors of the data files that a plan rewrites.

    The rewrite removes these deletion vectors. Delete files that it may also remove, because they become dangling, are
    not counted.
    """
    matched = plan.tasks.matched
    mine = np.unique(np.asarray(matched.vector.take(whole(_rows(plan))).drop_null()).astype(np.int64))
    return int(content_sizes(matched.deletes)[mine].sum())


def _deletes_read(plan: RewriteDataFilesPlan[TableState]) -> int:
    """Return the number of delete files that must be opened to simulate the rewrite that a plan describes."""
    return int((plan.cost.files_read or 0) - plan.rewritten_data_files)


def _of_deletes(state: TableState, scan: ScanPlan) -> HealthGain | None:
    """Return the gain of merging position deletes; None if no deletes apply.

    If no position deletes would be merged, return the gain of rewriting the data files to which deletes apply.
    """
    if not len(scan.files.matched.deletes):
        return None
    plan = plan_rewrite_position_deletes(state, _state)
    if plan.nothing:
        rewrite = plan_rewrite_data_files(state, _state, scan=scan, delete_file_threshold=1)
        return _of_data(state, scan, rewrite, "data and delete files")
    deletes = scan.files.matched.deletes
    count, size = len(deletes), int(content_sizes(deletes).sum())
    return _made(
        state,
        plan,
        "delete files",
        (count, count - plan.rewritten_delete_files + plan.added_delete_files),
        (size, size - plan.rewritten_bytes + (plan.cost.bytes_written or 0)),
        simulated=plan.rewritten_delete_files <= _MOST_DELETES,
        accuracy=plan.accuracy,
    )


def _of_manifests(state: TableState) -> HealthGain | None:
    root = state.root()
    if root is None:
        return None
    plan = plan_rewrite_manifests(state, _state)
    places = live_manifests(root)
    size = int(pc.sum(root.entries["file_size_in_bytes"].take(places), min_count=0).as_py() or 0)
    after = len(places) - plan.rewritten_manifests + plan.added_manifests
    made = _made(
        state,
        plan,
        "manifests",
        (len(places), after),
        (size, size - (plan.cost.bytes_read or 0) + (plan.cost.bytes_written or 0)),
        simulated=False,
        accuracy=plan.accuracy,
    )
    return made if made.nothing else _with_requests(made, 1 + after)


def _of_sort(state: TableState, scan: ScanPlan) -> HealthGain | None:
    """Return the gain of sorting all files by the table's sort order; None without a sort order or without files."""
    if default_order(state.metadata) is None or not len(scan.files):
        return None
    plan = plan_rewrite_data_files(state, _state, strategy="sort", rewrite_all=True, scan=scan)
    made = _of_data(state, scan, plan)
    note = (
        "Metadata cannot show how much the ranges of the sort columns will overlap between files after a sort. "
        "At best, each value lies in only one or two files."
    )
    return HealthGain(**{**vars(made), "notes": (note, *made.notes)})


def _with_requests(gain: HealthGain, after: int) -> HealthGain:
    return HealthGain(**{**vars(gain), "requests": (gain.requests[0], after)})


def _made(
    state: TableState,
    plan: Plan[TableState],
    unit: str,
    files: tuple[int, int],
    size: tuple[int, int],
    *,
    simulated: bool,
    accuracy: Any,  # noqa: ANN401  the accuracy of a plan of any kind
) -> HealthGain:
    before = 1 + _manifests(state)
    if plan.nothing:
        return HealthGain(plan.procedure, plan.text, True, unit=unit, files=(files[0], files[0]),
                          size=(size[0], size[0]), requests=(before, before))  # fmt: skip
    after = None
    if simulated:
        try:
            after = 1 + _manifests(plan.table)
        except IceexploreError:
            after = None  # unknown, because the rewrite could not be simulated
    sql = next((call.code for call in plan.calls if call.engine == "Spark SQL"), "")
    return HealthGain(plan.procedure, plan.text, False, sql, unit, files, size, (before, after), accuracy, plan.notes)


def _manifests(state: TableState) -> int:
    root = state.root()
    return 0 if root is None else len(live_manifests(root))
