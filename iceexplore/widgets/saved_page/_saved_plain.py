"""What a saved page shows where no script runs: made of what the script would show, so what is left out stays out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceexplore.render import Html, details, escape
from iceexplore.widgets.core._static_html import detail_html, snapshots_html

__all__ = ["plain_html"]

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
