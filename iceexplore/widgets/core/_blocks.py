"""Types of the content that Python sends for display and the browser draws (`blocks.js`): plain text, never markup.

A `Block` is one of:

- ``["h3" | "h" | "p", parts]``, or another style in place of ``"p"``;
- ``["list", [parts, ...]]``;
- ``["table", heads, rows, look]``: heads and cells are parts, a row's first cell is its head; the optional ``look`` may
  have ``kind`` (a style), ``label``, ``caption`` and ``columns`` (a style per column, such as "right" or "");
- ``["fold", parts, blocks]``: the blocks appear when the parts are clicked;
- ``["code", text]``, which can be copied.

A `Part` is one of:

- a text;
- ``["go", text, selection]``: a click makes this selection;
- ``["set", text, traits]``: a click sets these traits of the widget; keys that are missing in ``selection`` keep their
  values, and ``query`` is the query of the detail pane's grid;
- ``["bars", [[kind, length], ...]]``: lengths from 0 to 1, drawn one after another;
- ``["sign", sign, style]``: decorative, in the colours of one of `styles`;
- ``["value", text]`` and ``["secret", text]``: a value from the table, and a value that may be a secret; saved
  pages redact them;
- ``[kind, text, tip]``: "b", "code", "note", "yes", "no", "badge ..." and other styles; the tip is optional.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Block", "Part"]

Part: TypeAlias = str | list[Any]
Block: TypeAlias = list[Any]
