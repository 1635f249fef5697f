"""Render a saved page: one self-contained HTML file that makes no requests.

Its Content-Security-Policy allows only its own script and style sheet, by their hashes, so code injected through a
table's strings does not run. The data are in a block that is not executable.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from iceexplore.render import Html, details, escape
from iceexplore.widgets.core._bundle import bare_script, style_sheet
from iceexplore.widgets.core._static_html import detail_html, report_html, snapshots_html

__all__ = [
    "plain_html",
    "saved_html",
]

#: Maximum number of children shown, as a manifest may have thousands of files.
_MOST_CHILDREN = 50


def plain_html(saved: Mapping[str, Any]) -> Html:
    """Return HTML without scripts: snapshots, tree, details of the table and of the selected node, and a report.

    Parameters
    ----------
    saved
        The data that ``saved.js`` shows; see `iceexplore.widgets.saved_page._content.collect`.
    """
    traits = saved["traits"]
    chosen = traits["selection"]
    tree = Html("".join(_node(traits["nodes"], root) for root in traits["roots"]))
    parts = [snapshots_html(traits["snapshots"], chosen["snapshot"]), details("Tree", tree, opened=True)]
    parts += [_detail(saved, node) for node in dict.fromkeys(("table", chosen["node"])) if node in saved["details"]]
    if traits.get("doctor_report"):
        parts.append(report_html(traits["doctor_report"]))
    return Html("".join(parts))


def _detail(saved: Mapping[str, Any], node: str) -> Html:
    """Return a node's details with its first table."""
    detail = saved["details"][node]
    for key, table in saved["tables"].get(node, {}).items():
        if "rows" in table:
            return detail_html(detail, {**table, "of": node, "table": key, "shown": range(len(table["columns"]))})
    return detail_html(detail, {})


def _node(nodes: Mapping[str, Any], at: str) -> str:
    node = nodes[at]
    text = escape.html(f"{node['label']}  {node['note']}".strip())
    children = node["children"] or []
    inner = "".join(_node(nodes, child) for child in children[:_MOST_CHILDREN])
    if len(children) > _MOST_CHILDREN:
        inner += f"<div>+{len(children) - _MOST_CHILDREN:,} more</div>"
    return f"<ul><li>{text}{inner}</li></ul>"


_PAGE_CSS = """
html { background: #f4f6f8; } body { margin: 0; }
#ice-page { max-width: 1600px; margin: 0 auto; padding: 16px; }
.ice-saved-title { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
/* comparing needs Python */ .ice-timeline [aria-label^="Compare with"] { display: none; }
.ice-saved-note { color: #596474; font: 12px/1.5 system-ui, sans-serif; }
.ice-plain { font: 14px/1.5 system-ui, sans-serif; } .ice-plain table { border-collapse: collapse; }
.ice-plain th, .ice-plain td { padding: 2px 10px 2px 0; text-align: left; }
@media screen and (prefers-color-scheme: dark) { html { background: #0b0f14; color: #e6ebf1; }
.ice-saved-note { color: #9aa6b4; } }
@media print { html { background: none; } #ice-page { max-width: none; padding: 0; } }
"""


def saved_html(title: str, saved: dict[str, Any], *, plain: str, notes: list[str]) -> str:
    """Return the HTML of the page.

    Parameters
    ----------
    saved
        The data that ``saved.js`` shows; see `iceexplore.widgets.saved_page._content.collect`.
    plain
        HTML for browsers that run no scripts.
    notes
        Sentences at the end: when the page was created, and what is not in it.
    """
    code = f"'use strict';\n{bare_script('saved.savedPage')}"
    css = f"{style_sheet()}\n{_PAGE_CSS}"
    policy = (
        f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(css)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    # In JSON within a script, only "<" can end the block or begin a comment (HTML, 4.12.1.3); escaping the other
    # characters costs little.
    data = json.dumps(saved, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in ("<", ">", "&", "\u2028", "\u2029"):
        data = data.replace(char, f"\\u{ord(char):04x}")
    footer = "".join(f"<p>{escape.html(note)}</p>" for note in notes)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape.html(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n"
        f'<main id="ice-page"><h1 class="ice-saved-title">{escape.html(title)}</h1>'
        f'<div id="ice-host"></div><noscript><div class="ice-plain">{plain}</div></noscript>\n'
        f'<footer class="ice-saved-note">{footer}</footer></main>\n'
        f'<script type="application/json" id="ice-data">{data}</script>\n<script>{code}</script>\n</body>\n</html>\n'
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
