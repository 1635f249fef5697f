"""Plans against Spark and Java: the same rows; files and deletes at most Java's, and why each other delete is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.expressions import ALWAYS, NEVER, bind_filter, expression_sql
from iceexplore.planning import ScanPlan
from iceexplore.storage import canonical
from tests.helpers.oracle_filters import POOLS, Tree, columns_of, filters, to_pyiceberg
from tests.helpers.oracle_questions import askable, questions
from tests.helpers.sampling import one_of
from tests.helpers.tables.oracle_tables import COLUMNS, random_table, small_row_groups
from tests.spark import tables
from tests.spark.conftest import Warehouse
from tests.spark.planning.java_plans import JavaTask, java_plan
from tests.spark.session import TABLES, Spark

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

#: Those that have rows. (Importing `tables` is what registers them.)
WRITTEN = sorted(set(TABLES) - {tables.empty.__name__, tables.empty_unpartitioned.__name__, tables.emptied.__name__})
#: Filters of each table.
MANY = 9


@pytest.mark.parametrize("name", one_of(4, WRITTEN))
def test_plans_of_tables_that_spark_wrote(warehouse: Warehouse, name: str) -> None:
    t = ix.open(warehouse.path(name))
    rows = t.to_arrow()
    columns = askable(rows.schema, columns_of(t.schema))
    if (
        name == "orc_files"
    ):  # Java takes rows of a null struct for rows without nulls, as ORC counts them, and loses them
        columns = {n: base for n, base in columns.items() if "." not in n}
    plain = questions(rows, columns, MANY - 3)
    a, b, c = plain[0], plain[len(plain) // 2], plain[-1]
    trees: list[Tree] = [*plain, ("and", [a, ("not", b)]), ("or", [a, c]), ("not", ("or", [b, c]))]
    check(Spark(warehouse.session), name, t, columns, [None, *trees])


@pytest.mark.parametrize("version", one_of(2, ["v2", "v3", "v4 java"]))
@settings(max_examples=2, phases=(Phase.explicit, Phase.reuse, Phase.generate), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_plans_of_random_tables(warehouse: Warehouse, version: str, data: st.DataObject) -> None:
    # Spark has no time of day; Java compares uuids as two signed numbers each, and loses rows by their bounds.
    plain = sorted(set(COLUMNS) - {"t", "u"})
    with small_row_groups(), pytest.MonkeyPatch.context() as patch:
        for kind in ("int", "long"):  # Java loses rows of the lowest: `truncate` makes them one of the highest
            patch.setitem(POOLS, kind, [x for x in POOLS[kind] if x > -100])
        table = random_table(data.draw, version, plain)
    name = f"random_{next(NUMBERS)}"
    try:
        table.save(warehouse.path(name), data="copy")
    finally:
        table.close()
    t = ix.open(warehouse.path(name))
    columns = columns_of(t.schema)
    # Java's residuals of prefixes fail where a partition value is null.
    wanted = filters(t.schema).filter(lambda tree: "like" not in repr(tree))
    trees = [None, *(data.draw(wanted) for _ in range(MANY))]
    check(Spark(warehouse.session), name, t, columns, trees)


def _numbers() -> Iterator[int]:
    yield from range(1_000_000)


NUMBERS = _numbers()


def check(spark: Spark, name: str, t: ix.Table, columns: dict[str, str], trees: list[Tree | None]) -> None:
    """All of it, of several filters; Spark's rows are asked for at once."""
    wheres = [None if tree is None else to_pyiceberg(tree, columns) for tree in trees]
    texts = ["true" if w is None else expression_sql(bind_filter(t.schema, w)) for w in wheres]
    source = f"cat.db.{name}"
    if any(asks_for_default(t, tree) for tree in trees):  # filtered by Spark, not by Iceberg
        rows = spark.session.createDataFrame(spark.sql(f"SELECT *, _file, _pos FROM {source}").toArrow())
        rows.createOrReplaceTempView("read_rows")
    asked = (
        f"SELECT {i} AS q, _file, _pos FROM {'read_rows' if asks_for_default(t, tree) else source} WHERE {text}"
        for i, (tree, text) in enumerate(zip(trees, texts, strict=True))
    )
    found = places(spark.sql(" UNION ALL ".join(asked)).toArrow())
    java = spark.java(name)
    for i, (tree, where) in enumerate(zip(trees, wheres, strict=True)):
        ours = t.to_arrow(where, ["_file", "_pos"])
        mine = places(ours.add_column(0, "q", pa.repeat(pa.scalar(i), len(ours))))
        assert mine == Counter({row: n for row, n in found.items() if row[0] == i}), tree
        assert t.count(where) == len(ours), tree
        if not asks_for_default(t, tree):
            compare(t.plan(where), java_plan(spark.session, java, tree, columns), tree)


def asks_for_default(t: ix.Table, tree: Tree | None) -> bool:
    """Whether a filter names a column with an initial default: Java loses the rows of files that lack the column."""
    return any(repr(f.name) in repr(tree) for f in t.schema.fields if f.initial_default is not None)


def places(table: pa.Table) -> Counter[tuple[int, str, int]]:
    """Number of the question, file and position of each row."""
    return Counter(
        (q, canonical(file), pos) for q, file, pos in zip(*(c.to_pylist() for c in table.columns), strict=True)
    )


def compare(plan: ScanPlan, theirs: dict[str, JavaTask], tree: Tree | None) -> None:
    """Files, deletes of each and residuals against Java's."""
    tasks = plan.files
    matched = tasks.matched
    deletes = matched.deletes.entries.select(["location", "deletion_vector"]).to_pylist()
    keys = [(canonical(d["location"]), None if (v := d["deletion_vector"]) is None else v["offset"]) for d in deletes]
    listed = {(canonical(r["delete_file"]), r["data_file"] and canonical(r["data_file"])) for r in unmatched(plan)}
    for i, location in enumerate(map(canonical, build.to_pylist(tasks.files.entries["location"]))):
        assert location in theirs, f"Java prunes {location}: {tree}"
        java = theirs[location]
        vector = matched.vector[i].as_py()
        numbers = [*matched.positions[i].as_py(), *matched.equality[i].as_py(), *([] if vector is None else [vector])]
        mine = {keys[n] for n in numbers}
        assert mine <= java.deletes, tree
        for place, _ in java.deletes - mine:
            assert (place, location) in listed or (place, None) in listed, (
                f"{place} is not applied, nobody says why: {tree}"
            )
        residual = tasks.residuals[tasks.residual[i].as_py()]
        if unlike_java(tree):
            continue
        assert java.residual != "true" or residual == ALWAYS or null_is_least(tree, location), (tree, residual)
        assert (java.residual == "false") <= (residual == NEVER), (tree, residual)


def unlike_java(tree: Tree | None) -> bool:
    """Whether a filter may mean another thing to Java's residuals: null is unequal to all there, and unknown in SQL."""
    return any(word in repr(tree) for word in ("'!='", "'not in'", "'not'"))


def null_is_least(tree: Tree | None, location: str) -> bool:
    """Whether Java's residual may be true because it takes a null partition value as below all (``lt``, ``ltEq``)."""
    return "=null" in location and any(word in repr(tree) for word in ("'<'", "'<='"))


def unmatched(plan: ScanPlan) -> list[dict[str, Any]]:
    """Why deletes are not applied."""
    return [{str(k): v for k, v in row.items()} for row in plan.unmatched_deletes.to_dict("records")]
