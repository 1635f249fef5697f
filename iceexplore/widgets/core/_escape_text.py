"""Make control and bidirectional characters visible in displayed text, as they could reorder or hide other text.

Names in tables come from others. Text that is copied, searched or sent back stays unchanged: the visible signs are
inserted last, when something is sent for display.
"""

from __future__ import annotations

import json
from typing import Any

from iceexplore.render import escape

__all__ = ["signs", "signs_of_lines", "signs_of_page"]


def signs(text: str) -> str:
    """Return one line of text with such characters replaced by visible signs; it can always be encoded as UTF-8."""
    return escape.visible(text)


def signs_of_lines(text: str) -> str:
    """Return text of several lines with such characters, except line breaks, replaced by visible signs."""
    return "\n".join(map(escape.visible, text.split("\n")))


def signs_of_page(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page of a grid with such characters replaced by visible signs.

    A page has ``columns`` with ``name``, ``rows`` of text, and maybe ``texts`` of cells by column; or a JSON ``text``.
    """
    if "text" in page:
        return {**page, "text": _escaped(page["text"])}
    columns = [{**column, "name": signs(column["name"])} for column in page["columns"]]
    out = {**page, "columns": columns, "rows": [[cell and signs(cell) for cell in row] for row in page["rows"]]}
    if "texts" in page:
        out["texts"] = {key: [text and signs(text) for text in texts] for key, texts in page["texts"].items()}
    return out


def _escaped(text: str) -> str:
    """Return a JSON text with such characters written as JSON escapes, so that it parses to the same document."""
    shown = signs_of_lines(text)
    if shown == text:
        return text
    return "".join(c if c == "\n" or escape.visible(c) == c else json.dumps(c)[1:-1] for c in text)
