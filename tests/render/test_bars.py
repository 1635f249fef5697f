"""Bar charts: numbers keep their digits, however narrow the picture is."""

from __future__ import annotations

import re

import pytest

from iceexplore.render.bars._bars import Bar, BarChart, BarRow
from iceexplore.render.bars._svg import bars_svg


@pytest.mark.parametrize("width", [400, 700])
def test_numbers_are_not_cut(width: float) -> None:
    texts = ["20,490,000,000 (20%)", "1,048,576 GiB", "999,999,999,999 (100%)"]
    columns = ("files", "rows", "bytes")
    chart = BarChart("Plan", "", columns, (BarRow("a level", bars=tuple(Bar(1.0, text, 2.0) for text in texts)),))
    shown = re.findall(r'class="ix-value"[^>]*>([^<]*)<', str(bars_svg(chart, width=width)))
    assert len(shown) == 3
    for text, whole in zip(shown, texts, strict=True):
        assert text in (whole, whole.partition(" (")[0]), "a share may go, a digit may not"
