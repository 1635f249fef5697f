"""Plain HTML of a widget's content for use without a kernel: GitHub, nbviewer, exports, print.

It uses inline styles only, as all others are removed from untrusted notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iceexplore.graph import human_bytes
from iceexplore.render import Html, details, escape, html_table
from iceexplore.widgets.core._blocks import Block, Part

__all__ = ["blocks_html", "detail_html", "problems_html", "report_html", "snapshots_html", "vector_html"]

_MOST = 50


def snapshots_html(snapshots: Sequence[Mapping[str, Any]], chosen: str) -> Html:
    """Return the latest snapshots (`TimelinePanel.snapshots`) as HTML, the newest first."""
    rows = [
        [
            f"{s['id']}{' (shown)' if s['id'] == chosen else ''}",
            s["time"],
            s["operation"],
            ", ".join(s["refs"]),
            *(f"+{s[key][0]:,} −{s[key][1]:,}" for key in ("rows", "files")),
        ]
        for s in reversed(snapshots)
    ]
    columns = ("snapshot", "committed", "operation", "refs", "rows", "files")
    return details(f"Snapshots ({len(rows):,})", html_table(columns, rows, limit=_MOST))


def detail_html(detail: Mapping[str, Any], page: Mapping[str, Any]) -> Html:
    """Return a node's details (`DetailPanel.detail`), and the page of its table that is shown, as HTML."""
    facts = [fact[:2] for part in ("facts", "more") for fact in detail.get(part, [])]
    parts = [html_table(("field", "value"), facts, limit=_MOST)]
    if (page.get("rows") or page.get("above")) and page.get("of") == detail.get("id"):
        parts.append(blocks_html(page.get("above", ())))
        names = [page["columns"][i]["name"] for i in page["shown"]]
        of = f"{page['table']}: {len(page['rows']):,} of {page['total']:,} rows"
        if page["rows"]:
            parts.append(html_table(names, page["rows"], caption=of, limit=_MOST))
    return details(f"{detail.get('kind_title', '')}: {detail.get('title', '')}", Html("".join(parts)), opened=True)


def blocks_html(blocks: Iterable[Block]) -> Html:
    """Return blocks as HTML, without links and bars."""
    out = []
    for kind, *content in blocks:
        if kind == "list":
            out.append("<ul>" + "".join(f"<li>{escape.html(_plain(item))}</li>" for item in content[0]) + "</ul>")
        elif kind == "table":
            heads, rows = content[:2]
            out.append(html_table([_plain(h) for h in heads], [[_plain(c) for c in row] for row in rows], limit=_MOST))
        elif kind == "fold":
            out.append(details(_plain(content[0]), blocks_html(content[1])))
        elif kind == "code":
            out.append(f"<pre>{escape.html(content[0])}</pre>")
        else:
            text = escape.html(_plain(content[0]))
            out.append(f"<p>{f'<b>{text}</b>' if kind == 'h' else text}</p>")
    return Html("".join(out))


def _plain(parts: Sequence[Part]) -> str:
    """Return the text of parts."""
    return "".join(part if isinstance(part, str) else "" if part[0] in ("bars", "sign") else part[1] for part in parts)


def file_map_html(file_map: Mapping[str, Any]) -> Html:
    """Return the partitions of a snapshot's files (`FileMapPanel.file_map`) as HTML; empty before they are read."""
    if not file_map:
        return Html("")
    rows = [[label, note] for label, note, _ in file_map["groups"]]
    return details(f"Files: {file_map['title']}", html_table(("partition", "files"), rows, limit=_MOST))


def problems_html(problems: Mapping[str, Any]) -> Html:
    """Return the problems found so far (`ProblemsPanel.problems`, empty until problems are first shown) as HTML."""
    rows = [
        [group["severity"], group["code"], item.get("where") or "", item["text"], group["advice"]]
        for group in problems.get("groups", [])
        for item in group["items"]
    ]
    if rows:
        columns = ("severity", "code", "where", "what", "advice")
        return html_table(columns, rows, caption=f"Problems; {problems['covered']}.", limit=_MOST)
    text = "Not checked for problems yet."
    if problems and (problems["read"] or not problems["manifests"]):
        text = f"No problems in what has been read: {problems['covered']}."
    return Html(f"<p>{escape.html(text)}</p>")  # not a table, whose caption would be as narrow as its columns


def report_html(report: Mapping[str, Any]) -> Html:
    """Return the findings of a check (`DoctorPanel.doctor_report`) as HTML."""
    rows = [
        [f["severity"], f["code"], f["where"], f["text"], dict(f["lines"]).get("Do", "")] for f in report["findings"]
    ]
    columns = ("severity", "code", "where", "what", "advice")
    caption = f"Findings: {report['scope']}."
    found = html_table(columns, rows, caption=caption, limit=_MOST) if rows else Html("<p>Nothing found.</p>")
    return details(f"Problems ({len(rows):,})", found)


def vector_html(vector: Mapping[str, Any]) -> Html:
    """Return the key figures of deleted rows (`DeletesPanel.vector`) as HTML."""
    names = ("kind", "title", "of", "cardinality", "rows", "runs", "first", "last")
    facts = [(name, vector[name]) for name in names if vector.get(name) not in (None, "")]
    sizes = [(e["name"], e["bytes"]) for e in vector.get("encodings", [])]
    encodings = [(name, human_bytes(size)) for name, size in sizes if size is not None]
    tables = html_table(("deleted rows", ""), facts) if facts else ""
    return Html(tables + (html_table(("encoding", "bytes"), encodings) if encodings else ""))
