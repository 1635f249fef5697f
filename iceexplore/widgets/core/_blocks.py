"""What Python says in a widget, as the browser draws it (`blocks.js`): texts stay texts, nothing is markup.

A `Block` is ``["h" | "p", parts]`` or with another style, ``["list", [parts, ...]]``, ``["table", heads, rows, look]``
(a head and a cell are parts, a row's first cell is its head; ``look`` can be left out and may have ``kind``, how it
looks, ``label``, ``caption`` and ``columns``, a style such as "right" or "" for each), ``["fold", parts, blocks]`` (the
blocks are seen once somebody clicks the words) or ``["code", text]``, which can be copied.

A `Part` is words, ``["go", words, selection]`` (a click selects), ``["bars", [[kind, length], ...]]`` (0 to 1, one
after another), ``["sign", sign, style]`` (for eyes, in the colours of one of `styles`), or ``[kind, words, tip]``: "b",
"code", "note", "yes", "no", "badge ..." and other styles; the tip can be left out.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Block", "Part"]

Part: TypeAlias = str | list[Any]
Block: TypeAlias = list[Any]
