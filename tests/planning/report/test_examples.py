"""Example values and filters that are suggested to users."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.planning import examples_of

LAYOUTS: list[dict[str, Any]] = [
    {"format_version": 2}, {"format_version": 4}, {"format_version": 4, "flush_data_files": 0},
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS, ids=["v2", "v4 in the root", "v4 in leaves"])
def test_files_that_are_deleted_give_no_examples(layout: dict[str, Any]) -> None:
    table = ix.empty({"id": "long", "p": "string"}, partition_by="p", **layout)
    table.append(pd.DataFrame({"id": [1], "p": ["a"]}))
    kept = set(table.inspect.data_files()["file_path"])
    table.append(pd.DataFrame({"id": [999], "p": ["b"]}))
    table.delete_files(set(table.inspect.data_files()["file_path"]) - kept)
    found = examples_of(table._state)
    assert found.values == {1: ("1",), 2: ("'a'",)}
    assert found.filters
    for text in found.filters:
        assert table.count(text) == 1, text
    table.close()


def test_a_table_without_live_files_has_no_examples() -> None:
    table = ix.empty({"id": "long"}, format_version=2)
    assert examples_of(table._state).filters == ()
    table.append(pd.DataFrame({"id": [1]}))
    table.delete_files(table.inspect.data_files()["file_path"].tolist())
    assert examples_of(table._state).values == {}
    table.close()
