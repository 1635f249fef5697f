"""Every JSON file of the corpus: valid metadata gives no problem, invalid metadata gives one, the rest is refused."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import fastavro
import pytest

from iceexplore.errors import FormatError, IceexploreError, Problems, UnsupportedError
from iceexplore.metadata import (
    TableMetadata,
    Type,
    human_value,
    parse_schema,
    parse_spec,
    parse_table_metadata,
    partition_type,
    schema_to_json,
)

pytestmark = pytest.mark.corpus

#: Files that say by their name that they must be refused.
INVALID_NAMES = (
    "CurrentSchemaNotFound", "MissingLastPartitionId", "MissingPartitionSpecs", "MissingSchemas", "MissingSortOrder",
    "MissingSchemaType", "NoValidSchema", "UnsupportedVersion",
)  # fmt: skip
#: Metadata that breaks the spec without saying so, and the key; Java refuses all of them but the name mapping's.
BREACHES = {
    "duckdb/big_query_error/metadata/v0.metadata.json": "format-version",
    "iceberg-python/hist_bigquery_blmt/metadata/v0.metadata.json": "format-version",
    "duckdb/equality_delete_cross_partition/warehouse/ns/t/metadata/vfinal.metadata.json": "snapshot-id",
    "duckdb/equality_delete_extra_column/warehouse/ns/t/metadata/vfinal.metadata.json": "snapshot-id",
    "duckdb/name_mapping/warehouse_1/mydb/t1/metadata/v1.metadata.json": "schema.name-mapping.default",
    "duckdb/name_mapping/warehouse_1/mydb/t1/metadata/v2.metadata.json": "schema.name-mapping.default",
    "duckdb/timestamptz_ns/metadata/v1.metadata.json": "next-row-id",
}


def documents(corpus: Path) -> dict[str, Any]:
    out = {}
    for path in sorted(corpus.rglob("*.json*")):
        if path.suffix not in (".json", ".gz") or path.parent == corpus:
            continue
        data = path.read_bytes()
        try:
            out[path.relative_to(corpus).as_posix()] = json.loads(
                gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
            )
        except ValueError:  # storage's concern: truncated, other codecs, lines of JSON
            continue
    return out


def is_table(document: Any) -> bool:
    keys = document.keys() if isinstance(document, dict) else set()
    return {"format-version", "location"} <= keys and not {"view-uuid", "function-uuid"} & keys


def test_every_document(corpus: Path) -> None:
    found = documents(corpus)
    assert len(found) > 500
    clean, refused = 0, {}
    for name, document in found.items():
        problems = Problems()
        try:
            m = parse_table_metadata(document, name, problems)
        except IceexploreError as error:
            refused[name] = type(error)
            continue
        if name in BREACHES:
            assert BREACHES[name] in str([p.field for p in problems]), name
        elif any(part in name for part in INVALID_NAMES):
            assert any(p.severity == "error" for p in problems), name
            with pytest.raises(FormatError):
                parse_table_metadata(document, name, Problems(strict=True))
        else:
            assert not problems, f"{name}\n{problems!r}"
            clean += 1
            assert len(m.snapshots) == len(document.get("snapshots") or ()), name
            assert m.raw == document
    assert clean > 500
    assert set(BREACHES) <= set(found)
    # Refused are a version of the future, and what is no table metadata: views, functions, schemas, catalogs' answers.
    tables = {name: kind for name, kind in refused.items() if is_table(found[name])}
    assert set(tables.values()) == {UnsupportedError}
    assert all("UnsupportedVersion" in name for name in tables)
    assert {kind for name, kind in refused.items() if name not in tables} == {FormatError}


def test_every_schema_comes_back(corpus: Path) -> None:
    seen = 0
    for name, document in documents(corpus).items():
        schemas = document.get("schemas") if isinstance(document, dict) else None
        for json_ in schemas or ():
            schema = parse_schema(json_)
            assert parse_schema(schema_to_json(schema)) == schema, name
            seen += 1
    assert seen > 500


def test_invalid_names_are_all_there(corpus: Path) -> None:
    names = [n for n in documents(corpus) if any(part in n for part in INVALID_NAMES)]
    assert len(names) > 20


def test_a_schema_written_by_java_main(corpus: Path) -> None:
    json_ = json.loads((corpus / "iceberg-go/testdata/geo-schema-java-main.json").read_text())
    types = {f.name: str(f.type) for f in parse_schema(json_).fields}
    assert types == {
        "id": "long",
        "geom": "geometry(srid:3857)",
        "geog": "geography(srid:4269, karney)",
        "geog_default_algo": "geography(srid:4269)",
        "geog_default_crs": "geography(OGC:CRS84, karney)",
        "geom_default": "geometry",
        "geog_default": "geography",
    }
    assert schema_to_json(parse_schema(json_)) == json_


def test_words_are_those_in_the_paths_of_real_files(corpus: Path) -> None:
    """Writers put partition values into paths as ``name=value``, URL-encoded: Java, Rust, Python, DuckDB and Trino."""
    agreed: Counter[str] = Counter()
    for table, facts in json.loads((corpus / "expected.json").read_text()).items():
        path = corpus / table / (facts.get("metadata") or "none")
        if not path.is_file():
            continue
        data = path.read_bytes()
        document = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
        m = parse_table_metadata(document, table, Problems())
        for manifest in sorted((corpus / table).rglob("*.avro")):
            for transform, type_, value, segment in partition_values(manifest, m):
                assert human_value(type_, transform, value) == segment, (manifest, transform, value)
                agreed[transform.partition("[")[0]] += 1
    assert sum(agreed.values()) > 4000
    assert set(agreed) >= {"identity", "bucket", "truncate", "day", "hour", "year"}


def partition_values(manifest: Path, m: TableMetadata) -> Iterator[tuple[str, Type, Any, str]]:
    """Transform, type, value, and what the data file's path says, of every partition field that its path has."""
    with manifest.open("rb") as stream:
        try:
            reader = fastavro.reader(stream)
        except (KeyError, ValueError, EOFError):  # not Avro, or damaged: the manifests' tests
            return
        header = reader.metadata
        if "partition-spec" not in header:
            return
        spec = parse_spec(json.loads(header["partition-spec"]), int(header.get("partition-spec-id", "0")))
        types = [f.type for f in partition_type(spec, m).fields]
        for entry in reader:
            file = entry["data_file"]
            segments = [s.partition("=") for s in file["file_path"].split("/") if "=" in s]
            segment_values = {unquote_plus(name): unquote_plus(value) for name, _, value in segments}
            for field, type_, value in zip(spec.fields, types, file["partition"].values(), strict=True):
                if field.name in segment_values:
                    yield field.transform, type_, value, segment_values[field.name]
