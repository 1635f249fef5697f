"""Text as a widget shows it: names are somebody else's, and a character that acts would turn or hide what is beside it.

What is copied, searched and asked for stays as it is: signs are put in last, where something is sent to be seen.
"""

from __future__ import annotations

import json
from typing import Any

from iceexplore.render import escape

__all__ = ["signs", "signs_of_lines", "signs_of_page"]


def signs(text: str) -> str:
    """One line of text; any UTF-8 holds it."""
    return escape.visible(text)


def signs_of_lines(text: str) -> str:
    """Text of several lines."""
    return "\n".join(map(escape.visible, text.split("\n")))


def signs_of_page(page: dict[str, Any]) -> dict[str, Any]:
    """A page of a table, ``columns`` with a ``name`` and ``rows`` of text; or a JSON document as ``text``."""
    if "text" in page:
        return {**page, "text": _escaped(page["text"])}
    columns = [{**column, "name": signs(column["name"])} for column in page["columns"]]
    return {**page, "columns": columns, "rows": [[cell and signs(cell) for cell in row] for row in page["rows"]]}


def _escaped(text: str) -> str:
    """JSON in which what would act is escaped, as JSON knows it: the document is the same."""
    shown = signs_of_lines(text)
    if shown == text:
        return text
    return "".join(c if c == "\n" or escape.visible(c) == c else json.dumps(c)[1:-1] for c in text)
