"""What tests of several widgets share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def show() -> Iterator[Callable[..., Any]]:
    """Make widgets that have read what they show, and close them after the test."""
    made: list[Any] = []

    def make(kind: Any, *args: Any, **options: Any) -> Any:
        made.append(kind(*args, **options))
        assert made[-1].settle(60)
        return made[-1]

    yield make
    for widget in made:
        widget.close()
