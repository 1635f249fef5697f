"""Upper bounds of truncated values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.metadata import incremented


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("abcd", "abce"),
        ("abc\U0010ffff", "abd"),
        ("abc\ud7ff", "abc\ue000"),
        ("\U0010ffff\U0010ffff", None),
        ("", None),
        (b"ab\xff", b"ac"),
        (b"\xff\xff", None),
    ],
)
def test_known_values(value: str | bytes, expected: str | bytes | None) -> None:
    assert incremented(value) == expected  # type: ignore[type-var]


@given(st.text(min_size=1, max_size=5), st.text(max_size=5))
def test_the_result_is_above_all_texts_that_begin_with_the_value(value: str, more: str) -> None:
    found = incremented(value)
    if found is not None:
        assert value + more < found and len(found) <= len(value)
    else:
        assert set(value) == {"\U0010ffff"}
