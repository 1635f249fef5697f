"""Convert a doctor's report for the browser: findings with their lines, consequences, places, and what to select."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from iceexplore.graph import TableState, amount, format_ms, json_safe
from iceexplore.metadata import Snapshot, in_order
from iceexplore.render import escape
from iceexplore.widgets.problems._nodes_of_problems import Place, places_of

if TYPE_CHECKING:
    from iceexplore.doctor import Finding, Report

__all__ = ["findings_sent", "redacted_sent", "text_of"]

#: Maximum number of findings that are sent, and of the findings that follow from one of them; others are only counted.
_MAX_FINDINGS = 200
_MAX_FOLLOWS = 20
_MAX_TEXT = 2_000
#: Maximum number of snapshots in whose trees nodes are searched for; for each of them, a root is read.
_MAX_TREES = 50
#: Lines that are left out because the finding's ``text`` and its list ``follows`` show the same.
_NOT_LINES = frozenset({"What", "Causes"})


def findings_sent(report: Report, state: TableState, shown: Snapshot | None) -> dict[str, Any]:
    """Return a report in the form that the browser receives; see `DoctorPanel.doctor_report`.

    Parameters
    ----------
    state
        The examined table. To find the findings' nodes, only the roots of affected snapshots are read.
    shown
        The snapshot whose tree is preferred when a finding affects several.
    """
    findings = report.findings[:_MAX_FINDINGS]
    at = _places(state, shown, [more for one in findings for more in (one, *one.follows[:_MAX_FOLLOWS])])
    return {**_sent(report, state, at), "broken": _broken(report)}


def redacted_sent(report: Report, kinds: frozenset[str], sent: Mapping[str, Any], state: TableState) -> dict[str, Any]:
    """Return what `findings_sent` returns, with redacted texts. Node ids are not redacted: they have only numbers.

    Parameters
    ----------
    kinds
        The kinds of redaction, as `iceexplore.graph.redactions` returns them.
    sent
        The result of `findings_sent` for the report.
    """
    from iceexplore.doctor import redacted_report

    made = _sent(redacted_report(report, kinds), state, {})
    for one, real in zip(made["findings"], sent["findings"], strict=True):
        one["node"] = real["node"]
        one["places"] = [[text, node] for (text, _), (_, node) in zip(one["places"], real["places"], strict=True)]
        for more, real_more in zip(one["follows"], real["follows"], strict=True):
            more["node"] = real_more["node"]
    return made


def _sent(report: Report, state: TableState, at: Mapping[tuple[str, str], Place]) -> dict[str, Any]:
    from iceexplore.doctor import EFFECTS, WORDS, report_scope

    findings = report.findings[:_MAX_FINDINGS]
    left, left_out = len(report.findings) - len(findings), _left_out(report)
    counts = {name: sum(f.severity == name for f in report.findings) for name in EFFECTS}
    return {
        "level": report.level,
        "scope": report_scope(report) + (f" · {left_out:,} not checked" if left_out else ""),
        "left_out": left_out,
        "counts": counts,
        "sums": {name: f"{count:,} × {WORDS[name]}" for name, count in counts.items()},
        "findings": [_item(one, state, at) for one in findings],
        "more": f"and {left:,} more: see report.to_pandas() in Python" if left else "",
        "notes": [text_of(f"Not checked: {name}. {why[:1].upper()}{why[1:]}") for name, why in report.unknown.items()],
    }


def _left_out(report: Report) -> int:
    """Return the number of snapshots that were not examined."""
    if report.metadata is None or not report.opened:
        return 0
    return len({s.snapshot_id for s in report.metadata.snapshots} - set(report.snapshots))


def _broken(report: Report) -> dict[str, str]:
    """Return the affected snapshots' ids, each with the numbers of findings that readers notice, as text."""
    from iceexplore.doctor import WORDS

    counts: dict[str, Counter[str]] = {}
    for one in report.findings:
        if one.severity in ("fail", "wrong"):
            for snapshot in one.snapshots:
                counts.setdefault(str(snapshot), Counter())[one.severity] += 1
    return {i: ", ".join(f"{n:,} × {WORDS[name]}" for name, n in of.items()) for i, of in counts.items()}


def text_of(value: str) -> str:
    """Return a text from a table for the browser: shortened, and with visible signs for control characters."""
    return str(json_safe(escape.visible(escape.shorten(value, _MAX_TEXT))))


def _item(one: Finding, state: TableState, at: Mapping[tuple[str, str], Place]) -> dict[str, Any]:
    from iceexplore.doctor import finding_lines

    here = at.get((one.code, one.where))
    follows = [_follower(more, at) for more in one.follows[:_MAX_FOLLOWS]]
    more = len(one.follows) - len(follows)
    return {
        **_follower(one, at),
        "id": _identity(one),
        "title": one.title,
        "severity": one.severity,
        "lines": [[label, text_of(text)] for label, text in finding_lines(one) if label not in _NOT_LINES],
        "follows": follows,
        "chain": f"{amount(len(one.follows), 'finding follows', 'findings follow')} from this" if one.follows else "",
        "more": f"and {more:,} more" if more else "",
        "since": _since(one, state),
        "affected": _affected(one, state),
        "places": [
            [text_of(where), _selection(here if where == one.where else at.get((one.code, where)))]
            for where in (one.places if one.count > 1 else ())
        ],
        "count": one.count,
    }


def _follower(one: Finding, at: Mapping[tuple[str, str], Place]) -> dict[str, Any]:
    return {
        "code": one.code,
        "text": text_of(one.text),
        "where": text_of(one.where),
        "node": _selection(at.get((one.code, one.where))),
    }


def _selection(place: Place | None) -> dict[str, str] | None:
    if place is None:
        return None
    return {"node": place.node, **({"snapshot": place.snapshot} if place.snapshot else {})}


def _since(one: Finding, state: TableState) -> dict[str, str] | None:
    """Return what to select to see the snapshot that introduced a fault; None if the table no longer has it."""
    snapshot = None if one.since is None or one.since.snapshot_id is None else one.since.snapshot_id
    if snapshot is None or state.metadata.snapshot(snapshot) is None:
        return None
    return {"snapshot": str(snapshot), "node": f"snapshot:{snapshot}"}


def _affected(one: Finding, state: TableState) -> list[list[Any]]:
    """Return a text and what to select for the first and the last affected snapshot that the table still has."""
    order = in_order(state.metadata.snapshots)
    at = [place for place, snapshot in enumerate(order) if snapshot.snapshot_id in set(one.snapshots)]
    if not at:
        return []
    out: list[list[Any]] = []
    for word, place in [("Snapshot", at[0])] if len(at) == 1 else [("First:", at[0]), ("Last:", at[-1])]:
        name, time = str(order[place].snapshot_id), format_ms(order[place].timestamp_ms).replace(".000 UTC", " UTC")
        words = f"{word} {place + 1:,} of {len(order):,}, {time}"
        out.append([words, {"snapshot": name, "node": f"snapshot:{name}"}])
    return out


def _places(state: TableState, shown: Snapshot | None, findings: Iterable[Finding]) -> dict[tuple[str, str], Place]:
    """Return the findings' nodes, each in the tree of an affected snapshot, by problem code and location."""
    newest = {s.snapshot_id: s for s in in_order(state.metadata.snapshots)}
    groups: dict[int | None, list[tuple[str, str]]] = {}
    for one in findings:
        keys = [(one.code, where) for where in dict.fromkeys([one.where, *one.places])]
        groups.setdefault(_tree_of(one, shown, newest), []).extend(keys)
    found: dict[tuple[str, str], Place] = {}
    for number, keys in list(groups.items())[:_MAX_TREES]:
        snapshot = shown if number is None else newest[number]
        places = places_of(state, snapshot, {where for _, where in keys})
        found |= {key: places[key[1]] for key in keys if key[1] in places}
    return found


def _tree_of(one: Finding, shown: Snapshot | None, newest: dict[int, Snapshot]) -> int | None:
    """Return the id of the newest affected snapshot, whose tree is then searched; None for the snapshot shown."""
    if shown is not None and shown.snapshot_id in one.snapshots:
        return None
    return next((i for i in reversed(newest) if i in one.snapshots), None)


def _identity(one: Finding) -> str:
    identity = "\x1f".join((one.code, one.where, one.text, one.field or ""))
    return hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:16]
