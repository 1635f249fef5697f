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

#: Values of ``Problem.code`` for problems with deletes. The location of such a problem is that of the delete file.
_OF_DELETES = frozenset({"delete-no-effect", "delete-path", "delete-position", "delete-scope"})
#: Values of ``Problem.code`` for errors that make a manifest list, V4 root manifest or manifest unreadable. The plan's
#: notes already report these errors, so they are not reported a second time.
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
#: A problem code, and the field that the problem names (None if it names none). All problems of a plan that have the
#: same code and field are reported in one sentence.
Kind = tuple[str, str | None]


class _Plan(Protocol):
    """The attributes of a `PlannedScan` that this module uses.

    `PlannedScan` itself is not imported, because its module imports this one.
    """

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
    """Return the reasons why rows of a plan may be wrong or missing.

    The reasons are problems of the table's metadata and files that can affect the plan:

    - A problem that was found when a manifest or file was read, if the plan depends on this manifest or file.
    - A problem that was found when the metadata file was read, if it affects the planned snapshot, ref or schema, or
      the table as a whole.
    - A problem that `Table.check` found, if it affects the planned snapshot. This includes problems of manifests that
      the plan skips, because the plan may skip a manifest due to its problem.

    Some metadata, such as column bounds, is used only to prune files by the filter. A problem in such metadata is a
    reason only if the plan has a filter. A manifest that cannot be read is not one of the reasons, because the plan's
    notes name it.

    Parameters
    ----------
    lineage
        True if the caller reads row ids or last-updated sequence numbers. Problems that affect only these values are
        then included.

    Returns
    -------
    dict
        The keys are pairs: a problem code, such as ``value-undecodable``, and the metadata field that the problem
        names, such as ``102 partition``, or None if it names none. Each value is a sentence, which describes the first
        problem with this code and field, and gives the number of further problems with the same code and field.
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
    """Return whether a problem in the table's metadata file affects this state of the table.

    A state is the table as of one snapshot, with one schema and perhaps a ref. A problem of a ref, snapshot or schema
    affects only a state with this ref, snapshot or schema. Any other problem in the metadata file affects every state.
    """
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
    """Return whether a problem affects the state's snapshot.

    Parameters
    ----------
    snapshots
        The ids of the snapshots that the problem affects; empty if it affects all snapshots.
    """
    return not snapshots or (state.snapshot is not None and state.snapshot.snapshot_id in snapshots)


def _at_files(plan: _Plan, items: Sequence[Problem]) -> list[Problem]:
    """Return those of the problems that are in files on which the plan depends.

    These files are the roots (manifest lists or V4 root manifests), the manifests that were read, the planned data
    files and their deletes. Some problems in these files are left out:

    - errors that made a root or manifest unreadable, because the plan's notes report them;
    - problems in values of a root that are used only to prune, if no manifest was pruned by the filter;
    - a data file that is listed twice, if the plan contains it only once.
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
        # A delete file with a problem may apply to no data file (which may itself be the problem: `delete-no-effect`).
        # Then it is not among the deletes of the planned files, so also look for it in the plan's delete manifests.
        deletes |= _listed_deletes(plan, places)
    out = []
    for item, place in zip(items, places, strict=True):
        if (place in roots or place in manifests) and item.severity == "error" and item.code in _UNREAD:
            continue
        if place in roots:
            # If `concern_of` returns ``filters``, the problem is in a value that is used only to prune, such as a
            # partition summary in the manifest list (V4: metrics in the root manifest). If no manifest was pruned, such
            # a value does not affect the plan.
            if pruned or concern_of(item.code, item.field, item.severity) != "filters":
                out.append(item)
        elif item.code == "file-twice" and place not in manifests:
            # `file-twice` means that some snapshot, not necessarily the planned one, lists the same data file twice.
            # The plan is affected only if the file is twice in the plan.
            if counts.get(place, 0) > 1:
                out.append(item)
        elif place in manifests or place in deletes or place in counts:
            out.append(item)
    return out


def _counts(places: Sequence[str], files: AnyArray) -> dict[str, int]:
    """Return how often each location in ``places`` occurs in ``files``; locations that do not occur are left out."""
    mine = files.filter(pc.is_in(files, pa.array(list(set(places)), pa.string())))
    return {row["values"]: row["counts"] for row in build.to_pylist(pc.value_counts(mine))}


def _listed_deletes(plan: _Plan, places: Sequence[str]) -> set[str]:
    """Find out which of the locations ``places`` are listed in the delete manifests that the plan has read.

    The delete manifests are read again; usually they are still in the cache.
    """
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
    """Raise an error if rows of the plan may be wrong or missing.

    This is called only in strict mode: if the table was opened, or read with Spark, with ``strict=True``.

    Raises
    ------
    FormatError, FileMissingError, StorageError
        There is a reason why rows may be wrong or missing (see `doubts_of`). The error reports the first reason. Its
        class depends on the problem code of this reason.
    """
    for (code, field), text in doubts_of(plan).items():
        Problems(strict=True).add(problem(code, plan.state.metadata_location, text, field=field, severity="error"))
