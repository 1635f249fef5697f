"""Blocks of the explorer of views: those of `iceexplore.widgets.core._blocks`, and SQL, differences and pictures.

- ``["sql", pieces, text]``: pieces as `Part`s; ``text`` is what is copied;
- ``["diff", titles, rows]``: a row has a sign (``=``, ``!``, ``-``, ``+``), the old line and the new line, or None;
- ``["picture", light, dark, alt]``: SVG documents for the light and the dark theme, shown as images.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from iceexplore.graph import json_safe
from iceexplore.render import Card, CardTable, Html, SceneDrawing, details, escape, svg_image
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.core._static_html import blocks_html
from iceexplore.widgets.view_explorer._sql_tokens import sql_pieces

__all__ = ["card_blocks", "note_block", "picture_block", "sql_block", "table_block", "view_blocks_html"]

#: The maximum length, in characters, of a text that is sent.
MOST_SENT = 100_000
_LONGEST_CELL = 1_000
#: Names for the columns that cards leave unnamed, by the name of the preceding column.
_UNNAMED = {"type": "required", "made of": "certain"}


def sql_block(text: str, dialect: str | None) -> list[Block]:
    """Return blocks with highlighted SQL and, if the text is cut off, a note about the rest."""
    pieces: list[Any] = []
    for kind, piece in sql_pieces(text[:MOST_SENT], dialect):
        shown = signs_of_lines(piece)
        pieces.append([kind, shown] if kind else shown)
    found: list[Block] = [["sql", pieces, str(json_safe(text[:MOST_SENT]))]]
    if len(text) > MOST_SENT:
        found.append(note_block(f"… {len(text) - MOST_SENT:,} more characters: v.sql() has the whole text"))
    return found


def note_block(text: str) -> Block:
    """Return a block with a sentence."""
    return ["p", [["note", signs(escape.shorten(text, _LONGEST_CELL))]]]


def table_block(
    label: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "", code: Iterable[int] = ()
) -> Block:
    """Return a block with a table; ``code`` has the indexes of columns to show in a monospaced font."""
    cells = [
        [[["code", _cell(text)] if i in code and text else _cell(text)] for i, text in enumerate(row)] for row in rows
    ]
    look = {"label": label, **({"caption": signs(note)} if note else {})}
    return ["table", [[head] for head in heads], cells, look]


def _cell(text: str) -> str:
    return signs(escape.shorten(text, _LONGEST_CELL))


def card_blocks(card: Card, *, facts: str = "Details", leave_out: Iterable[str] = ()) -> list[Block]:
    """Return the facts, tables and notes of a card as blocks; ``leave_out`` has the headings of tables to leave out."""
    found: list[Block] = []
    if card.facts:
        found.append(table_block(facts, (), card.facts))
    for table in card.tables:
        if table.heading not in leave_out:
            found += [["h", [table.heading]], _card_table(table)]
    return [*found, *map(note_block, card.notes)]


def _card_table(table: CardTable) -> Block:
    # A card leaves self-explanatory columns unnamed, but a screen reader reads a column's name with each cell.
    before = ("", *table.columns)
    heads = [name or _UNNAMED.get(before[i], "kind") for i, name in enumerate(table.columns)]
    return table_block(table.heading, heads, table.rows, note=table.note, code=table.code)


def picture_block(drawing: SceneDrawing) -> list[Block]:
    """Return a tree as a picture, and as text for those who do not see it."""
    alt = signs(escape.shorten(f"{drawing.scene.title}: {drawing.scene.description}", 300))
    pictures = [str(json_safe(str(drawing.to_svg(theme)))) for theme in ("light", "dark")]
    return [["picture", *pictures, alt], ["fold", ["The tree as text"], [["code", signs_of_lines(drawing.to_text())]]]]


def view_blocks_html(blocks: Iterable[Block]) -> Html:
    """Return blocks as HTML that needs no kernel: inline styles only, no ``<svg>``, ``<style>`` or script."""
    out = []
    for block in blocks:
        kind, *content = block
        if kind == "sql":
            out.append(_sql_html(content[0]))
        elif kind == "diff":
            out.append(_diff_html(*content))
        elif kind == "picture":
            out.append(svg_image(content[0], content[2]))
        elif kind == "fold":
            out.append(details("".join(map(_text, content[0])), view_blocks_html(content[1])))
        else:
            out.append(blocks_html([block]))
    return Html("".join(out))


def _text(part: Any) -> str:  # noqa: ANN401  a Part
    return part if isinstance(part, str) else str(part[1])


#: Styles that are legible on white and on black.
_LOOKS = {
    "keyword": "font-weight:700",
    "function": "font-style:italic",
    "string": "color:#2e8b57",
    "number": "color:#b8860b",
    "comment": "opacity:.65;font-style:italic",
}
_SHADES = {"old": "rgba(218,54,51,.18)", "new": "rgba(46,160,67,.18)"}


def _sql_html(pieces: Iterable[Any]) -> str:
    out = []
    for piece in pieces:
        # Escaping shows line breaks as signs, so lines are escaped one by one.
        text = "\n".join(map(escape.html, _text(piece).split("\n")))
        look = "" if isinstance(piece, str) else _LOOKS.get(piece[0], "")
        out.append(f'<span style="{look}">{text}</span>' if look else text)
    return f'<pre style="overflow-x:auto;line-height:1.35">{"".join(out)}</pre>'


def _diff_html(titles: Sequence[str], rows: Iterable[Sequence[str | None]]) -> str:
    cell = "padding:0 8px;vertical-align:top;text-align:left;white-space:pre-wrap;overflow-wrap:anywhere"
    heads = "".join(f'<th style="{cell}">{escape.html(title)}</th>' for title in ("", *titles))
    body = []
    for sign, *sides in rows:
        cells = "".join(
            f'<td style="{cell}{f";background:{_SHADES[side]}" if sign != "=" and text is not None else ""}">'
            f"{escape.html(text or '')}</td>"
            for side, text in zip(_SHADES, sides, strict=True)
        )
        body.append(f'<tr><td style="{cell}">{"" if sign == "=" else escape.html(sign or "")}</td>{cells}</tr>')
    return (
        '<table style="font-family:ui-monospace,monospace;font-size:12px;width:100%">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
