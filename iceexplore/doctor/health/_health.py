"""Check a table's health: faults that damage nothing, but make scans slower or the table larger than necessary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from iceexplore.doctor.examination._examination import Examination, attempt
from iceexplore.doctor.health._columns import check_bounds, check_sort_order
from iceexplore.doctor.health._files import (
    check_delete_files,
    check_delete_ratio,
    check_equality_deletes,
    check_skew,
    check_small_files,
)
from iceexplore.doctor.health._metadata import (
    check_manifest_sizes,
    check_metadata_files,
    check_schemas,
    check_snapshots,
)
from iceexplore.doctor.maintenance._rewrite_data_files import RewriteDataFilesPlan, plan_rewrite_data_files
from iceexplore.doctor.model._finding import Finding
from iceexplore.graph import TableState

__all__ = ["begin_health", "check_health"]

#: From this number of manifest entries on, ``rewrite_data_files`` is planned in a thread while other checks run.
_FEWEST_ENTRIES = 20_000
_Check = Callable[[Examination], Iterator[Finding]]
_OF_METADATA: tuple[tuple[str, _Check], ...] = (
    ("old snapshots", check_snapshots),
    ("old metadata files", check_metadata_files),
    ("unused schemas and partition specs", check_schemas),
)
_OF_FILES = (check_small_files, check_delete_ratio, check_delete_files, check_equality_deletes, check_skew)


def begin_health(examination: Examination) -> None:
    """Start a thread that plans ``rewrite_data_files``, so that `check_health` finds the plan ready.

    Call this after all manifests have been decoded. For a table with 100,000 data files, making this plan takes a fifth
    of the time of a whole check. The thread shares no manifest reader and no list of problems with the other checks, so
    it does not interfere with them.

    No thread is started in these cases; if `check_health` needs the plan then, it makes the plan itself:

    - The table has fewer manifest entries than `_FEWEST_ENTRIES`: a thread would take longer.
    - The table is large (`Examination.is_large`): a plan beside the other checks would need too much memory.
    - The checks of data files do not run, because no snapshot can be read, or because this is a Delta table.
    """
    if examination.entry_count >= _FEWEST_ENTRIES and not examination.is_large and _has_files(examination):
        pool = ThreadPoolExecutor(1, thread_name_prefix="iceexplore-doctor")
        examination.rewrite_plan = pool.submit(_plan, examination).result
        pool.shutdown(wait=False)


def _has_files(examination: Examination) -> bool:
    shown = examination.state.snapshot
    return not examination.state.opened.is_delta and shown is not None and shown.snapshot_id in examination.roots


def _plan(examination: Examination) -> RewriteDataFilesPlan[TableState]:
    return plan_rewrite_data_files(examination.state, lambda sandbox: sandbox.state)


def check_health(examination: Examination) -> None:
    """Report what makes scans slower or the table larger than necessary.

    Data files and manifests are checked in the state's snapshot only. Nothing is reported for a Delta table, to which
    neither the defaults nor the procedures of Iceberg apply.
    """
    if examination.state.opened.is_delta:
        return
    checks = list(_OF_METADATA)
    if _has_files(examination):
        checks += [
            ("the sizes of manifests", check_manifest_sizes),
            ("the sizes and deletes of data files", _files),
            ("columns without bounds", check_bounds),
            ("the sort order of data files", check_sort_order),
        ]
    for name, check in checks:

        def run(examination: Examination, check: _Check = check) -> None:
            for finding in check(examination):
                examination.report(finding)

        attempt(examination, name, run)


def _files(examination: Examination) -> Iterator[Finding]:
    """Run the checks of the sizes and deletes of data files.

    All of these checks use the same plan of ``rewrite_data_files``, so the manifests are read only once.

    Raises
    ------
    IceexploreError
        A manifest is damaged or missing, so that the plan fails. Without the entries of this manifest, the checks
        would report wrong sizes and deletes.
    """
    plan = _plan(examination) if examination.rewrite_plan is None else examination.rewrite_plan()
    for check in _OF_FILES:
        yield from check(examination, plan)
