"""The two charts of the V4 proposal's appendix, "Bitvector compression benchmarking", measured when they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import cramjam
import numpy as np
import numpy.typing as npt
import pandas as pd
from pyroaring import BitMap

from iceexplore.render import Bar, BarChart, BarPicture, BarRow, Svg, Theme

__all__ = ["BitvectorChart", "DOCUMENT_BYTES", "METHODS", "bitset", "roaring"]

_SIZES = (1_000, 10_000, 100_000, 1_000_000)
#: Number of random vectors of each kind, whose mean size is shown; the proposal measured a single vector.
_REPEAT = 5

#: The numbers printed in the proposal: bytes by method, density and number of bits (1,000, 10,000, 100,000, 1,000,000).
DOCUMENT_BYTES: dict[str, dict[float, tuple[int, int, int, int]]] = {
    "LZ4": {
        0.01: (57, 383, 3_545, 32_713),
        0.05: (98, 920, 8_480, 75_451),
        0.1: (130, 1_155, 10_600, 108_987),
        0.2: (135, 1_264, 12_541, 125_493),
    },
    "Roaring": {
        0.01: (36, 216, 2_024, 20_136),
        0.05: (116, 1_016, 10_024, 100_136),
        0.1: (216, 2_016, 15_340, 126_440),
        0.2: (416, 4_016, 16_408, 129_918),
    },
    "ZSTD-3": {
        0.01: (46, 224, 1_826, 17_690),
        0.05: (93, 533, 4_727, 46_987),
        0.1: (97, 715, 6_599, 67_170),
        0.2: (129, 981, 9_227, 91_923),
    },
    "Raw bitset": {
        0.01: (123, 1_247, 12_485, 124_980),
        0.05: (123, 1_247, 12_494, 124_985),
        0.1: (123, 1_247, 12_500, 125_000),
        0.2: (125, 1_250, 12_500, 125_000),
    },
}


def bitset(positions: npt.NDArray[np.int64]) -> bytes:
    """Return sorted positions as Java's ``BitSet.toByteArray``: little endian, without trailing zero bytes."""
    bits = np.zeros(int(positions[-1]) + 1, dtype=np.uint8)
    bits[positions] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def roaring(positions: npt.NDArray[np.int64], *, runs: bool = False) -> bytes:
    """Return sorted positions as portable Roaring; with ``runs``, run containers are used where they are smaller."""
    return bytes(BitMap(positions.astype(np.uint32), optimize=runs).serialize())


#: The proposal's methods, which turn sorted positions into bytes.
METHODS: dict[str, Callable[[npt.NDArray[np.int64]], bytes]] = {
    "LZ4": lambda at: bytes(cramjam.lz4.compress_block(bitset(at), store_size=True)),
    "Roaring": roaring,
    "ZSTD-3": lambda at: bytes(cramjam.zstd.compress(bitset(at), level=3)),
    "Raw bitset": bitset,
}


@cache
def _measured() -> dict[tuple[str, float, int], float]:
    """Return the mean number of bytes of random vectors, by method, density and number of bits."""
    random = np.random.default_rng(4)
    found: dict[tuple[str, float, int], float] = {}
    for size in _SIZES:
        for density in DOCUMENT_BYTES["LZ4"]:
            vectors = [np.sort(random.choice(size, round(size * density), replace=False)) for _ in range(_REPEAT)]
            for name, method in METHODS.items():
                found[name, density, size] = sum(len(method(vector)) for vector in vectors) / _REPEAT
    return found


@dataclass(frozen=True, repr=False)
class BitvectorChart(BarPicture):
    """A chart of the sizes of random bit vectors, by method, density and number of bits, beside the proposal's numbers.

    Attributes
    ----------
    name, title, section, look
        As for a `Figure`.
    per_position
        Whether bytes are divided by the number of deleted positions.
    """

    name: str
    title: str
    section: str
    look: str
    per_position: bool = False
    relaxed: tuple[str, ...] = ()
    differs: str = ""

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per method, density and number of bits, with the bytes measured and those of the proposal."""
        rows = []
        for (method, density, size), measured in _measured().items():
            unit = size * density if self.per_position else 1
            document = DOCUMENT_BYTES[method][density][_SIZES.index(size)]
            rows.append((method, density, size, measured / unit, document / unit))
        return pd.DataFrame(rows, columns=["method", "density", "bits", "measured", "document"])

    def chart(self) -> BarChart:
        """Return the bars as plain data: a row per method and density, a column per number of bits."""
        digits = ".2f" if self.per_position else ",.0f"
        rows = []
        for (method, density), group in self.to_pandas().groupby(["method", "density"], sort=False):
            bars = tuple(
                Bar(measured, f"{measured:{digits}} ({document:{digits}})")
                for measured, document in zip(group["measured"], group["document"], strict=True)
            )
            rows.append(BarRow(f"{method}, density {density}", "", bars))
        rows.sort(key=lambda row: list(METHODS).index(row.label.partition(",")[0]))
        unit = "bytes for each deleted position" if self.per_position else "bytes"
        solid = f"{unit}: mean of {_REPEAT} vectors (the document's one)"
        columns = tuple(f"{size:,} bits" for size in _SIZES)
        return BarChart(self.title, self.look, columns, tuple(rows), solid)

    def to_svg(self, theme: Theme = "auto", *, width: float | None = None) -> Svg:
        """Return the bars as a standalone SVG; by default 880 pixels wide, so that both numbers fit."""
        return super().to_svg(theme, width=width or 880.0)
