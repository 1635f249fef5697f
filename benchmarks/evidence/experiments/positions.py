"""The snapshot id of a manifest DV in roots of the V4 draft, against carrying the positions of its last change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.graph import live_manifests
from iceexplore.manifests import ContentType, EntryBatch, write_manifest
from iceexplore.table import Simulation

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, require
from .._tables import table, written

__all__ = ["POSITIONS"]

_V3 = "v3: manifests rewritten"
_DRAFT, _NO_ID, _CARRIED = "dv_snapshot_id, as in the draft", "neither", "positions carried"


def _measure(
    seed: int,
    *,
    leaves: Sequence[int],
    entries: int,
    commits: int,
    each: int,
    last: int,
    formats: Sequence[str] = ("parquet", "avro"),
) -> Iterator[tuple[Case, str, str, float]]:
    for count in leaves:
        for place in ("one leaf", "any leaf"):
            for manifest_format in formats:
                s = table(
                    seed, 5, format_version=4, dialect="v4-draft", manifest_format=manifest_format,
                    flush_data_files=0, leaf_entries=entries,
                )  # fmt: skip
                s.append(files=count * entries, rows=1000)
                at = {"leaves": count, "deletes_in": place, "root": f"V4 draft, {manifest_format.title()}"}
                names = _names(s)
                sizes: dict[str, list[int]] = {_DRAFT: [], _NO_ID: [], _CARRIED: []}
                known: dict[str, bytes] = {}
                for gone in _deletes(names, place, commits, each, np.random.default_rng([seed, count])):
                    s.delete_files(gone)
                    for form, data in _forms(s, known, manifest_format).items():
                        sizes[form].append(len(data))
                for form, found in sizes.items():
                    yield case(**at, root_has=form), "root, mean", "bytes", sum(found) / len(found)
                    yield case(**at, root_has=form), "last root", "bytes", found[-1]
                yield case(**at, root_has=_DRAFT), "manifest DVs in the last root", "DVs", len(known)
                newest = {snapshot.snapshot_id for snapshot in s.snapshots[-last:]}
                ids = _batch(s).entries.filter(pa.array(_is_dv(s)))["snapshot_id"].to_pylist()
                changed = sum(i in newest for i in ids)
                yield case(**at, root_has=_DRAFT), f"of them changed by the last {last} commits", "DVs", changed
                s.close()
            if count > min(leaves):
                continue  # v3 rewrites whole manifests: a few commits of the smallest table show it
            s = table(seed, 5, format_version=3, properties={"commit.manifest-merge.enabled": "false"})
            for _ in range(count):
                s.append(files=entries, rows=1000)
            for gone in _deletes(_names(s), place, last, each, np.random.default_rng([seed, count])):
                s.delete_files(gone)
            at = {"leaves": count, "deletes_in": place, "root": "v3, Avro"}
            yield case(**at, root_has=_V3), "written by a commit", "bytes", written(s, count)[0]
            s.close()


def _names(s: Simulation) -> list[list[str]]:
    root = s.state.root()
    assert root is not None
    held = s.state.reader.leaves(root, list(live_manifests(root)))
    return [[str(x) for x in build.to_pylist(m.entries["location"])] for m in held]


def _deletes(
    names: list[list[str]], place: str, commits: int, each: int, random: np.random.Generator
) -> Iterator[list[str]]:
    """Yield the files that each commit removes: of one leaf at a time, or of any."""
    orders = [random.permutation(held).tolist() for held in names]
    for turn in range(commits):
        leaf = turn % len(orders)
        yield [orders[leaf if place == "one leaf" else int(i)].pop() for i in random.integers(0, len(orders), each)]


def _batch(s: Simulation) -> EntryBatch:
    root = s.state.root()
    assert root is not None
    return EntryBatch.of(root)


def _is_dv(s: Simulation) -> list[bool]:
    return [kind == ContentType.MANIFEST_DV for kind in build.to_pylist(_batch(s).entries["content_type"])]


def _forms(s: Simulation, known: dict[str, bytes], manifest_format: str) -> dict[str, bytes]:
    """Return the newest root as it is, without the ids of manifest DVs, and with the last positions of each instead.

    Parameters
    ----------
    known
        The positions that the last change of each manifest DV deleted, by leaf; this commit's are added.
    """
    batch = _batch(s)
    entries = batch.entries
    locations = build.to_pylist(entries["location"])
    for location, positions in zip(locations, build.to_pylist(entries["deleted_positions"]), strict=True):
        if positions is not None:
            known[location] = positions
    ids = build.to_pylist(entries["snapshot_id"])
    ids = [None if is_dv else i for i, is_dv in zip(ids, _is_dv(s), strict=True)]
    kinds = build.to_pylist(entries["content_type"])
    carried = [known.get(x) if k == ContentType.DATA_MANIFEST else None for x, k in zip(locations, kinds, strict=True)]
    without = batch.with_columns(snapshot_id=pa.array(ids, pa.int64()))
    made = {
        _DRAFT: batch,
        _NO_ID: without,
        _CARRIED: without.with_columns(deleted_positions=pa.array(carried, pa.binary())),
    }
    metadata = s.metadata
    return {
        form: write_manifest(
            given, content="root", metadata=metadata, spec_id=metadata.default_spec_id, dialect="v4-draft",
            manifest_format=manifest_format, relative_to=metadata.location,
        )
        for form, given in made.items()
    }  # fmt: skip


def _at(n: Numbers, metric: str, form: str, leaves: str, place: str, root: str) -> float:
    return n.mean(metric, leaves=leaves, deletes_in=place, root=root, root_has=form)


def _bytes(n: Numbers) -> Answer:
    texts, ids, positions = [], [], []
    roots = [r for r in n.choices("root") if r.startswith("V4")]
    for place in n.choices("deletes in"):
        for root in roots:
            for leaves in n.choices("leaves"):
                base, with_id, carried = (
                    _at(n, "last root", form, leaves, place, root) for form in (_NO_ID, _DRAFT, _CARRIED)
                )
                dvs = _at(n, "manifest DVs in the last root", _DRAFT, leaves, place, root)
                require(base < with_id < 1.1 * base, "the id adds few bytes to a root")
                ids.append((with_id - base) / dvs)
                positions.append((carried - base) / dvs)
                texts.append((place, root, leaves, base, with_id, carried))
    require(min(positions) > 0, "carried positions add bytes to a root")
    place, root, leaves, base, with_id, carried = texts[0]
    v3 = n.mean("written by a commit", leaves=leaves, deletes_in=place, root="v3, Avro", root_has=_V3)
    return Answer(
        f"{min(ids):.1f} to {max(ids):.1f} bytes",
        f"dv_snapshot_id adds {min(ids):.1f} to {max(ids):.1f} bytes for a manifest DV to a root, positions that are "
        f"carried until the next change instead {min(positions):.1f} to {max(positions):.1f}: with {leaves} leaves and "
        f"deletes in {place} at a time, the last root in Parquet has {with_id:,.0f} and {carried:,.0f} bytes, with "
        f"neither {base:,.0f} (v3 writes {v3:,.0f} for a commit).",
    )


def _known(n: Numbers) -> Answer:
    leaves, root = n.choices("leaves")[-1], next(r for r in n.choices("root") if r.startswith("V4"))
    metric = next(r.metric for r in n.rows if r.metric.startswith("of them"))
    texts = []
    for place in n.choices("deletes in"):
        dvs, changed = (_at(n, m, _DRAFT, leaves, place, root) for m in ("manifest DVs in the last root", metric))
        texts.append((place, dvs, changed))
    require(texts[0][2] < texts[0][1], "the id tells which DVs changed lately")
    commits = metric.partition("last ")[2]
    return Answer(
        f"{texts[0][2]:.0f} of {texts[0][1]:.0f}",
        f"By dv_snapshot_id, the last root of {leaves} leaves tells that the last {commits} changed "
        + " and ".join(f"{changed:.0f} of {dvs:.0f} manifest DVs (deletes in {place})" for place, dvs, changed in texts)
        + "; without it, a reader compares all DVs with those of an older root, or reads the positions in each root "
        "between.",
    )


POSITIONS = Experiment(
    name="positions",
    title="dv_snapshot_id or carried positions",
    method=(
        "Commits of the V4 draft remove data files of one leaf at a time, or of any leaf, by manifest DVs; nothing is "
        "rewritten. In the draft, deleted_positions (6) are in the root of the commit that deleted them, and only "
        "dv_snapshot_id (5) stays, which apache/iceberg #16823 proposed not to set for them. Each root is written "
        "again by the same encoder without the ids, and with the last positions of each manifest DV carried instead. "
        "v3 has no manifest DVs: what its commits write, for comparison, with manifests rewritten and not merged."
    ),
    measure=_measure,
    findings=(
        Finding("What do dv_snapshot_id and carried positions cost?", _bytes),
        Finding("What does dv_snapshot_id tell?", _known, first=False),
    ),
    bars=("root, mean", "last root"),
    quick={"leaves": (5,), "entries": 10, "commits": 4, "each": 2, "last": 2, "formats": ("parquet",)},
    full={"leaves": (10, 50), "entries": 200, "commits": 20, "each": 10, "last": 5},
    seeds=2,
)
