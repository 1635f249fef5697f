"""Group findings under the fault that causes them, so that a report lists each fault once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from iceexplore.doctor.model._finding import Finding, with_follows
from iceexplore.doctor.model._hits import Hits
from iceexplore.storage import canonical

__all__ = ["folded"]

#: Codes of findings that an unreadable manifest or manifest list may cause: its entries are missing when counts are
#: compared, or when deletes in other manifests refer to its data files.
_EXPLAINED_BY_LOSS = frozenset(
    {
        "delete-dangling",
        "totals-differ",
        "delete-no-effect",
        "summary-untrue",
        "manifest-dv-invalid",
        "count-mismatch",
        "manifest-salvaged",
    }
)
#: Codes that, for a manifest or manifest list, mean that some or all of its entries cannot be read.
_LOSS = frozenset({"file-missing", "file-corrupt", "file-truncated", "manifest-salvaged"})
#: Faults other than unreadable manifests that cause further findings. Each item has a pattern, which must match the
#: code and the field of the cause, separated by a space; and the codes of the findings that this cause explains. For
#: example, a wrong record count (``count-mismatch 103 record_count``) explains wrong totals (``totals-differ``).
_BY_NUMBER: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = tuple(
    (re.compile(pattern), frozenset(codes.split()))
    for pattern, codes in (
        ("metadata-invalid next-row-id", "row-ids-beyond"),
        ("metadata-invalid (last-)?sequence-number", "sequence-number"),
        (
            "count-mismatch (103 )?record_count",
            "row-ids-twice row-ids-beyond totals-differ file-overwritten puffin-blob-invalid",
        ),
        ("count-mismatch 50[456] .*", "totals-differ"),
        ("totals-differ 51[234] .*", "totals-differ"),
        ("file-overwritten .*", "file-twice totals-differ count-mismatch"),
        ("file-twice .*", "row-ids-twice totals-differ dv-twice"),
        ("dv-twice .*", "totals-differ"),
        (
            "(file-corrupt|entry-invalid) (134 content_type|0 status)",
            "totals-differ changes-untrue entry-invalid delete-dangling",
        ),
        ("entry-invalid 147 deletion_vector", "changes-untrue entry-invalid"),
        ("manifest-dv-invalid .*", "totals-differ changes-untrue delete-dangling"),
        ("value-undecodable 102 partition", "summary-untrue value-undecodable"),
        ("file-corrupt 102 partition", "summary-untrue"),
    )
)


def folded(findings: Sequence[Finding], manifests: frozenset[str]) -> list[Finding]:
    """Return the findings that no other finding explains, each with the findings that it explains as `Finding.follows`.

    Parameters
    ----------
    manifests
        The canonical locations of all examined manifests and roots. A finding that a file cannot be read explains
        findings about missing entries only if the file is one of these.
    """
    merged = _merged(findings)
    # The order of the causes matters if several of them explain the same finding. Unreadable manifests come first,
    # because they explain more kinds of findings than any other cause. A cause may itself be explained by another one.
    causes = [one for one in merged if _is_cause(one, manifests)]
    causes.sort(key=lambda one: not _is_lost_manifest(one, manifests))
    of: dict[int, int] = {}  # the index in `merged` of each explained finding, and the index of its cause
    for number, one in enumerate(merged):
        found = [c for c in causes if _explains(c, one, manifests) and not _explains(one, c, manifests)]
        # If several causes explain a finding, a cause in the same file as the finding is preferred.
        cause = next((c for c in found if c.location == one.location), found[0] if found else None)
        if cause is not None:
            of[number] = next(i for i, other in enumerate(merged) if other is cause)
    roots: dict[int, Finding] = {i: one for i, one in enumerate(merged) if i not in of}
    for number, at in of.items():
        while at in of:
            at = of[at]
        roots[at] = with_follows(roots[at], [merged[number]])
    return list(roots.values())


def _is_lost_manifest(one: Finding, manifests: frozenset[str]) -> bool:
    return one.code in _LOSS and "#entry" not in one.where and canonical(one.location) in manifests


def _explained_by(one: Finding) -> frozenset[str]:
    key = f"{one.code} {one.field or ''}"
    return next((codes for pattern, codes in _BY_NUMBER if pattern.fullmatch(key)), frozenset())


def _is_cause(one: Finding, manifests: frozenset[str]) -> bool:
    if one.code == "manifest-salvaged":
        # The manifest could be read only up to a fault. This fault has a finding of its own, which is the cause.
        return False
    return _is_lost_manifest(one, manifests) or bool(_explained_by(one))


def _explains(cause: Finding, one: Finding, manifests: frozenset[str]) -> bool:
    if cause is one or (cause.snapshots and one.snapshots and not set(cause.snapshots) & set(one.snapshots)):
        return False
    if _is_lost_manifest(cause, manifests):
        # The totals in a snapshot's summary are compared with counts in its manifest list or root. These counts are
        # known even if a manifest cannot be read. An unreadable manifest therefore does not explain wrong totals.
        return one.code in _EXPLAINED_BY_LOSS and not (one.field or "").startswith("total-")
    return one.code in _explained_by(cause)


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Merge findings with equal code, field, modes, severity and `_kind_of_place`.

    Such findings form a group, and the returned list has one finding for each group. It has the text of the first
    finding in the group, the first ten places of the group, and the sum of the counts. If all findings of a group have
    the same `Finding.where`, they report one fault repeatedly, and the count of the first finding is kept.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        # Findings in one group report the same kind of fault, either in different files or repeatedly in one place.
        groups.setdefault((one.code, one.field, one.modes, one.severity, _kind_of_place(one)), []).append(one)
    out = []
    for group in groups.values():
        first = group[0]
        places = tuple(dict.fromkeys(place for one in group for place in one.places))
        seen = {one.where for one in group}
        count = max(
            len(seen),
            sum(one.count for one in group if one.count > 1) + sum(one.count == 1 for one in group)
            if len(seen) > 1
            else first.count,
        )
        out.append(
            replace(
                first,
                count=count,
                places=places[:10],
                snapshots=tuple(dict.fromkeys(s for one in group for s in one.snapshots)),
                refs=tuple(dict.fromkeys(r for one in group for r in one.refs)),
                _hits=Hits.union(one.hits for one in group),
            )
        )
    return out


def _kind_of_place(one: Finding) -> str:
    """Return a key for the first place of a finding (`Finding.where`): findings with different keys are not merged.

    - For a whole file, or for an entry of a manifest such as ``m0.avro#entry 3``, the key is empty. Findings in
      different files may therefore be merged.
    - For a snapshot in a metadata file, such as ``v5.metadata.json#snapshot 17``, the key is the file's location.
      Findings about different snapshots in the same file may be merged.
    - For any other part of a file, such as ``v5.metadata.json#ref main``, the key is the whole place. Only findings
      about this part may be merged.
    """
    file, _, part = one.where.partition("#")
    if part and not part.startswith("entry"):
        return one.where if not part.startswith("snapshot") else file
    return ""
