"""Texts about a plan for the browser: headline, levels, advice, and why a node is read or skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iceexplore.arrow import build
from iceexplore.graph import human_bytes, json_safe
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.tree._forest import short

if TYPE_CHECKING:
    import pyarrow as pa

    from iceexplore.planning import Advice, DeleteOf, NodeEvidence, ScanPlan, Waterfall
    from iceexplore.render import BarChart

__all__ = ["advice_sent", "evidence_sent", "plan_sent", "python_of", "reasons_sent"]

_LONG = 2000
_SUGGESTIONS = 20
_REASONS = 30


def python_of(plan: ScanPlan, filter_text: str, row_groups: bool, now: int | None) -> str:
    """Return the Python call that repeats a plan, with the filter safely quoted.

    Parameters
    ----------
    now
        The id of the snapshot at which the table was opened; other snapshots get a call of ``at``.
    """
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
    """Return a plan's headline, its notes and funnel (a line with a bar for each level) as blocks, and key figures."""
    waterfall = plan.waterfall()
    notes: list[Block] = [["problem", [signs(note[:_LONG])]] for note in (*plan.notes, *plan.doubts)]
    lost = any(not leaf.readable for leaf in plan.leaves)  # the table's share is unknown if manifests are unreadable
    text = waterfall.description
    return {
        "headline": signs(text[:1].upper() + text[1:] + ("" if lost else _share(waterfall.levels.to_pylist()))),
        "blocks": [*notes, _funnel(plan, waterfall)],
        "took": f"planned in {plan.seconds * 1000:,.0f} ms",
        "files": len(plan),
        "deletes": len(plan.files.matched.deletes),
    }


def _funnel(plan: ScanPlan, waterfall: Waterfall) -> Block:
    """Return a line for each level of the scan: the files, bytes and other known amounts that remain, and a bar."""
    chart = waterfall.chart()
    lost = sum(1 for leaf in plan.leaves if leaf.root_row is not None and not leaf.readable)
    items: list[list[Part]] = []
    for row in chart.rows:
        bars = {name: bar for name, bar in zip(chart.columns, row.bars, strict=True) if bar is not None}
        texts = {name: bar.text.partition(" (")[0] for name, bar in bars.items()}
        main = "rows" if row.label == "after deletes" else "files"
        notes = [_amount(texts, name) for name in ("bytes", "manifests", "row groups")]
        if lost:  # unreadable manifests: their files are unknown at every level, and not skipped
            notes.append(f"{lost:,} unreadable")
        every = "; ".join(_amount(texts, name) for name in texts)
        tip = signs_of_lines("\n".join(filter(None, (every, row.tooltip)))[:600])
        files = bars.get("files")
        shares = [] if files is None else [["left", files.value / _whole(chart)], ["gone", files.rest / _whole(chart)]]
        items.append(
            [
                ["level", signs(row.label), tip],
                ["b", f"{'≥ ' if lost else ''}{_amount(texts, main)}"],
                " ",
                ["note", " · ".join(n for n in notes if n)],
                ["bars", shares],
            ]
        )
    return ["list", items]


def _amount(texts: Mapping[str, str], name: str) -> str:
    """Return ``12 files``; empty if the measure is missing."""
    text = texts.get(name, "")
    if text == "not known":
        return f"{name} not known"
    if not text or name == "bytes":
        return text
    return f"{text} {name[:-1] if text == '1' else name}"


def _whole(chart: BarChart) -> float:
    return chart.scales()[chart.columns.index("files")]


_REASON_BY = {
    "partition": "by partition",
    "bounds": "by column bounds",
    "counts": "by counts of nulls and NaN",
    "filter": "as it is never true",
    "bloom": "by Bloom filters",
    "dictionary": "by dictionaries",
}
_KIND_COLUMN, _TERM_COLUMN, _BY_COLUMN = 1, 2, 3


def reasons_sent(plan: ScanPlan, reasons: pa.Table) -> list[list[Any]]:
    """Return a summary of why files are read or skipped: for each reason a text, a table and filters for its files."""
    out: list[list[Any]] = []
    read = len(plan)
    if read:
        whole = plan.files.whole.true_count
        exact = f"; in {whole:,} of them every row matches" if whole else ""
        out.append([f"✓ {_counted(read, 'file')} read: no metadata rules {'it' if read == 1 else 'them'} out{exact}",
                    "tasks", []])  # fmt: skip
    for record in build.to_pylist(reasons):
        kind, term, by = record["kind"], record["term"], record["by"]
        thing = {"data file": "file"}.get(kind, kind)
        text = _counted(record["items"], thing)
        if kind == "manifest" and record["files"] is not None:
            text += f" with {_counted(record['files'], 'file')}"
        why = f"{_short(term, 200)} rules {'it' if record['items'] == 1 else 'them'} out" if term else "no live files"
        if term:
            why += f" {_REASON_BY.get(by, f'by {by}')}"
        filters: list[dict[str, Any]] = [{"column": _KIND_COLUMN, "op": "=", "value": kind}]
        if term is None:
            filters.append({"column": _TERM_COLUMN, "op": "null", "value": ""})
        else:
            filters.append({"column": _TERM_COLUMN, "op": "=", "value": json_safe(term[:_LONG])})
            filters.append({"column": _BY_COLUMN, "op": "=", "value": by})
        out.append([signs(f"⊘ {text}: {why}"), "skipped", filters])
    return out[:_REASONS]


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _share(levels: Sequence[dict[str, Any]]) -> str:
    """Return the share of the table's bytes that is read, as text; empty if it is not known for data files alone."""
    if len(levels) < 2 or not levels[0]["bytes"] or "delete" in levels[0]["known"]:
        return ""
    left = next((r["bytes"] for r in reversed(levels) if r["bytes"] is not None), 0)
    share = left / levels[0]["bytes"]
    return f" ({'under 1' if 0 < share < 0.01 else f'{share * 100:.0f}'} % of the bytes)"


def advice_sent(advice: Advice) -> list[Block]:
    """Return the advice for a plan as blocks."""
    shown = advice.suggestions[:_SUGGESTIONS]
    out: list[Block] = [] if shown else [["p", ["The statistics suggest no improvement for this filter."]]]
    for s in shown:
        out.append(["h", [_safe(s.title, 300)]])
        if s.before is not None and s.after is not None:
            now, then = (f"{r.files:,} {s.unit}, {human_bytes(r.bytes)}" for r in (s.before, s.after))
            out.append(["p", [["yes", f"{now} → {then}"], f" ({s.basis})"]])
        out.append(["p", [_safe(s.why), *([["note", _safe(f" Assumes: {s.assumes}")]] if s.assumes else [])]])
        out += [["code", json_safe(_short(f"{text};", 10_000))] for text in s.statements]  # for the user to copy
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
    """Return blocks that explain why a node is read or skipped."""
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
