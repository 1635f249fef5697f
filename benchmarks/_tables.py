"""V4 tables made of generated v2 ones, kept in ``benchmarks/data``: the same files, in real V4 leaf manifests."""

from __future__ import annotations

from pathlib import Path

from _peer import Measured, clocked
from generate import DATA, Shape, generate

import iceexplore
from iceexplore.graph import live_manifests
from iceexplore.storage import CACHE
from iceexplore.table import Table

__all__ = ["forget", "locations", "shape_of", "v2_table", "v4_table"]


def shape_of(files: int, leaves: int) -> Shape:
    """A table without deletes: so many data files in so many manifests, ten columns with statistics."""
    return Shape(files=files, deletes=0, manifests=leaves)


def v2_table(files: int, leaves: int) -> Path:
    """The metadata JSON of the generated table, made if it is not there."""
    return generate(shape_of(files, leaves))


def v4_table(files: int, leaves: int) -> tuple[Path, Measured | None]:
    """The folder of the V4 table of the same files and history; and what rewriting the manifests took, if it was made.

    It is made by `Simulation.rewrite_manifests` and saved as a whole or not at all.
    """
    target = DATA / f"v4-{shape_of(files, leaves).name.removeprefix('v2-')}"
    if target.exists():
        return target, None
    simulation = iceexplore.open(v2_table(files, leaves)).simulate(
        format_version=4, leaf_entries=-(-files // leaves), seed=1
    )
    wall, cpu = clocked(simulation.rewrite_manifests)
    written = tuple((write.kind, write.length) for write in simulation.writes)
    simulation.save(target, data="refer")
    simulation.close()
    return target, Measured(wall, cpu, written)


def locations(table: Table, leaves: int, ordinals: slice) -> list[str]:
    """Locations of the files at some ordinals of each of the first leaves of a table."""
    root = table._state.root()
    assert root is not None
    found: list[str] = []
    for row in live_manifests(root)[:leaves]:
        found += table._state.reader.leaf(root, row).entries["location"][ordinals].to_pylist()  # type: ignore[arg-type]
    return found


def forget() -> None:
    """Empty the cache of decoded metadata: what comes is read from the files again."""
    limit = CACHE.max_bytes
    CACHE.max_bytes = 0
    CACHE.max_bytes = limit
