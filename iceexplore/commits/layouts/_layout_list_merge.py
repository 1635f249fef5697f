"""Manifests of a list written again without a change of the data (Java: ``RewriteManifests``)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from iceexplore.commits.layouts._manifest_list_base import ListBase
from iceexplore.commits.layouts._manifest_list_leaves import LeafContent, write_leaf
from iceexplore.errors import RuleError
from iceexplore.manifests import ContentType, EntryBatch, Status, concat_batches, live

__all__ = ["Merged", "merge_leaves"]


@dataclass
class Merged:
    """What became of a list: its rows, new manifests first, and how many manifests and entries took part."""

    rows: list[EntryBatch] = field(default_factory=list)
    replaced: int = 0
    entries: int = 0


def merge_leaves(base: ListBase, wanted: tuple[str, ...] | bool) -> Merged:
    """Merge the live entries of manifests of one content and spec into manifests of ``leaf_entries``, all EXISTING.

    Parameters
    ----------
    wanted
        Locations of manifests; ``True`` for those that hold fewer live entries than ``leaf_entries``, or entries that
        are not live, as long as that makes fewer manifests or smaller ones.

    Raises
    ------
    RuleError
        ``files-exist``: a location that the list does not have.
    """
    chosen = _worth_it(base) if wanted is True else _named(base, wanted or ())
    groups: dict[tuple[int, int], list[int]] = {}
    said = base.rows.entries.select(["content_type", "partition_spec_id", "manifest_stats"]).to_pylist()
    for i in chosen:
        groups.setdefault((said[i]["content_type"], said[i]["partition_spec_id"]), []).append(i)
    out = Merged(replaced=len(chosen))
    for (content_type, spec_id), ordinals in sorted(groups.items()):
        _merge(base, ordinals, "data" if content_type == ContentType.DATA_MANIFEST else "delete", spec_id, out)
    taken = set(chosen)
    for i in range(len(base.rows)):
        if i not in taken and any(_live_count(said[i]["manifest_stats"])):
            out.rows.append(base.rows.take([i]))
    return out


def _merge(base: ListBase, ordinals: list[int], content: LeafContent, spec_id: int, out: Merged) -> None:
    size = base.writer.options.leaf_entries
    columns = ["location", "snapshot_id", "sequence_number", "first_row_id"]
    sources = base.rows.entries.select(columns).take(pa.array(ordinals)).to_pylist()
    digest = hashlib.sha1(repr(sources).encode(), usedforsecurity=False).hexdigest()
    waiting = EntryBatch.empty()
    chunk = 0

    def write(batch: EntryBatch) -> None:
        nonlocal chunk
        key = f"merged:{content}:{spec_id}:{size}:{digest}:{chunk}"
        out.rows.append(write_leaf(base.writer, key, batch, content, spec_id))
        out.entries += len(batch)
        chunk += 1

    for ordinal in ordinals:
        stored = base.whole_leaf(ordinal)
        more = stored.filter(live(stored.entries)).with_columns(status=int(Status.EXISTING))
        waiting = concat_batches([waiting, more])
        while len(waiting) >= size:
            write(_rows(waiting, 0, size))
            waiting = _rows(waiting, size, len(waiting))
    if len(waiting):
        write(waiting)


def _rows(batch: EntryBatch, start: int, stop: int) -> EntryBatch:
    return batch.take(pa.array(np.arange(start, stop)))


def _live_count(stats: dict[str, int | None]) -> tuple[int, int]:
    """Added and existing entries; what is not known counts as one."""
    added, existing = stats["added_files_count"], stats["existing_files_count"]
    return (1 if added is None else added), (1 if existing is None else existing)


def _named(base: ListBase, wanted: tuple[str, ...] | bool) -> list[int]:
    locations = base.rows.entries["location"].to_pylist()
    names = () if isinstance(wanted, bool) else wanted
    missing = [n for n in names if n not in set(locations)]
    if missing:
        raise RuleError(
            "files-exist", f"not in the manifest list: {', '.join(missing[:5])}; look in inspect.manifests()"
        )
    return [i for i, location in enumerate(locations) if location in set(names)]


def _worth_it(base: ListBase) -> list[int]:
    size = base.writer.options.leaf_entries
    said = base.rows.entries.select(["content_type", "partition_spec_id", "manifest_stats"]).to_pylist()
    groups: dict[tuple[int, int], list[int]] = {}
    for i, row in enumerate(said):
        small = sum(_live_count(row["manifest_stats"])) < size
        if small or row["manifest_stats"]["deleted_files_count"]:
            groups.setdefault((row["content_type"], row["partition_spec_id"]), []).append(i)
    chosen = []
    for rows in groups.values():
        total = sum(sum(_live_count(said[i]["manifest_stats"])) for i in rows)
        fewer = -(-total // size) < len(rows)
        chosen += [i for i in rows if fewer or said[i]["manifest_stats"]["deleted_files_count"]]
    return sorted(chosen)
