"""Damaged documents: every function works, or refuses with an error of ours; none raises anything else."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iceexplore.commits import (
    add_snapshot,
    cherry_pick_summary,
    evolve_schema,
    evolve_spec,
    expire_snapshots,
    fast_forward,
    next_document,
    remove_ref,
    rollback,
    set_current_snapshot,
    set_properties,
    set_ref,
    set_sort_order,
    upgrade,
)
from iceexplore.errors import IceexploreError
from tests.commits.metadata_updates.document_table import DAY, IDENTITY, START_MS, committed, history, old_v1, snapshot

Json = dict[str, Any]

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 3, 2**31, 2**63, 2**200, 1.5, float("nan"), "", "x", "7", "long", "day", "struct"]),
    st.sampled_from([[], {}, [1], [None], [[]], [{}], {"a": 1}, {"type": "struct"}, {"snapshot-id": []}]),
)


def documents() -> list[Json]:
    """One of each version, with everything in it that a change looks at."""
    out = [committed(old_v1(), 1)]
    for version in (1, 2, 3, 4):
        document = history(version, 3, spec=(DAY, IDENTITY))
        document = set_ref(document, name="b", snapshot_id=2, min_snapshots_to_keep=1, max_ref_age_ms=9)
        document = set_ref(document, name="t", snapshot_id=1, type="tag")
        document = set_sort_order(document, fields=["ts"])
        names = '[{"field-id": 1, "names": ["id"]}]'
        document = set_properties(
            document, set={"schema.name-mapping.default": names, "history.expire.max-ref-age-ms": "5"}
        )
        document = evolve_schema(document, add={"p": "struct<x: list<int>>"}, identifier=["id"])
        document["statistics"] = [{"snapshot-id": 1, "statistics-path": "x", "blob-metadata": []}]
        out.append(committed(document, 4, ref=None, summary={"wap.id": "w"}))
    return out


DOCUMENTS = documents()


def damaged(data: st.DataObject, document: Json) -> Json:
    """A copy with one value, anywhere, replaced or gone."""
    out = copy.deepcopy(document)
    at: Any = out
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        inner = at[key]
        if isinstance(inner, (dict, list)) and inner and data.draw(st.integers(0, 5)):
            at = inner
            continue
        if data.draw(st.booleans()) and isinstance(at, dict):
            del at[key]
        else:
            at[key] = data.draw(JUNK)
        return out


@given(st.data())
def test_only_errors_of_ours(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(DOCUMENTS))
    document = damaged(data, whole)
    new = snapshot(whole, 9)
    for change in (
        lambda: add_snapshot(document, snapshot=new),
        lambda: add_snapshot(document, snapshot=new, ref="b"),
        lambda: next_document(document, previous_location="x", timestamp_ms=START_MS),
        lambda: set_ref(document, name="b", snapshot_id=1),
        lambda: remove_ref(document, name="t"),
        lambda: rollback(document, snapshot_id=1, timestamp_ms=0),
        lambda: rollback(document, older_than_ms=START_MS + 3_000),
        lambda: set_current_snapshot(document, snapshot_id=2),
        lambda: fast_forward(document, name="b", to="main"),
        lambda: cherry_pick_summary(document, snapshot_id=4),
        lambda: expire_snapshots(document, older_than_ms=START_MS + 9_000, now_ms=START_MS + 9_000),
        lambda: expire_snapshots(document, ids=[2]),
        lambda: set_properties(document, set={"a": "1"}, remove=["b"]),
        lambda: evolve_schema(document, add={"q": "int", "p.y": "int"}, rename={"id": "key"}, drop=["s"]),
        lambda: evolve_schema(document, update={"p.x.element": "long"}, move={"p": "first"}, doc={"ts": "when"}),
        lambda: evolve_spec(document, add=["bucket(4, id)"], remove=["ts_day"], rename={"s": "s"}),
        lambda: set_sort_order(document, fields=["id desc"]),
        *(lambda to=to: upgrade(document, to) for to in (1, 2, 3, 4)),
    ):
        before = copy.deepcopy(document)
        with contextlib.suppress(IceexploreError):
            change()
        assert repr(document) == repr(before)
