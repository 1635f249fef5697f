"""Plan the data files that may have matching rows, for operations that read these rows and replace or delete them."""

from __future__ import annotations

from iceexplore.arrow import build
from iceexplore.commits.metadata_updates._schema_checks import refuse_reserved_columns
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import FormatError
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.planning import FileTasks, Filter, plan_scan

__all__ = ["manifests_of", "planned"]


def manifests_of(state: TableState, tasks: FileTasks) -> frozenset[str]:
    """Return the locations of the data manifests that list a plan's files, for `Change.data_manifests`."""
    root = state.root()
    if root is None:
        return frozenset()
    return frozenset(build.to_pylist(root.entries["location"].take(tasks.root_row.unique().drop_null())))


def planned(state: TableState, writer: CommitWriter, where: FilterLike | None) -> tuple[Filter, FileTasks]:
    """Plan a scan with a filter; return the parsed filter, and tasks for the data files that may have matching rows.

    If the scan may miss rows, the reasons are added to ``writer.doubts``.

    Raises
    ------
    FormatError
        A manifest cannot be read. The plan could then lack data files with matching rows; or it could lack deletes, so
        that the operation would restore deleted rows.
    OptionError
        The filter is invalid, or a column has a name that Iceberg reserves.
    """
    refuse_reserved_columns(state)
    plan = plan_scan(state, where)
    if plan.notes:
        raise FormatError(" ".join(plan.notes), location=state.metadata_location)
    writer.doubts += plan.doubts
    return plan.filter, plan.files
