"""Colours of kinds: what is written on a filled card can be read, in both themes."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest

from iceexplore.widgets.core._styles import styles


def _rgb(text: str) -> tuple[float, ...]:
    return tuple(int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _mixed(one: str, other: str, share: float) -> tuple[float, ...]:
    return tuple(share * a + (1 - share) * b for a, b in zip(_rgb(one), _rgb(other), strict=True))


def _luminance(rgb: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_words_on_filled_cards_can_be_read(dark: bool) -> None:
    """WCAG 1.4.3: text 4.5 : 1, also on the paler fill of what a snapshot did not change."""
    css = files("iceexplore.widgets").joinpath("static", "iceexplore.css").read_text(encoding="utf-8")
    rules: Any = re.search(
        r"\.ice-widget\[data-ice-theme=\"dark\"\] \{(.*?)\}" if dark else r"\.ice-widget \{(.*?)\n\}", css, re.S
    )
    colours = dict(re.findall(r"--ice-(\w+): (?:var\(--ice-page, )?(#[0-9a-f]{6})", rules[1]))
    for kind, look in styles().items():
        if "fills" not in look:
            continue
        fill = look["fills"][dark]
        for share in (1.0, 0.55):
            ground = _mixed(fill, colours["paper"], share)
            for ink in ("ink", "muted"):
                assert _contrast(_rgb(colours[ink]), ground) >= 4.5, (kind, ink, share)
