"""One Spark session and its tables for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.spark.session import start, write


@dataclass(frozen=True)
class Warehouse:
    """Spark, and the folder of the tables that it wrote."""

    session: Any
    folder: Path

    def path(self, name: str) -> Path:
        """Where a table is."""
        return self.folder / "db" / name


@pytest.fixture(scope="session")
def warehouse(require_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """Every table of `tables.py` and `shapes.py`, written now."""
    folder = tmp_path_factory.mktemp("warehouse")
    session = start(folder)
    try:
        write(session)
        yield Warehouse(session, folder)
    finally:
        session.stop()
