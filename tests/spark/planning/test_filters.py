"""What a filter selects, against Spark asked in the SQL that the filter is exported as."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from iceexplore.expressions import bind_filter, expression_sql
from iceexplore.planning import evaluate
from tests.helpers.filter_texts import Meaning, filters
from tests.helpers.filter_types import NAMES, ROWS, SCHEMA, table_of
from tests.spark.conftest import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

#: Spark has no nanoseconds, and reads no time of day from Parquet.
FOREIGN = ("clock", "n", "nz")
NAMED = [n for n in NAMES if n not in FOREIGN]
#: Without the ends of 64 bits, which are no timestamps to Spark's reader.
PLAIN = [{**r, **{n: None if r[n] is None or abs(r[n]) > 2**53 else r[n] for n in ("t", "tz")}} for r in ROWS]
TABLE = table_of(PLAIN)


@pytest.fixture(scope="module")
def view(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The lab's rows in Spark, UUIDs as the text that Iceberg's tables show there."""
    table = TABLE.drop_columns([*FOREIGN, "u"])
    texts = [None if r["u"] is None else str(uuid.UUID(bytes=r["u"])) for r in PLAIN]
    table = table.append_column("u", pa.array(texts, pa.string())).append_column("row", pa.array(range(len(PLAIN))))
    path = Path(tmp_path_factory.mktemp("lab")) / "rows.parquet"
    pq.write_table(table, path)
    warehouse.session.read.parquet(str(path)).createOrReplaceTempView("lab")
    return warehouse.session


@settings(max_examples=6, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(several=st.lists(filters(NAMED), min_size=30, max_size=30))
def test_spark_selects_the_same(view: Any, several: list[tuple[str, Meaning]]) -> None:
    expressions = [bind_filter(SCHEMA, text) for text, _ in several]
    texts = [expression_sql(e) for e in expressions]
    asked = ", ".join(f"coalesce({sql}, false) as e{i}" for i, sql in enumerate(texts))
    found = view.sql(f"select {asked} from lab order by row").collect()
    for i, (expression, sql) in enumerate(zip(expressions, texts, strict=True)):
        assert evaluate(expression, TABLE).to_pylist() == [row[i] for row in found], sql
