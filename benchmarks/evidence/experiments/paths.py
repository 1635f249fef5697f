"""Relative paths: the same entries written with absolute and with relative locations."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.graph import live_manifests
from iceexplore.manifests import EntryBatch, write_manifest, write_manifest_list
from iceexplore.table import Simulation

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, require
from .._tables import table

__all__ = ["PATHS"]

_LOCATIONS = {
    "short": "s3://company-lake/warehouse/sales.db/orders",
    "long": (
        "s3://company-datalake-production-eu-central-1/unity-catalog/0b7c1a52-6d3e-4f51-9f0a-5b1f5f7a2c11/__storage"
        "/catalogs/4c8e2f0d-9a37-4a0c-8f7e-1d2b3c4d5e6f/tables/9f1d7c3b-2e48-4b6a-a5d0-7e8f9a0b1c2d"
    ),
}
_DRAFT: dict[str, Any] = {"format_version": 4, "dialect": "v4-draft"}
_V3, _AVRO, _PARQUET = "v3, Avro", "V4 draft, Avro", "V4 draft, Parquet"
_FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    _V3: ("avro", {"format_version": 3, "properties": {"commit.manifest-merge.enabled": "false"}}),
    _AVRO: ("avro", {**_DRAFT, "flush_data_files": 0}),
    _PARQUET: ("parquet", {**_DRAFT, "flush_data_files": 0}),
}
_LEAF, _ROOT = "leaf or manifest", "root or list"
_ONE, _EACH = "of one commit", "of a commit each"


def _measure(
    seed: int, *, files: Sequence[int], manifests: int, columns: int
) -> Iterator[tuple[Case, str, str, float]]:
    for kind, (_, options) in _FORMATS.items():
        for count in files:
            s = table(seed, columns, **options, **({} if kind == _V3 else {"leaf_entries": 1 << 20}))
            s.append(files=count, rows=1000)
            yield from _both(s, seed, _LEAF, kind)
            s.close()
        s = table(seed, columns, **options, **({} if kind == _V3 else {"leaf_entries": 2}))
        if kind == _V3:
            for _ in range(manifests):
                s.append(files=2, rows=1000)
        else:
            s.append(files=2 * manifests, rows=1000)
        yield from _both(s, seed, _ROOT, kind)
        s.close()


def _both(s: Simulation, seed: int, what: str, kind: str) -> Iterator[tuple[Case, str, str, float]]:
    """Yield the bytes of a manifest, a root or a list with each spelling of the same locations."""
    root = s.state.root()
    assert root is not None
    batch = EntryBatch.of(root) if what == _ROOT else leaf_of(s)[1]
    for names in (_ONE, _EACH):
        short = _names(what, len(batch), names, np.random.default_rng([seed, len(batch)]))
        for length, location in _LOCATIONS.items():
            size = [
                len(encoded(s, batch.with_columns(location=pa.array(given)), what, kind))
                for given in ([f"{location}/{name}" for name in short], short)
            ]
            at = case(
                metadata=what, entries=len(batch), names=names, location=f"{length} ({len(location)})", format=kind
            )
            yield at, "absolute", "bytes", size[0]
            yield at, "relative", "bytes", size[1]
            for name, total in zip(("absolute", "relative"), size, strict=True):
                yield at, f"{name}, for an entry", "bytes", total / len(batch)


def leaf_of(s: Simulation) -> tuple[str, EntryBatch]:
    """Return the location of the first leaf or manifest, and its entries with nulls for what readers inherit."""
    root = s.state.root()
    assert root is not None
    leaf = next(iter(s.state.reader.leaves(root, list(live_manifests(root)))))
    batch = EntryBatch.of(leaf)
    return leaf.location, batch.with_columns(sequence_number=None, file_sequence_number=None, first_row_id=None)


def _names(what: str, count: int, names: str, random: np.random.Generator) -> list[str]:
    """Return relative locations as Spark's and Java's writers make them."""

    def new() -> str:
        return str(uuid.UUID(bytes=random.bytes(16), version=4))

    one = new()
    ids = [one if names == _ONE else new() for _ in range(count)]
    if what == _ROOT:
        return [f"metadata/{x}-m{i if names == _ONE else 0}.avro" for i, x in enumerate(ids)]
    tasks = range(count) if names == _ONE else random.integers(0, 200, count).tolist()
    return [f"data/{task:05}-{task + 17}-{x}-0-00001.parquet" for task, x in zip(tasks, ids, strict=True)]


def encoded(s: Simulation, batch: EntryBatch, what: str, kind: str, relative_to: str | None = None) -> bytes:
    """Return entries as a manifest, a root or a list of this kind."""
    metadata, snapshot = s.metadata, s.snapshot
    assert snapshot is not None
    if kind == _V3 and what == _ROOT:
        return write_manifest_list(
            batch,
            metadata=metadata,
            dialect="v3",
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number or 0,
        )
    return write_manifest(
        batch,
        content="root" if what == _ROOT else "data",
        metadata=metadata,
        spec_id=metadata.default_spec_id,
        dialect="v3" if kind == _V3 else "v4-draft",
        manifest_format=_FORMATS[kind][0],
        relative_to=relative_to,
    )


def _saved(n: Numbers, what: str, kind: str, entries: str) -> list[tuple[float, float]]:
    """Return the share and the bytes for an entry that relative paths save: by names, then by location."""
    out = []
    for at in n.cases():
        names = dict(at)
        if (names["metadata"], names["format"], names["entries"]) == (what, kind, entries):
            old, new = (
                sum(r.value for r in n.rows if r.case == at and r.metric == metric)
                for metric in ("absolute", "relative")
            )
            seeds = len({r.seed for r in n.rows if r.case == at})
            require(new < old, "relative paths save bytes")
            out.append((1 - new / old, (old - new) / float(entries.replace(",", "")) / seeds))
    return out


def _range(n: Numbers, what: str, kind: str, entries: str) -> str:
    shares, sizes = zip(*_saved(n, what, kind, entries), strict=True)
    return f"{min(shares):.1%} to {max(shares):.1%} ({min(sizes):.1f} to {max(sizes):.1f} bytes for an entry)"


def _entries(n: Numbers, what: str) -> list[str]:
    return list(dict.fromkeys(dict(c)["entries"] for c in n.cases() if dict(c)["metadata"] == what))


def _lengths(n: Numbers) -> str:
    return " or ".join(x.partition("(")[2].rstrip(")") for x in n.choices("location"))


def _leaves(n: Numbers) -> Answer:
    many = _entries(n, _LEAF)[-1]
    shares = [share for share, _ in _saved(n, _LEAF, _PARQUET, many)]
    avro = [share for share, _ in _saved(n, _LEAF, _AVRO, many)]
    require(max(shares) < max(avro), "relative paths save less in Parquet than in Avro")
    longest = max(len(x) for x in _LOCATIONS.values())
    most = max(size for kind in (_PARQUET, _AVRO, _V3) for _, size in _saved(n, _LEAF, kind, many))
    require(most < longest / 10, "most of what paths repeat is compressed away")
    return Answer(
        f"{min(shares):.1%} to {max(shares):.1%}",
        f"With a table location of {_lengths(n)} characters, relative paths make a leaf of {many} files smaller by "
        f"{_range(n, _LEAF, _PARQUET, many)} in Parquet and by {_range(n, _LEAF, _AVRO, many)} in Avro; v3's manifest, "
        f"which may not have them, would be smaller by {_range(n, _LEAF, _V3, many)}. The rest of what paths repeat is "
        "compressed away.",
    )


def _roots(n: Numbers) -> Answer:
    few, count = _entries(n, _LEAF)[0], _entries(n, _ROOT)[0]
    roots = [share for share, _ in _saved(n, _ROOT, _PARQUET, count)]
    return Answer(
        f"{min(roots):.1%} to {max(roots):.1%}",
        f"Relative paths make a root of {count} leaves smaller by {_range(n, _ROOT, _PARQUET, count)} in Parquet and "
        f"by {_range(n, _ROOT, _AVRO, count)} in Avro, a leaf of {few} files by {_range(n, _LEAF, _PARQUET, few)} and "
        f"{_range(n, _LEAF, _AVRO, few)}; a v3 list of {count} manifests would be smaller by "
        f"{_range(n, _ROOT, _V3, count)}.",
    )


PATHS = Experiment(
    name="paths",
    title="Relative paths",
    method=(
        "The same entries are written twice, with absolute locations and with locations relative to the table's "
        "(apache/iceberg #15630): leaves and roots of the V4 draft, and for comparison v3's manifests and lists, where "
        "relative locations are not allowed. Names are like those of Spark's files and Java's manifests, with one UUID "
        "for all (files of one commit) or one for each (of a commit each). The codecs are the defaults: zstd in "
        "Parquet, deflate in Avro. What relative paths are for, moving a table, is not measured."
    ),
    measure=_measure,
    findings=(
        Finding("What do relative paths save?", _leaves),
        Finding("What do they save in roots and small leaves?", _roots, first=False),
    ),
    metrics=("absolute", "relative"),
    bars=("absolute", "relative"),
    quick={"files": (100,), "manifests": 10, "columns": 5},
    full={"files": (100, 10_000), "manifests": 100, "columns": 10},
    seeds=2,
)
