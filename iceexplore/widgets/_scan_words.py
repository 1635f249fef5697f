"""A plan in words and numbers for the browser: the headline, the levels, what would help, why a node is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iceexplore.graph import human_bytes, json_safe
from iceexplore.planning import Advice, NodeEvidence, ScanPlan, Suggestion

__all__ = ["advice_sent", "evidence_sent", "plan_sent", "python_of"]

_LONG = 2000
_SUGGESTIONS = 20


def python_of(plan: ScanPlan, filter_text: str, row_groups: bool, now: int | None) -> str:
    """The call that makes a plan again; nothing in it leaves the literals. ``now``: the table's own snapshot."""
    arguments = [python_text(filter_text)]
    if plan.columns is not None:
        arguments.append(f"columns={[*plan.columns]!r}")
    if row_groups:
        arguments.append("row_groups=True")
    shown = None if plan.state.snapshot is None else plan.state.snapshot.snapshot_id
    at = "" if shown is None or shown == now else f".at(snapshot={shown})"
    return f"t{at}.plan({', '.join(arguments)})"


def python_text(text: str) -> str:
    """A text as a Python literal, in double quotes where that reads well."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def plan_sent(plan: ScanPlan) -> dict[str, Any]:
    """The headline, and a row per level with its bars: how long they are, 0 to 1, and what they say."""
    waterfall = plan.waterfall()
    chart = waterfall.chart()
    scales = chart.scales()
    levels = [
        {
            "label": row.label,
            "note": json_safe(row.note[:400]),
            "tip": json_safe((row.tooltip or "")[:600]),
            "bars": [
                None if bar is None else {"text": bar.text, "left": bar.value / scale, "gone": bar.rest / scale}
                for bar, scale in zip(row.bars, scales, strict=True)
            ],
        }
        for row in chart.rows
    ]
    said = waterfall.description
    return {
        "headline": json_safe(said[:1].upper() + said[1:] + _share(waterfall.levels.to_pylist())),
        "heads": list(chart.columns),
        "levels": levels,
        "notes": [json_safe(note[:_LONG]) for note in plan.notes],
        "took": f"planned in {plan.seconds * 1000:,.0f} ms",
        "files": len(plan),
        "deletes": len(plan.files.matched.deletes),
    }


def _share(levels: Sequence[dict[str, Any]]) -> str:
    """How much of the table's bytes are read, where both are known of data files alone."""
    if len(levels) < 2 or not levels[0]["bytes"] or "delete" in levels[0]["known"]:
        return ""
    left = next((r["bytes"] for r in reversed(levels) if r["bytes"] is not None), 0)
    share = left / levels[0]["bytes"]
    return f" ({'under 1' if 0 < share < 0.01 else f'{share * 100:.0f}'} % of the bytes)"


def advice_sent(advice: Advice) -> dict[str, Any]:
    """What would help."""
    items = [_suggestion(s) for s in advice.suggestions[:_SUGGESTIONS]]
    clustered = [
        json_safe(
            f"{row['column'][:80]}: ranges of files overlap {row['depth']:,.1f} deep on average, "
            f"{row['deepest']:,} at most"
        )
        for row in advice.clustering.to_pylist()[:_SUGGESTIONS]
    ]
    notes = [json_safe(note[:_LONG]) for note in advice.notes[:_SUGGESTIONS]]
    return {"items": items, "notes": [*notes, *clustered]}


def _suggestion(s: Suggestion) -> dict[str, Any]:
    gain = ""
    if s.before is not None and s.after is not None:
        now, then = (f"{r.files:,} {s.unit}, {human_bytes(r.bytes)}" for r in (s.before, s.after))
        gain = f"{now} → {then} ({s.basis})"
    return {
        "title": json_safe(s.title[:300]),
        "why": json_safe(s.why[:_LONG]),
        "gain": gain,
        "assumes": json_safe(s.assumes[:_LONG]),
        "statements": [json_safe(f"{text[:10_000]};") for text in s.statements],
    }


def evidence_sent(found: NodeEvidence) -> dict[str, Any]:
    """Why a node is read, or is not."""
    return {
        "read": found.read,
        "why": json_safe(found.why[:_LONG]),
        "terms": [[json_safe(t.term[:300]), t.by or "—", json_safe(t.known[:300]), t.verdict] for t in found.terms],
        "residual": json_safe((found.residual or "")[:_LONG]),
        "deletes": [
            [d.kind, json_safe(d.location[-300:]), "" if d.rows is None else f"{d.rows:,}"] for d in found.deletes
        ],
        "deleteCount": found.delete_count,
    }
