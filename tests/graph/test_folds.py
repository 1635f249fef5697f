"""Folded manifests: how many files they have, where a part of the numbers is unknown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from iceexplore.graph._root import Removals
from iceexplore.graph.tree._folds import _files


@pytest.mark.parametrize(
    ("added", "removed", "expected"),
    [
        ([3, 4], {}, (7, "7 files")),
        ([3, 4], {"b": 2}, (5, "5 files")),
        ([3, None], {}, (3, "at least 3 files")),
        ([3, 4], {"b": None}, (7, "at most 7 files")),
        ([3, None], {"a": None}, (3, "about 3 files")),
        ([1], {}, (1, "1 file")),
    ],
)
def test_unknown_numbers_make_limits(
    added: list[int | None], removed: dict[str, int | None], expected: tuple[int, str]
) -> None:
    stats = [{"added_files_count": n, "existing_files_count": None if n is None else 0} for n in added]
    types = pa.struct([("added_files_count", pa.int64()), ("existing_files_count", pa.int64())])
    manifests = pa.table({"location": ["a", "b"][: len(added)], "manifest_stats": pa.array(stats, types)})

    class Given:
        def __bool__(self) -> bool:
            return bool(removed)

        def of(self, location: str) -> Any:
            return SimpleNamespace(entries=removed.get(location, 0))

    assert _files(manifests, cast(Removals, Given())) == expected
