"""Views that Spark writes open here as Spark shows them, and views that are written here are queried by Spark.

Both share a catalog: Iceberg's JDBC catalog in Spark and PyIceberg's SQL catalog here, on one SQLite database.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.view.metadata import ViewMetadata as PyIcebergView

import iceexplore as ix
from tests.spark.conftest import Warehouse
from tests.views.view_documents import EXAMPLE_REPLACED, cleaned

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Views:
    """Spark with the catalog ``jdbc``, the same catalog for PyIceberg, and its warehouse."""

    spark: Any
    catalog: SqlCatalog
    folder: Path

    def sql(self, *statements: str) -> Any:
        """Run statements; the last one's data frame."""
        frame = None
        for statement in statements:
            frame = self.spark.sql(statement)
        return frame

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A query's rows, sorted."""
        return sorted(map(tuple, self.sql(query).collect()))

    def open(self, name: str) -> ix.View:
        """The view that Spark wrote, from the catalog."""
        return ix.open_view(name, catalog=self.catalog)


#: The statements that Spark runs, in this order; each view is tested by its name.
STATEMENTS = [
    "CREATE NAMESPACE jdbc.db",
    "CREATE NAMESPACE jdbc.other",
    "CREATE NAMESPACE jdbc.a",
    "CREATE NAMESPACE jdbc.a.b",
    "CREATE TABLE jdbc.db.trips (id INT, day DATE, fare DOUBLE, place STRUCT<city: STRING, zone: INT>) USING iceberg",
    "INSERT INTO jdbc.db.trips VALUES (1, DATE '2024-03-01', 2.5, named_struct('city', 'Bern', 'zone', 1)), "
    "(2, DATE '2024-03-01', 4.0, named_struct('city', 'Bern', 'zone', 2)), "
    "(3, DATE '2024-03-02', 1.0, named_struct('city', 'Chur', 'zone', 1))",
    "CREATE TABLE jdbc.other.cities (city STRING, people INT) USING iceberg",
    "INSERT INTO jdbc.other.cities VALUES ('Bern', 134000), ('Chur', 38000)",
    "USE jdbc.db",
    # created, replaced twice, with an identical query at the end, and properties changed
    "CREATE VIEW replaced COMMENT 'Trips by day' TBLPROPERTIES ('team' = 'me', 'drop' = 'it') AS "
    "SELECT day, count(*) AS trips FROM trips GROUP BY day",
    "CREATE OR REPLACE VIEW replaced AS SELECT day, count(*) AS trips, sum(fare) AS fares FROM trips GROUP BY day",
    "CREATE OR REPLACE VIEW replaced AS SELECT day, count(*) AS trips FROM trips GROUP BY day",
    "ALTER VIEW replaced SET TBLPROPERTIES ('team' = 'you', 'version.history.num-entries' = '5')",
    "ALTER VIEW replaced UNSET TBLPROPERTIES ('drop')",
    # column aliases and comments
    "CREATE VIEW named (d COMMENT 'The day, ''quoted'' and \"so\"', n, `c 1` COMMENT 'ü') AS "
    "SELECT day, id, place.city FROM trips",
    # renamed, also into another namespace
    "CREATE VIEW before_renaming AS SELECT id FROM trips",
    "ALTER VIEW before_renaming RENAME TO jdbc.other.renamed",
    # joins, CTEs, subqueries, window functions, unions, nested types
    "CREATE VIEW joined AS SELECT t.id, c.people FROM trips t JOIN jdbc.other.cities c ON t.place.city = c.city",
    "CREATE VIEW with_cte AS WITH d AS (SELECT day, max(fare) AS most FROM trips GROUP BY day) "
    "SELECT d.day, d.most FROM d WHERE d.most > (SELECT min(fare) FROM trips)",
    "CREATE VIEW windowed AS SELECT id, row_number() OVER (PARTITION BY day ORDER BY fare DESC) AS rank FROM trips "
    "UNION ALL SELECT people, 0 FROM jdbc.other.cities",
    "CREATE VIEW nested_types AS SELECT id, place, array(fare) AS fares, map(place.city, fare) AS by_city FROM trips",
    # views of views, in other namespaces
    "CREATE VIEW jdbc.a.b.of_views AS SELECT r.day, r.trips, w.most FROM jdbc.db.replaced r JOIN jdbc.db.with_cte w "
    "ON r.day = w.day",
    # other defaults than the view's own: the catalog of the session, and its namespace
    "USE jdbc.other",
    "CREATE VIEW jdbc.db.from_other AS SELECT city FROM cities WHERE people > 100000",
    "USE jdbc.a.b",
    "CREATE VIEW jdbc.other.from_nested AS SELECT day FROM of_views",
    "USE cat.db",
    "CREATE VIEW jdbc.db.from_catalog AS SELECT DISTINCT 1 AS one FROM jdbc.db.trips",
    "USE jdbc.db",
    # expired: of 13 versions the last ten are kept
    *(f"CREATE OR REPLACE VIEW expired AS SELECT id + {i} AS id FROM trips" for i in range(13)),
]


@pytest.fixture(scope="module")
def views(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    """Every view that Spark writes."""
    folder = tmp_path_factory.mktemp("jdbc")
    uri, spark = f"{folder}/catalog.db", warehouse.session
    for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{uri}",
        ".jdbc.schema-version": "V1",
        ".warehouse": str(folder),
        ".cache-enabled": "false",
    }.items():
        spark.conf.set(f"spark.sql.catalog.jdbc{key}", value)
    here = spark.catalog.currentCatalog()
    for statement in STATEMENTS:
        spark.sql(statement)
    catalog = SqlCatalog("jdbc", uri=f"sqlite:///{uri}", warehouse=f"file://{folder}")
    try:
        yield Views(spark, catalog, folder)
    finally:
        catalog.close()
        spark.catalog.setCurrentCatalog(here)


#: Each view with the catalog and the namespace that were current in Spark when it was created; None is the view's own.
DEFAULTS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("db.replaced", "db.named", "other.renamed", "db.joined", "db.with_cte", "db.windowed", "db.nested_types",
         "a.b.of_views", "db.expired"),
        (None, ("db",)),
    ),
    "db.from_other": (None, ("other",)),
    "other.from_nested": (None, ("a", "b")),
    "db.from_catalog": ("cat", ("db",)),
}  # fmt: skip
#: Properties that ``SHOW TBLPROPERTIES`` leaves out.
HIDDEN = ("comment", "engine_version", "create_engine_version", "spark.query-column-names")

TRIPS = {"day": "date", "trips": ("long", "Number of trips")}
BY_DAY = "SELECT day, count(*) AS trips FROM trips GROUP BY day"


# Written by Spark, opened here ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_spark_writes_opens_as_spark_shows_it(views: Views, name: str) -> None:
    v, shown = views.open(name), f"jdbc.{name}"
    assert v.version is not None and v.schema is not None
    assert list(v.problems) == [] and v.check().ok
    statement = views.sql(f"SHOW CREATE TABLE {shown}").collect()[0][0]
    assert statement.startswith(f"CREATE VIEW {shown} (") and statement.endswith(f"\nAS\n{v.sql('spark')}\n")
    rows = [tuple(r) for r in views.sql(f"DESCRIBE EXTENDED {shown}").collect()]
    end = rows.index(("", "", ""))
    assert [(f.name, f.doc or "") for f in v.schema.fields] == [(name, comment) for name, _, comment in rows[:end]]
    details = {key: value for key, value, _ in rows[end:]}
    assert (v.version.catalog_of(), v.version.namespace_of()) == DEFAULTS[name]
    assert details["Created By"] == v.properties["create_engine_version"] and details["Created By"].startswith("Spark")
    assert details.get("Comment", "") == v.properties.get("comment", "")
    assert v.version.engine == details["Created By"].lower()
    shown_properties = dict(views.sql(f"SHOW TBLPROPERTIES {shown}").collect())
    own = {"provider": "iceberg", "location": v.location, "format-version": "1"}
    assert shown_properties == own | {k: value for k, value in v.properties.items() if k not in HIDDEN}


def test_versions_that_spark_made(views: Views) -> None:
    v = views.open("db.replaced")
    assert [entry.version_id for entry in v.metadata.version_log] == [1, 2, 1], "the first query is identical: reused"
    assert [one.version_id for one in v.versions] == [1, 2] and v.sql() == BY_DAY
    assert v.at(2).sql() == BY_DAY.replace(" FROM", ", sum(fare) AS fares FROM")
    assert "column fares added" in " ".join(map(str, v.diff(1, 2).changes))
    assert len(v.inspect.metadata_log()) == 5, "one file for each change"
    assert dict(v.properties)["team"] == "you" and "drop" not in v.properties
    expired = views.open("db.expired")
    assert [one.version_id for one in expired.versions] == list(range(13, 3, -1))
    assert views.open("other.renamed").location.endswith("/db/before_renaming"), "only the name changes"
    assert {*ix.open_catalog(views.catalog).views["view"]} >= {*DEFAULTS}


def test_the_sources_of_views_that_spark_made(views: Views) -> None:
    found = views.open("a.b.of_views").lineage()
    assert list(found.problems) == []
    assert [str(source.reference) for source in found.sources] == ["jdbc.db.replaced", "jdbc.db.with_cte"]
    assert {source.kind for source in found.sources} == {"view"}
    for name, source in (("db.from_other", "other.cities"), ("other.from_nested", "a.b.of_views")):
        (one,) = views.open(name).lineage().sources
        assert str(one.reference) == source and one.kind in ("table", "view")


# The rules of Java's library, followed here ---------------------------------------------------------------------------


def states(v: ix.View) -> list[dict[str, Any]]:
    """The documents of a view's metadata files, the oldest first."""
    places = sorted(str(place) for place in Path(v.location).glob("metadata/*.json"))
    return [dict(ix.open_view(place).metadata.raw) for place in places]


def timeless(document: dict[str, Any]) -> dict[str, Any]:
    """A document without its times, which no second run repeats."""
    versions = [{k: value for k, value in one.items() if k != "timestamp-ms"} for one in document["versions"]]
    return {**document, "versions": versions, "version-log": [e["version-id"] for e in document["version-log"]]}


@pytest.mark.parametrize("name", ["db.replaced", "db.expired"])
def test_the_same_statements_give_the_same_documents(views: Views, name: str) -> None:
    files = states(views.open(name))
    s = ix.open_view(sorted(Path(files[0]["location"]).glob("metadata/*.json"))[0]).simulate()
    for before, after in pairwise(files):
        current = next(one for one in after["versions"] if one["version-id"] == after["current-version-id"])
        columns = next(one for one in after["schemas"] if one["schema-id"] == current["schema-id"])
        if before["version-log"] != after["version-log"]:
            sql = current["representations"][0]["sql"]
            s.replace(sql, columns, summary=current["summary"], properties=after["properties"])
        else:
            s.set_properties(
                after["properties"], remove=[k for k in before["properties"] if k not in after["properties"]]
            )
        assert timeless(dict(s.metadata.raw)) == timeless(after)


def test_random_operations_give_the_documents_of_javas_builder(views: Views) -> None:
    jvm = views.spark._jvm
    parser, builder = (jvm.org.apache.iceberg.view.ViewMetadataParser, jvm.org.apache.iceberg.view.ViewMetadata)
    random, refused = Random(20240301), 0

    def java(document: dict[str, Any]) -> Any:
        return parser.fromJson(json.dumps(document))

    def query() -> ix.commits.ViewQuery:
        names = ["a", "b", "c"][: random.randint(1, 3)]
        dialects = random.choice([["spark"], ["spark", "trino"], ["trino"], ["Spark"]])
        sql = f"SELECT {', '.join(names)} FROM t{random.randint(1, 2)}"
        return ix.commits.view_query(
            None, dict.fromkeys(dialects, sql), dict.fromkeys(names, random.choice(["int", "string"])),
            default_catalog=random.choice([None, "cat"]), default_namespace=random.choice([(), ("a", "b")]),
        )  # fmt: skip

    ours = ix.commits.new_view_document(query(), location="/v", view_uuid="u", timestamp_ms=1)
    for step in range(2, 160):
        made = builder.buildFrom(java(ours))
        what = random.random()
        try:
            if what < 0.6:
                new = query()
                one = ix.commits.new_view_document(new, location="/v", view_uuid="u", timestamp_ms=step)
                highest = max(v["version-id"] for v in ours["versions"])
                one["versions"][0]["version-id"] = one["current-version-id"] = highest + 1
                given = java(one)
                change = made.setCurrentVersion(given.currentVersion(), given.schema())
                mine = lambda: ix.commits.replace_view_version(ours, new, timestamp_ms=step)  # noqa: E731
            elif what < 0.75:
                to = random.choice([v["version-id"] for v in ours["versions"]])
                change = made.setCurrentVersionId(to)
                mine = lambda: ix.commits.rollback_view(ours, to, timestamp_ms=step)  # noqa: E731
            else:
                name = random.choice(["version.history.num-entries", "replace.drop-dialect.allowed", "k"])
                value = {"v": str(random.randint(1, 4)), "r": random.choice(["true", "TRUE", "false"])}.get(
                    name[0], "x"
                )
                if random.random() < 0.3:
                    change = made.removeProperties({name})
                    mine = lambda: ix.commits.set_view_properties(ours, None, [name])  # noqa: E731
                else:
                    change = made.setProperties({name: value})
                    mine = lambda: ix.commits.set_view_properties(ours, {name: value})  # noqa: E731
            theirs = json.loads(parser.toJson(change.build()))
        except Py4JJavaError as error:
            if "loss of view dialects" not in str(error.java_exception):
                raise
            refused += 1
            with pytest.raises(ix.RuleError, match="view-dialects-kept"):
                mine()
            continue
        now = mine()
        assert timeless({"properties": {}, **now}) == timeless({"properties": {}, **theirs}), step
        ours = now
    assert refused > 5 and len(ours["versions"]) > 1


# Written here, queried by Spark ---------------------------------------------------------------------------------------


def test_spark_queries_a_view_that_was_created_here(views: Views) -> None:
    v = ix.create_view(
        "db.ours", {"spark": BY_DAY, "trino": BY_DAY}, TRIPS, catalog=views.catalog, properties={"comment": "Öurs"}
    )
    assert v.version is not None and v.version.namespace_of() == ("db",), "the view's own namespace"
    rows = [(date(2024, 3, 1), 2), (date(2024, 3, 2), 1)]
    assert views.rows("SELECT * FROM jdbc.db.ours") == rows
    assert [tuple(r) for r in views.sql("DESCRIBE jdbc.db.ours").collect()] == [
        ("day", "date", ""), ("trips", "bigint", "Number of trips")
    ]  # fmt: skip
    assert "Öurs" in views.sql("SHOW CREATE TABLE jdbc.db.ours").collect()[0][0]
    with pytest.raises(Exception, match="loss of view dialects"):
        views.sql("CREATE OR REPLACE VIEW jdbc.db.ours AS SELECT 1 AS one")
    views.sql("ALTER VIEW jdbc.db.ours SET TBLPROPERTIES ('replace.drop-dialect.allowed' = 'true')")
    views.sql("CREATE OR REPLACE VIEW jdbc.db.ours AS SELECT id FROM jdbc.db.trips")
    v = v.refresh()
    assert v.at(1).version.engine == f"iceexplore {ix.__version__}" and v.dialects == ("spark",)  # type: ignore[union-attr]
    assert v.at(1).dialects == ("spark", "trino") and not list(v.problems)
    assert views.rows("SELECT * FROM jdbc.db.ours") == [(1,), (2,), (3,)]
    views.sql("ALTER VIEW jdbc.db.ours RENAME TO jdbc.db.theirs")
    assert views.open("db.theirs").uuid == v.uuid
    views.sql("DROP VIEW jdbc.db.theirs")
    with pytest.raises(ix.CatalogError, match=r"no view db\.theirs"):
        views.open("db.theirs")


def test_spark_queries_defaults_and_types_that_were_written_here(views: Views) -> None:
    place = {"type": "struct", "fields": [{"id": 5, "name": "city", "required": False, "type": "string"}]}
    columns = {"type": "struct", "schema-id": 7, "fields": [
        {"id": 3, "name": "Der Tag", "required": False, "type": "date", "doc": "'quoted' \"so\""},
        {"id": 4, "name": "place", "required": False, "type": place},
    ]}  # fmt: skip
    sql = "SELECT day, named_struct('city', place.city) FROM trips WHERE id = 3 -- the last"
    ix.create_view("a.b.deep", sql, columns, dialect="spark", default_namespace="db", catalog=views.catalog)
    assert views.rows("SELECT `Der Tag`, place.city FROM jdbc.a.b.deep") == [(date(2024, 3, 2), "Chur")]
    ix.create_view("db.far", "SELECT people FROM cities", {"n": "long"}, dialect="spark", default_catalog="jdbc",
                   default_namespace="other", catalog=views.catalog)  # fmt: skip
    assert views.rows("SELECT * FROM jdbc.db.far") == [(38000,), (134000,)], "INT is cast to the schema's long"


def test_spark_queries_a_simulation_with_its_history(views: Views, tmp_path: Path) -> None:
    s = views.open("db.replaced").simulate()
    s.replace("SELECT sum(fare) AS fares FROM trips", {"fares": "double"})
    assert views.rows("SELECT count(*) FROM jdbc.db.replaced") == [(2,)], "the view itself is never written"
    made = ix.create_view("db.tried", s, catalog=views.catalog)
    assert views.rows("SELECT * FROM jdbc.db.tried") == [(7.5,)] and [one.version_id for one in made.versions] == [
        1,
        2,
        3,
    ]
    ix.create_view("db.as_it_was", s.at(2), catalog=views.catalog)
    assert views.rows("SELECT trips, fares FROM jdbc.db.as_it_was") == [(1, 1.0), (2, 6.5)]
    saved = s.save(tmp_path / "saved")
    parser = views.spark._jvm.org.apache.iceberg.view.ViewMetadataParser
    document = dict(ix.open_view(saved.path).metadata.raw)
    assert json.loads(parser.toJson(parser.fromJson(json.dumps(document)))) == document
    assert PyIcebergView.model_validate(document).current_version_id == 3
    adopted = ix.commits.adopted_form(cleaned(EXAMPLE_REPLACED), "fa6506c3-7681-40c8-86dc-e36561f83385")
    assert json.loads(parser.toJson(parser.fromJson(json.dumps(adopted)))) == adopted, "Java reads the early draft's"
