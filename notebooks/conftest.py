"""Notebooks that run Spark need Java: without it they are skipped, as tests are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import need_java

_CONF = Path(__file__).parents[1] / "tests" / "spark" / "conf"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Around the start of the notebook's kernel."""
    if "_spark_" not in item.path.name:
        return (yield)
    need_java()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "SPARK_CONF_DIR", str(_CONF))
        return (yield)
