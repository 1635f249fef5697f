"""Statements that advice gives, run by Spark unchanged: they are accepted, and the plan becomes what was predicted."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import iceexplore as ix
from tests.helpers.tables import advice_table as lab
from tests.spark.conftest import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

SCHEMA = {"id": "long", "name": "string", "day": "date"}


@pytest.fixture
def in_database(warehouse: Warehouse) -> Iterator[Warehouse]:
    """Advice names a table as it is called in the current database."""
    session = warehouse.session
    before = session.catalog.currentCatalog(), session.catalog.currentDatabase()
    session.sql("USE cat.db")
    yield warehouse
    session.sql(f"USE `{before[0]}`.`{before[1]}`" if before[1] else f"USE `{before[0]}`")


@pytest.mark.parametrize(
    ("number", "where", "title"),
    [
        (1, "id between 1000 and 1600", "sort by id"),
        (2, "id = 77", "partition by bucket(16, id)"),
        (3, "day = date '2024-01-20'", "partition by days(day)"),
        (4, "name like 'user-000030%'", "partition by truncate(11, name)"),
        (5, "id between 1000 and 1600", "compact small files"),
    ],
)
def test_statements_do_what_they_say(in_database: Warehouse, number: int, where: str, title: str) -> None:
    values = {"id": "shuffled", "name": "prefix", "day": "days"}
    rows = pa.table({name: lab.column(of)[1] for name, of in values.items()})
    name = f"advice_{number}"
    with_files = lab.written(SCHEMA, rows)
    with_files.set_properties({"write.target-file-size-bytes": str(512 << 20)})
    with_files.save(in_database.path(name), data="copy")
    with_files.close()
    table = ix.open(in_database.path(name))
    plan = table.plan(where)
    advice = next(s for s in plan.advice().suggestions if s.title == title)
    for statement in advice.statements:
        in_database.session.sql(statement).collect()
    after = ix.open(in_database.path(name)).plan(where)
    assert advice.after is not None
    assert abs(len(after) - advice.after.files) <= 2 or 0.5 <= advice.after.files / len(after) <= 2
    assert len(after) < len(plan) <= 24
    assert ix.open(in_database.path(name)).count() == lab.ROWS
