"""Find reasons why the rows of a planned scan may be wrong: problems of the metadata and files that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Concern, Problem, Problems, concern_of, problem
from iceexplore.expressions import ALWAYS
from iceexplore.graph import TableState
from iceexplore.manifests import whole
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.model._tasks import FileTasks
from iceexplore.planning.scan._files import LeafScan
from iceexplore.planning.scan._manifests import RootScan

__all__ = ["doubts_of", "refuse_doubts"]

#: Codes of problems with deletes; the location of such a problem is the delete file.
_OF_DELETES = frozenset({"delete-no-effect", "delete-path", "delete-position", "delete-scope"})
#: Codes of errors that make a root or manifest unreadable; the plan's notes already report these errors.
_UNREAD = frozenset(
    {
        "access-denied",
        "file-corrupt",
        "file-missing",
        "file-truncated",
        "memory-limit",
        "outside-roots",
        "storage-failed",
    }
)
#: The key by which doubts are grouped: the code of a problem, and the field that the problem names.
Kind = tuple[str, str | None]


class _Plan(Protocol):
    """The attributes of a `PlannedScan` that this module uses."""

    @property
    def state(self) -> TableState: ...
    @property
    def filter(self) -> Filter: ...
    @property
    def files(self) -> FileTasks: ...
    @property
    def roots(self) -> tuple[RootScan, ...]: ...
    @property
    def leaves(self) -> tuple[LeafScan, ...]: ...
    @property
    def read_delete_rows(self) -> tuple[int, ...]: ...


def doubts_of(plan: _Plan, *, lineage: bool = False) -> dict[Kind, str]:
    """Return the reasons why rows of a plan may be wrong or missing, as sentences, by problem code and field.

    A problem of a manifest or file is such a reason if the plan depends on the manifest or file. A problem that
    `Table.check` found is a reason for every plan of an affected snapshot, even in a manifest that the plan skips,
    because the plan may skip the manifest due to the problem. A problem with metadata that is used only for filtering
    is a reason only if the plan has a filter. Manifests that cannot be read are left out: the plan's notes name them.

    Parameters
    ----------
    lineage
        Include problems with row ids, because row ids are read.
    """
    wanted: set[Concern | None] = {"rows"}
    if plan.filter.expression != ALWAYS:
        wanted.add("filters")
    if lineage:
        wanted.add("lineage")
    state = plan.state
    examined = state.problems.examined()
    found = [p for p in state.problems if concern_of(p.code, p.field, p.severity) in wanted]
    if not found:
        return {}
    of_table = [p for p in found if p not in examined and p.where.partition("#")[0] == state.metadata_location]
    of_files = [p for p in found if p not in examined and p.where.partition("#")[0] != state.metadata_location]
    chosen = {
        *(p for p in of_table if _concerns_document(state, p)),
        *_at_files(plan, of_files),
        *(p for p in found if p in examined and _of_snapshot(state, examined[p])),
    }
    groups: dict[Kind, list[Problem]] = {}
    for p in found:
        if p in chosen:
            groups.setdefault((p.code, p.field), []).append(p)
    return {kind: _sentence(group) for kind, group in groups.items()}


def _concerns_document(state: TableState, item: Problem) -> bool:
    """Return whether a metadata file's problem concerns the state: its ref, snapshot or schema, or the whole file."""
    part = item.where.partition("#")[2]
    kind, _, name = part.partition(" ")
    if kind == "ref":
        return name == state.ref
    if kind == "snapshot":
        return state.snapshot is not None and name == str(state.snapshot.snapshot_id)
    if kind == "schema":
        return name == str(state.schema.schema_id)
    return True


def _of_snapshot(state: TableState, snapshots: frozenset[int]) -> bool:
    """Return whether the state's snapshot is one of these; an empty set means every snapshot."""
    return not snapshots or (state.snapshot is not None and state.snapshot.snapshot_id in snapshots)


def _at_files(plan: _Plan, items: Sequence[Problem]) -> list[Problem]:
    """Return those of the problems that are in files on which the plan depends.

    These files are the roots, the manifests that were read, the planned data files and their deletes. Errors that made
    a root or manifest unreadable are left out, because the plan's notes report them.
    """
    if not items:
        return []
    pruned = any((~s.may).any() for s in plan.roots)
    roots = {s.root.location for s in plan.roots}
    manifests = {leaf.location for leaf in plan.leaves}
    if plan.read_delete_rows:
        rows = pa.array(plan.read_delete_rows, pa.int64())
        manifests.update(build.to_pylist(plan.roots[0].root.entries["location"].take(rows)))
    places = [p.where.partition("#")[0] for p in items]
    counts = _counts(places, _locations(plan.files.files.entries))
    deletes = set(places).intersection(build.to_pylist(_locations(plan.files.matched.deletes.entries)))
    if any(p.code in _OF_DELETES for p in items):
        # The problem may be that a delete applies to no data file. The plan does not contain such deletes, so look them
        # up in its delete manifests.
        deletes |= _listed_deletes(plan, places)
    out = []
    for item, place in zip(items, places, strict=True):
        if (place in roots or place in manifests) and item.severity == "error" and item.code in _UNREAD:
            continue
        if place in roots:
            # A problem with metadata that is used only for filtering matters only if a manifest was pruned.
            if pruned or concern_of(item.code, item.field, item.severity) != "filters":
                out.append(item)
        elif item.code == "file-twice" and place not in manifests:
            # The file may be listed twice in another snapshot only. This matters to the plan only if it reads the file
            # twice.
            if counts.get(place, 0) > 1:
                out.append(item)
        elif place in manifests or place in deletes or place in counts:
            out.append(item)
    return out


def _counts(places: Sequence[str], files: AnyArray) -> dict[str, int]:
    """Return how often each location in ``places`` occurs in ``files``; those that do not occur are left out."""
    mine = files.filter(pc.is_in(files, pa.array(list(set(places)), pa.string())))
    return {row["values"]: row["counts"] for row in build.to_pylist(pc.value_counts(mine))}


def _listed_deletes(plan: _Plan, places: Sequence[str]) -> set[str]:
    """Return the locations in ``places`` that the plan's delete manifests list; these manifests are in the cache."""
    names = pa.array(list(set(places)), pa.string())
    found: set[str] = set()
    rows = plan.read_delete_rows
    for leaf in plan.state.reader.leaves(plan.roots[0].root, rows) if rows else ():
        files = _locations(leaf.entries)
        found.update(build.to_pylist(files.filter(pc.is_in(files, names))))
    return found


def _locations(entries: pa.Table) -> AnyArray:
    return whole(entries["location"])


def _sentence(group: Sequence[Problem]) -> str:
    first, more = group[0], len(group) - 1
    places = f"{first.where}, and {more:,} more" if more else first.where
    return f"{first.text} [{first.code}] ({places})"


def refuse_doubts(plan: _Plan) -> None:
    """Raise a plan's first doubt, if any, as an error of the class that belongs to its problem code.

    Raises
    ------
    FormatError, FileMissingError, StorageError
        Rows may be wrong or missing.
    """
    for (code, field), text in doubts_of(plan).items():
        Problems(strict=True).add(problem(code, plan.state.metadata_location, text, field=field, severity="error"))
