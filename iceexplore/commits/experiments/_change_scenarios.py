"""Commit the change detection scenarios of the V4 proposal in several forms, and detect the changes of each commit.

A form is either the commit that the proposal describes, or a commit that follows the proposal's rules.

The proposal's section "(tmp) change detection" starts with a manifest m1 that has 10 entries, 7 of them removed by a
manifest DV m1_dv. In scenario 1, the remaining 3 entries are removed. In scenario 2, m1 is rewritten as m2. In scenario
3, one commit removes a file of m1, adds 5 files, and rewrites m1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.commits.change_detection._changes import Changes, changes_of
from iceexplore.commits.change_detection._leaves import bare_leaves, is_at
from iceexplore.commits.change_detection._root import DeletedManifests, read_root
from iceexplore.commits.experiments._rule_violations import (
    ViolatingLeaf,
    commit_violating_rules,
    manifest_dv_entry,
    root_rows,
)
from iceexplore.commits.layouts._root_builder import numbers
from iceexplore.commits.metadata_updates._empty_state import empty_state
from iceexplore.commits.model._change import Operation
from iceexplore.commits.model._options import DvEncoding, LayoutOptions
from iceexplore.commits.operations._rewrite_metadata import rewrite_manifests
from iceexplore.commits.operations._whole_files import append, delete_files, overwrite
from iceexplore.commits.rules._check import check_rules
from iceexplore.commits.transaction._sandbox import Sandbox
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, human_bytes, to_frame
from iceexplore.manifests import ContentType, EntryBatch, Manifest, Status, concat_batches, live, read_manifest_dv
from iceexplore.metadata import Snapshot
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd
    from pyroaring import BitMap

__all__ = ["ChangeScenarios", "change_scenarios"]

_HOME = "/warehouse/db/events"
_M2 = f"{_HOME}/metadata/m2.parquet"
_ENTRIES, _GONE, _NEW = 10, 7, 5
#: The maximum scale: with a larger one, the simulated commits would take minutes and a lot of memory.
_MOST = 10_000
_NAMES = (
    "1: the remaining entries of a manifest are removed",
    "2: a manifest is rewritten",
    "3: a manifest is rewritten, 1 file removed, 5 added",
)
#: A form of scenario 1 with the same commit as "proposal, option 1", which marks a manifest DELETED to remove its
#: entries. Only change detection differs: here it follows the rules, which require that the entries of a DELETED
#: manifest were compacted into other manifests.
_BY_RULE = "proposal, option 1, read according to the rules"
#: Rules that are not enforced for scenarios, because some scenarios break them if they are committed exactly as the
#: proposal describes.
_RELAXED = ("added-is-change", "leaf-change-by-dv", "orphan-dv")
_SCHEMA = build.schema(
    [
        ("scenario", pa.string()),
        ("form", pa.string()),
        ("encoding", pa.string()),
        ("attached", pa.bool_()),
        ("root_bytes", pa.int64()),
        ("manifest_bytes", pa.int64()),
        ("puffin_bytes", pa.int64()),
        ("read_to_know", pa.list_(pa.string())),
        ("read_for_names", pa.list_(pa.string())),
        ("root_alone", pa.bool_()),
        ("added", pa.int64()),
        ("removed", pa.int64()),
        ("found_added", pa.int64()),
        ("found_removed", pa.int64()),
        ("right", pa.bool_()),
        ("unambiguous", pa.bool_()),
        ("right_by_entries", pa.bool_()),
        ("opened_by_entries", pa.int64()),
        ("violates", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, eq=False)
class ChangeScenarios:
    """The results for each commit of the proposal's scenarios: the bytes written, and how its changes are detected.

    Attributes
    ----------
    arrow
        A table with one row per commit. Its columns:

        - ``scenario``, ``form``: the scenario, and the form of the commit: ``by rule`` if it follows the rules,
          otherwise which of the commits in the proposal it is.
        - ``encoding``, ``attached``: the layout options ``dv_encoding`` and ``dv_attached`` of a commit ``by rule``;
          otherwise null and false.
        - ``root_bytes``, ``manifest_bytes``, ``puffin_bytes``: the bytes that the commit wrote, by kind of file.
        - ``read_to_know``, ``read_for_names``: the metadata files that change detection (`changes_of`) read to find out
          which entries changed, and those that it read only for the names of the changed files. Each file is listed by
          its role, such as "root" or "manifest".
        - ``root_alone``: whether the root and its manifest DVs showed which entries changed (`Changes.root_alone`).
        - ``added``, ``removed``: how many files the commit really added and removed.
        - ``found_added``, ``found_removed``: how many added and removed files change detection found.
        - ``right``: whether change detection found exactly the files that really changed.
        - ``unambiguous``: whether ``right`` is true and change detection gave no reason why its result may be wrong
          (`Changes.doubts` is empty).
        - ``right_by_entries``, ``opened_by_entries``: for comparison, the changes are detected with a second method,
          which opens every data manifest that the commit added, changed or removed, and uses the statuses of the
          entries in it. The columns show whether this method finds exactly the files that really changed, and how many
          manifests it opens.
        - ``violates``: the names of the rules that the commit breaks.
    """

    arrow: pa.Table

    def to_pandas(self) -> pd.DataFrame:
        """Return the results (`arrow`) as a pandas data frame."""
        return to_frame(self.arrow)

    def card(self) -> Card:
        """Return the results as a card with one table per scenario, which can be shown as text or HTML."""
        columns = ("form", "root", "manifests", "Puffin", "read for changes", "read for names", "changed",
                   "found", "unambiguous", "by entries", "rules broken")  # fmt: skip
        tables = []
        for name in _NAMES:
            rows = [r for r in self.arrow.to_pylist() if r["scenario"] == name]
            shown = tuple(tuple(_shown(r)) for r in rows)
            tables.append(CardTable(f"Scenario {name}", columns, shown, right=frozenset((1, 2, 3))))
        notes = (
            "Found: the changes that are found by a reader that uses the statuses of the root and opens manifests only"
            " for the names of files.",
            "By entries: right if the changes are found by a reader that opens each added, changed or removed manifest"
            " and uses the statuses of its entries. In parentheses: the number of manifests that this reader opens.",
        )
        return Card("Change detection in the scenarios of the V4 proposal", tables=tuple(tables), notes=notes)

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def _shown(row: dict[str, Any]) -> Iterator[str]:
    yield row["form"] if row["encoding"] is None else row["encoding"] + (", attached" if row["attached"] else "")
    for name in ("root_bytes", "manifest_bytes", "puffin_bytes"):
        yield human_bytes(row[name]) if row[name] else ""
    for name in ("read_to_know", "read_for_names"):
        counts = {role: row[name].count(role) for role in row[name]}
        yield ", ".join(role if n == 1 else f"{n:,} {role}s" for role, n in counts.items())
    yield f"+{row['added']:,} −{row['removed']:,}"
    yield f"+{row['found_added']:,} −{row['found_removed']:,}"
    yield "yes" if row["unambiguous"] else "no"
    yield f"{'right' if row['right_by_entries'] else 'wrong'} ({row['opened_by_entries']})"
    yield ", ".join(row["violates"])


def change_scenarios(*, scale: int = 1, **layout: Any) -> ChangeScenarios:
    """Commit each of the proposal's three scenarios in several forms, and detect the changes that each commit made.

    First, each scenario is committed as the proposal describes it, which breaks rules. The proposal has two options for
    scenario 1. In option 1, a manifest becomes DELETED, and its remaining entries are thereby removed. The rules give
    this a different meaning: the entries were compacted into other manifests. The changes of option 1 are therefore
    detected twice, once with each meaning.

    Then each scenario is committed as the rules require, once for each combination of the layout options
    ``dv_encoding`` and ``dv_attached``. In scenario 3, the rules do not allow a commit to rewrite a leaf from which it
    also removes files. Therefore, a manifest DV removes the file, and the new files are in a new manifest. There is one
    exception: ``dv_attached=True`` stores a manifest DV in the row of its manifest, which can break the rules
    ``dv-struct`` and ``added-is-change``.

    Parameters
    ----------
    scale
        The number by which the proposal's counts are multiplied: 10 entries, 7 of them removed, and 5 new files.
    layout
        Further layout options (see `LayoutOptions`), such as ``manifest_format`` or ``inline_dv_bytes``.

    Raises
    ------
    OptionError
        The scale is below 1 or above 10,000, or an option is invalid or set by the scenarios themselves.
    """
    if type(scale) is not int or scale < 1:
        raise OptionError(f"scale={scale!r}: expected an integer of at least 1")
    if scale > _MOST:
        raise OptionError(f"scale={scale!r}: at most {_MOST:,} (leaves of {_ENTRIES * _MOST:,} entries)")
    taken = sorted({"dv_encoding", "dv_attached", "flush_data_files", "format_version"} & layout.keys())
    if taken:
        raise OptionError(f"{taken[0]}={layout[taken[0]]!r}: the scenarios set this option")
    rows = []
    for number, name in enumerate(_NAMES, start=1):
        for form, encoding in _FORMS[number]:
            box = _base(scale, layout, "removed", attached=False)
            rows.append(_row(name, form, None, False, box, _commit_violating(box, form, scale), encoding))
        for encoding in get_args(DvEncoding):
            for attached in (False, True):
                box = _base(scale, layout, encoding, attached=attached)
                rows.append(_row(name, "by rule", encoding, attached, box, _by_rule(box, number, scale), encoding))
    return ChangeScenarios(pa.Table.from_pylist(rows, schema=_SCHEMA))


#: For each scenario, the ways in which the proposal would record its changes ("forms"), and how each of them encodes
#: that a manifest DV changed. What the proposal calls option 2 stores a "diff DV"; here, this is the encoding
#: ``delta``.
_FORMS: dict[int, tuple[tuple[str, DvEncoding], ...]] = {
    1: (("proposal, option 1", "removed"), (_BY_RULE, "removed"), ("proposal, option 2", "delta")),
    2: (("proposal", "removed"),),
    3: (("proposal, with changes", "removed"),),
}


def _base(scale: int, layout: dict[str, Any], encoding: DvEncoding, *, attached: bool) -> Sandbox:
    """Return a sandbox with the table from which each scenario starts.

    The table has a data manifest m1 with 10 entries, and a manifest DV m1_dv that removes 7 of them. Both numbers are
    multiplied by ``scale``.

    Parameters
    ----------
    layout
        Further layout options, as for `change_scenarios`.
    encoding, attached
        The layout options ``dv_encoding`` and ``dv_attached``.
    """
    options = LayoutOptions.of(4, **{"leaf_entries": 10**6, "inline_dv_bytes": 4096, **layout})
    options = options.replace(flush_data_files=0, dv_encoding=encoding, dv_attached=attached)
    box = Sandbox(empty_state({"id": "long", "name": "string"}, location=_HOME), options, seed="scenarios")
    names = [_file(i) for i in range(_ENTRIES * scale)]
    _do(box, lambda w: append(w.base, w, [_given(name) for name in names]))
    _do(box, lambda w: delete_files(w.base, w, [name for i, name in enumerate(names) if i % _ENTRIES < _GONE]))
    return box


def _file(number: int) -> str:
    return f"{_HOME}/data/D{number:07}.parquet"


def _given(name: str) -> dict[str, Any]:
    return {"location": name, "record_count": 100, "file_size_in_bytes": 4096}


def _new(scale: int) -> list[str]:
    return [_file(_ENTRIES * scale + i) for i in range(_NEW * scale)]


def _rest(scale: int, *, first: bool = False) -> list[int]:
    """Return the positions in the manifest m1 that its manifest DV m1_dv does not remove.

    These are the last 3 of each 10 positions: 7, 8, 9, 17, 18, 19 and so on, up to the last position in m1, which is
    10 * ``scale`` - 1. With ``first``, return only the first of each 3: 7, 17 and so on.
    """
    return [i for i in range(_ENTRIES * scale) if (i % _ENTRIES == _GONE if first else i % _ENTRIES >= _GONE)]


def _do(box: Sandbox, make: Callable[[Any], Any]) -> Snapshot:
    made = box.commit(make)
    assert made is not None
    return made


def _by_rule(box: Sandbox, number: int, scale: int) -> Snapshot:
    if number == 1:
        return _do(box, lambda w: delete_files(w.base, w, [_file(i) for i in _rest(scale)]))
    if number == 2:
        return _do(box, lambda w: rewrite_manifests(w.base, w))
    gone = [_file(i) for i in _rest(scale, first=True)]
    return _do(box, lambda w: overwrite(w.base, w, [_given(name) for name in _new(scale)], delete=gone))


def _commit_violating(box: Sandbox, form: str, scale: int) -> Snapshot:
    """Commit a scenario as the proposal describes it, although this breaks rules; return the new snapshot.

    Parameters
    ----------
    box
        A sandbox that `_base` returned. The commit is made in it.
    form
        The form of the commit, from ``_FORMS``. It also determines the scenario: for example, "proposal, option 2" is
        a form of scenario 1.
    scale
        The number by which the proposal's counts are multiplied.
    """
    state = box.state
    old = root_rows(state)
    dropped = old.with_columns(status=int(Status.DELETED), snapshot_id=None)
    manifest = old.entries["content_type"].to_pylist().index(ContentType.DATA_MANIFEST)
    items: list[EntryBatch | ViolatingLeaf]
    if form in ("proposal, option 1", _BY_RULE):
        items = [dropped]
    elif form == "proposal, option 2":
        items = [dropped.take([manifest]), manifest_dv_entry(old.entries["location"][manifest].as_py(), _rest(scale))]
    else:
        root = state.root()
        assert root is not None
        leaf = state.reader.leaf(root, manifest, frozenset({"entries", "stats", "partition"}))
        kept = EntryBatch.of(leaf).filter(live(leaf.entries)).with_columns(status=int(Status.EXISTING))
        items = [ViolatingLeaf(_M2, kept)]
        if form == "proposal, with changes":
            items = [dropped, ViolatingLeaf(_M2, _with_changes(kept, scale))]
    operation: Operation = "replace" if form == "proposal" else "overwrite" if "changes" in form else "delete"
    return commit_violating_rules(box, items, relaxed=_RELAXED, operation=operation)


def _with_changes(kept: EntryBatch, scale: int) -> EntryBatch:
    """Return the entries of m2, the manifest that replaces m1 in scenario 3.

    ``kept`` are the live entries of m1 (3 * ``scale``). The first of each 3 becomes DELETED, and the others stay as
    they are. ADDED entries for the new files (5 * ``scale``) are appended.
    """
    goes = np.arange(len(kept)) % (_ENTRIES - _GONE) == 0
    deleted = kept.filter(pa.array(goes)).with_columns(status=int(Status.DELETED), snapshot_id=None)
    entry = {"content_type": int(ContentType.DATA), "file_format": "parquet", "status": int(Status.ADDED)}
    added = EntryBatch.of_rows([{**entry, "partition_spec_id": 0, **_given(name)} for name in _new(scale)])
    return concat_batches([kept.filter(pa.array(~goes)), deleted, added])


# Measurements ---------------------------------------------------------------------------------------------------------


def _row(
    name: str,
    form: str,
    encoding: str | None,
    attached: bool,
    box: Sandbox,
    snapshot: Snapshot,
    read_as: DvEncoding,
) -> dict[str, Any]:
    state = box.state
    # In option 1 of scenario 1, a DELETED manifest (m1) means that its files were removed, not compacted. This follows
    # from the proposal, which computes the removed files "from applying m1_dv on m1".
    deleted: DeletedManifests = "removed" if form == "proposal, option 1" else "compacted"
    found = changes_of(state, snapshot, dv_encoding=read_as, deleted_manifests=deleted)
    before, now = _live(_parent(state, snapshot)), _live(state)
    number = box.records[-1].number
    written = dict.fromkeys(("manifest-list", "manifest", "puffin"), 0)
    for write in box.storage.writes:
        if write.commit == number and write.kind in written:
            written[write.kind] += write.length
    right = _same(found, now - before, before - now)
    came, went, opened = _by_entries(state, snapshot, read_as)
    row = {
        "scenario": name,
        "form": form,
        "encoding": encoding,
        "attached": attached,
        "root_bytes": written["manifest-list"],
        "manifest_bytes": written["manifest"],
        "puffin_bytes": written["puffin"],
        "read_to_know": [r.role for r in found.read if not r.names_only],
        "read_for_names": [r.role for r in found.read if r.names_only],
        "root_alone": found.root_alone,
        "added": len(now - before),
        "removed": len(before - now),
        "found_added": len(found.locations("added")),
        "found_removed": len(found.locations("removed")),
        "right": right,
        "unambiguous": right and found.unambiguous,
        "right_by_entries": (came, went) == (now - before, before - now),
        "opened_by_entries": opened,
        "violates": sorted({b.rule for b in check_rules(state, snapshot)}),
    }
    box.close()
    return row


def _same(found: Changes, added: set[str], removed: set[str]) -> bool:
    return (set(found.locations("added")), set(found.locations("removed"))) == (added, removed)


def _parent(state: TableState, snapshot: Snapshot) -> TableState:
    assert snapshot.parent_snapshot_id is not None
    return state.showing(state.metadata.snapshot(snapshot.parent_snapshot_id), state.schema, ref=None, travel=None)


def _live(state: TableState) -> set[str]:
    root = state.root()
    assert root is not None
    leaves = state.reader.leaves(root)
    return {str(x) for leaf in leaves for x in leaf.entries["location"].filter(live(leaf.entries)).to_pylist()}


def _by_entries(state: TableState, snapshot: Snapshot, encoding: DvEncoding) -> tuple[set[str], set[str], int]:
    """Find the files that a snapshot added and removed, from the statuses of the entries in its data manifests.

    Every data manifest that the snapshot added, changed or removed is opened. There are three cases:

    - The snapshot's manifest DVs newly remove entries of the manifest. Exactly the files of these entries count as
      removed. The statuses of the entries are not used.
    - Otherwise, the root lists the manifest as DELETED. The files of all its entries count as removed, except for
      DELETED entries and those that a manifest DV removes.
    - Otherwise, the snapshot wrote the manifest. The files of its ADDED entries count as added, and those of its
      DELETED entries as removed. Files of its EXISTING entries were only moved there: they do not count as removed,
      even if they would because of another manifest.

    Parameters
    ----------
    encoding
        How the root records that a manifest DV changed.

    Returns
    -------
    set[str], set[str], int
        The locations of the added files and of the removed files, and the number of manifests that were opened.
    """
    root = state.root()
    assert root is not None
    reading = read_root(state, root, snapshot, encoding)
    entries = root.entries
    kind, status = numbers(entries["content_type"]), numbers(entries["status"])
    mine = (numbers(entries["snapshot_id"]) == snapshot.snapshot_id) | (status == Status.DELETED)
    opened = np.flatnonzero(
        (kind == ContentType.DATA_MANIFEST) & (mine | np.isin(np.arange(len(kind)), list(reading.gone)))
    )
    came: set[str] = set()
    went: set[str] = set()
    kept: set[str] = set()

    def add(to: set[str], leaf: Manifest, mask: np.ndarray) -> None:
        to |= set(build.to_pylist(leaf.entries["location"].filter(pa.array(mask))))

    for row, leaf in zip(opened.tolist(), bare_leaves(state, root, opened.tolist()), strict=True):
        own, places = numbers(leaf.entries["status"]), numbers(leaf.entries["ordinal"])
        if row in reading.gone:
            add(went, leaf, is_at(places, reading.gone[row]))
        elif status[row] == Status.DELETED:
            add(went, leaf, (own != Status.DELETED) & ~is_at(places, _removed(state, root, row)))
        else:
            add(came, leaf, own == Status.ADDED)
            add(went, leaf, own == Status.DELETED)
            add(kept, leaf, own == Status.EXISTING)
    return came, went - kept, len(opened)


def _removed(state: TableState, root: Manifest, row: int) -> BitMap:
    """Return all positions that the root's DVs remove from the manifest in this row, whatever the DVs' statuses."""
    from pyroaring import BitMap

    entries = root.entries
    name = entries["location"][row].as_py()
    vectors = [i for i, x in enumerate(entries["referenced_file"].to_pylist()) if x == name]
    vectors += [row] if entries["deletion_vector"][row].is_valid else []
    return BitMap.union(BitMap(), *(read_manifest_dv(state.storage, root, i) for i in vectors))
