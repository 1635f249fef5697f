"""`ix.open_view`: from folders, files, URIs and zips; the newest metadata file; moved and damaged views; the card."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.storage import VIEW, parse_document
from tests.storage.tables_on_disk import document, make_table
from tests.views.view_documents import (
    EXAMPLE_CREATED,
    EXAMPLE_REPLACED,
    START,
    UUID,
    cleaned,
    schema,
    version,
    view,
    without,
    write_view,
)

QUERY = "SELECT day, count(*) AS trips\nFROM t\nGROUP BY day"


@pytest.fixture
def daily(tmp_path: Path) -> Path:
    """A view of two versions in a folder."""
    made = view([version(1), version(2, {"spark": QUERY, "trino": QUERY.lower()})], location=str(tmp_path / "daily"))
    return write_view(tmp_path / "daily", made)


def test_a_view_is_opened_from_a_folder_a_file_a_uri_and_a_zip(daily: Path, tmp_path: Path) -> None:
    file = daily / "metadata" / "v1.metadata.json"
    with zipfile.ZipFile(tmp_path / "daily.zip", "w") as archive:
        archive.write(file, "daily/metadata/v1.metadata.json")
    for source in (daily, str(daily), daily / "metadata", file, file.as_uri(), daily.as_uri(), tmp_path / "daily.zip"):
        v = ix.open_view(source)
        assert (v.name, v.uuid, v.format_version) == ("daily", UUID, 1)
        assert v.version is not None and v.version.version_id == 2
        assert v.dialects == ("spark", "trino") and v.sql("SPARK") == QUERY
        assert v.properties == {"comment": "Trips by day"}
        assert v.schema is not None and [f.name for f in v.schema.fields] == ["day", "trips"]
        assert not v.problems
        v.close()
    read = [one.location.rpartition("/")[2] for one in ix.open_view(file).reads if one.kind == "metadata"]
    assert set(read) == {"v1.metadata.json"}, "one metadata file, nothing else"


def test_metadata_is_decompressed_by_content(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(view()).encode())
    assert ix.open_view(write_view(tmp_path / "a", packed, "00001-x.gz.metadata.json")).version is not None
    misnamed = ix.open_view(write_view(tmp_path / "b", packed))
    assert any("is gzip, but its name has no .gz" in note for note in misnamed.state.notes)


def test_the_newest_metadata_file_is_found_as_for_tables(tmp_path: Path) -> None:
    two = view([version(1), version(2)])
    by_number = write_view(write_view(tmp_path / "a", view(), "00009-x.metadata.json"), two, "00010-y.metadata.json")
    assert ix.open_view(by_number).metadata.current_version_id == 2
    assert ix.open_view(by_number, version=9).metadata.current_version_id == 1
    hinted = write_view(write_view(tmp_path / "b", view()), two, "v2.metadata.json")
    (hinted / "metadata" / "version-hint.text").write_text("1")
    assert ix.open_view(hinted).metadata.current_version_id == 2, "the hint is where the search begins"
    # Names that show no order: the later version log wins.
    tied = write_view(write_view(tmp_path / "c", two, "00001-a.metadata.json"), view(), "00001-b.metadata.json")
    v = ix.open_view(tied)
    assert v.metadata.current_version_id == 2
    assert [p.code for p in v.problems] == ["metadata-ambiguous"] and "(version-log)" in v.problems.to_records()[0][
        "text"
    ]
    logged = view(**{"metadata-log": [{"timestamp-ms": START, "metadata-file": "/x/00001-a.metadata.json"}]})
    tied = write_view(write_view(tmp_path / "d", two, "00001-a.metadata.json"), logged, "00001-b.metadata.json")
    assert ix.open_view(tied).metadata.current_version_id == 1, "a metadata log names the older file"


def test_a_damaged_newest_file_gives_way_to_an_older_one(tmp_path: Path) -> None:
    folder = write_view(write_view(tmp_path / "v", view()), EXAMPLE_CREATED, "v2.metadata.json")
    v = ix.open_view(folder)
    (found,) = v.problems
    assert found.code == "file-corrupt" and "line 2, column" in found.text
    assert v.metadata_location.endswith("v1.metadata.json")
    with pytest.raises(ix.FormatError, match="line 2, column"):
        ix.open_view(folder, strict=True)


def test_a_moved_view_is_opened_where_it_is_now(daily: Path, tmp_path: Path) -> None:
    daily.rename(tmp_path / "elsewhere")
    v = ix.open_view(tmp_path / "elsewhere")
    assert v.moved == {str(tmp_path / "daily"): str(tmp_path / "elsewhere")}
    assert v.location == str(tmp_path / "daily") and not v.problems
    assert list(v.inspect.metadata_log()["is_open"]) == [True]
    write_view(tmp_path / "far", view(location="s3://bucket/db/daily"))
    assert ix.open_view("s3://bucket/db/far", moved={"s3://bucket/db": str(tmp_path)}).name == "far"


def test_the_only_view_below_a_folder_is_opened_and_several_are_listed(daily: Path, tmp_path: Path) -> None:
    make_table(tmp_path / "trips", {"v1.metadata.json": document("/t")})
    assert ix.open_view(tmp_path).name == "daily", "tables are not views"
    write_view(tmp_path / "weekly", cleaned(EXAMPLE_CREATED))  # an early draft, without view-uuid
    with pytest.raises(ix.MetadataNotFoundError) as found:
        ix.open_view(tmp_path)
    assert "1 table: trips and 2 views: daily, weekly. Open one of them, such as daily;" in str(found.value)
    (tmp_path / "only").mkdir()
    make_table(tmp_path / "only/a", {"v1.metadata.json": document("/t")})
    with pytest.raises(ix.MetadataNotFoundError, match=r"not a view; .* 1 table: a\. ix\.open opens one of them"):
        ix.open_view(tmp_path / "only")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ix.MetadataNotFoundError, match=r"no Iceberg view in .*: the folder is empty"):
        ix.open_view(tmp_path / "empty")


def test_open_and_open_view_name_each_other(daily: Path, tmp_path: Path) -> None:
    trips = make_table(tmp_path / "trips", {"v1.metadata.json": document("/t")})
    for source in (
        daily,
        daily / "metadata" / "v1.metadata.json",
        write_view(tmp_path / "w", cleaned(EXAMPLE_CREATED)),
    ):
        with pytest.raises(ix.UnsupportedError, match=r"metadata of a view, not of a table: ix\.open_view\(\.\.\.\)"):
            ix.open(source)
    for source in (trips, trips / "metadata" / "v1.metadata.json"):
        with pytest.raises(ix.UnsupportedError, match=r"metadata of a table, not of a view: ix\.open\(\.\.\.\)"):
            ix.open_view(source)
    assert ix.open_catalog(tmp_path).open_view("daily").name == "daily"
    assert sorted(ix.open_catalog(tmp_path).views["view"]) == ["daily", "w"], "an early draft is listed as a view"
    (tmp_path / "x.parquet").write_bytes(b"PAR1....")
    with pytest.raises(ix.FormatError, match="a Parquet file, not view metadata; open a view by its folder"):
        ix.open_view(tmp_path / "x.parquet")


@pytest.mark.parametrize("source", [None, 5, b"/x", ["a"], object(), ""])
def test_not_a_source(source: Any) -> None:
    with pytest.raises(ix.OptionError):
        ix.open_view(source)


def test_what_is_missing_is_named(tmp_path: Path, daily: Path) -> None:
    with pytest.raises(ix.MetadataNotFoundError, match=r"dialy does not exist; .* has daily"):
        ix.open_view(tmp_path / "dialy")
    with pytest.raises(ix.SnapshotNotFoundError, match="no metadata file of version 7"):
        ix.open_view(daily, version=7)
    with pytest.raises(ix.OptionError, match="properties=str"):
        ix.open_view(daily, properties="x")  # type: ignore[arg-type]


def test_the_example_as_written_is_an_error_with_line_and_column(tmp_path: Path) -> None:
    for text, line in ((EXAMPLE_CREATED, 2), (EXAMPLE_REPLACED, 5)):
        with pytest.raises(ix.FormatError, match=rf"invalid JSON: .* \(line {line}, column \d+\)") as found:
            ix.open_view(write_view(tmp_path / str(line), text))
        assert found.value.offset is not None and text.encode()[found.value.offset :].startswith(b"=>")
    no_notes = "\n".join(line.partition(" =>")[0] for line in EXAMPLE_REPLACED.splitlines())
    with pytest.raises(ix.FormatError, match=r"line 1[45], column \d+"):  # a trailing comma
        ix.open_view(write_view(tmp_path / "commas", no_notes))
    indented = json.dumps(cleaned(EXAMPLE_REPLACED), indent=1)
    no_commas = indented.replace("]\n    }\n   ]\n  }\n ],", "]\n    }\n  }\n ],")
    assert no_commas != indented
    with pytest.raises(ix.FormatError, match=r"invalid JSON: Expecting .*line \d+, column \d+"):  # a missing bracket
        ix.open_view(write_view(tmp_path / "bracket", no_commas))


def test_the_example_opens_once_it_is_cleaned(tmp_path: Path) -> None:
    v = ix.open_view(write_view(tmp_path / "common_view", cleaned(EXAMPLE_REPLACED)))
    assert v.metadata.early_draft and v.uuid is None and not v.problems
    assert v.version is not None and v.schema is not None
    assert (v.version.version_id, v.version.operation, v.version.engine) == (2, "replace", "spark-2.4.4")
    assert v.sql() == 'SELECT "count"(*) my_cnt\nFROM\n  base_tab\n'
    assert (v.version.catalog_of(), v.version.namespace_of()) == ("iceberg", ("anorwood",))
    assert [(f.name, str(f.type)) for f in v.schema.fields] == [("my_cnt", "long")]
    first = v.at(1)
    assert (first.sql("presto"), first.schema and first.schema.schema_id) == ("SELECT *\nFROM\n  base_tab\n", 1)
    assert "[early draft]" in repr(v) and "replace, spark-2.4.4" in repr(v)


def test_format_versions_above_1_are_refused(tmp_path: Path) -> None:
    folder = write_view(tmp_path / "v", view(**{"format-version": 2}))
    with pytest.raises(ix.UnsupportedError, match=r"format-version 2 of the view .* reads version 1, the only one"):
        ix.open_view(folder)


def problems_of(changed: dict[str, Any], folder: Path) -> list[tuple[str, str | None]]:
    """The codes and fields of the problems of a view, which is opened, shown and inspected."""
    v = ix.open_view(write_view(folder, changed))
    assert "Problems" in repr(v) and "Problems" in v._repr_html_()
    assert all(v.inspect[name].arrow().num_rows >= 0 for name in v.inspect)
    if any(p.severity == "error" for p in v.problems):
        with pytest.raises(ix.FormatError):
            ix.open_view(folder, strict=True)
    return [(p.code, p.field) for p in v.problems]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (without(view(), "view-uuid"), [("view-invalid", "view-uuid")]),
        (without(view(), "location", "schemas"),
         [("view-invalid", "location, schemas"), ("view-invalid", "schema-id")]),
        (without(view(), "version-log"), [("view-invalid", "version-log")]),
        (without(view(), "current-version-id"), [("view-invalid", "current-version-id")]),
        (view(**{"format-version": 0}), [("view-invalid", "format-version")]),
        (view(**{"format-version": "1"}), [("view-invalid", "format-version")]),
        (view(**{"current-version-id": 9}), [("view-invalid", "current-version-id"),
         ("view-log-differs", "version-id")]),
        ({**view(), "versions": []}, [("view-invalid", "versions")]),
        ({**view(), "versions": {}}, [("view-invalid", "versions")]),
        ({**view(), "versions": [5], "version-log": ["x"]}, [("view-invalid", "a version"),
         ("view-invalid", "version-id"), ("view-invalid", "version-log entry"),
         ("view-invalid", "timestamp-ms"), ("view-invalid", "version-id"),
         ("view-invalid", "versions")]),
        (view(properties={"a": 1}), [("view-invalid", "properties")]),
        (view(schemas=[{"type": "struct"}]), [("view-invalid", "fields"), ("view-invalid", "schema-id")]),
        (view(schemas=["x", schema(1)]), [("view-invalid", "schema")]),
        (view([version(1, **{"schema-id": 7})]), [("view-invalid", "schema-id")]),
        (view([version(1, representations=[])]), [("view-invalid", "representations")]),
        (view([version(1, representations=[{"sql": "x", "dialect": "spark"}])]), [("view-invalid", "type"),
         ("view-representation-unknown", "type")]),
        (view([version(1, representations=[{"type": "sql", "dialect": "spark"}])]), [("view-invalid", "sql")]),
        (view([version(1, representations=[{"type": "sql", "sql": 5, "dialect": "spark"}])]),
         [("view-invalid", "sql")]),
        (view([version(1, " ")]), [("view-invalid", "sql")]),
        (view([version(1, summary=["x"])]), [("view-invalid", "summary")]),
        (view([version(1, summary={"a": 1})]), [("view-invalid", "summary")]),
        (view([version(1, **{"default-namespace": "db"})]), [("view-invalid", "default-namespace")]),
        (view([version(1, **{"default-namespace": ["db", 5]})]), [("view-invalid", "default-namespace")]),
        (view([version(1, **{"storage-table": {"namespace": ["db"]}})]), [("view-invalid", "name")]),
        (view([version(1, **{"timestamp-ms": "now"})]), [("view-invalid", "timestamp-ms")]),
        (view([version(1), version(1)], 1), [("view-invalid", "version-id")]),
        (view(properties={"version.history.num-entries": "-3"}), [("view-invalid", "version.history.num-entries")]),
    ],
)  # fmt: skip
def test_damage_is_listed_and_everything_else_is_shown(
    changed: dict[str, Any], found: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    assert problems_of(changed, tmp_path / "v") == found


def test_problems_name_the_version(tmp_path: Path) -> None:
    v = ix.open_view(write_view(tmp_path / "v", view([version(1), version(2, **{"schema-id": 7})])))
    (found,) = v.problems
    assert found.where.endswith("metadata/v1.metadata.json#version 2")
    assert found.text == "version 2 names schema 7, which the metadata lacks"
    assert "✖ error: version 2 names schema 7" in repr(v)
    assert v.schema is None and v.at(1).schema is not None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"a": 1}', '"x"', "{" * 5_000, "[" * 100_000, "\xff", '{"view-uuid": ']
)
def test_other_json_is_our_error(text: str, tmp_path: Path) -> None:
    with pytest.raises((ix.FormatError, ix.MetadataNotFoundError)):
        ix.open_view(write_view(tmp_path / "v", text.encode("latin-1")))


def test_hostile_sizes_are_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(b'{"view-uuid": "' + b"x" * 5_000_000 + b'"}')
    folder = write_view(tmp_path / "v", bomb)
    with pytest.raises(ix.FormatError, match="more than 1,000,000 bytes"):
        ix.open_view(folder, properties={"iceexplore.max-metadata-bytes": "1000000"})
    crowded = b'{"view-uuid": "x", "versions": [' + b"[]," * 20_000_000 + b"[]]}"
    with pytest.raises(ix.MemoryLimitError, match="the view metadata would take more than"):
        parse_document(gzip.compress(crowded, 1), "f", kind=VIEW)


def test_a_thousand_versions_open(tmp_path: Path) -> None:
    many = [version(i, {"spark": QUERY, "trino": QUERY}, **{"schema-id": i}) for i in range(1, 1001)]
    made = view(many, schemas=[schema(i) for i in range(1, 1001)])
    folder = write_view(tmp_path / "v", made)
    v = ix.open_view(folder)
    shown = repr(v) + v._repr_html_()
    tables = [v.inspect[name].arrow().num_rows for name in v.inspect]
    assert "1,000 versions, 1,000 changes, last 8 shown" in shown and not v.problems
    assert tables == [1000, 1000, 2000, 2000, 1, 1]


def test_a_view_is_refreshed_and_pickled(daily: Path) -> None:
    v = ix.open_view(daily)
    write_view(daily, view([version(1), version(2), version(3)], location=str(daily)), "v2.metadata.json")
    assert v.refresh().metadata.current_version_id == 3 and v.metadata.current_version_id == 2
    copy = pickle.loads(pickle.dumps(v))
    assert copy.sql("trino") == v.sql("trino") and repr(copy) == repr(v)
    assert copy.refresh().metadata.current_version_id == 3


def test_which_sql_is_meant(daily: Path) -> None:
    v = ix.open_view(daily)
    with pytest.raises(ix.OptionError, match="in 2 dialects: give one of 'spark', 'trino'"):
        v.sql()
    with pytest.raises(ix.OptionError, match="in the dialect 'duckdb'; it stores 'spark', 'trino'"):
        v.sql("duckdb", translate=False)
    with pytest.raises(ix.OptionError, match="dialect=5"):
        v.sql(5)  # type: ignore[arg-type]
    assert v.at(1).sql() == "SELECT day, trips FROM t"


def test_a_materialized_view_is_marked(tmp_path: Path) -> None:
    named = {"storage-table": {"namespace": ["db"], "name": "daily_storage"}}
    v = ix.open_view(write_view(tmp_path / "v", view([version(1, **named)])))
    assert v.version is not None and v.version.storage_table == ("db", "daily_storage")
    assert "[materialized (proposal)]" in repr(v) and "db.daily_storage" in repr(v) and not v.problems


def test_a_loose_metadata_file_shows_the_versions(daily: Path) -> None:
    file = ix.open_file(daily / "metadata" / "v1.metadata.json")
    assert file.kind == "view metadata" and file.arrow()["version_id"].to_pylist() == [1, 2]
    assert "[view metadata]" in repr(file)


def test_views_of_the_corpus(corpus: Path) -> None:
    expected = {
        "ValidViewMetadata": [],
        "ViewMetadataInvalidCurrentSchema": ["view-invalid"],
        "ViewMetadataInvalidCurrentVersion": ["view-invalid", "view-log-differs"],
        "ViewMetadataMissingCurrentVersion": ["view-invalid"],
        "ViewMetadataMissingLocation": ["view-invalid"],
        "ViewMetadataMultipleSQLsForDialect": ["view-dialect-twice"],
        "ViewMetadataV1CurrentVersionNotFound": ["view-invalid", "view-log-differs"],
        "ViewMetadataV1MissingCurrentVersion": ["view-invalid"],
        "ViewMetadataV1MissingSchema": ["view-invalid", "view-invalid"],
        "ViewMetadataV1SchemaNotFound": ["view-invalid"],
        "ViewMetadataV1Valid": [],
        "view-metadata": [],
    }
    places = ("apache-iceberg/core_resources/org/apache/iceberg/view", "iceberg-rust/testdata/view_metadata",
              "iceberg-go/view_testdata")  # fmt: skip
    files = [file for place in places for file in sorted((corpus / place).glob("*.json"))]
    found = {}
    for file in files:
        if file.stem == "ViewMetadataUnsupportedVersion":
            with pytest.raises(ix.UnsupportedError, match="format-version 2"):
                ix.open_view(file)
        else:
            found[file.stem] = [p.code for p in ix.open_view(file).problems]
    assert found == expected, "what the projects' own tests accept is sound, and what they refuse is listed"
    sample = ix.open_view(corpus / "iceberg_book_jp" / "sample_view")
    assert sample.sql() == "SELECT sum(score) FROM demo.simple_table" and not sample.problems


def test_environment_is_not_changed(daily: Path) -> None:
    before = sorted(os.listdir(daily / "metadata"))
    ix.open_view(daily).inspect.metadata_log()
    assert sorted(os.listdir(daily / "metadata")) == before
