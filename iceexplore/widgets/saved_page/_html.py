"""A page of its own: one HTML file that asks nobody for anything.

Its Content-Security-Policy allows the one script and the one style sheet in it, by their hashes, and nothing else: what
a table's strings might smuggle in does not run. The data stand in a block that is no script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from iceexplore.render import Html, details, escape
from iceexplore.widgets.core._bundle import bare_script, style_sheet
from iceexplore.widgets.core._static_html import detail_html, snapshots_html

__all__ = [
    "plain_html",
    "saved_html",
]

#: Below a manifest may stand thousands of files.
_MOST_CHILDREN = 50


def plain_html(saved: Mapping[str, Any]) -> Html:
    """Snapshots, the tree, and what the table and the selected node say of themselves, with their tables.

    Parameters
    ----------
    saved
        What ``saved.js`` shows: see `iceexplore.widgets.saved_page._content.collect`.
    """
    traits = saved["traits"]
    chosen = traits["selection"]
    tree = Html("".join(_node(traits["nodes"], root) for root in traits["roots"]))
    parts = [snapshots_html(traits["snapshots"], chosen["snapshot"]), details("Tree", tree, opened=True)]
    parts += [_detail(saved, node) for node in dict.fromkeys(("table", chosen["node"])) if node in saved["details"]]
    return Html("".join(parts))


def _detail(saved: Mapping[str, Any], node: str) -> Html:
    """A node's details with its first table."""
    detail = saved["details"][node]
    for key, table in saved["tables"].get(node, {}).items():
        if "rows" in table:
            return detail_html(detail, {**table, "of": node, "table": key, "shown": range(len(table["columns"]))})
    return detail_html(detail, {})


def _node(nodes: Mapping[str, Any], at: str) -> str:
    node = nodes[at]
    said = escape.html(f"{node['label']}  {node['note']}".strip())
    children = node["children"] or []
    inner = "".join(_node(nodes, child) for child in children[:_MOST_CHILDREN])
    if len(children) > _MOST_CHILDREN:
        inner += f"<div>+{len(children) - _MOST_CHILDREN:,} more</div>"
    return f"<ul><li>{said}{inner}</li></ul>"


_PAGE_CSS = """
html { background: #f4f6f8; } body { margin: 0; }
#ice-page { max-width: 1600px; margin: 0 auto; padding: 16px; }
.ice-saved-title { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
/* comparing takes Python */ .ice-timeline [aria-label^="Compare with"] { display: none; }
.ice-saved-note { color: #596474; font: 12px/1.5 system-ui, sans-serif; }
.ice-plain { font: 14px/1.5 system-ui, sans-serif; } .ice-plain table { border-collapse: collapse; }
.ice-plain th, .ice-plain td { padding: 2px 10px 2px 0; text-align: left; }
@media screen and (prefers-color-scheme: dark) { html { background: #0b0f14; color: #e6ebf1; }
.ice-saved-note { color: #9aa6b4; } }
@media print { html { background: none; } #ice-page { max-width: none; padding: 0; } }
"""


def saved_html(title: str, saved: dict[str, Any], *, plain: str, notes: list[str]) -> str:
    """The page.

    Parameters
    ----------
    saved
        What ``saved.js`` shows: see `iceexplore.widgets.saved_page._content.collect`.
    plain
        HTML for a browser that runs no script.
    notes
        Sentences at the end: when it was made, what is not in it.
    """
    code = f"'use strict';\n{bare_script('saved.savedPage')}"
    css = f"{style_sheet()}\n{_PAGE_CSS}"
    policy = (
        f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(css)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    # Of JSON in a script only "<" can end the block or begin a comment (HTML, 4.12.1.3); the others cost nothing.
    data = json.dumps(saved, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in ("<", ">", "&", "\u2028", "\u2029"):
        data = data.replace(char, f"\\u{ord(char):04x}")
    said = "".join(f"<p>{escape.html(note)}</p>" for note in notes)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape.html(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n"
        f'<main id="ice-page"><h1 class="ice-saved-title">{escape.html(title)}</h1>'
        f'<div id="ice-host"></div><noscript><div class="ice-plain">{plain}</div></noscript>\n'
        f'<footer class="ice-saved-note">{said}</footer></main>\n'
        f'<script type="application/json" id="ice-data">{data}</script>\n<script>{code}</script>\n</body>\n</html>\n'
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
