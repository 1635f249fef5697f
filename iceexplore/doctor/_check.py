"""Examine a table: run the checks of a level, group the findings under the faults that cause them, and report."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from iceexplore.commits import Sandbox
from iceexplore.doctor._causes import folded
from iceexplore.doctor._reach import measured
from iceexplore.doctor._since import Dates
from iceexplore.doctor.checks._cross import check_entries
from iceexplore.doctor.checks._deletes import check_deletes
from iceexplore.doctor.checks._document import check_document
from iceexplore.doctor.checks._existence import check_existence
from iceexplore.doctor.checks._files import Verify, check_files
from iceexplore.doctor.checks._folder import check_folder
from iceexplore.doctor.checks._leaves import check_leaves
from iceexplore.doctor.checks._roots import check_roots
from iceexplore.doctor.checks._rules import check_v4_rules
from iceexplore.doctor.checks._sketches import check_sketches
from iceexplore.doctor.examination._examination import Examination, Level
from iceexplore.doctor.health._health import begin_health, check_health
from iceexplore.doctor.model._finding import Finding, rank
from iceexplore.doctor.repair._plan import RepairPlan, plan_repair
from iceexplore.doctor.report._report import Report
from iceexplore.errors import PROBLEM_KINDS, IceexploreError, OptionError, Problem, nearest
from iceexplore.graph import TableState, resolve_state
from iceexplore.metadata import Snapshot
from iceexplore.storage import CACHE, canonical, result_of

__all__ = ["check_options", "examine", "examine_in_steps"]

LEVELS: tuple[Level, ...] = ("metadata", "files", "rows")
_CHECKS: tuple[tuple[str, Callable[[Examination], None]], ...] = (
    ("the metadata file", check_document),
    ("the folder of metadata files", check_folder),
    ("manifest lists and roots", check_roots),
    ("manifests", check_leaves),
    ("contradictions between entries", check_entries),
    ("rules of V4 roots", check_v4_rules),
    ("deletes", check_deletes),
    ("whether referenced files exist", check_existence),
    ("health", check_health),
)
#: The limit of the cache, in bytes, during checks of a table whose decoded manifests do not all fit into the cache. A
#: larger limit would not help: each check reads all manifests in turn, so the cache would drop each manifest before the
#: next check needs it.
_PASSING = 32 << 20
#: Names of groups of codes; ``only`` and ``skip`` accept these names as well as codes.
GROUPS: dict[str, frozenset[str]] = {
    "health": frozenset(code for code, kind in PROBLEM_KINDS.items() if kind.health),
    "damage": frozenset(code for code, kind in PROBLEM_KINDS.items() if not kind.health),
}


def examine(
    state: TableState,
    *,
    level: Level = "metadata",
    verify: Verify | None = None,
    snapshots: object = "current",
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    baseline: Report | Iterable[Finding] | None = None,
    show: Callable[[Sandbox], Any] = lambda sandbox: sandbox.state,
) -> Report:
    """Examine a table and return the report; see `examine_in_steps`."""
    return result_of(
        examine_in_steps(
            state, level=level, verify=verify, snapshots=snapshots, only=only, skip=skip, baseline=baseline, show=show
        )
    )


def examine_in_steps(
    state: TableState,
    *,
    level: Level = "metadata",
    verify: Verify | None = None,
    snapshots: object = "current",
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    baseline: Report | Iterable[Finding] | None = None,
    show: Callable[[Sandbox], Any] = lambda sandbox: sandbox.state,
) -> Generator[str, None, Report]:
    """Examine a table in steps: yield the progress as text, and return the report.

    Findings that make readers fail or return wrong rows are also added to the table's problems, so that later reads
    warn.

    Parameters
    ----------
    level
        ``"metadata"`` reads the metadata file, the roots and the manifests; ``"files"`` also opens every data and
        delete file; ``"rows"`` also reads their rows.
    verify
        A function that compares the data and delete files of one snapshot with their metadata. Required at the levels
        ``"files"`` and ``"rows"``.
    snapshots
        ``"current"``, ``"all"``, or a list of the snapshots to examine. An item of the list may be a snapshot, its id,
        a ref that points to it, or a `TableState` that shows it.
    only, skip
        ``only``: the only codes to report. ``skip``: the codes not to report. ``"health"`` and ``"damage"`` are names
        of groups of codes.
    baseline
        An earlier report, or its findings. The new report leaves out findings with the same code, place and field as
        one of the earlier findings.
    show
        A function that converts the sandbox with a simulated repair to the object that ``report.repair().table``
        returns.

    Raises
    ------
    OptionError
        An unknown level, code or choice of snapshots.
    SnapshotNotFoundError
        The table lacks one of the snapshots.
    """
    check_options(level, only, skip)
    examination = Examination.of(state, _chosen(state, snapshots), level)
    with CACHE.lowered(_PASSING) if examination.is_large else nullcontext():
        return (yield from _examined(state, examination, verify, snapshots, only, skip, baseline, show))


def _examined(
    state: TableState,
    examination: Examination,
    verify: Verify | None,
    snapshots: object,
    only: Iterable[str] | None,
    skip: Iterable[str],
    baseline: Report | Iterable[Finding] | None,
    show: Callable[[Sandbox], Any],
) -> Generator[str, None, Report]:
    level = examination.level
    wanted, unwanted = check_options(level, only, skip)
    start = time.perf_counter()
    for number, (name, check) in enumerate(_CHECKS, 1):
        yield f"Check {number} of {len(_CHECKS)}: {name} …"
        try:
            check(examination)
        except IceexploreError as error:
            examination.cannot_know(name, str(error))
        examination.release_memory()
        if check is check_leaves:  # all manifests are decoded now, as `begin_health` requires
            begin_health(examination)
    if level != "metadata":
        assert verify is not None
        yield from check_files(examination, verify)
        check_sketches(examination)
    yield "Finding the commits that introduced the faults …"
    manifests = frozenset(
        {
            *(canonical(r.location) for r in examination.roots.values()),
            *(canonical(place) for place, _ in examination.files.leaves),
        }
    )
    dates = Dates(examination)
    found = [dates.dated(one) for one in folded(examination.findings, manifests)]
    for one in found:
        _remember(state, one)
    found = [f for f in found if (wanted is None or f.code in wanted) and f.code not in unwanted]
    if baseline is not None:
        before = {(f.code, f.where, f.field) for f in baseline}
        found = [f for f in found if (f.code, f.where, f.field) not in before]
    found = measured(examination, found)

    def again(repaired: TableState) -> Report:
        which = snapshots if isinstance(snapshots, str) else _still_there(state, examination.snapshots, repaired)
        return examine(repaired, level=level, verify=verify, snapshots=which, only=only, skip=skip, baseline=baseline)

    def mend() -> RepairPlan:
        return plan_repair(state, [*found, *(more for one in found for more in one.follows)], again, show)

    return Report(
        table=state.name,
        location=state.metadata_location,
        format_version=state.metadata.format_version,
        level=level,
        snapshots=tuple(s.snapshot_id for s in examination.snapshots),
        findings=tuple(rank(found)),
        unknown=dict(examination.unknown),
        seconds=time.perf_counter() - start,
        metadata=state.metadata,
        _mend=mend,
    )


def _remember(state: TableState, finding: Finding) -> None:
    """Add a finding to the table's problems if its severity is ``fail`` or ``wrong``.

    The findings in its `Finding.follows` are added, too, if their own severity is one of these.
    """
    if finding.severity in ("fail", "wrong"):
        kind = PROBLEM_KINDS[finding.code]
        item = Problem(
            finding.code, kind.severity, finding.where, finding.text, finding.field, finding.found, finding.expected
        )
        state.problems.add_examined(item, finding.snapshots)
    for one in finding.follows:
        _remember(state, one)


def check_options(
    level: str, only: Iterable[str] | None, skip: Iterable[str]
) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return the codes to report (None for all), and the codes to leave out.

    The name of a group is replaced by the codes of the group.

    Raises
    ------
    OptionError
        An unknown level or code.
    """
    if level not in LEVELS:
        raise OptionError(f"level={level!r}: choose one of {', '.join(map(repr, LEVELS))}")
    return _codes("only", only), _codes("skip", skip) or frozenset()


def _codes(name: str, codes: Iterable[str] | None) -> frozenset[str] | None:
    if codes is None:
        return None
    given = [codes] if isinstance(codes, str) else list(codes)
    for code in given:
        if code not in PROBLEM_KINDS and code not in GROUPS:
            raise OptionError(f"{name}={code!r} is not a problem code; {nearest(code, [*GROUPS, *PROBLEM_KINDS])}")
    return frozenset().union(*(GROUPS.get(code, frozenset({code})) for code in given))


def _still_there(state: TableState, snapshots: Iterable[Snapshot], repaired: TableState) -> list[int] | str:
    """Return the ids of the snapshots to examine again after a repair; ``"current"`` if there are none.

    These are the snapshots that were examined before the repair and that the repaired table still has. There is one
    exception: if ``state.snapshot`` was examined, ``repaired.snapshot`` takes its place, because the repair may have
    committed a new snapshot.

    Parameters
    ----------
    state
        The table before the repair.
    snapshots
        The snapshots that were examined before the repair.
    repaired
        The table after the repair.
    """
    ids = {s.snapshot_id for s in snapshots}
    if state.snapshot is not None and state.snapshot.snapshot_id in ids and repaired.snapshot is not None:
        ids = ids - {state.snapshot.snapshot_id} | {repaired.snapshot.snapshot_id}
    return [s.snapshot_id for s in repaired.metadata.snapshots if s.snapshot_id in ids] or "current"


def _chosen(state: TableState, snapshots: object) -> Sequence[Snapshot]:
    if isinstance(snapshots, str) and snapshots == "current":
        return [] if state.snapshot is None else [state.snapshot]
    if isinstance(snapshots, str) and snapshots == "all":
        return list({s.snapshot_id: s for s in state.metadata.snapshots}.values())
    if isinstance(snapshots, str) or not isinstance(snapshots, Iterable):
        raise OptionError(f"snapshots={snapshots!r}: give 'current', 'all' or a list of snapshots, ids or refs")
    found: dict[int, Snapshot] = {}
    for one in snapshots:
        snapshot = resolve_state(state, one).snapshot
        if snapshot is not None:
            found[snapshot.snapshot_id] = snapshot
    return list(found.values())
