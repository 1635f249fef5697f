"""Check leaf manifests: the problems found while reading them, the claims of their root, and their headers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from iceexplore.arrow import compute as pc
from iceexplore.doctor.examination._examination import Examination
from iceexplore.errors import Problem, Problems, problem
from iceexplore.manifests import ContentType, Manifest, ManifestReader, live
from iceexplore.storage import canonical

__all__ = ["check_leaves"]

_PARTS = frozenset({"entries", "partition", "stats"})
#: The modes of codes that concern a manifest as a whole.
_OF_MANIFESTS = {"file-missing": (2,), "file-truncated": (78,)}


def check_leaves(examination: Examination) -> None:
    """Report faults of every examined leaf manifest; statistics and partition tuples are decoded."""
    # A separate list of problems: parts of a manifest that are decoded later report their problems to this list.
    late = Problems()
    state = examination.state
    reader = ManifestReader(state.storage, state.metadata, late)
    looking = replace(examination, state=replace(state, reader=reader, problems=late))
    listed: dict[str, tuple[int, ...]] = {}
    bare = _Bare()
    for leaf, snapshots in looking.leaves(_PARTS):
        key = canonical(leaf.location)
        listed[key] = tuple(dict.fromkeys((*listed.get(key, ()), *snapshots)))
        for item in leaf.untrue_claims():
            late.add(item)
        for _ in leaf.stats_blocks(leaf.stat_field_ids()):
            pass  # decoding reports bounds the wrong way round, more nulls than values, values of the wrong length
        for item in _headers(leaf, state.metadata.requires_snapshot_parts):
            late.add(item)
        bare.see(leaf)
    roots = {canonical(root.location): (snapshot,) for snapshot, root in examination.roots.items()}
    known = {(f.code, f.where, f.field) for f in examination.findings}
    for item in late:
        if (item.code, item.where, item.field) in known:
            continue
        place = canonical(item.where.partition("#")[0])
        of = listed.get(place) or roots.get(place) or ()
        examination.report(item, snapshots=of, modes=_OF_MANIFESTS.get(item.code) if place in listed else None)
    for item in bare.problems():
        examination.report(item, snapshots=listed.get(canonical(item.where.partition("#")[0]), ()))


def _headers(leaf: Manifest, versioned: bool) -> Iterator[Problem]:
    """Check for keys that a manifest's header must have (spec, "Manifests"): other engines fail without them."""
    if leaf.is_root or not leaf.dialect or leaf.root_row is None:
        return
    keys = leaf.header.metadata
    v4 = leaf.dialect.has_root_manifest
    due = ("format-version", "content") if v4 else ("schema", "partition-spec", "partition-spec-id")
    if not v4 and versioned:
        due = (*due, "format-version", "content")
    lacking = [key for key in due if key not in keys]
    kinds = pc.fill_null(leaf.entries["content_type"], int(ContentType.DATA))
    deletes = pc.any(pc.not_equal(kinds, int(ContentType.DATA))).as_py()
    if deletes and not v4 and {"format-version", "content"} & set(lacking):
        text = (
            f"The header of a delete manifest lacks {', '.join(lacking)}: readers that rely on it treat the "
            "manifest as one of version 1, and its delete files as data files."
        )
        yield problem("header-version-missing", leaf.location, text, field="format-version")
    elif lacking:
        text = f"The manifest's header lacks {', '.join(lacking)}."
        yield problem("header-incomplete", leaf.location, text, field=lacking[0])
    schema: Any = None if v4 else leaf.header.json("schema")
    fields = schema.get("fields") if isinstance(schema, dict) else None
    names = {f.get("name") for f in fields if isinstance(f, dict)} if isinstance(fields, list) else set()
    if {"status", "data_file"} <= names:
        text = "The manifest's header has the schema of manifest entries under 'schema' instead of the table's."
        yield problem("file-corrupt", leaf.location, text, field="schema", severity="warning")


class _Bare:
    """Counts live data files without column bounds, to find writers that omit them in a table that has them."""

    def __init__(self) -> None:
        self._with = 0
        self._first: tuple[str, int] | None = None
        self._without = 0

    def see(self, leaf: Manifest) -> None:
        """Count one manifest."""
        data = pc.fill_null(pc.equal(leaf.entries["content_type"], int(ContentType.DATA)), True)
        count = pc.sum(pc.and_(live(leaf.entries), data)).as_py() or 0
        if not count:
            return
        if leaf.stat_field_ids():
            self._with += count
            return
        self._without += count
        self._first = self._first or (leaf.location, count)

    def problems(self) -> Iterator[Problem]:
        """Yield a problem if some manifests have column metrics and others have none."""
        if self._with and self._first is not None:
            text = (
                f"{self._without:,} data files have no column metrics at all, while {self._with:,} others of the table "
                "have: filters read every one of them."
            )
            yield problem("metrics-missing", self._first[0], text, field="125 lower_bounds", found=self._without)
