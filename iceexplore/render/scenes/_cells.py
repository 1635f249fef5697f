"""Cells: many items as small squares, a byte each for shade, kind and change; and how they are drawn in an SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from iceexplore.errors import OptionError
from iceexplore.render.scenes._style import MARKS, STYLE, style

__all__ = ["CellBlock", "LEVELS", "cell_css", "cell_paths", "lines_of"]

#: The opacity of each shade.
_OPACITY = (0.14, 0.3, 0.46, 0.62, 0.8, 1.0)
#: The number of shades.
LEVELS = len(_OPACITY)


@dataclass(frozen=True)
class CellBlock:
    """A sequence of cells; each of the first three attributes has one byte for each cell.

    Attributes
    ----------
    shades
        From 0 (pale) to ``LEVELS - 1`` (dark).
    kinds
        Indexes into ``names``.
    changes
        0, 1 (added) or 2 (removed).
    names
        Kinds of `STYLE`, which give the cells their colours.

    Raises
    ------
    OptionError
        The attributes have different lengths, or a value is out of range.
    """

    shades: bytes
    kinds: bytes
    changes: bytes
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.shades) == len(self.kinds) == len(self.changes):
            raise OptionError("a block of cells needs equally many shades, kinds and changes: one of each per cell")
        limits = ((self.shades, LEVELS), (self.kinds, len(self.names)), (self.changes, 3))
        if any(max(values, default=0) >= limit for values, limit in limits):
            raise OptionError("a cell has a shade, a kind or a change that does not exist")

    def __len__(self) -> int:
        return len(self.shades)

    def groups(self) -> Iterator[tuple[str, int, int, list[int]]]:
        """Yield the kind, shade and change of cells that look alike, with the indices of these cells."""
        found: dict[tuple[int, int, int], list[int]] = {}
        for i, key in enumerate(zip(self.kinds, self.shades, self.changes, strict=True)):
            found.setdefault(key, []).append(i)
        for (kind, shade, change), places in sorted(found.items()):
            yield self.names[kind], shade, change, places


def lines_of(count: int, width: float, pitch: float) -> int:
    """Return the number of lines that this many cells take."""
    return -(-count // max(1, int(width // pitch)))


def cell_paths(block: CellBlock, left: float, top: float, width: float, pitch: float, size: float) -> list[str]:
    """Return the cells of a block as paths, in lines from left to right."""
    columns = max(1, int(width // pitch))
    out = []
    for kind, shade, change, places in block.groups():
        at = [(left + i % columns * pitch, top + i // columns * pitch) for i in places]
        if change == 2:  # drawn hollow and crossed, so that removed cells differ not only in colour
            d = "".join(f"M{_px(x)} {_px(y)}h{size}v{size}h-{size}zl{size} {size}" for x, y in at)
            out.append(f'<path class="ix-cell-removed" d="{d}"/>')
            continue
        d = "".join(f"M{_px(x)} {_px(y)}h{size}v{size}h-{size}z" for x, y in at)
        name = kind if kind in STYLE else "other"
        out.append(
            f'<path class="ix-cell-{name}{" ix-cell-added" if change == 1 else ""}" '
            f'fill-opacity="{_OPACITY[shade]}" d="{d}"/>'
        )
    return out


def cell_css(dark: bool, kinds: Iterable[str]) -> str:
    """Return CSS rules for the colours of cells of the given kinds."""
    rules = []
    for kind in sorted({kind if kind in STYLE else "other" for kind in kinds}):
        look = style(kind)
        colour = look.dark_stroke if dark else look.stroke
        rules.append(f".ix-cell-{kind}{{fill:{colour};stroke:{colour}}}")
    added, removed = ((MARKS[m].dark if dark else MARKS[m].light) for m in ("added", "removed"))
    rules.append(f".ix-cell-added{{stroke:{added};stroke-width:1.8}}")
    rules.append(f".ix-cell-removed{{fill:none;stroke:{removed};stroke-width:1.1}}")
    return "".join(rules)


def _px(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
