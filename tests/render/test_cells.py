"""Cells in rows: what is drawn, and that no text of a table becomes markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from iceexplore.errors import OptionError
from iceexplore.render import CellBlock, CellMap, CellRow, cells_svg, cells_text
from tests.helpers.hostile import HOSTILE

KINDS = ("data-file", "no such kind")


def block(count: int) -> CellBlock:
    return CellBlock(bytes(i % 6 for i in range(count)), bytes(i % 2 for i in range(count)), bytes(count), KINDS)


def test_cells_that_look_alike_are_one_path() -> None:
    drawing = cells_svg(CellMap("t", "d", ("",), (CellRow("a", "b", (block(3_000),)),)))
    root = ET.fromstring(drawing)
    paths = [p for p in root.iter("{http://www.w3.org/2000/svg}path") if "ix-cell" in p.attrib.get("class", "")]
    assert sum(p.attrib["d"].count("M") for p in paths) == 3_000 + 1, "and one in the legend"
    assert len(paths) < 20
    assert len(drawing) < 90_000


def test_added_and_removed_cells_differ_without_colour() -> None:
    cells = CellBlock(bytes([0, 5, 5]), bytes(3), bytes([0, 1, 2]), KINDS)
    drawn = CellMap("t", "", ("",), (CellRow("a", "", (cells,)),))
    assert "░+×" in cells_text(drawn)
    paths = [p.attrib for p in ET.fromstring(cells_svg(drawn)).iter("{http://www.w3.org/2000/svg}path")]
    removed = next(p for p in paths if p.get("class") == "ix-cell-removed")
    assert removed["d"].endswith("l9.0 9.0"), "crossed"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str) -> None:
    text = HOSTILE[name]
    drawn = CellMap(text, text, (text, text), (CellRow(text, text, (block(4), block(100))),), (text,))
    root = ET.fromstring(cells_svg(drawn).encode("utf-8"))
    assert {node.tag.rpartition("}")[2] for node in root.iter()} == {
        *("svg", "title", "desc", "style", "rect", "g", "text", "path")
    }
    assert float(root.attrib["height"]) < 600
    shown = cells_text(drawn)
    assert "\x1b" not in shown and "\u202e" not in shown and len(shown) < 5_000


@pytest.mark.parametrize(
    "wrong", [(b"\x06", b"\0", b"\0"), (b"\0", b"\x02", b"\0"), (b"\0", b"\0", b"\x03"), (b"\0\0", b"\0", b"\0")]
)
def test_cells_that_cannot_be_drawn_are_refused(wrong: tuple[bytes, bytes, bytes]) -> None:
    with pytest.raises(OptionError):
        CellBlock(*wrong, KINDS)


def test_rows_have_a_block_for_each_column() -> None:
    with pytest.raises(OptionError, match="has 1 blocks for 2 columns"):
        CellMap("t", "", ("a", "b"), (CellRow("r", "", (block(1),)),))
