"""Check snapshots with a V4 root for violations of the rules that reading does not report.

Reading reports faults in the fields of each entry, in counts and in manifest DVs. The rule checker
(`iceexplore.commits.check_rules`) reads a snapshot and its parent again. It checks, for example, the changes that a
commit recorded, that a manifest's statistics cover those of its entries, and that partition values can be derived. A
fault that both find is reported once, as reading's finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.commits import LayoutOptions, RuleBreak, check_rules, rules_violated_by
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.model._finding import Finding, finding_of
from iceexplore.errors import RULES, IceexploreError, problem
from iceexplore.manifests import CONTENT_NAMES, ContentType, Manifest, Status, manifest_dv_form, whole
from iceexplore.manifests.rules import MANIFESTS, Rows
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["check_v4_rules", "manifest_dv_places"]


@dataclass(frozen=True)
class _Kind:
    """How the doctor reports a violated rule.

    Attributes
    ----------
    code
        The finding's code: a key of `PROBLEM_KINDS`, whose value has the severity.
    field
        The field that the rule is about.
    modes
        The finding's modes: the numbers, in ``docs/doctor.md``, of the ways in which tables break.
    """

    code: str
    field: str | None
    modes: tuple[int, ...]


_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
_VECTOR, _STATUS = "147 deletion_vector", "0 status"
_REFERENCED, _STATS = "143 referenced_file", "146 content_stats"

#: For every rule that `check_rules` checks in snapshots with a root manifest: the code, the field and the modes of the
#: finding that reports a violation.
_KINDS: dict[str, _Kind] = {
    "added-is-change": _Kind("changes-untrue", _STATUS, (57,)),
    "affinity": _Kind("entry-invalid", _REFERENCED, (56,)),
    "column-file-columns": _Kind("entry-invalid", "158 column_files", (85,)),
    "column-files-of-data": _Kind("entry-invalid", "158 column_files", (85,)),
    "compaction-existing": _Kind("changes-untrue", _STATUS, (54,)),
    "content-fields": _Kind("entry-invalid", None, (52,)),
    "deleted-entries": _Kind("changes-untrue", _STATUS, (57,)),
    "draft-content-types": _Kind("entry-invalid", "134 content_type", (85,)),
    "duplicate-file": _Kind("file-twice", "100 location", (31,)),
    "dv-in-range": _Kind("manifest-dv-invalid", "deletion_vector", (51,)),
    "dv-struct": _Kind("entry-invalid", _VECTOR, (52, 51)),
    "geo-bounds": _Kind("entry-invalid", _STATS, (85,)),
    "known-status": _Kind("file-corrupt", _STATUS, (52,)),
    "leaf-change-by-dv": _Kind("changes-untrue", _STATUS, (54,)),
    "leaf-data-content": _Kind("entry-invalid", "134 content_type", (50, 41)),
    "leaf-delete-content": _Kind("entry-invalid", "134 content_type", (50, 41)),
    "manifest-keys": _Kind("header-incomplete", "content", (84,)),
    "manifest-sequence": _Kind("sequence-number", "4 file_sequence_number", (28,)),
    "manifest-stats": _Kind("count-mismatch", "521 manifest_stats", (53,)),
    "no-inline-data-dv": _Kind("entry-invalid", _VECTOR, (52,)),
    "one-dv": _Kind("dv-twice", "143 referenced_data_file", (47,)),
    "one-manifest-dv": _Kind("manifest-dv-invalid", "5 MANIFEST_DV", (51,)),
    "one-root": _Kind("file-corrupt", "root-manifest", (50,)),
    "orphan-dv": _Kind("manifest-dv-invalid", "5 MANIFEST_DV", (51,)),
    "partition-rebuilds": _Kind("partition-unknown", _STATS, (58,)),
    "positions-disjoint": _Kind("changes-untrue", "6 deleted_positions", (85,)),
    "positions-of-manifests": _Kind("changes-untrue", "6 deleted_positions", (85,)),
    "referenced-file": _Kind("entry-invalid", _REFERENCED, (56, 52)),
    "replaced-and-modified": _Kind("changes-untrue", _STATUS, (85,)),
    "row-ids": _Kind("row-ids-twice", "142 first_row_id", (23, 60)),
    "sequence-order": _Kind("sequence-number", "3 sequence_number", (28,)),
    "size-with-location": _Kind("entry-invalid", "104 file_size_in_bytes", (52,)),
    "split-offsets": _Kind("split-offsets-invalid", "132 split_offsets order", (37,)),
    "stats-cover": _Kind("summary-untrue", _STATS, (53, 59)),
    "timestamp-order": _Kind("changes-untrue", "timestamp-ms", (85,)),
    "two-levels": _Kind("file-corrupt", "134 content_type", (50,)),
}
#: Used instead of `_KINDS` if a violation is in a file that is neither the root nor a manifest: for example, in the
#: Puffin file of a deletion vector.
_OF_FILES: dict[str, _Kind] = {
    "dv-in-range": _Kind("delete-position", "103 record_count", (48,)),
    "orphan-dv": _Kind("delete-dangling", "143 referenced_data_file", (46, 55)),
}
#: For some rules, the codes with which other checks report violations of the rule. If a snapshot has a finding with one
#: of these codes, no violation of the rule is reported for it, even at another place. Each rule also has codes in
#: `RULES`; a finding with one of those counts only if it is at the place of the violation.
_ALSO: dict[str, frozenset[str]] = {
    "duplicate-file": frozenset({"file-twice", "file-overwritten"}),
    "one-dv": frozenset({"dv-twice"}),
    "orphan-dv": frozenset({"delete-dangling"}),
    "row-ids": frozenset({"row-ids-twice", "row-ids-beyond", "file-twice"}),
}
#: Rules of the V4 proposal, in which a manifest DV has an entry of its own. They do not apply to a root in which DVs
#: are attached to the entries of manifests.
_BY_ATTACHING = rules_violated_by(LayoutOptions.of(4, dv_attached=True))
#: Modes of wrong counts and summaries in V4 trees. Each pattern is compared with the text ``<code> <field>`` of a
#: finding; if it matches, the finding gets the modes beside the pattern.
_IN_V4: tuple[tuple[re.Pattern[str], tuple[int, ...]], ...] = tuple(
    (re.compile(pattern), modes)
    for pattern, modes in (
        (r"(count-mismatch|totals-differ) 5(04|05|06|12|13) .*", (53,)),
        (r"sequence-number 516 .*", (53, 28)),
        (r"summary-untrue .*", (53, 59)),
    )
)
#: The code and the field of a finding about an entry in the wrong kind of manifest: an entry of a delete file in a data
#: manifest, or one of a data file in a delete manifest. The V4 draft does not allow any entry of a delete file.
_MISPLACED = "entry-invalid 134 content_type"


def check_v4_rules(examination: Examination) -> None:
    """Report the rules that examined snapshots with a root manifest violate.

    Before that, give the findings that other checks have reported about these snapshots the modes that are specific to
    V4 (see `_name_modes`).
    """
    snapshots = [s for s in examination.snapshots if examination.roots[s.snapshot_id].dialect.has_root_manifest]
    if not snapshots:
        return
    _name_modes(examination, {s.snapshot_id: examination.roots[s.snapshot_id] for s in snapshots})
    for finding in _draft_leaves(examination):
        examination.report(finding)
    for snapshot in snapshots:
        root = examination.roots[snapshot.snapshot_id]
        replaced = []
        if root.dialect.deletion_vectors_on_entries:
            _older_vectors(examination, snapshot, root)
            replaced = list(_draft_replaced(examination, snapshot))
            for finding in replaced:
                examination.report(finding)
        try:
            broken = check_rules(examination.state, snapshot, relaxed=_BY_ATTACHING if _attaches(root) else ())
        except IceexploreError as error:
            examination.cannot_know(f"whether snapshot {snapshot.snapshot_id} follows the V4 rules", str(error))
            continue
        known = _Known(root, [f for f in examination.findings if snapshot.snapshot_id in f.snapshots])
        for item in broken:
            if not known.reports(item) and not (item.rule == "replaced-and-modified" and replaced):
                examination.report(_finding(item, root, snapshot))


class _Known:
    """The findings so far about one snapshot, in a form that shows whether they already report a violated rule.

    Parameters
    ----------
    root
        The root manifest of the snapshot.
    findings
        The findings that affect the snapshot.
    """

    def __init__(self, root: Manifest, findings: list[Finding]) -> None:
        self._root = root
        self._codes = {one.code for one in findings}
        self._at: dict[str, set[str]] = {}
        self._broken: set[str] = set()
        for one in findings:
            for place in one.places:
                for name in self._names(place):
                    self._at.setdefault(name, set()).add(one.code)
                if "#entry" in place and one.severity in ("fail", "wrong"):
                    self._broken.add(place)

    def reports(self, item: RuleBreak) -> bool:
        """Return whether a finding already reports a violated rule, so that it need not be reported again.

        One of these findings about the snapshot is enough:

        * A finding at the place of the violation, with one of the codes that `RULES` has for the rule.
        * A finding at any place, with one of the codes that `_ALSO` has for the rule.
        * A finding about the same entry, with any code and the severity ``fail`` or ``wrong``.
        """
        if item.where in self._broken or _ALSO.get(item.rule, frozenset()) & self._codes:
            return True
        codes = RULES[item.rule].problems
        return any(not self._at.get(name, set()).isdisjoint(codes) for name in self._names(item.where))

    def _names(self, place: str) -> set[str]:
        """Return the texts that identify a place; two places with a text in common are regarded as the same.

        * For a file (``<location>``): its canonical location.
        * For an entry of the root (``<location>#entry 3``): ``place`` itself, and the canonical locations in the
          entry's columns ``location`` and ``referenced_file``.
        * For an entry of another manifest: ``place`` itself, and the canonical location of this manifest.
        """
        file, _, entry = place.partition("#entry ")
        if not entry:
            return {canonical(place)}
        if file != self._root.location or not entry.isdigit() or int(entry) >= len(self._root):
            return {place, canonical(file)}
        row = self._root.entries.slice(int(entry), 1).select(["location", "referenced_file"]).to_pylist()[0]
        return {place, *(canonical(name) for name in row.values() if name)}


def _finding(item: RuleBreak, root: Manifest, snapshot: Snapshot) -> Finding:
    """Return a finding that reports a violated rule.

    Parameters
    ----------
    item
        The violated rule.
    root, snapshot
        The snapshot that violates it, and the root manifest of this snapshot.
    """
    in_manifest = "#entry" in item.where or item.where == root.location or item.where in root.entries["location"]
    kind = _KINDS[item.rule] if in_manifest else _OF_FILES.get(item.rule, _KINDS[item.rule])
    where = f"{root.location}#{item.where}" if item.where.startswith("snapshot ") else item.where
    rule = RULES[item.rule]
    text = f"{item.text[:1].upper()}{item.text[1:]}. Rule {rule.id} ({rule.source}): {rule.text}"
    made = problem(kind.code, where, text, field=kind.field, entries=item.rows)
    return finding_of(made, modes=kind.modes, snapshots=(snapshot.snapshot_id,), count=item.count)


def _older_vectors(examination: Examination, snapshot: Snapshot, root: Manifest) -> None:
    """Report manifest DVs in the form of an earlier V4 draft.

    Delta tables are not checked, because the manifest DVs of Delta Lake have only this form.
    """
    if examination.state.opened.is_delta:
        return
    vectors = Rows(root.entries, root.dialect)
    rows = np.flatnonzero(vectors.is_kind(ContentType.MANIFEST_DV) & vectors.live)
    held = pc.struct_field(whole(root.entries["deletion_vector"]), "inline_content")
    forms = {manifest_dv_form(data) for row in rows.tolist() if (data := held[row].as_py()) is not None}
    counted = root.has_column("150_523") and len(rows) > 0
    older = sorted(forms - {"Mumbling"})
    if not (counted or older):
        return
    parts = [f"are encoded as {' and '.join(older)}"] if older else []
    parts += ["have their cardinality in dv_cardinality (523)"] if counted else []
    rule = RULES["manifest-dv-form"]
    text = f"Manifest DVs {' and '.join(parts)}. Rule {rule.id} ({rule.source}): {rule.text}"
    field = "523 dv_cardinality" if counted else "522 dv"
    item = problem("manifest-dv-older", root.location, text, field=field)
    examination.report(item, modes=(85,), snapshots=(snapshot.snapshot_id,), count=max(1, len(rows)))


def _attaches(root: Manifest) -> bool:
    """Return whether manifest DVs are attached to their manifests' entries, a layout that the V4 draft adopted."""
    r = Rows(root.entries, root.dialect)
    return bool((r.is_kind(*MANIFESTS) & r.has_vector).any())


def _name_modes(examination: Examination, roots: Mapping[int, Manifest]) -> None:
    """Give findings about V4 snapshots the modes in ``docs/doctor.md`` that are specific to V4.

    When a finding is made, it gets the modes of its code and field, whatever the format version of the table is. For
    some faults of V4 snapshots there are more specific modes, which replace the first ones. For example, a wrong count
    in a root's entry for a manifest gets mode 53.

    Findings about wrong counts or content of manifest DVs also get the severity ``wrong``.

    Parameters
    ----------
    roots
        The root manifests of the V4 snapshots, by snapshot id. A finding is changed only if all its snapshots are among
        these.
    """
    vectors = {place for root in roots.values() for place in manifest_dv_places(root)}
    for number, one in enumerate(examination.findings):
        if not one.snapshots or not roots.keys() >= set(one.snapshots):
            continue
        if one.where in vectors and one.code in ("count-mismatch", "file-corrupt"):
            # The counts or the content of a manifest DV are wrong: readers that apply this DV return wrong rows.
            examination.findings[number] = replace(one, modes=(51, 85), severity="wrong")
            continue
        key = f"{one.code} {one.field or ''}"
        modes = next((modes for pattern, modes in _IN_V4 if pattern.fullmatch(key)), None)
        if key == _MISPLACED and roots[one.snapshots[0]].dialect.deletion_vectors_on_entries:
            modes = (50, 41, 85)
        if modes is not None:
            examination.findings[number] = replace(one, modes=modes)


def manifest_dv_places(root: Manifest) -> Iterator[str]:
    """Yield the place of each manifest DV in a root: the root's location, with ``#entry`` and the number of the row."""
    kinds = whole(root.entries["content_type"])
    for row in np.flatnonzero(np.asarray(pc.fill_null(pc.equal(kinds, int(ContentType.MANIFEST_DV)), False))).tolist():
        yield f"{root.location}#entry {row}"


def _draft_leaves(examination: Examination) -> Iterator[Finding]:
    """Check V4 leaf manifests for live entries of delete files, which the V4 draft does not allow.

    Manifests that were written before the table was upgraded to V4 may have such entries, and are skipped.
    """
    known = {place for f in examination.findings if f.code == "entry-invalid" for place in f.places}
    for leaf, snapshots in examination.leaves():
        if not leaf.dialect.deletion_vectors_on_entries:
            continue
        r = Rows(leaf.entries, leaf.dialect)
        stray = np.flatnonzero(r.live & r.is_kind(*_DELETES) & ~r.carried)
        if not len(stray):
            continue
        at = np.asarray(leaf.entries["ordinal"])[stray]
        text = (
            "A delete file has its own entry. The V4 draft does not allow this: a deletion vector is in the entry of "
            "its data file."
        )
        place = f"{leaf.location}#entry {at[0]}"
        if place in known:
            continue
        found = CONTENT_NAMES[int(r.kind[stray[0]])]
        item = problem("entry-invalid", place, text, field="134 content_type", found=found, entries=at)
        yield finding_of(item, modes=(85,), snapshots=snapshots)


def _draft_replaced(examination: Examination, snapshot: Snapshot) -> Iterator[Finding]:
    """Check for files that have an entry with the status REPLACED (3) from this snapshot, but no live entry.

    A live entry for the same file must take the place of a REPLACED one: without it, readers lose the file's rows.
    """
    files = examination.files
    entries = files.entries
    mine = np.array([snapshot.snapshot_id in of for _, of in files.leaves], bool)
    if not len(mine):
        return
    here = mine[np.asarray(entries["leaf"])]
    own = pc.equal(entries["snapshot_id"], snapshot.snapshot_id)
    gone = pc.and_(own, pc.equal(entries["status"], int(Status.REPLACED)))
    replaced = here & np.asarray(pc.fill_null(gone, False))
    if not replaced.any():
        return
    alive = here & np.asarray(pc.fill_null(entries["live"], False))
    names = entries["location"].filter(pa.array(alive)).combine_chunks()
    lost = np.flatnonzero(replaced & ~np.asarray(pc.is_in(entries["location"], names)))
    if len(lost):
        text = (
            "An entry has the status REPLACED, but the snapshot has no live entry for the same file: readers lose the "
            "file's rows."
        )
        item = problem("changes-untrue", files.place(int(lost[0])), text, field=_STATUS, found="REPLACED")
        yield finding_of(
            item,
            modes=(85,),
            snapshots=(snapshot.snapshot_id,),
            places=examination.places(lost),
            count=len(lost),
            rows=lost,
        )
