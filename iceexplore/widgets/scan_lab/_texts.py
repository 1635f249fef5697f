"""Texts about a plan for the browser: headline, levels, advice, and why a node is read or skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iceexplore.graph import human_bytes, json_safe
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.tree._forest import short

if TYPE_CHECKING:
    from iceexplore.planning import Advice, DeleteOf, NodeEvidence, ScanPlan
    from iceexplore.render import BarChart

__all__ = ["advice_sent", "evidence_sent", "plan_sent", "python_of"]

_LONG = 2000
_SUGGESTIONS = 20


def python_of(plan: ScanPlan, filter_text: str, row_groups: bool, now: int | None) -> str:
    """Return the Python call that repeats a plan; the filter is safely quoted. ``now``: the table's own snapshot id."""
    arguments = [python_text(filter_text)]
    if plan.columns is not None:
        arguments.append(f"columns={[*plan.columns]!r}")
    if row_groups:
        arguments.append("row_groups=True")
    shown = None if plan.state.snapshot is None else plan.state.snapshot.snapshot_id
    at = "" if shown is None or shown == now else f".at(snapshot={shown})"
    return f"t{at}.plan({', '.join(arguments)})"


def python_text(text: str) -> str:
    """Return a text as a Python literal, in double quotes if no escapes are needed."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def plan_sent(plan: ScanPlan) -> dict[str, Any]:
    """Return the headline, notes and levels (a row with bars each) as blocks, and key figures of a plan."""
    waterfall = plan.waterfall()
    notes: list[Block] = [["problem", [signs(note[:_LONG])]] for note in (*plan.notes, *plan.doubts)]
    lost = any(not leaf.readable for leaf in plan.leaves)  # the table's share is unknown if manifests are unreadable
    text = waterfall.description
    return {
        "headline": signs(text[:1].upper() + text[1:] + ("" if lost else _share(waterfall.levels.to_pylist()))),
        "blocks": [*notes, _levels(waterfall.chart())],
        "took": f"planned in {plan.seconds * 1000:,.0f} ms",
        "files": len(plan),
        "deletes": len(plan.files.matched.deletes),
    }


def _levels(chart: BarChart) -> Block:
    """Return a table of what remains after each level, with bars, and below the level's name what was pruned by it."""
    rows = []
    for row in chart.rows:
        level: Part = ["level", signs(row.label), signs_of_lines((row.tooltip or "")[:600])]
        bars: list[list[Part]] = [
            [] if bar is None else [bar.text, ["bars", [["left", bar.value / scale], ["gone", bar.rest / scale]]]]
            for bar, scale in zip(row.bars, chart.scales(), strict=True)
        ]
        rows.append([[level, *([["note", signs(row.note[:400])]] if row.note else [])], *bars])
    heads = [[head] for head in ("remaining", *chart.columns)]
    return ["table", heads, rows, {"kind": "levels", "label": "Remaining after each level"}]


def _share(levels: Sequence[dict[str, Any]]) -> str:
    """Return, as text, the share of the table's bytes that is read; empty if not known for data files alone."""
    if len(levels) < 2 or not levels[0]["bytes"] or "delete" in levels[0]["known"]:
        return ""
    left = next((r["bytes"] for r in reversed(levels) if r["bytes"] is not None), 0)
    share = left / levels[0]["bytes"]
    return f" ({'under 1' if 0 < share < 0.01 else f'{share * 100:.0f}'} % of the bytes)"


def advice_sent(advice: Advice) -> list[Block]:
    """Return the advice for a plan."""
    shown = advice.suggestions[:_SUGGESTIONS]
    out: list[Block] = [] if shown else [["p", ["The statistics suggest no improvement for this filter."]]]
    for s in shown:
        out.append(["h", [_safe(s.title, 300)]])
        if s.before is not None and s.after is not None:
            now, then = (f"{r.files:,} {s.unit}, {human_bytes(r.bytes)}" for r in (s.before, s.after))
            out.append(["p", [["yes", f"{now} → {then}"], f" ({s.basis})"]])
        out.append(["p", [_safe(s.why), *([["note", _safe(f" Assumes: {s.assumes}")]] if s.assumes else [])]])
        out += [["code", json_safe(_short(f"{text};", 10_000))] for text in s.statements]  # to copy
    clustered = [
        f"{row['column'][:80]}: a value may be in {row['depth']:,.1f} files on average, in {row['deepest']:,} at most"
        for row in advice.clustering.to_pylist()
    ]
    notes = [[_safe(note)] for note in [*advice.notes, *clustered][:_SUGGESTIONS]]
    return [*out, *([["list", notes]] if notes else [])]


_VERDICTS: dict[str, Part] = {
    "no row": ["no", "⊘ no row"],
    "every row": ["yes", "✓ every row"],
    "some rows may": "may match",
}


def evidence_sent(found: NodeEvidence, name: str) -> list[Block]:
    """Return why a node is read or skipped."""
    verdict = ["badge yes", "✓ read"] if found.read else ["badge no", "⊘ skipped"]
    out: list[Block] = [["h", [verdict, " ", _safe(name, 300)]], ["p", [_safe(found.why)]]]
    if found.terms:
        rows = [
            [
                [["code", _safe(t.term, 300)]],
                [_safe(t.known, 300), *([["note", f" {t.by}"]] if t.by else [])],
                [_VERDICTS.get(t.verdict, t.verdict)],
            ]
            for t in found.terms
        ]
        out.append(["table", [["condition"], ["evidence"], ["result"]], rows])
    if found.residual:
        out.append(["p", ["Residual filter for its rows: ", ["code", _safe(found.residual)]]])
    if found.delete_count:
        many = found.delete_count > 1
        out.append(["p", [f"{found.delete_count:,} deletes apply:" if many else "One delete applies:"]])
        out.append(["list", [[_delete(d)] for d in found.deletes]])
    return out


def _delete(found: DeleteOf) -> str:
    kind = "deletion vector" if found.kind == "vector" else f"{found.kind} deletes"
    rows = "" if found.rows is None else f", {found.rows:,} row{'' if found.rows == 1 else 's'}"
    return _safe(f"{kind} {short(found.location.rpartition('/')[2])}{rows}")


def _safe(text: str, longest: int = _LONG) -> str:
    return signs(_short(text, longest))


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
