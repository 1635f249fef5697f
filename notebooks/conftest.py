"""Notebooks that run Spark need Java: without it they are skipped, as tests are."""

from __future__ import annotations

import pytest

from tests.conftest import need_java


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the notebook's kernel is started."""
    if "_spark_" in item.path.name:
        need_java()
