"""Check a table's health: nothing is damaged, but scans are slower, or the table is larger, than necessary."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
from iceexplore.doctor.maintenance._rewrite_data_files import plan_rewrite_data_files
from iceexplore.doctor.model._finding import Finding

__all__ = ["check_health"]

_Check = Callable[[Examination], Iterator[Finding]]
_OF_METADATA: tuple[tuple[str, _Check], ...] = (
    ("old snapshots", check_snapshots),
    ("old metadata files", check_metadata_files),
    ("unused schemas and partition specs", check_schemas),
)
_OF_FILES = (check_small_files, check_delete_ratio, check_delete_files, check_equality_deletes, check_skew)


def check_health(examination: Examination) -> None:
    """Report faults that make scans slower or the table larger than necessary; data files are the shown snapshot's.

    Nothing is reported of a Delta table, to which neither Iceberg's defaults nor its procedures apply.
    """
    if examination.state.opened.is_delta:
        return
    checks = list(_OF_METADATA)
    shown = examination.state.snapshot
    if shown is not None and shown.snapshot_id in examination.roots:
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
    """Run the checks that use the plan of ``rewrite_data_files``, which reads the manifests once for all of them.

    Damaged manifests make the plan fail: without their entries, sizes and deletes would be wrong.
    """
    plan = plan_rewrite_data_files(examination.state, lambda sandbox: sandbox.state)
    for check in _OF_FILES:
        yield from check(examination, plan)
