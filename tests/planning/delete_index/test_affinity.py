"""Delete manifests of V4 that are affiliated with data manifests: read in one pass with them, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.manifests import Manifest, ManifestReader
from tests.helpers.sampling import one_of


def table(**layout: Any) -> Any:
    """20 data manifests of a column that is no partition, each with its own values and its delete manifest."""
    options = {"flush_data_files": 0, "flush_delete_files": 0, "unaffiliated_manifests": 0, **layout}
    s = ix.empty({"id": "long", "s": "string"}, format_version=4, seed=1, **options)
    for i in range(20):
        s.append(pa.table({"id": range(10 * i, 10 * i + 10), "s": [f"s{i:02}"] * 10}))
    for name in build.to_pylist(s.inspect.data_files.arrow()["file_path"]):
        s.row_delta(deletes={name: [1]})
    return s


@pytest.fixture(scope="module")
def affiliated() -> Any:
    return table()


def passes(t: Any, where: str | None, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[list[int]]]:
    """Plan, and return which content types each pass over leaves read."""
    found: list[list[int]] = []
    leaves = ManifestReader.leaves

    def watched(
        self: ManifestReader,
        root: Manifest,
        rows: Iterable[int] | None = None,
        parts: Iterable[str] = ("entries",),
        columns: Collection[int] | None = None,
    ) -> Iterator[Manifest]:
        order = None if rows is None else list(rows)
        found.append([] if order is None else build.to_pylist(root.entries["content_type"].take(pa.array(order))))
        return leaves(self, root, order, frozenset(parts), columns)

    monkeypatch.setattr(ManifestReader, "leaves", watched)
    plan = t.plan(where)
    monkeypatch.undo()
    return plan, found


def test_a_filter_that_leaves_one_leaf_opens_two_manifests(affiliated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(affiliated.inspect.manifests.arrow()) == 40
    plan, found = passes(affiliated, "s = 's07'", monkeypatch)
    assert found == [[3, 4]]  # of 40, in one pass
    assert len(plan.files) == 1 and plan.files.matched.vector.null_count == 0
    rows = build.to_pylist(affiliated.to_arrow(where="s = 's07'")["id"])
    assert rows == [70, *range(72, 80)]


def test_all_of_them_are_read_in_one_pass(affiliated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, found = passes(affiliated, None, monkeypatch)
    assert found == [[3, 4] * 20]
    assert plan.files.matched.vector.null_count == 0 and affiliated.to_arrow().num_rows == 180
    cold = [f.kind for f in affiliated.cost().plan.cold]
    assert cold.count("manifest") == 40


@pytest.mark.parametrize(
    ("policy", "equality"),
    one_of(
        2, [({"affinity": policy}, equality) for policy in ("none", "some", "all") for equality in (False, True)], 1
    ),
)
def test_rows_do_not_depend_on_affinity(policy: dict[str, Any], equality: bool) -> None:
    s = table(**policy)
    if equality:
        s.row_delta(equality={"id": [100, 101, 55]})
    gone = {10 * i + 1 for i in range(20)} | ({100, 55} if equality else set())
    assert sorted(build.to_pylist(s.to_arrow()["id"])) == sorted(set(range(200)) - gone)
    kept = sorted(build.to_pylist(s.to_arrow(where="s = 's05' or s = 's10'")["id"]))
    assert kept == sorted({*range(50, 60), *range(100, 110)} - gone)
