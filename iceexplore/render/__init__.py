"""Draw plain data structures as SVG, Mermaid, Graphviz, text and HTML: compute positions, and escape all texts."""

from __future__ import annotations

from iceexplore.render import _escape as escape
from iceexplore.render._card import Card, CardTable, CardText, card_html, card_text
from iceexplore.render._display import card_of, line_of
from iceexplore.render._frames import shown_frame, whole_numbers
from iceexplore.render._html import Html, details, html_lines, html_page, html_table
from iceexplore.render._mime import Mermaid, Svg, svg_image
from iceexplore.render._svg_parts import Theme
from iceexplore.render.bars._bars import Bar, BarChart, BarRow, bars_text, spoken
from iceexplore.render.bars._picture import BarPicture
from iceexplore.render.bars._svg import bars_svg
from iceexplore.render.cells._cells import CellMap, CellRow, cells_text
from iceexplore.render.cells._svg import cells_svg
from iceexplore.render.diagrams._positions import place, route_crossings
from iceexplore.render.diagrams._svg import tables_svg
from iceexplore.render.diagrams._tables import TableDiagram, TableLink, TableNode
from iceexplore.render.diagrams._text import tables_graphviz, tables_mermaid, tables_text
from iceexplore.render.ranges._picture import RangePicture
from iceexplore.render.ranges._ranges import RangeCells, RangeChart, RangeStrip, ranges_text, spoken_ranges
from iceexplore.render.ranges._svg import ranges_svg
from iceexplore.render.scenes._cells import LEVELS, CellBlock
from iceexplore.render.scenes._drawing import SceneDrawing
from iceexplore.render.scenes._fold import fold, share
from iceexplore.render.scenes._graphviz import graphviz
from iceexplore.render.scenes._icons import ICONS
from iceexplore.render.scenes._mermaid import mermaid
from iceexplore.render.scenes._positions import Box, Column, ScenePositions, scene_positions
from iceexplore.render.scenes._scene import EdgeKind, Scene, SceneEdge, SceneNode
from iceexplore.render.scenes._strips import size_shade
from iceexplore.render.scenes._style import MARKS, PAPER, PRUNED, STYLE, KindStyle, Mark, MarkStyle, Palette, style
from iceexplore.render.scenes._svg import svg
from iceexplore.render.scenes._text import text

__all__ = [
    "Bar",
    "BarChart",
    "BarPicture",
    "BarRow",
    "Box",
    "Card",
    "CardTable",
    "CardText",
    "CellBlock",
    "CellMap",
    "CellRow",
    "Column",
    "EdgeKind",
    "Html",
    "ICONS",
    "KindStyle",
    "LEVELS",
    "MARKS",
    "Mark",
    "MarkStyle",
    "Mermaid",
    "PAPER",
    "PRUNED",
    "Palette",
    "RangeCells",
    "RangeChart",
    "RangePicture",
    "RangeStrip",
    "STYLE",
    "Scene",
    "SceneDrawing",
    "SceneEdge",
    "SceneNode",
    "ScenePositions",
    "Svg",
    "TableDiagram",
    "TableLink",
    "TableNode",
    "Theme",
    "bars_svg",
    "bars_text",
    "card_html",
    "card_of",
    "card_text",
    "cells_svg",
    "cells_text",
    "details",
    "escape",
    "fold",
    "graphviz",
    "html_lines",
    "html_page",
    "html_table",
    "line_of",
    "mermaid",
    "place",
    "ranges_svg",
    "ranges_text",
    "route_crossings",
    "scene_positions",
    "share",
    "shown_frame",
    "size_shade",
    "spoken",
    "spoken_ranges",
    "style",
    "svg",
    "svg_image",
    "tables_graphviz",
    "tables_mermaid",
    "tables_svg",
    "tables_text",
    "text",
    "whole_numbers",
]
