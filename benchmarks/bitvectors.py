"""Measure the size of a manifest's deletion vector: the V4 proposal's "Bitvector compression benchmarking", repeated.

``python benchmarks/bitvectors.py`` prints the tables and writes ``results/bitvectors.md``. A vector of ``size`` bits
has ``density * size`` bits set. The proposal measures random positions and four methods. This benchmark adds clustered
and run-like positions, run-optimised roaring, Mumbling (the encoding of the V4 draft), a Parquet column of many
vectors, and times. Sizes are the mean of several vectors (``--repeat``) from a fixed seed (``--seed``); times are the
best of as many runs, on the largest vectors.
"""

from __future__ import annotations

import argparse
import io
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring

from iceexplore._figure_charts import DOCUMENT_BYTES, bitset, roaring
from iceexplore._figure_charts import METHODS as DOCUMENT_METHODS
from iceexplore.deletes import decode_mumbling, encode_mumbling

HERE = Path(__file__).parent
SIZES = (1_000, 10_000, 100_000, 1_000_000)
DENSITIES = (0.01, 0.05, 0.1, 0.2)
SHAPES = ("random", "clustered", "runs")
#: Vectors in one Parquet column: a root manifest with so many manifest DVs.
COLUMN = 100
#: Single vectors that a number of the proposal is compared with, where it differs.
SINGLES = 300


def positions(shape: str, size: int, density: float, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Sorted positions.

    ``random`` anywhere; ``clustered`` in a tenth of the vector, or in as much as they fill by half; ``runs`` of 50.
    """
    count = round(size * density)
    if shape == "random":
        return np.sort(random.choice(size, count, replace=False))
    if shape == "clustered":
        width = min(size, max(count * 2, size // 10))
        start = int(random.integers(0, size - width + 1))
        return np.sort(random.choice(width, count, replace=False)) + start
    # Runs of equal length in slots of equal width, each somewhere in its slot, so that no two touch unasked.
    runs = max(1, count // 50)
    lengths = np.full(runs, count // runs) + (np.arange(runs) < count % runs)
    slot = size // runs
    starts = np.arange(runs) * slot + random.integers(0, slot - lengths + 1)
    return np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])


def unraw(data: bytes) -> np.ndarray[Any, Any]:
    """The positions of a bitset."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little"))


METHODS: dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "Raw bitset": (bitset, unraw),
    "LZ4": (
        DOCUMENT_METHODS["LZ4"],
        lambda data: unraw(bytes(cramjam.lz4.decompress_block(data))),
    ),
    "ZSTD-3": (
        DOCUMENT_METHODS["ZSTD-3"],
        lambda data: unraw(bytes(cramjam.zstd.decompress(data))),
    ),
    "Roaring": (DOCUMENT_METHODS["Roaring"], lambda data: pyroaring.BitMap.deserialize(data)),
    "Roaring, runs": (lambda at: roaring(at, runs=True), lambda data: pyroaring.BitMap.deserialize(data)),
    "Mumbling": (lambda at: encode_mumbling(pyroaring.BitMap(at.astype(np.uint32))), decode_mumbling),
    "Roaring, runs + ZSTD-3": (
        lambda at: bytes(cramjam.zstd.compress(roaring(at, runs=True), level=3)),
        lambda data: pyroaring.BitMap.deserialize(bytes(cramjam.zstd.decompress(data))),
    ),
}
#: Methods whose positions are bounded.
LARGEST = {"Mumbling": 8192 * 256}


def parquet_column(vectors: Iterable[bytes]) -> int:
    """Bytes of a Parquet column that holds these vectors (ZSTD-3, no dictionary, no statistics), its pages alone."""
    sink = io.BytesIO()
    table = pa.table({"inline_content": pa.array(list(vectors), pa.binary())})
    pq.write_table(table, sink, compression="zstd", compression_level=3, use_dictionary=False, write_statistics=False)
    return int(pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.row_group(0).column(0).total_compressed_size)


def sizes(seed: int, repeat: int) -> Iterator[tuple[str, float, int, dict[str, float]]]:
    """For each shape, density and size: mean bytes by method, and of a vector in a Parquet column of many."""
    for shape in SHAPES:
        for density in DENSITIES:
            for size in SIZES:
                random = np.random.default_rng([seed, SHAPES.index(shape), round(density * 100), size])
                vectors = [positions(shape, size, density, random) for _ in range(repeat)]
                found = {n: statistics.mean(len(encode(v)) for v in vectors) for n, (encode, _) in METHODS.items()}
                many = [positions(shape, size, density, random) for _ in range(COLUMN)]
                column = parquet_column(roaring(v, runs=True) for v in many)
                found[f"Parquet column of {COLUMN}"] = column / len(many)
                yield shape, density, size, found


def times(seed: int, repeat: int) -> Iterator[tuple[str, float, str, float, float]]:
    """For each shape and density at the largest size: best encode and decode time by method, in ms."""
    for shape in SHAPES:
        for density in DENSITIES:
            at = positions(shape, SIZES[-1], density, np.random.default_rng([seed, 1]))
            for name, (encode, decode) in METHODS.items():
                data = encode(at)
                if list(decode(data)) != at.tolist():
                    raise SystemExit(f"{name} does not give back what it was given")
                yield shape, density, name, _best(encode, at, repeat), _best(decode, data, repeat)


def _best(work: Callable[[Any], object], what: Any, repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        work(what)
        taken.append(time.perf_counter() - start)
    return min(taken) * 1000


def report(seed: int, repeat: int) -> str:
    """The whole of ``results/bitvectors.md``."""
    found = list(sizes(seed, repeat))
    versions = ", ".join(f"{name} {version(name)}" for name in ("cramjam", "pyroaring", "pyarrow", "numpy"))
    lines = [
        "# The size of a manifest's deletion vector",
        "",
        "Made by `python benchmarks/bitvectors.py`; the top of that file describes how it measures. "
        f"Seed {seed}, mean of {repeat} vectors. {platform.system()} {platform.machine()}, {versions}.",
        "",
        "## The proposal's appendix, repeated",
        "",
        "Random positions; bytes, the proposal's number, ours divided by it.",
        "",
        "| method | density | " + " | ".join(f"{s:,}" for s in SIZES) + " |",
        "|---|--:|" + "--:|" * len(SIZES),
    ]
    off = []
    for method, by_density in DOCUMENT_BYTES.items():
        for density, expected in by_density.items():
            cells = []
            for size, theirs in zip(SIZES, expected, strict=True):
                ours = next(f[method] for s, d, n, f in found if (s, d, n) == ("random", density, size))
                cells.append(f"{ours:,.0f} / {theirs:,} ({ours / theirs:.2f})")
                if abs(ours / theirs - 1) > 0.05:
                    off.append((method, density, size, ours, theirs))
            lines.append(f"| {method} | {density} | " + " | ".join(cells) + " |")
    total = sum(len(v) for rows in DOCUMENT_BYTES.values() for v in rows.values())
    lines += ["", f"{total - len(off)} of the proposal's {total} numbers come out within 5 %.", ""]
    lines += [*_reasons(off, seed), ""]
    names = list(found[0][3])
    for shape in SHAPES:
        lines += [f"## Bytes a deleted position, {shape} positions", ""]
        lines += ["| density | size | " + " | ".join(names) + " |", "|--:|--:|" + "--:|" * len(names)]
        for s, density, size, by_name in found:
            if s == shape:
                least = min(by_name.values())
                cells = [
                    f"**{b / (size * density):.2f}**" if b == least else f"{b / (size * density):.2f}"
                    for b in by_name.values()
                ]
                lines.append(f"| {density} | {size:,} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [
        "## Time",
        "",
        f"{SIZES[-1]:,} bits; best of {repeat}, ms to encode / to decode. Decoding ends at positions for the bitset "
        "and its compressions, at a bitmap that can be asked for roaring and Mumbling. Encoding roaring begins with "
        "building the bitmap, position by position, through pyroaring. Mumbling is Python here; its times say nothing "
        "about the encoding.",
        "",
        "| positions | density | " + " | ".join(METHODS) + " |",
        "|---|--:|" + "--:|" * len(METHODS),
    ]
    rows: dict[tuple[str, float], list[str]] = {}
    for shape, density, _, encode, decode in times(seed, repeat):
        rows.setdefault((shape, density), []).append(f"{encode:.2f} / {decode:.2f}")
    lines += [f"| {shape} | {density} | " + " | ".join(cells) + " |" for (shape, density), cells in rows.items()]
    return "\n".join(lines) + "\n"


def _reasons(off: list[tuple[str, float, int, float, int]], seed: int) -> list[str]:
    """The numbers that differ, each beside what single vectors of this kind give: the proposal has one of each."""
    if not off:
        return []
    lines = ["The proposal has one vector of each kind. Those that differ, beside the range of single vectors:", ""]
    for method, density, size, ours, theirs in off:
        encode = METHODS[method][0]
        random = np.random.default_rng([seed, 2, size])
        singles = [len(encode(positions("random", size, density, random))) for _ in range(SINGLES)]
        inside = "inside" if min(singles) <= theirs <= max(singles) else "outside"
        lines.append(
            f"- {method}, density {density}, {size:,} bits: mean {ours:,.0f}, the proposal has {theirs:,}, which is "
            f"{inside} the range of {SINGLES} single vectors ({min(singles):,} to {max(singles):,})"
        )
    return lines


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=4, help="of the positions (default 4)")
    parser.add_argument("--repeat", type=int, default=5, help="vectors a mean, runs a best time (default 5)")
    args = parser.parse_args()
    text = report(args.seed, args.repeat)
    print(text)
    (HERE / "results" / "bitvectors.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
