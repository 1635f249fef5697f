"""What Python says in a widget, as the browser draws it (`blocks.js`): texts stay texts, nothing is markup.

A `Block` is ``["h" | "p" | "div", parts]``, ``["list", [parts, ...]]``, ``["table", heads, rows, kind, label]`` or
``["code", text]``, which can be copied. A head and a cell are parts, the first cell is its row's head; ``kind`` is how
the table looks ("terms" if it is left out), ``label`` what it is called.

A `Part` is words, ``["go", words, selection]`` (a click selects), ``["bars", [[kind, length], ...]]`` (0 to 1, one
after another), or ``[kind, words, tip]``: "code", "note", "yes", "no", "badge ..." and other styles, the tip can be
left out.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Block", "Part"]

Part: TypeAlias = str | list[Any]
Block: TypeAlias = list[Any]
