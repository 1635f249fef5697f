"""Report the faults that are found by opening data and delete files and comparing them with their metadata."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.checks._deletes import respelled
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import MOST_PLACES, Finding, finding_of
from iceexplore.doctor.model._hits import Found, Hits
from iceexplore.errors import PROBLEM_KINDS, Problem
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState, json_safe, percent
from iceexplore.manifests import whole
from iceexplore.verification import verify_steps

__all__ = ["Verify", "check_files", "verify_here"]

#: A function that opens the files of a state's snapshot. At the level "footers", it reads the footers of data files and
#: all delete files; at the level "data", also the rows of data files. It yields the share of the work that is done,
#: from 0 to 1, and returns a table of findings.
Verify = Callable[[TableState, Literal["footers", "data"]], Generator[float, None, pa.Table]]

#: The numbers of the failure modes (listed in ``docs/doctor.md``) to which a missing file belongs, by the content type
#: of its entry.
_GONE: dict[object, tuple[int, ...]] = {0: (1,), 1: (1,), 2: (1,), None: (2,)}
#: Codes of findings that mean a wrong deletion vector if they are about a Puffin file (mode 48 in ``docs/doctor.md``).
_OF_VECTORS = frozenset({"count-mismatch", "file-corrupt", "file-truncated", "memory-limit"})


def verify_here() -> Verify:
    """Return a function that opens files in threads of this process, each file once for all snapshots."""
    known: dict[tuple[str, bytes, int | None], pa.Table] = {}
    return lambda state, level: verify_steps(state, level=level, known=known)


def check_files(examination: Examination, verify: Verify) -> Generator[str, None, None]:
    """Open the data and delete files of each examined snapshot and report their faults; yield the progress as text.

    If several snapshots have a file, its faults are reported once.
    """
    level: Literal["footers", "data"] = "footers" if examination.level == "files" else "data"
    known = pa.array([json_safe(f"{f.code} {f.where}") for f in examination.findings], pa.string())
    entries = examination.files.entries
    data = entries["location"].take(build.array(examination.live_data())).combine_chunks()
    vectors = pc.unique(entries["location"].filter(pc.fill_null(pc.equal(entries["file_format"], PUFFIN.name), False)))
    found = _Collected()
    state = examination.state
    for number, snapshot in enumerate(examination.snapshots):
        of = f", snapshot {number + 1:,} of {len(examination.snapshots):,}" if len(examination.snapshots) > 1 else ""
        steps = verify(state.showing(snapshot, state.schema, ref=None, travel=None), level)
        rows = yield from _in_words(steps, of)
        if len(rows):
            found.add(_grouped(_renamed(rows, data), vectors, known), snapshot.snapshot_id)
    for finding in found.findings():
        examination.report(finding)


def _renamed(found: pa.Table, data: AnyArray) -> pa.Table:
    """Change the code of findings from ``delete-dangling`` to ``delete-path`` if a delete only has an outdated path.

    Such a delete names a data file that is not live at the path that it names, but is live at another path.

    Parameters
    ----------
    found
        The findings in one snapshot, as returned by a `Verify` function.
    data
        The locations of the live data files.
    """
    dangling = pc.fill_null(pc.equal(found["code"], "delete-dangling"), False)
    if not pc.any(dangling).as_py():
        return found
    moved = pc.and_(dangling, pc.fill_null(respelled(found["found"].combine_chunks(), data), False))
    text = pc.binary_join_element_wise(found["text"], "A live data file with the same name is at another path.", " ")
    for name, value in (("code", pa.scalar("delete-path")), ("text", text)):
        at = found.schema.get_field_index(name)
        found = found.set_column(at, name, pc.if_else(moved, value, found[name]))
    return found


def _grouped(found: pa.Table, vectors: AnyArray, known: AnyArray) -> pa.Table:
    """Return the findings that no other check has reported, with the columns by which `_Collected` groups them.

    Findings become one finding if they have the same values in the columns ``code``, ``severity``, ``field``,
    ``content`` and ``of_vector``. Two of these columns are added here, because findings that differ in them belong to
    different modes (``docs/doctor.md``):

    * ``content`` is the content type of a missing file, and null for other faults.
    * ``of_vector`` is true for a fault of a Puffin file with one of the codes in `_OF_VECTORS`.

    Parameters
    ----------
    found
        The findings in one snapshot, as returned by a `Verify` function.
    vectors
        The locations of Puffin files.
    known
        The findings of other checks: the code and the place of each, separated by a space.
    """
    entry = pc.binary_join_element_wise(found["manifest"], found["entry"].cast(pa.string()), "#entry ")
    place = pc.coalesce(entry, found["location"])
    code = found["code"]
    key = pc.binary_join_element_wise(code, place, " ")
    new = pc.and_(pc.is_in(code, pa.array(list(PROBLEM_KINDS))), pc.invert(pc.is_in(key, value_set=known)))
    of_vector = pc.and_(pc.is_in(found["location"], vectors), pc.is_in(code, pa.array(sorted(_OF_VECTORS))))
    content = pc.if_else(pc.equal(code, "file-missing"), found["content"], pa.scalar(None, pa.int32()))
    columns: dict[str, Any] = {
        **{name: found[name] for name in ("code", "severity", "field", "found", "expected", "text", "location")},
        "manifest": pc.if_else(entry.is_valid(), found["manifest"], pa.scalar(None, pa.string())),
        "entry": pc.if_else(entry.is_valid(), found["entry"], pa.scalar(None, pa.int64())),
        "place": place,
        "content": content,
        "of_vector": of_vector,
    }
    return pa.table(columns).filter(new)


class _Collected:
    """Collects the findings from opening the files of several snapshots.

    Of findings with the same code, place and field, only the first is kept: it is the same fault in several snapshots.
    Findings are kept as rows of an Arrow table, so that many fit into memory.
    """

    _GROUP = ("code", "severity", "field", "content", "of_vector")

    def __init__(self) -> None:
        self._rows = pa.table({})
        self._new: list[pa.Table] = []
        self._snapshots: dict[tuple[object, ...], list[int]] = {}

    def add(self, rows: pa.Table, snapshot_id: int) -> None:
        """Add the findings from the files of one snapshot: a table that `_grouped` returned."""
        for group in rows.group_by(list(self._GROUP), use_threads=False).aggregate([]).to_pylist():
            self._snapshots.setdefault(tuple(group[name] for name in self._GROUP), []).append(snapshot_id)
        self._new.append(rows)
        # Snapshots share most files, so most new rows are duplicates of older ones. Removing duplicates processes all
        # rows, old and new. To do this rarely, wait until there are at least as many new rows as old ones.
        if sum(map(len, self._new)) >= len(self._rows):
            self._join()

    def _join(self) -> None:
        parts = [self._rows, *self._new] if len(self._rows) else self._new
        if parts:
            table = pa.concat_tables(parts, promote_options="permissive")
            table = table.append_column("number", build.array(np.arange(len(table))))
            keys = ["code", "place", "field"]
            first = table.select([*keys, "number"]).group_by(keys, use_threads=False).aggregate([("number", "min")])
            self._rows = table.drop_columns(["number"]).take(build.array(np.sort(np.asarray(first["number_min"]))))
        self._new = []

    def findings(self) -> Iterator[Finding]:
        """Yield one finding for each group of similar rows (see `_grouped`), ordered by their first rows."""
        self._join()
        if not len(self._rows):
            return
        numbered = self._rows.append_column("number", build.array(np.arange(len(self._rows))))
        groups = numbered.group_by(list(self._GROUP), use_threads=False).aggregate([("number", "list")])
        for group in groups.to_pylist():
            mine = self._rows.take(build.array(group.pop("number_list")))
            yield _finding(mine, tuple(self._snapshots[tuple(group[name] for name in self._GROUP)]))


def _finding(rows: pa.Table, snapshots: tuple[int, ...]) -> Finding:
    """Return one finding for several places that have the same fault.

    Its text and its values ``found`` and ``expected`` are those of the first place.

    Parameters
    ----------
    rows
        One row for each place: a group of findings as returned by `_grouped`.
    snapshots
        The ids of the snapshots that have the fault.
    """
    row = rows.slice(0, 1).to_pylist()[0]
    text, code = str(row["text"]), str(row["code"])
    if row["location"] and str(row["location"]) not in text and row["entry"] is not None:
        text = f"{text} File: {row['location']}."
    item = Problem(code, row["severity"], row["place"], text, row["field"], row["found"], row["expected"])
    modes: tuple[int, ...] | None = None
    if code == "file-missing":
        modes = _GONE.get(row["content"], (1,))
    elif row["of_vector"]:
        modes = (48,)
    alone = rows.filter(rows["entry"].is_null())["place"]
    hits = Hits(places=tuple(map(str, build.to_pylist(alone))), entries=_ordinals(rows), found=_values(rows))
    places = map(str, build.to_pylist(rows["place"].slice(0, MOST_PLACES)))
    return finding_of(item, modes=modes, snapshots=snapshots, places=places, count=len(rows), hits=hits)


def _ordinals(rows: pa.Table) -> tuple[tuple[str, npt.NDArray[np.int64]], ...]:
    """Return the entries that findings are about: the location of each manifest, and the entries' positions in it.

    Parameters
    ----------
    rows
        A group of findings as returned by `_grouped`. Those without an entry are left out.
    """
    found = rows.filter(rows["entry"].is_valid()).select(["manifest", "entry"])
    lists = found.group_by("manifest", use_threads=False).aggregate([("entry", "list")])
    names, ordinals = build.to_pylist(lists["manifest"]), whole(lists["entry_list"])
    return tuple((str(name), np.asarray(ordinals[i].values)) for i, name in enumerate(names))


def _values(rows: pa.Table) -> tuple[Found, ...]:
    """Return the wrong values that were found at manifest entries, as one `Found` for each manifest.

    Parameters
    ----------
    rows
        A group of findings as returned by `_grouped`, with these values in the column ``found``. Left out are findings
        without an entry, and those whose value is not a whole number of at most 18 digits.
    """
    given = pc.fill_null(pc.match_substring_regex(rows["found"], r"^\d{1,18}$"), False)
    found = rows.filter(pc.and_(given, rows["entry"].is_valid())).select(["manifest", "entry", "found"])
    found = found.set_column(2, "found", found["found"].cast(pa.int64()))
    lists = found.group_by("manifest", use_threads=False).aggregate([("entry", "list"), ("found", "list")])
    entries, values = whole(lists["entry_list"]), whole(lists["found_list"])
    return tuple(
        Found(str(name), np.asarray(entries[i].values), np.asarray(values[i].values))
        for i, name in enumerate(build.to_pylist(lists["manifest"]))
    )


def _in_words(steps: Generator[float, None, pa.Table], of: str) -> Generator[str, None, pa.Table]:
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            found: pa.Table = end.value
            return found
        yield f"Opening files{of}: {percent(share)} …"
