"""Values in explanations, a column at a time, are what `human_value` makes of each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from iceexplore.metadata import human_value
from iceexplore.planning.evaluators._value_text import human_texts, shown
from tests.planning.evaluators.naive import POOLS, type_of
from tests.planning.evaluators.test_pruning import typed

MORE: dict[str, list[Any]] = {
    "double": [0.001, 0.00099, 123456.5, 999_999.0, 1e6, 9_999_999.0, 1e7, 1e-300, 3.0],
    "float": [0.1, 3.0, 16_777_216.0],
    "decimal(9,2)": [Decimal("100.00")],
    "timestamp": [1_709_164_800_500_000, 1_709_164_800_000_010, -62_135_596_800_000_001, 253_402_300_800_000_000],
    "timestamp_ns": [1_500_000_000, 1_709_164_800_000_000_001],
    "date": [-800_000, 3_000_000],
}


@pytest.mark.parametrize("kind", POOLS)
def test_texts_are_human_values(kind: str) -> None:
    values = [*POOLS[kind], *MORE.get(kind, ())]
    for some in (values, POOLS[kind], [None, values[0]], []):
        array = typed(kind, some)
        # A float's shortest text is of the float, not of the double that Python makes of it.
        wanted = [None if v is None else human_value(type_of(kind), "identity", v) for v in some]
        assert human_texts(array, type_of(kind)).to_pylist() == wanted


@pytest.mark.parametrize(("transform", "value"), [("year", -1), ("month", -1), ("day", -1), ("hour", -1), ("hour", 30)])
def test_texts_of_results(transform: str, value: int) -> None:
    found = human_texts(pa.array([value, None], pa.int32()), type_of("int"), transform)
    assert found.to_pylist() == [human_value(type_of("int"), transform, value), None]


def test_long_texts_are_cut_off_in_sentences() -> None:
    texts = shown(pa.array(["a", None, "x" * 100]), quoted=True).to_pylist()
    assert texts == ["'a'", None, "'" + "x" * 60 + "…'"]
