"""What Python says in a widget, as the browser draws it (`blocks.js`): texts stay texts, nothing is markup.

A `Block` is ``["h" | "p", parts]`` or with another style, ``["list", [parts, ...]]``, ``["table", heads, rows]`` (a
head and a cell are parts, a row's first cell is its head; after them there may be a style of each column, such as
"right", and a caption), ``["fold", parts, blocks]`` (the blocks are seen once somebody clicks the words) or
``["code", text]``, which can be copied.

A `Part` is words, ``["go", words, selection]`` (a click selects), ``["bars", [[kind, length], ...]]`` (0 to 1, one
after another), or ``[kind, words]``: "code", "note", "yes", "no", "badge ..." and other styles.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Block", "Part"]

Part: TypeAlias = str | list[Any]
Block: TypeAlias = list[Any]
