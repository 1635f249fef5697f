"""`v.lineage` and `v.tree`: sources opened in folders, catalogs and by hand; what does not fit; every output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import text

import iceexplore as ix
from tests.helpers.hangs import ends
from tests.helpers.hostile import HOSTILE
from tests.storage.tables_on_disk import document, make_table
from tests.views.test_view_hostile import IN_HTML, IN_TEXT, hostile_view
from tests.views.view_documents import EXAMPLE_CREATED, cleaned, schema, version, view, write_view


def field(field_id: int, name: str, kind: str) -> dict[str, Any]:
    """A column of a schema."""
    return {"id": field_id, "name": name, "required": False, "type": kind}


TRIPS = [field(1, "day", "date"), field(2, "fare", "double"), field(3, "rider", "long")]


def table(folder: Path, *fields: dict[str, Any]) -> Path:
    """A table of these columns, without files."""
    schemas = [{"type": "struct", "schema-id": 0, "fields": list(fields)}]
    return make_table(folder, {"v1.metadata.json": document(str(folder), schemas=schemas)})


def view_of(folder: Path, sql: Any, *fields: dict[str, Any], **changes: Any) -> ix.View:
    """A view with this SQL and these columns."""
    made = view([version(1, sql, **changes)], schemas=[schema(1, *fields)], location=str(folder))
    return ix.open_view(write_view(folder, made))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse with the table db/trips."""
    table(tmp_path / "db" / "trips", *TRIPS)
    return tmp_path


SUMS = "SELECT day, sum(fare) AS fares FROM trips GROUP BY day"


def test_sources_are_opened_beside_the_view(warehouse: Path) -> None:
    v = view_of(warehouse / "db/daily", SUMS, field(1, "day", "date"), field(2, "total", "double"))
    found = v.lineage()
    (source,) = found.sources
    assert (str(source.reference), source.kind, source.reference.columns) == ("prod.db.trips", "table", ("day", "fare"))
    assert source.location == f"{warehouse}/db/trips/metadata/v1.metadata.json"
    assert found.problems == () and found.dialect == "spark"
    assert found.columns_arrow.to_pylist() == [
        {"column": "day", "table": "prod.db.trips", "source_column": "day", "certain": True, "expression": "day"},
        {"column": "total", "table": "prod.db.trips", "source_column": "fare", "certain": True,
         "expression": "SUM(fare) AS fares"},
    ]  # fmt: skip
    assert found.tables["table"].tolist() == ["prod.db.trips"] and len(found.columns) == 2
    assert "SUM(fare) AS fares" in repr(found) and "prod.db.trips.fare" in found._repr_html_()


@pytest.mark.parametrize("place", ["other/trips", "other.db/trips", "a/other/trips"])
def test_other_namespaces_are_found_in_folders_above(place: str, tmp_path: Path) -> None:
    table(tmp_path / place, *TRIPS)
    v = view_of(tmp_path / "a/db/daily", "SELECT day FROM other.trips", field(1, "day", "date"))
    assert [s.kind for s in v.lineage().sources] == ["table"]


def test_nothing_is_opened_if_not_wanted(warehouse: Path) -> None:
    v = view_of(warehouse / "db/daily", SUMS)
    before = len(list(v.reads))
    found = v.lineage(open_sources=False)
    assert [s.kind for s in found.sources] == ["not opened"] and len(list(v.reads)) == before


def test_a_star_is_what_the_table_has_or_what_the_views_schema_has(warehouse: Path) -> None:
    columns = [field(1, "day", "date"), field(2, "fare", "double"), field(3, "rider", "long")]
    v = view_of(warehouse / "db/all", "SELECT * FROM trips", *columns)
    for found, certain in ((v.lineage(), True), (v.lineage(open_sources=False), False)):
        assert [(o.name, [s.column for s in o.sources], o.certain) for o in found.outputs] == [
            (name, [name], certain) for name in ("day", "fare", "rider")
        ]
    assert "perhaps" in repr(v.lineage(open_sources=False))
    narrow = view_of(warehouse / "db/some", "SELECT * FROM trips", *columns[:2], field(9, "gone", "int"))
    assert narrow.lineage().outputs[2].sources[0].column == "rider"
    wide = view_of(warehouse / "db/more", "SELECT * FROM trips", *columns, field(9, "gone", "int"))
    assert wide.lineage().notes == ("The query returns 3 columns, but the view's schema has 4; not returned: gone.",)


def test_what_does_not_fit_is_named(warehouse: Path) -> None:
    v = view_of(warehouse / "db/daily", "SELECT day, fare, tip FROM trips", field(1, "day", "timestamp"),
                field(2, "fare", "double"), field(3, "tip", "double"))  # fmt: skip
    assert v.lineage().problems == (
        "daily: no source of the query has the column tip",
        "prod.db.trips: has no column tip, which the query reads",
        "prod.db.trips: column day is date, but day of the view is timestamp",
    )
    joined = view_of(warehouse / "db/joined", "SELECT t.tip, u.x FROM trips t JOIN nowhere u ON t.day = u.day")
    assert joined.lineage().problems == (
        "joined: t.tip is not a column of t",
        "prod.db.nowhere: not found beside the view; give catalog= or tables=",
    )
    (warehouse / "db/trips/metadata/v1.metadata.json").write_text("{")
    (source,) = v.lineage().sources
    assert source.kind == "failed" and "invalid JSON" in source.notes[0]


def test_views_inside_views_are_followed(warehouse: Path) -> None:
    view_of(warehouse / "db/inner", "SELECT day, fare FROM trips", field(1, "day", "date"), field(2, "fare", "double"))
    v = view_of(warehouse / "db/outer_one", "SELECT day FROM `inner` WHERE fare > 1", field(1, "day", "date"))
    found = v.lineage()
    assert [(r["table"], r["kind"], r["read_by"], r["columns"]) for r in found.tables_arrow.to_pylist()] == [
        ("prod.db.inner", "view", "outer_one", ["day", "fare"]), ("prod.db.trips", "table", "inner", ["day", "fare"])
    ]  # fmt: skip
    inner = found.sources[0].lineage
    assert inner is not None and inner.state.name == "inner" and found.problems == ()


def test_cycles_are_named(warehouse: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a"), ("itself", "itself")):
        view_of(warehouse / "db" / name, f"SELECT day FROM {other}", field(1, "day", "date"))
    for name, last in (("a", "prod.db.a"), ("itself", "prod.db.itself")):
        found = ix.open_view(warehouse / "db" / name).lineage()
        assert found.problems == (f"{last}: a cycle: the view reads itself",)
        assert "a cycle" in repr(ix.open_view(warehouse / "db" / name).tree())


def test_long_chains_of_views_end(warehouse: Path) -> None:
    view_of(warehouse / "db/v0", "SELECT day FROM trips", field(1, "day", "date"))
    for i in range(1, 25):
        view_of(warehouse / f"db/v{i}", f"SELECT day FROM v{i - 1}", field(1, "day", "date"))
    (problem,) = ix.open_view(warehouse / "db/v24").lineage().problems
    assert problem == "prod.db.v4: not followed: views are nested more than 20 levels deep"


def test_sources_by_hand(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    far = tmp_path_factory.mktemp("far")
    v = view_of(far / "x" / "daily", "SELECT t.day, u.day AS d FROM trips t JOIN lake.a.u u ON t.day = u.day")
    inner = view_of(far / "x" / "u", "SELECT day FROM trips", field(1, "day", "date"))
    trips = ix.open(warehouse / "db/trips")
    given: list[dict[str, Any]] = [
        {"db.trips": trips, "LAKE.a.u": inner},
        {"prod.db.trips": warehouse / "db/trips", "a.u": far / "x/u"},
        {"trips": str(warehouse / "db/trips"), "lake.a.u": inner.state},
    ]
    for tables in given:
        found = v.lineage(tables=tables)
        assert [s.kind for s in found.sources] == ["table", "view"]
    assert "does not exist" in v.lineage(tables={"trips": far / "nothing"}).problems[0]
    wrongs: list[Any] = [[], {1: "x"}, "x"]
    for wrong in wrongs:
        with pytest.raises(ix.OptionError, match="tables= takes tables and views by name"):
            v.lineage(tables=wrong)


def test_sources_in_a_catalog(warehouse: Path, tmp_path: Path) -> None:
    catalog = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("db")
    catalog.register_table("db.trips", f"file://{warehouse}/db/trips/metadata/v1.metadata.json")
    for name, sql in (
        ("daily", SUMS),
        ("weekly", "SELECT day FROM daily JOIN lost USING (day) JOIN far.db.t USING (day)"),
    ):
        view_of(tmp_path / "elsewhere" / name, sql)
        place = f"file://{tmp_path}/elsewhere/{name}/metadata/v1.metadata.json"
        with catalog.engine.begin() as connection:
            names = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
            values = f"'prod', 'db', '{name}', '{place}', 'VIEW'"
            connection.execute(text(f"INSERT INTO iceberg_tables ({names}) VALUES ({values})"))
    found = ix.open_view("db.weekly", catalog=catalog).lineage()
    assert [(str(s.reference), s.kind) for s in found.sources] == [
        ("prod.db.daily", "view"), ("prod.db.lost", "missing"), ("far.db.t", "not opened")
    ]  # fmt: skip
    assert found.sources[0].lineage is not None and found.sources[0].lineage.sources[0].kind == "table"
    assert any("no table db.lost in catalog prod" in problem for problem in found.problems)
    assert any("far.db.t: it is in another catalog, far" in problem for problem in found.problems)
    loose = ix.open_view(tmp_path / "elsewhere" / "daily")
    for given in (catalog, ix.open_catalog(catalog)):
        assert [s.kind for s in loose.lineage(catalog=given).sources] == ["table"]


def test_names_cannot_leave_the_warehouse(tmp_path: Path) -> None:
    table(tmp_path / "secret", *TRIPS)
    sql = "SELECT day FROM `../secret` a JOIN `..`.`secret` b JOIN `/` c JOIN `.` d JOIN `x/../../secret` e"
    v = view_of(tmp_path / "w/db/daily", sql, **{"default-namespace": ["..", ".."]})
    assert {s.kind for s in v.lineage().sources} == {"not opened"}


def test_which_dialect_is_followed(warehouse: Path) -> None:
    v = view_of(warehouse / "db/daily", {"nosuch": "?", "spark": "SELECT FROM", "trino": SUMS, "duckdb": "SELECT 1"})
    assert v.lineage().dialect == "trino" and v.lineage("DuckDB").sources == ()
    with pytest.raises(ix.OptionError, match=r"cannot be followed \(spark: its SQL is not valid spark"):
        v.lineage("spark")
    for wrong in ("presto", 5):
        with pytest.raises(ix.OptionError, match=r"it stores|one of"):
            v.lineage(wrong)  # type: ignore[arg-type]
    empty = ix.open_view(write_view(warehouse / "db/empty", {**view(), "versions": []}))
    with pytest.raises(ix.OptionError, match="it stores no SQL"):
        empty.lineage()
    assert "empty" in repr(empty.tree())


def test_the_tree(warehouse: Path) -> None:
    made = view([version(1, "SELECT 1"), version(2, {"spark": SUMS, "trino": "SELECT FROM"})], 1, 2)
    v = ix.open_view(write_view(warehouse / "db/daily", made))
    shown = v.tree().to_text().splitlines()
    assert [line.lstrip("│├└─ ").split(" · ")[0] for line in shown] == [
        "◇ daily", "● version 2 [current]", "▤ spark", "▦ prod.db.trips", "! ▤ trino"
    ]  # fmt: skip
    every = v.tree(versions="all").to_text()
    assert every.index("version 2") < every.index("version 1") and "2 of 2 versions" in v.tree(versions="all").to_svg()
    assert "version 2" not in repr(v.tree(versions=1)) and "version 2" not in repr(v.tree(versions=[v.versions[0]]))
    assert "version 1" in repr(v.at(1).tree())
    assert "prod.db.trips" in v.tree().to_mermaid() and "prod.db.trips" in v.tree().to_graphviz().source
    bundle = v.tree()._repr_mimebundle_()
    assert bundle["text/plain"] == repr(v.tree()) and "data:image/svg+xml" in bundle["text/html"]
    for wrong in (1.5, {"a": 1}, ["x"], object()):
        with pytest.raises((ix.OptionError, ix.SnapshotNotFoundError)):
            v.tree(versions=wrong)
    with pytest.raises(ix.SnapshotNotFoundError):
        v.tree(versions=9)


def test_large_trees_are_folded(tmp_path: Path) -> None:
    tables = ", ".join(f"t{i}" for i in range(50))
    v = ix.open_view(write_view(tmp_path / "v", view([version(i, f"SELECT 1 FROM {tables}") for i in range(1, 30)])))
    found = v.tree(versions="all", open_sources=False, max_nodes=60)
    assert len(found.scene.nodes) == 61 and found.scene.nodes[-1].label.startswith("+")
    many = view([version(i) for i in range(1, 5_001)])
    with ends():
        drawn = ix.open_view(write_view(tmp_path / "w", many)).tree(versions="all", open_sources=False)
    assert "of 5,000 versions" in drawn.scene.description


def test_the_example_of_the_early_draft(tmp_path: Path) -> None:
    v = ix.open_view(write_view(tmp_path / "common_view", cleaned(EXAMPLE_CREATED)))
    found = v.lineage()
    assert [str(s.reference) for s in found.sources] == ["iceberg.anorwood.base_tab"]
    assert [(o.name, o.sources[0].column) for o in found.outputs] == [("c1", "c1"), ("c2", "c2")]


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    v = hostile_view(HOSTILE[name], tmp_path / "v")
    quoted = HOSTILE[name].replace("`", "")[:5_000]
    sql = f"SELECT t.`{quoted}` AS x, `{quoted}`.y FROM `{quoted}`.`{quoted}` t"
    other = json.dumps({**v.metadata.raw, "versions": [version(2, sql), version(1, {HOSTILE[name]: "SELECT 1"})]})
    v = ix.open_view(write_view(tmp_path / "w", other))
    trees = [v.tree(), v.tree(versions="all")]
    texts = [repr(tree) for tree in trees]
    pages = [svg for tree in trees for svg in (tree.to_svg(), tree._repr_mimebundle_()["text/html"])]
    try:
        found = v.lineage()
    except ix.OptionError as error:
        texts.append(str(error))
    else:
        texts += [repr(found), repr(found.tables), repr(found.columns)]
        pages += [found._repr_html_(), found.columns.to_html()]
    texts += [part for tree in trees for part in (tree.to_mermaid(), tree.to_graphviz().source)]
    assert [sign for output in texts for sign in IN_TEXT if sign in output] == []
    pages = [page.replace('<img src="data:image/svg+xml;base64,', "") for page in pages]
    signs = [sign for sign in IN_HTML if sign not in ("<svg", "</style")]  # pictures have their own
    assert [sign for output in pages for sign in signs if sign in output] == []


@pytest.mark.parametrize(
    ("sql", "differs"),
    [
        ("SELECT fare FROM trips", True),
        ("SELECT t.fare AS fare FROM (SELECT * FROM trips) t", True),
        ("SELECT fare FROM trips UNION ALL SELECT fare FROM trips", True),
        ("WITH t AS (SELECT sum(fare) AS fare FROM trips) SELECT fare FROM t", False),
        ("SELECT fare FROM (SELECT CAST(fare AS bigint) AS fare FROM trips) t", False),
        ("SELECT fare FROM trips UNION ALL SELECT rider FROM trips", False),
    ],
)
def test_types_are_compared_only_for_columns_that_no_expression_changes(
    warehouse: Path, sql: str, differs: bool
) -> None:
    found = view_of(warehouse / "db/v", sql, field(1, "fare", "long")).lineage()
    assert bool(found.problems) is differs, found.problems
    assert found.outputs[0].unchanged is differs
