"""A repair plan: its steps, a simulation of the repaired table, and a method that saves a repaired copy."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from iceexplore.commits import Sandbox, Saved, save, start_sandbox
from iceexplore.doctor.checks._rules import manifest_dv_places
from iceexplore.doctor.maintenance._plan import sql_text
from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.repair._document_repairs import step_of
from iceexplore.doctor.repair._draft import Draft
from iceexplore.doctor.repair._plan_text import plan_html, plan_text
from iceexplore.doctor.repair._registry import COPIED, REPAIRS, UNREPAIRABLE, Repair, is_unreadable_metadata, key_of
from iceexplore.doctor.repair._step import Step, Unrepaired
from iceexplore.doctor.repair._write import write_draft
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, state_of
from iceexplore.manifests import Manifest
from iceexplore.metadata import in_order, parse_version
from iceexplore.reading import count_rows
from iceexplore.render import shown_frame, whole_numbers
from iceexplore.storage import canonical, parse_document

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RepairPlan", "plan_repair"]

#: The maximum number of rounds of `plan_repair`. In each round, the known faults are repaired in a sandbox, and the
#: result is checked, which may reveal other faults. Faults that remain after the last round are left to the user.
_MOST_ROUNDS = 5
#: To find the newest metadata file, `_newest` goes from one file to a newer one at most this number of times.
_MOST_NEWER = 100
_REFUSED = "The repaired files cannot be written: {error}"


@dataclass(frozen=True)
class RepairPlan:
    """A plan to mend a table, with a simulation of the mended table. The table itself is never changed.

    Attributes
    ----------
    steps
        The steps, in the order in which they are applied.
    unrepaired
        Findings that no step mends, each with the reason.
    """

    name: str
    steps: tuple[Step, ...]
    unrepaired: tuple[Unrepaired, ...]
    _damaged: TableState = field(repr=False, compare=False)
    _sandbox: Sandbox = field(repr=False, compare=False)
    _show: Callable[[Sandbox], Any] = field(repr=False, compare=False)

    @property
    def table(self) -> Any:  # noqa: ANN401  a Simulation, which is defined above this package
        """The repaired table as a simulation, which can be read, checked, drawn as a tree, and changed further."""
        return self._show(self._sandbox)

    @property
    def is_complete(self) -> bool:
        """True if all findings that remain after the repair are ``untidy``."""
        return all(u.finding.severity == "untidy" for u in self.unrepaired)

    @cached_property
    def rows_before(self) -> int | None:
        """The number of rows of the damaged table; None if they cannot be counted."""
        return _rows(self._damaged)

    @cached_property
    def rows_after(self) -> int | None:
        """The number of rows of the repaired table; None if they cannot be counted."""
        return _rows(self._sandbox.state)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        data: Literal["refer", "copy", "none"] = "copy",
        location: str | None = None,
    ) -> Saved:
        """Write the repaired table into a new folder, by default with its data files, so that it can be read anywhere.

        Parameters
        ----------
        path
            A folder that is empty or does not exist.
        data
            ``"copy"`` copies data files; ``"refer"`` leaves them in place; ``"none"`` writes metadata only.
        location
            The table location that the written metadata states; by default ``path``.

        Raises
        ------
        OptionError
            The folder is not empty.
        StorageError
            The folder cannot be written.
        """
        return save(self._sandbox.state, path, data=data, location=location)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __bool__(self) -> bool:
        return True  # a plan is true even if it has no steps

    def to_dict(self) -> dict[str, Any]:
        """Return the steps, the findings that no step mends, and the row counts, as a dictionary for JSON."""
        return {
            "table": self.name,
            "steps": [s.to_dict() for s in self.steps],
            "unrepaired": [u.to_dict() for u in self.unrepaired],
            "rows_before": self.rows_before,
            "rows_after": self.rows_after,
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row for each step.

        The columns are these attributes of `Step`: ``title``, ``text``, ``codes``, ``modes``, ``places``, ``certain``,
        ``rows_back``, ``rows_lost``, ``sql`` and ``python``.
        """
        import pandas as pd

        columns = ["title", "text", "codes", "modes", "places", "certain", "rows_back", "rows_lost", "sql", "python"]
        frame = pd.DataFrame([s.to_dict() for s in self.steps], columns=columns)
        for name in ("rows_back", "rows_lost"):
            frame[name] = whole_numbers(getattr(s, name) for s in self.steps)
        return shown_frame(frame)

    def __repr__(self) -> str:
        return plan_text(self)

    def _repr_html_(self) -> str:
        return plan_html(self)


def plan_repair(
    state: TableState,
    findings: Sequence[Finding],
    check: Callable[[TableState], Iterable[Finding]],
    show: Callable[[Sandbox], Any],
) -> RepairPlan:
    """Plan the repair of a table, and apply it to a simulation of the table.

    The simulation is a `Sandbox`, which writes files to a folder of its own and leaves the table unchanged. A repair
    may reveal other faults, so there are several rounds: each round repairs the known faults in the sandbox, and checks
    the result. Planning ends when there is no repair for the remaining faults, or after `_MOST_ROUNDS` rounds.

    Parameters
    ----------
    state
        The damaged table.
    findings
        The faults that the doctor has found in this table.
    check
        A function that takes the state of the repaired table, and returns the faults that remain in it. It must make
        the same checks that returned ``findings``.
    show
        A function that takes the sandbox with the repaired table, and returns it as a `Simulation`.
        `RepairPlan.table` calls this function.
    """
    now, steps = _newest(state, list(findings), check)
    begun = now = _as_read(now, findings)
    refused: dict[_Key, Unrepaired] = {}
    sandbox = start_sandbox(now)
    left = list(check(now)) if steps else _causes(now, findings)
    for _ in range(_MOST_ROUNDS):
        todo = _todo(now, [f for f in left if _key_of(f) not in refused])
        if not todo:
            break
        groups = _grouped(now, todo)
        made, left_out, error = _written(now, groups, sandbox)
        refused |= {_key_of(f): Unrepaired(f, left_out[at]) for f in todo if (at := (f.code, f.where)) in left_out}
        if error is not None:
            # The repairs could not be written. Write each of them alone to find out which of them fail: their findings
            # are left to the user, and the next round applies the other repairs. If none of them fails alone, all
            # findings of this round are left to the user.
            alone = [_written(now, [group], start_sandbox(now))[2] for group in groups]
            for (_, mine), why in zip(groups, alone if any(alone) else [error] * len(groups), strict=True):
                if why is not None:
                    refused |= {_key_of(f): Unrepaired(f, _REFUSED.format(error=why)) for f in mine}
            sandbox = start_sandbox(now)
        if not made:
            continue
        now = sandbox.state
        left = [f for f in check(now) if f.code not in COPIED and not is_unreadable_metadata(f)]
        remaining = {_key_of(f) for f in left}
        for mine, own in made:
            same = {key: f for f in mine if (key := _key_of(f)) in remaining}
            refused |= {key: Unrepaired(f, _without_effect(now, f, own)) for key, f in same.items()}
            needed = _needed(begun, mine)
            steps += [replace(step, effective=len(same) < len(mine), **needed) for step in own]
    unrepaired = [refused.get(_key_of(f)) or Unrepaired(f, _reason(now, f)) for f in left]
    return RepairPlan(state.name, tuple(_merged(steps)), tuple(unrepaired), state, sandbox, show)


#: A key by which `plan_repair` recognizes a finding that is still there after a round of repairs; see `_key_of`.
_Key = tuple[object, ...]


def _key_of(finding: Finding) -> _Key:
    """Return a key by which a finding is recognized if it is still there after a round of repairs.

    The key consists of the finding's code, field, severity, found and expected values and counts, and of the positions
    of all affected entries in their manifests. It contains no locations, because each round writes manifests under new
    names.
    """
    parts = list(finding.hits.by_file().values())
    ordinals = [part for part in parts if part is not None]
    all_of_them = np.sort(np.concatenate(ordinals)).tobytes() if ordinals else b""
    evidence = finding.code, finding.field, finding.severity, finding.found, finding.expected
    return *evidence, finding.count, len(parts), all_of_them


def _without_effect(state: TableState, finding: Finding, steps: Sequence[Step]) -> str:
    names = ", ".join(f"“{step.title}”" for step in steps)
    return f"This fault remains after the repair {names}. {_reason(state, finding)}"


def _newest(
    state: TableState, findings: list[Finding], check: Callable[[TableState], Iterable[Finding]]
) -> tuple[TableState, list[Step]]:
    """Return the table's state in its newest metadata file, and the step that switches to this file.

    There is no step if the table was opened with its newest metadata file.

    Parameters
    ----------
    findings
        The faults that the doctor has found in the table. A finding with the code ``metadata-newer`` names a newer
        metadata file.
    check
        A function that takes the table's state in this newer file, and returns the faults in it. If one of them is
        ``metadata-newer`` again, there is an even newer file.
    """
    newer = [f for f in findings if f.code == "metadata-newer" and f.found]
    first = newer
    name = ""
    for _ in range(_MOST_NEWER):
        if not newer:
            break
        name = str(newer[0].found)
        location = f"{state.metadata_location.rpartition('/')[0]}/{name}"
        document, _ = parse_document(state.storage.read(location, kind="metadata"), location)
        state = state_of(
            replace(state.opened, metadata_location=location, document=dict(document), version=parse_version(location))
        )
        newer = [f for f in check(state) if f.code == "metadata-newer" and f.found]
    if not name:
        return state, []
    text = f"Uses {name}, the newest metadata file. It continues the history of the metadata file that was opened."
    sql = (f"CALL <catalog>.system.register_table('<table>', {sql_text(state.metadata_location)})",)
    step = step_of("Use the newest metadata file", text, first, rows_back=None, rows_lost=None, sql=sql)
    return state, [step]


def _as_read(state: TableState, findings: Sequence[Finding]) -> TableState:
    """Return the state without the problems about unreadable metadata files.

    These problems were found when the table was opened (``state.opened.problems``). The repaired table does not have
    the files, so checking it must not report them.

    Parameters
    ----------
    findings
        The faults that the doctor has found in the table. Some of them may name unreadable metadata files.
    """
    unreadable = {canonical(f.location) for f in findings if is_unreadable_metadata(f)}
    if not unreadable:
        return state
    kept = tuple(p for p in state.opened.problems if canonical(p.where.partition("#")[0]) not in unreadable)
    return state_of(replace(state.opened, problems=kept))


def _repair_of(state: TableState, finding: Finding) -> Repair | None:
    lists = {canonical(s.root_location) for s in state.metadata.snapshots if s.root_location}
    roots = _trees_of(state, finding)
    # In the V4 proposal, a manifest deletion vector has an entry of its own in the root manifest. In the V4 draft spec,
    # it shares an entry with its manifest. A finding about this entry is about the manifest deletion vector only if
    # `Finding.modes` has 51, the number for faults of manifest deletion vectors.
    apart = [r for r in roots if 51 in finding.modes or not r.dialect.deletion_vectors_on_entries]
    vectors = {place for root in apart for place in manifest_dv_places(root)}
    version, key = state.metadata.format_version, key_of(finding, lists, vectors)
    return next((r for r in REPAIRS if r.mends(key, version, in_tree=bool(roots))), None)


def _trees_of(state: TableState, finding: Finding) -> list[Manifest]:
    """Return the root manifests of the V4 trees that a finding is about.

    The result is empty if the finding is about the metadata file, a manifest list or a manifest in such a list. If
    the finding names no snapshot, it is taken to be about the last snapshot in the metadata file.
    """
    if finding.location.endswith((".json", ".gz")):
        return []
    where = canonical(finding.location)
    mine = [
        s
        for s in state.metadata.snapshots
        if s.snapshot_id in finding.snapshots or (s.root_location and canonical(s.root_location) == where)
    ]
    roots = [state.reader.root(s) for s in mine or state.metadata.snapshots[-1:]]
    return [root for root in roots if root.dialect.has_root_manifest]


def _causes(state: TableState, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, except those that are consequences of a finding that a repair mends.

    A consequence that remains after the repair is found again in the next round. If it were repaired together with its
    cause, the repair could use wrong values, such as row ids that were assigned by a wrong row count.
    """
    mended = [f for f in findings if f.follows and _repair_of(state, f) is not None]
    known = {(more.code, more.where, more.field) for one in mended for more in one.follows}
    return [f for f in findings if (f.code, f.where, f.field) not in known]


def _todo(state: TableState, findings: list[Finding]) -> list[Finding]:
    """Return the findings to repair in this round of `plan_repair`.

    These are all findings for which there is a repair, with one exception. Some repairs (`Repair.recovers`) recover
    entries of lost manifests, so that the table has more live files afterwards. Other repairs (`Repair.waits`) must
    know all live files: for example, one of them removes deletes that apply to no live data file. If there are findings
    for repairs of both kinds, the findings for the second kind are left out here, and are repaired in a later round.
    """
    repairs = [_repair_of(state, f) for f in findings]
    recovers = any(r is not None and r.recovers for r in repairs)
    chosen = zip(findings, repairs, strict=True)
    return [f for f, r in chosen if r is not None and not (recovers and r.waits)]


def _grouped(state: TableState, findings: list[Finding]) -> list[tuple[Repair, list[Finding]]]:
    """Group the findings by the repair that mends them, in the order of `REPAIRS`."""
    chosen = [(_repair_of(state, f), f) for f in findings]
    return [(repair, mine) for repair in REPAIRS if (mine := [f for r, f in chosen if r is not None and r is repair])]


def _steps(made: Step | Sequence[Step]) -> Sequence[Step]:
    return [made] if isinstance(made, Step) else made


def _written(
    state: TableState, groups: list[tuple[Repair, list[Finding]]], sandbox: Sandbox
) -> tuple[list[tuple[list[Finding], Sequence[Step]]], Mapping[tuple[str, str], str], IceexploreError | None]:
    """Apply repairs to a table, and write the result to a sandbox.

    Parameters
    ----------
    state
        The table before these repairs.
    groups
        The repairs, each with the findings that it mends.
    sandbox
        A sandbox in which the table has this state.

    Returns
    -------
    tuple
        Three items. The first is a list with, for each repair that changes something, its findings and the steps that
        mend them; the list is empty if writing failed. The second maps the code and the place of each finding that a
        repair cannot mend to the reason. The third is the error if writing failed, otherwise None.
    """
    draft = Draft.of(state)
    planned = [(mine, _planned(state, draft, repair, mine)) for repair, mine in groups]
    made = [(mine, steps) for mine, steps in planned if steps]
    if made:
        try:
            write_draft(draft, sandbox)
        except IceexploreError as error:
            return [], draft.left, error
    return made, draft.left, None


def _planned(state: TableState, draft: Draft, repair: Repair, found: list[Finding]) -> Sequence[Step]:
    """Add a repair's edits to a draft, and return the steps that describe these edits.

    If a finding is about a V4 tree, the steps have no SQL statements and no API calls, because no engine supports V4
    trees yet.
    """
    steps = _steps(repair.plan(draft, found))
    in_tree = any(_trees_of(state, f) for f in found)
    return [replace(step, sql=(), python=()) for step in steps] if in_tree else steps


def _merged(steps: list[Step]) -> list[Step]:
    """Return the steps without repetitions: the same repair may be applied in several rounds of `plan_repair`.

    A step is a repetition if it differs from an earlier step only in the attributes about the affected snapshots:
    ``snapshots``, ``refs``, ``rows_concerned`` and ``expirable``.
    """
    first: dict[Step, Step] = {}
    for step in steps:
        first.setdefault(replace(step, snapshots=(), refs=(), rows_concerned=None, expirable=False), step)
    return list(first.values())


def _needed(state: TableState, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the attributes of a `Step` that follow from the findings that the step mends.

    These are ``snapshots``, ``refs``, ``rows_concerned`` and ``expirable``.
    """
    affected = {snapshot for one in findings for snapshot in one.snapshots}
    refs = [name for name, ref in state.metadata.refs.items() if ref.snapshot_id in affected]
    order = (s.snapshot_id for s in in_order(state.metadata.snapshots))
    counts = [one.rows for one in findings]
    rows = None if None in counts else sum(count for count in counts if count is not None)
    return {
        "snapshots": tuple(i for i in order if i in affected),
        "refs": tuple(refs),
        "rows_concerned": rows,
        "expirable": bool(affected) and not refs and state.metadata.current_snapshot_id not in affected,
    }


def _reason(state: TableState, finding: Finding) -> str:
    return UNREPAIRABLE.get(finding.code) or finding.advice


def _rows(state: TableState) -> int | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these warnings are about faults that the doctor has already reported
            return int(count_rows(state))
    except IceexploreError:
        return None
