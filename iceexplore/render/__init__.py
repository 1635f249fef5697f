"""Drawing: escape, layout, SVG, Mermaid, Graphviz, text and HTML, on plain structures only."""

from __future__ import annotations

from iceexplore.render import _escape as escape
from iceexplore.render._bar_picture import BarPicture
from iceexplore.render._bars import Bar, BarChart, BarRow, bars_text, spoken
from iceexplore.render._bars_svg import bars_svg
from iceexplore.render._card import Card, CardTable, card_html, card_text
from iceexplore.render._fold import fold, share
from iceexplore.render._frames import shown_frame
from iceexplore.render._graphviz import graphviz
from iceexplore.render._html import Html, details, html_lines, html_table
from iceexplore.render._icons import ICONS
from iceexplore.render._layout import Box, Column, Layout, layout
from iceexplore.render._mermaid import mermaid
from iceexplore.render._mime import Mermaid, Svg, svg_image
from iceexplore.render._scene import EdgeKind, Mark, Scene, SceneEdge, SceneNode
from iceexplore.render._style import MARKS, PAPER, PRUNED, STYLE, KindStyle, MarkStyle, Palette, style
from iceexplore.render._svg import Theme, svg
from iceexplore.render._tables import TableDiagram, TableLink, TableNode
from iceexplore.render._tables_layout import place, route_crossings
from iceexplore.render._tables_svg import tables_svg
from iceexplore.render._tables_text import tables_graphviz, tables_mermaid, tables_text
from iceexplore.render._text import text

__all__ = [
    "Bar",
    "BarChart",
    "BarPicture",
    "BarRow",
    "Box",
    "Card",
    "CardTable",
    "Column",
    "EdgeKind",
    "Html",
    "ICONS",
    "KindStyle",
    "Layout",
    "MARKS",
    "Mark",
    "MarkStyle",
    "Mermaid",
    "PAPER",
    "PRUNED",
    "Palette",
    "STYLE",
    "Scene",
    "SceneEdge",
    "SceneNode",
    "Svg",
    "TableDiagram",
    "TableLink",
    "TableNode",
    "Theme",
    "bars_svg",
    "bars_text",
    "card_html",
    "card_text",
    "details",
    "escape",
    "fold",
    "graphviz",
    "html_lines",
    "html_table",
    "layout",
    "mermaid",
    "place",
    "route_crossings",
    "share",
    "shown_frame",
    "spoken",
    "style",
    "svg",
    "svg_image",
    "tables_graphviz",
    "tables_mermaid",
    "tables_svg",
    "tables_text",
    "text",
]
