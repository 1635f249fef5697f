"""What widgets show where no kernel runs: the same content as plain HTML, for GitHub, nbviewer, an export, or paper.

Inline styles only: everything else is taken out of a notebook that is not trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iceexplore.graph import human_bytes
from iceexplore.render import Html, details, escape, html_table

__all__ = ["detail_html", "problems_html", "snapshots_html", "vector_html"]

_MOST = 50


def snapshots_html(snapshots: Sequence[Mapping[str, Any]], chosen: str) -> Html:
    """The newest snapshots, the newest first (`TimelinePart.snapshots`)."""
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
    """What a node says of itself (`DetailPart.detail`), and the page of its table that is shown."""
    facts = [fact[:2] for part in ("facts", "more") for fact in detail.get(part, [])]
    parts = [html_table(("field", "value"), facts, limit=_MOST)]
    if page.get("rows") and page.get("of") == detail.get("id"):
        names = [page["columns"][i]["name"] for i in page["shown"]]
        of = f"{page['table']}: {len(page['rows']):,} of {page['total']:,} rows"
        parts.append(html_table(names, page["rows"], caption=of, limit=_MOST))
    return details(f"{detail.get('kind_title', '')}: {detail.get('title', '')}", Html("".join(parts)), opened=True)


def problems_html(problems: Mapping[str, Any]) -> Html:
    """The problems met so far (`ProblemsPart.problems`; empty until somebody has looked)."""
    rows = [
        [group["severity"], group["code"], item.get("where") or "", item["text"], group["advice"]]
        for group in problems.get("groups", [])
        for item in group["items"]
    ]
    if rows:
        columns = ("severity", "code", "where", "what", "advice")
        return html_table(columns, rows, caption=f"Problems; {problems['covered']}.", limit=_MOST)
    said = "Nothing has been looked at yet for problems."
    if problems and (problems["read"] or not problems["manifests"]):
        said = f"Nothing is wrong in what has been read: {problems['covered']}."
    return Html(f"<p>{escape.html(said)}</p>")  # no table: its caption would be as narrow as its columns


def vector_html(vector: Mapping[str, Any]) -> Html:
    """Which rows are deleted, in numbers (`VectorsPart.vector`)."""
    names = ("kind", "title", "of", "cardinality", "rows", "runs", "first", "last")
    facts = [(name, vector[name]) for name in names if vector.get(name) not in (None, "")]
    sizes = [(e["name"], e["bytes"]) for e in vector.get("encodings", [])]
    encodings = [(name, human_bytes(size)) for name, size in sizes if size is not None]
    tables = html_table(("deleted rows", ""), facts) if facts else ""
    return Html(tables + (html_table(("encoding", "bytes"), encodings) if encodings else ""))
