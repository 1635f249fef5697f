"""Group findings under the fault that causes them, so that a report lists each fault once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from iceexplore.doctor.model._finding import Finding, with_follows
from iceexplore.doctor.model._hits import Hits
from iceexplore.storage import canonical

__all__ = ["folded"]

#: Codes of problems that an unreadable manifest or manifest list causes, because it hides files that other entries
#: reference.
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
#: Findings of wrong numbers or entries that cause other findings. Each item has a pattern for the cause, which matches
#: its code and field (separated by a space), and the codes of the findings that it causes.
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
    # Sort unreadable manifests first, because they explain more findings than wrong numbers do. A cause may itself be
    # explained by another cause.
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
        return False  # reading ended early: the cause is the finding of the fault that ended it
    return _is_lost_manifest(one, manifests) or bool(_explained_by(one))


def _explains(cause: Finding, one: Finding, manifests: frozenset[str]) -> bool:
    if cause is one or (cause.snapshots and one.snapshots and not set(cause.snapshots) & set(one.snapshots)):
        return False
    if _is_lost_manifest(cause, manifests):
        # The totals in a snapshot's summary are compared with counts in its manifest list or root. If a manifest
        # cannot be read, these counts remain, so that this does not explain wrong totals.
        return one.code in _EXPLAINED_BY_LOSS and not (one.field or "").startswith("total-")
    return one.code in _explained_by(cause)


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Merge findings with equal code, field, modes, severity and `_kind_of_place`.

    A merged finding has the text of the first of its findings, the first ten places, and the sum of all counts. But if
    the merged findings all report the same place, their counts are not added: the first count is kept.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        # Findings are merged if they report the same fault twice in the same place, or in many files.
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
    """Return a text that decides, by the places of findings, which of them may be merged: those with equal texts.

    The text is derived from the finding's first place (``where``). If this is a whole file or an entry of a manifest,
    the text is empty, so that findings in different files may be merged. If it is a snapshot in a metadata file, the
    text is the file's location, so that findings about different snapshots may be merged. If it is any other part of a
    file, such as a ref, the text is the place itself, so that only findings about this part may be merged.
    """
    file, _, part = one.where.partition("#")
    if part and not part.startswith("entry"):
        return one.where if not part.startswith("snapshot") else file
    return ""
