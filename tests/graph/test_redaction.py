"""Redaction: random words are planted wherever a string or value can be, and every byte is searched for them."""

from __future__ import annotations

import base64
import copy
import datetime
import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.deletes import NewBlob, write_puffin
from iceexplore.errors import OptionError, Problems
from iceexplore.formats import block_bytes, encode_records, header_bytes
from iceexplore.graph import REDACTIONS
from iceexplore.graph.redaction._document import DocumentRedactor, to_json
from iceexplore.graph.redaction._puffin import redact_puffin
from iceexplore.graph.redaction._redactor import Redaction, redactions
from iceexplore.manifests import Redactor, redact_manifest
from iceexplore.metadata import parse_table_metadata
from tests.helpers import v4_files
from tests.helpers.hangs import ends
from tests.helpers.redaction_search import forms, found, layers, members, token
from tests.helpers.sampling import one_of
from tests.helpers.v4_files import F, column_stats

#: Ways to write a secret, recognized by its form or by the name it is assigned to.
CREDENTIALS: tuple[Callable[[str], str], ...] = (
    lambda t: f"s3://KEY:{t}@bucket/x",
    lambda t: f"s3://KEY:a/{t}@bucket/x",
    lambda t: f"https://host/a/x.parquet?X-Amz-Signature={t}&token={t}",
    lambda t: f"password: {t}",
    lambda t: f"run --password {t} now",
    lambda t: f"api-token={t}",
    lambda t: f'{{"app.secret": "{t}"}}',
)


def document() -> dict[str, Any]:
    """Table metadata with something in every place that the spec has."""
    field = {
        "id": 1,
        "name": "city",
        "required": False,
        "type": "string",
        "doc": "where",
        "initial-default": "Oslo",
        "write-default": "Bonn",
    }
    nested = {
        "id": 2,
        "name": "s",
        "required": False,
        "type": {
            "type": "struct",
            "fields": [
                {
                    "id": 3,
                    "name": "l",
                    "required": False,
                    "type": {"type": "list", "element-id": 4, "element": "fixed[3]", "element-required": False},
                },
                {
                    "id": 5,
                    "name": "m",
                    "required": False,
                    "type": {
                        "type": "map",
                        "key-id": 6,
                        "key": "string",
                        "value-id": 7,
                        "value": "decimal(9, 2)",
                        "value-required": True,
                    },
                },
                {"id": 8, "name": "g", "required": False, "type": "geometry(srid:4326)"},
            ],
        },
    }
    schema = {"type": "struct", "schema-id": 0, "identifier-field-ids": [1], "fields": [field, nested]}
    partition = {"name": "city_p", "transform": "identity", "source-id": 1, "field-id": 1000}
    blob = {
        "type": "apache-datasketches-theta-v1",
        "snapshot-id": 1,
        "sequence-number": 1,
        "fields": [1],
        "properties": {"ndv": "3", "most": "Oslo"},
    }
    return {
        "format-version": 3,
        "table-uuid": "5b5833c8-4b00-48d3-9a49-218217c67b85",
        "location": "s3://bucket/db/trips",
        "last-sequence-number": 1,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 8,
        "schema": schema,
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-spec": [partition],
        "partition-specs": [{"spec-id": 0, "fields": [partition]}],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "expressions": [{"expr-id": 9, "name": "city_e", "expr": {"transform": "bucket[4]", "source-id": 1}}],
        "sort-orders": [
            {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}],
            }
        ],
        "default-sort-order-id": 1,
        "properties": {
            "owner": "me",
            "write.parquet.compression-codec": "zstd",
            "write.data.path": "s3://bucket/data",
            "write.metadata.metrics.column.city": "counts",
            "schema.name-mapping.default": json.dumps([{"field-id": 1, "names": ["city", "town"]}]),
        },
        "current-snapshot-id": 1,
        "snapshots": [
            {
                "snapshot-id": 1,
                "sequence-number": 1,
                "timestamp-ms": 1_700_000_000_000,
                "schema-id": 0,
                "manifest-list": "s3://bucket/db/trips/metadata/snap-1.avro",
                "manifests": ["s3://bucket/db/trips/metadata/m.avro"],
                "key-id": "k1",
                "summary": {
                    "operation": "append",
                    "added-records": "3",
                    "engine-version": "3.5.1",
                    "changed-partition": "city=Oslo",
                    "note": "x",
                },
            }
        ],
        "snapshot-log": [{"timestamp-ms": 1_700_000_000_000, "snapshot-id": 1}],
        "metadata-log": [{"timestamp-ms": 1, "metadata-file": "s3://bucket/db/trips/metadata/v1.metadata.json"}],
        "refs": {"main": {"snapshot-id": 1, "type": "branch"}, "audit": {"snapshot-id": 1, "type": "tag"}},
        "statistics": [
            {
                "snapshot-id": 1,
                "statistics-path": "s3://bucket/s.puffin",
                "file-size-in-bytes": 9,
                "file-footer-size-in-bytes": 3,
                "key-metadata": "eA==",
                "blob-metadata": [blob],
            }
        ],
        "partition-statistics": [
            {"snapshot-id": 1, "statistics-path": "s3://bucket/p.parquet", "file-size-in-bytes": 9}
        ],
        "encryption-keys": [
            {"key-id": "k1", "encrypted-key-metadata": "eA==", "encrypted-by-id": "k0", "properties": {"a": "b"}}
        ],
        "next-row-id": 3,
    }


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a document, and to a key that is not there yet in each of its objects."""
    yield way
    if isinstance(value, dict):
        yield (*way, "+")
        for key, inner in value.items():
            yield from places(inner, (*way, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from places(inner, (*way, i))


def planted(value: Any, way: tuple[Any, ...], what: Any, key: str) -> Any:
    """A copy with something in a place."""
    if not way:
        return what
    if way == ("+",):
        return {**value, key: what}
    out = copy.copy(value)
    out[way[0]] = planted(value[way[0]], way[1:], what, key)
    return out


def redacted(value: dict[str, Any], *kinds: str) -> bytes:
    redaction = Redaction(redactions(kinds))
    return to_json(DocumentRedactor(redaction).table(value)).encode()


WAYS = [w for w in places(document()) if w]


def test_no_word_of_a_document_is_left() -> None:
    """In every place: as the value, as the key of an object, inside a list."""
    whole = document()
    for way in WAYS:
        word, key = token(way), token((way, "key"))
        for what in (word, [word], {word: word}, {"name": word, "type": word, "doc": word}):
            text = redacted(planted(whole, way, what, key), *REDACTIONS)
            assert word.encode() not in text and key.encode() not in text, (way, what)


def test_no_value_of_a_document_is_left() -> None:
    """Names are not among what ``values`` promises: of columns, fields, refs, and the keys of properties."""
    whole = document()
    for way in WAYS:
        if "name" in way or "refs" in way or way[-1] == "schema.name-mapping.default":
            continue
        word = token(way)
        text = redacted(planted(whole, way, word, "x"), "values")
        assert word.encode() not in text, way
    numbers = {"schemas": ("schemas", 0, "fields", 0, "initial-default"), "unknown": ("+",), "own": ("properties", "+")}
    for way in numbers.values():
        assert b"7391845520" not in redacted(planted(whole, way, 7391845520, "x"), "values"), way


@pytest.mark.parametrize("form", CREDENTIALS)
def test_no_credential_of_a_document_is_left(form: Callable[[str], str]) -> None:
    whole = document()
    for way in WAYS:
        word = token(way)
        text = redacted(planted(whole, way, form(word), form(token((way, "key")))), "credentials")
        assert word.encode() not in text and token((way, "key")).encode() not in text, way


@pytest.mark.parametrize("key", ["key", "pin", "hive.metastore.client.auth", "s3.secret-access-key", "sse.key"])
@pytest.mark.parametrize("what", ["WORD", ["WORD"], {"a": {"b": "WORD"}}, 7391845520])
def test_values_under_the_name_of_a_secret_are_removed(key: str, what: Any) -> None:
    whole = document()
    for way in (("properties", "+"), ("snapshots", 0, "summary", "+"), ("+",), ("snapshots", 0, "+")):
        text = redacted(planted(whole, way, what, key), "credentials")
        assert b"WORD" not in text and b"7391845520" not in text, way


def test_a_redacted_document_says_the_same_of_structure() -> None:
    before = parse_table_metadata(document(), "x", Problems())
    problems = Problems()
    after = parse_table_metadata(json.loads(redacted(document(), *REDACTIONS)), "x", problems)
    assert not list(problems)
    assert str(after.schema().fields[0].type) == "string"
    assert after.schema().by_id().keys() == before.schema().by_id().keys()
    assert [s.snapshot_id for s in after.snapshots] == [1]
    assert (after.snapshots[0].summary or {})["added-records"] == "3"
    assert after.properties["write.parquet.compression-codec"] == "zstd"
    assert len(after.refs) == 2 and "main" in after.refs
    mapping = json.loads(after.properties["schema.name-mapping.default"])
    assert mapping[0]["names"][0] == after.schema().fields[0].name, "names are the same everywhere"


def test_nesting_is_no_error(tmp_path: Path) -> None:
    kind: Any = "string"
    for i in range(300):
        kind = {"type": "struct", "fields": [{"id": 301 - i, "name": f"n{i}", "required": False, "type": kind}]}
    folder = tmp_path / "t" / "metadata"
    folder.mkdir(parents=True)
    made = document() | {
        "properties": {},
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "deep", "required": False, "type": kind}]}
        ],
    }
    del made["schema"]
    (folder / "v1.metadata.json").write_text(to_json(made))
    t = ix.open(tmp_path / "t")
    for redact in (("credentials",), True):
        bundle = t.bundle(tmp_path / "x.zip", redact=redact, overwrite=True)
        assert "metadata/v1.metadata.json" in bundle.members
        assert bundle.members["metadata/v1.metadata.json"] > 300 * 40
    nest: Any = "x"
    for _ in range(5000):
        nest = [{"a": nest}]
    assert to_json(nest).count("[") == 5000


# Locations ----------------------------------------------------------------------------------------------------------


def test_locations_keep_their_relations() -> None:
    it = Redaction(redactions(["paths"]), {"city"})
    table = it.location("s3://bucket/db/trips")
    file = it.location("s3://bucket/db/trips/data/city=Oslo/a.parquet")
    assert file.startswith(f"{table}/data/city=x") and file.endswith(".parquet")
    assert it.location("/db/trips/data/x.orc") == it.location("file:/db/trips/data/x.orc")[5:]
    assert it.location("s3a://bucket/db/trips")[4:] == table[3:]
    assert it.location("s3://b/v3.gz.metadata.json").endswith("/v3.gz.metadata.json")
    assert it.location("s3://b/00007-secret.metadata.json").rpartition("/")[2].startswith("00007-x") is False
    assert "secret" not in it.location("s3://b/00007-secret.metadata.json")
    assert it.member("data/city=Oslo/a.parquet") == file[len(table) + 1 :]
    plain = Redaction(redactions(["credentials"]))
    signed = [plain.location(f"s3://b/a.parquet?X-Amz-Signature={s}") for s in ("one", "two", "one")]
    assert signed[0] == signed[2] != signed[1] and "one" not in signed[0]
    assert plain.location("s3://b/city=Oslo/a.parquet") == "s3://b/city=Oslo/a.parquet"
    assert plain.location("abfss://box@host/a") == "abfss://box@host/a"
    for way in ("s3://b/s3://KEY:a/word@bucket/x", "/a/s3://KEY:a/word@b/x", "s3://b/s3%3A//KEY:a/word@b"):
        assert "word" not in plain.location(way), "a secret with a slash in it, inside a path"


def test_every_part_of_a_location_is_hidden() -> None:
    it = Redaction(redactions(["paths"]))
    word = token("part")
    for text in (
        f"s3://{word}/x",
        f"s3://a:{word}@b/x",
        f"{word}://b/x",
        f"/a/{word}/x",
        f"C:\\{word}\\x",
        f"file:///{word}",
        f"s3://b/x.{word}",
        f"s3://b/{word}=1/x",
        f"s3://b/v1-{word}.metadata.json",
        f"s3://b?{word}",
        f"s3://b/a#{word}",
        f"{word}",
        f"s3:{word}",
        f"metadata/{word}.avro",
        f"s3://b/1-{word}.gz.metadata.json",
        f"//{word}/x",
    ):
        assert word not in it.location(text), text


# Manifests, lists and roots -----------------------------------------------------------------------------------------

ONE = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "city", "required": False, "type": "string"}]}


def redactor(*kinds: str, given: dict[str, Any] | None = None) -> Redactor:
    it = Redaction(redactions(kinds))
    metadata = parse_table_metadata({**document(), **(given or {})}, "x", Problems())
    return Redactor(it, DocumentRedactor(it).header, metadata)


def _filled(fields: list[F], seed: str, words: list[str], form: Callable[[str], str]) -> dict[str, Any]:
    """A record with a word in every string and in all bytes."""
    out: dict[str, Any] = {}
    for f in fields:
        if isinstance(f.type, list) and f.type and isinstance(f.type[0], F):
            out[f.name] = _filled(f.type, f"{seed}.{f.name}", words, form)
        elif isinstance(f.type, list):
            out[f.name] = [1]
        elif f.type in ("string", "binary"):
            word = token(f"{seed}.{f.name}")
            words.append(word)
            out[f.name] = form(word) if f.type == "string" else form(word).encode()
        else:
            out[f.name] = {"date": 3, "timestamp": 3, "double": 1.0, "float": 1.0, "boolean": True}.get(f.type, 0)
            if f.type == "date":
                out[f.name] = datetime.date(2024, 1, 1)
    return out


def _unknown() -> list[F]:
    """Fields that no spec has: at the top, and inside a struct."""
    return [
        F(9001, "own_text", "string"),
        F(None, "own_bytes", "binary"),
        F(9003, "own", [F(9004, "inner", "string"), F(0, "status", "binary")]),
    ]


V4 = {
    "proposal": lambda: v4_files.proposal(
        [column_stats(1, "string", "string"), column_stats(9, "binary")], partition=[F(1000, "city_p", "string")]
    ),
    "table2": lambda: v4_files.proposal([column_stats(1, "string")], table2=True),
    "draft": lambda: v4_files.draft(
        [column_stats(1, "string")], [F(1000, "city_p", "string"), F(1001, "raw", "binary")]
    ),
}


@pytest.mark.parametrize("kind", V4)
@pytest.mark.parametrize("content", [0, 2, 3, 4])
@pytest.mark.parametrize("mode", ["all", "values", *one_of(3, range(len(CREDENTIALS)))])
def test_no_word_of_a_v4_manifest_is_left(kind: str, content: int, mode: str | int) -> None:
    form = CREDENTIALS[mode] if isinstance(mode, int) else str
    fields = [*V4[kind](), *_unknown()]
    words: list[str] = []
    row = _filled(fields, kind, words, form)
    row["type" if kind == "table2" else "content_type"] = content
    header: dict[str, Any] = {
        token("header"): form(token("comment")),
        "note": form(token("comment")),
        "schema": json.dumps({**ONE, "x": form(token("own"))}),
    }
    words += [token("comment"), token("own"), *([token("header")] if mode == "all" else [])]
    kinds = {"all": REDACTIONS, "values": ("values",)}.get(str(mode), ("credentials",))
    for write in (v4_files.parquet, v4_files.avro):
        data = write(fields, [row, row], **header)
        assert found(words, [("before", data)]), "they are where they could be found"
        made = redact_manifest(redactor(*kinds), data, "x", {})
        assert not found(words, [(kind, made)])
        assert redact_manifest(redactor(*kinds), made, "x", {}), "what is written can be read"


LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {
            "name": "partitions",
            "field-id": 507,
            "default": None,
            "type": [
                "null",
                {
                    "type": "array",
                    "element-id": 508,
                    "items": {
                        "type": "record",
                        "name": "r508",
                        "fields": [
                            {"name": "contains_null", "type": "boolean", "field-id": 509},
                            {"name": "lower_bound", "type": ["null", "bytes"], "field-id": 510},
                            {"name": "upper_bound", "type": ["null", "bytes"], "field-id": 511},
                            {"name": "own", "type": ["null", "string"], "field-id": 599},
                        ],
                    },
                },
            ],
        },
        {"name": "key_metadata", "type": ["null", "bytes"], "field-id": 519},
    ],
}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {
            "name": "data_file",
            "field-id": 2,
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "file_path", "type": "string", "field-id": 100, "doc": "WORD-doc"},
                    {"name": "file_format", "type": "string", "field-id": 101},
                    {
                        "name": "partition",
                        "field-id": 102,
                        "type": {
                            "type": "record",
                            "name": "r102",
                            "fields": [
                                {"name": "city_p", "type": ["null", "string"], "default": None, "field-id": 1000},
                                {"name": "raw", "type": "bytes", "field-id": 1001},
                                {
                                    "name": "flag",
                                    "type": {"type": "fixed", "name": "f40", "size": 40},
                                    "field-id": 1002,
                                },
                                {"name": "n", "type": "long", "field-id": 1003},
                            ],
                        },
                    },
                    {
                        "name": "lower_bounds",
                        "field-id": 125,
                        "type": [
                            "null",
                            {
                                "type": "array",
                                "logicalType": "map",
                                "items": {
                                    "type": "record",
                                    "name": "k126_v127",
                                    "fields": [
                                        {"name": "key", "type": "int", "field-id": 126},
                                        {"name": "value", "type": "bytes", "field-id": 127},
                                    ],
                                },
                            },
                        ],
                    },
                    {"name": "key_metadata", "type": ["null", "bytes"], "field-id": 131},
                    {"name": "referenced_data_file", "type": ["null", "string"], "field-id": 143},
                    {"name": "own_map", "type": {"type": "map", "values": "string"}, "field-id": 700},
                    {
                        "name": "own_list",
                        "type": {"type": "array", "items": ["null", "string", "bytes"]},
                        "field-id": 701,
                    },
                    {
                        "name": "own_enum",
                        "type": {"type": "enum", "name": "e", "symbols": ["a", "WORDenum"]},
                        "field-id": 702,
                    },
                    {"name": "own_number", "type": "long", "field-id": 703, "default": 0},
                ],
            },
        },
    ],
}


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy"])
@pytest.mark.parametrize("mode", ["all", "values", *range(len(CREDENTIALS))])
def test_no_word_of_an_older_manifest_is_left(codec: str, mode: str | int) -> None:
    form = CREDENTIALS[mode] if isinstance(mode, int) else str
    kinds = {"all": REDACTIONS, "values": ("values",)}.get(str(mode), ("credentials",))
    words = [token(i) for i in range(14)]
    w = [form(word) for word in words]
    fixed = (
        w[2].encode()[:40].ljust(40, b"\0") if isinstance(mode, str) else f"pin={words[2]}".encode().ljust(40, b"\0")
    )
    number = 7391845520
    entry = {
        "status": 1,
        "data_file": {
            "file_path": f"s3://b/{w[0]}" if isinstance(mode, str) else w[0],
            "file_format": w[1],
            "partition": {"city_p": w[3], "raw": w[4].encode(), "flag": fixed, "n": number},
            "lower_bounds": [{"key": 1, "value": w[5].encode()}, {"key": 77, "value": w[6].encode()}],
            "key_metadata": w[7].encode(),
            "referenced_data_file": w[8],
            "own_map": {w[9]: w[9]},
            "own_list": [w[10], w[10].encode(), None],
            "own_enum": "a",
            "own_number": number,
        },
    }
    schema = json.loads(json.dumps(ENTRY).replace("WORD-doc", w[11].replace('"', '\\"').replace("\\\\", "\\")))
    out = io.BytesIO()
    header = {
        w[12]: "1",
        "note": w[13],
        "partition-spec": json.dumps([{"name": "city_p", "field-id": 1000, "own": w[13]}]),
    }
    fastavro.writer(out, schema, [entry, entry], codec=codec, metadata=header)
    if mode == "values":
        words = [x for x in words if x != words[12]]  # the key of a header is a name
    made = redact_manifest(redactor(*kinds), out.getvalue(), "x", {})
    got = found(words, [("manifest", made)])
    assert not got
    if isinstance(mode, str):
        for layer in layers(made):
            assert b"7391845520" not in layer and _varint(number) not in layer
    record = next(iter(fastavro.reader(io.BytesIO(made))))
    assert record["status"] == 1
    if mode == "all":
        assert b"WORDenum" not in made and b"city_p" not in made and b"own_" not in made
    if isinstance(mode, str):
        assert record["data_file"]["key_metadata"] is None and record["data_file"]["lower_bounds"] == []


def _varint(number: int) -> bytes:
    number <<= 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("mode", ["all", *range(len(CREDENTIALS))])
def test_no_word_of_a_manifest_list_is_left(mode: str | int) -> None:
    form = CREDENTIALS[mode] if isinstance(mode, int) else str
    words = [token(("list", i)) for i in range(5)]
    w = [form(word) for word in words]
    summary = {"contains_null": True, "lower_bound": w[1].encode(), "upper_bound": w[2].encode(), "own": w[3]}
    row = {
        "manifest_path": w[0],
        "manifest_length": 5,
        "partition_spec_id": 0,
        "partitions": [summary],
        "key_metadata": w[4].encode(),
    }
    out = io.BytesIO()
    fastavro.writer(out, LIST, [row], codec="deflate")
    kinds = REDACTIONS if mode == "all" else ("credentials",)
    made = redact_manifest(redactor(*kinds), out.getvalue(), "x", {w[0]: 77})
    assert not found(words, [("list", made)])
    assert next(iter(fastavro.reader(io.BytesIO(made))))["manifest_length"] == 77


# Whole tables -------------------------------------------------------------------------------------------------------


def simulated(version: int, **options: Any) -> ix.Table:
    """Appends, a deletion vector or position deletes, and a removed file; partitioned by text, bucket and day."""
    s = ix.empty(
        {"id": "long", "city": "string", "d": "date"},
        partition_by=["city", "bucket(4, id)", "days(d)"],
        format_version=version,
        **options,
    )
    cities, day = [token("city 1"), token("city 2"), token("city 1")], datetime.date(2024, 5, 1)
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": cities, "d": [day] * 3})
    s.append(rows)
    s.append(rows)
    paths = s.inspect.data_files()["file_path"]
    if version > 1:
        s.row_delta(deletes={paths[0]: [0]})
    s.delete_files([paths[1]])
    s.branch(token("branch"))
    return s.table


CASES: list[tuple[int, dict[str, Any]]] = [(1, {}), (2, {}), (3, {})]
CASES += [
    (4, {"manifest_format": f, "partition_storage": p, "inline_dv_bytes": 0})
    for f in ("avro", "parquet")
    for p in ("derived", "source", "tuple")
]
CASES += [
    (4, {"manifest_format": "parquet", "inline_dv_bytes": 4096}),
    (4, {"dialect": "v4-java", "manifest_format": "parquet"}),
]


@pytest.mark.parametrize(("version", "options"), CASES)
def test_a_redacted_bundle_shows_the_same_structure(version: int, options: dict[str, Any], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = simulated(version, **options)
    words = [token("city 1"), token("city 2"), token("branch")]
    bundle = t.bundle(tmp_path / "x.zip", redact=True)
    assert not bundle.missing
    assert not found(words, members(tmp_path / "x.zip"))
    again = ix.open(tmp_path / "x.zip")
    names = [
        "files",
        "all_entries",
        "partitions",
        "manifests",
        "all_manifests",
        "snapshots",
        "delete_files",
        "refs",
        "all_files",
    ]
    for name in [*names, *(["content_entries"] if version == 4 else [])]:
        ours, theirs = getattr(again.inspect, name).arrow(), getattr(t.inspect, name).arrow()
        assert ours.num_rows == theirs.num_rows, name
        for count in {"record_count", "file_count", "status", "added_data_files_count"} & set(ours.column_names):
            assert sorted(map(str, ours[count].to_pylist())) == sorted(map(str, theirs[count].to_pylist())), name
    assert again.tree().to_text().count("\n") == t.tree().to_text().count("\n")
    assert len(again.plan().tasks) == len(t.plan().tasks) and len(again.plan().deletes) == len(t.plan().deletes)
    assert again.diff(t.snapshots[0].snapshot_id, t.snapshots[-1].snapshot_id).files_arrow.num_rows > 0
    assert not list(again.problems)
    again.close()


def test_credentials_in_locations_go_and_files_still_match(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1, 2, 3]})
    lab.delete("id = 2")
    word = token("signed")
    for file in (tmp_path / "t" / "metadata").glob("*.avro"):
        reader = fastavro.reader(io.BytesIO(file.read_bytes()))
        records = list(reader)
        for record in records:
            if "data_file" in record:
                inner = record["data_file"]
                inner["file_path"] += f"?X-Amz-Signature={word}&token={word}"
        out = io.BytesIO()
        own = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")} | {
            "api-token": word,
            "note": f"password={word}",
        }
        fastavro.writer(out, reader.writer_schema, records, codec="deflate", metadata=own)
        file.write_bytes(out.getvalue())
    t = ix.open(tmp_path / "t")
    assert word in str(t.inspect.files.arrow().to_pylist())
    bundle = t.bundle(tmp_path / "x.zip")
    assert not bundle.missing and not found([word], members(tmp_path / "x.zip"))
    again = ix.open(tmp_path / "x.zip")
    assert again.inspect.files.arrow().num_rows == t.inspect.files.arrow().num_rows


def test_delete_files_are_redacted_too_and_still_match(tmp_path: Path) -> None:
    for version in (2, 3):
        folder = token(("folder", version))
        lab = ix.create(
            tmp_path / folder, {"id": "long"}, format_version=version, properties={"write.delete.mode": "merge-on-read"}
        )
        lab.append({"id": [1, 2, 3]})
        lab.delete("id = 2")
        bundle = lab.bundle(tmp_path / "x.zip", deletes=True, redact=["credentials", "paths"], overwrite=True)
        assert not bundle.missing
        assert not found([folder], members(tmp_path / "x.zip"))
        again = ix.open(tmp_path / "x.zip")
        frame = again.inspect.position_deletes.arrow()
        assert frame.num_rows == lab.inspect.position_deletes.arrow().num_rows == 1
        data_files = again.inspect.data_files.arrow()["file_path"].to_pylist()
        assert set(frame["file_path"].to_pylist()) <= set(data_files)
        assert not list(again.problems)
        again.close()
    with pytest.raises(OptionError, match="contain values"):
        lab.bundle(tmp_path / "x.zip", deletes=True, redact="values", overwrite=True)


def test_statistics_keep_their_footers_alone(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1, 2, 3]})
    words = [token(("puffin", i)) for i in range(4)]
    blob = NewBlob("apache-datasketches-theta-v1", words[0].encode(), (1,), 1, 1, {"ndv": "3", "most": words[1]})
    data, _ = write_puffin([blob, NewBlob(words[3], b"x" * 9)], properties={"note": words[2]}, created_by="me")
    (tmp_path / "t" / "metadata" / "s.puffin").write_bytes(data)
    newest = max((tmp_path / "t" / "metadata").glob("*.metadata.json"), key=lambda p: p.stat().st_mtime_ns)
    whole = json.loads(newest.read_bytes())
    snapshot = whole["current-snapshot-id"]
    place = f"{whole['location']}/metadata/s.puffin"
    size = struct.unpack("<i", data[-12:-8])[0] + 16
    whole["statistics"] = [
        {
            "snapshot-id": snapshot,
            "statistics-path": place,
            "file-size-in-bytes": len(data),
            "file-footer-size-in-bytes": size,
            "blob-metadata": [],
        }
    ]
    newest.write_text(json.dumps(whole))
    t = ix.open(tmp_path / "t")
    bundle = t.bundle(tmp_path / "x.zip", redact=True)
    assert not bundle.missing
    assert not found(words, members(tmp_path / "x.zip"))
    again = ix.open(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as z:
        name = next(n for n in z.namelist() if n.endswith(".puffin"))
        inside = z.read(name)
    stated = again.metadata.statistics[0]
    assert stated.file_size_in_bytes == len(inside)
    assert struct.unpack("<i", inside[-12:-8])[0] + 16 == stated.file_footer_size_in_bytes
    footer = json.loads(inside[-12 - struct.unpack("<i", inside[-12:-8])[0] : -12])
    assert footer["blobs"][0]["properties"]["ndv"] == "3"


def test_what_cannot_be_redacted_stays_out_and_is_named(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1, 2, 3]})
    broken = next((tmp_path / "t" / "metadata").glob("*-m0.avro"))
    broken.write_bytes(broken.read_bytes()[:-9] + token("tail").encode())
    bundle = ix.open(tmp_path / "t").bundle(tmp_path / "x.zip", redact=True)
    assert [Path(p).name for p in bundle.missing] == [broken.name]
    assert "Left out" in repr(bundle)
    assert not found([token("tail"), broken.name], members(tmp_path / "x.zip"))


def test_many_entries_take_little_time_each(tmp_path: Path) -> None:
    """Most fields are numbers, for which nothing is called."""
    entry = {
        "status": 1,
        "data_file": {
            "file_path": "s3://b/x.parquet",
            "file_format": "PARQUET",
            "partition": {"city_p": "a", "raw": b"", "flag": bytes(40), "n": 1},
            "lower_bounds": [],
            "key_metadata": None,
            "referenced_data_file": None,
            "own_map": {},
            "own_list": [],
            "own_enum": "a",
            "own_number": 1,
        },
    }
    out = io.BytesIO()
    fastavro.writer(out, ENTRY, (entry for _ in range(20_000)), codec="deflate")
    with ends(20):
        redact_manifest(redactor(*REDACTIONS), out.getvalue(), "x", {})


# What readers pass over ---------------------------------------------------------------------------------------------


def _with_more(where: str, word: str) -> bytes:
    """A manifest without a secret, and one where readers do not look."""
    schema = {"type": "record", "name": "manifest_file", "fields": LIST["fields"][:3]}
    plain = fastavro_block(schema, {"manifest_path": "s3://b/x.avro", "manifest_length": 5, "partition_spec_id": 0})
    sync = b"0123456789abcdef"
    text, pairs = json.dumps(schema), b""
    comment = f"password={word}".encode()
    if where == "a key of the schema that is there twice":
        doc = f'"doc": "{comment.decode()}"'
        text = text.replace('"name": "manifest_file"', f'{doc}, "name": "manifest_file", "doc": "x"')
    head = {b"avro.schema": text.encode(), b"avro.codec": b"deflate", b"note": b"x"}
    if where == "a key of a schema in the header that is there twice":
        fields = f', "fields": [{{"doc": "{comment.decode()}"}}], "fields": []}}'
        head[b"schema"] = (json.dumps(ONE)[:-1] + fields).encode()
    data = header_bytes(head, sync)
    if where == "a key of the header that is there twice":
        pairs = header_bytes({b"note": comment}, sync)[5:-17]  # without magic, count, end and marker
        data = data[:4] + bytes([data[4] + 2]) + pairs + data[5:]
    block = block_bytes(1, plain, "deflate", sync)
    if where == "behind a deflate stream":
        body = block[2:-16] + comment
        block = block[:1] + bytes([len(body) * 2 & 0x7F | 0x80, len(body) * 2 >> 7]) + body + sync
    if where == "a block of no records":
        block += block_bytes(0, comment, "null", sync)
    return data + block


def fastavro_block(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


@pytest.mark.parametrize(
    "where",
    [
        "a key of the schema that is there twice",
        "a key of a schema in the header that is there twice",
        "a key of the header that is there twice",
        "behind a deflate stream",
        "a block of no records",
    ],
)
def test_what_readers_of_avro_pass_over_goes(where: str) -> None:
    """Files in which nothing is redacted stay byte for byte, if that is all there is in them."""
    word = token(where)
    data = _with_more(where, word)
    assert word.encode() in data
    made = redact_manifest(redactor("credentials"), data, "x", {})
    assert word.encode() not in made and not found([word], [("made", made)])
    assert [r["manifest_length"] for r in fastavro.reader(io.BytesIO(made))] == [5]
    bare = _with_more("nowhere", word)
    assert redact_manifest(redactor("credentials"), bare, "x", {}) == bare


def test_what_readers_of_parquet_pass_over_goes() -> None:
    import pyarrow.parquet as pq

    word, out = token("arrow"), io.BytesIO()
    fields = [F(100, "location", "string"), F(134, "content_type", "int")]
    given = pq.read_table(io.BytesIO(v4_files.parquet(fields, [{"location": "s3://b/x", "content_type": 0}])))
    comment = [f.with_metadata({**f.metadata, b"comment": f"password={word}".encode()}) for f in given.schema]  # type: ignore[dict-item]
    pq.write_table(given.cast(pa.schema(comment)), out)
    made = redact_manifest(redactor("credentials"), out.getvalue(), "x", {})
    assert not found([word], [("made", made)]) and b"ARROW:schema" in out.getvalue() and b"ARROW:schema" not in made
    assert pq.read_table(io.BytesIO(made)).num_rows == 1


def test_a_key_of_a_footer_that_is_there_twice_goes(tmp_path: Path) -> None:
    word = token("footer")
    data, _ = write_puffin([], properties={"note": "x"}, created_by="me")
    size = struct.unpack("<i", data[-12:-8])[0]
    payload = data[-12 - size : -12].replace(b'"note"', f'"note": "password={word}", "note"'.encode())
    (tmp_path / "s.puffin").write_bytes(data[: -12 - size] + payload + struct.pack("<i", len(payload)) + data[-8:])
    storage = ix.open(ix.create(tmp_path / "t", {"id": "long"}).location, allow=[tmp_path]).state.storage
    documents = DocumentRedactor(Redaction(redactions(["credentials"])))
    made, _ = redact_puffin(storage, str(tmp_path / "s.puffin"), documents)
    assert word.encode() not in made


# Column by column ---------------------------------------------------------------------------------------------------


def _plain_manifest() -> bytes:
    """Entries as Java writes them, with secrets in some, and nulls; no type that only records can be redacted by."""
    schema = json.loads(json.dumps(ENTRY))
    fields = schema["fields"][1]["type"]["fields"]
    fields[:] = [f for f in fields if f["name"] not in ("own_map", "own_list", "own_enum")]
    fields[3]["type"][1]["items"]["fields"][1]["type"] = "bytes"
    fields += [
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        {"name": "split_offsets", "type": ["null", {"type": "array", "items": "long"}], "field-id": 132},
        {"name": "own_texts", "type": ["null", {"type": "array", "items": "string"}], "field-id": 710},
        {"name": "own_record", "field-id": 711, "type": {"type": "record", "name": "o", "fields": [
            {"name": "a", "type": [{"type": "bytes"}, "null"]}, {"name": "d", "type": "double"}]}},
    ]  # fmt: skip
    path = 2147483546
    rows = []
    for i in range(500):
        word = CREDENTIALS[i % len(CREDENTIALS)](token(("columns", i)))
        text = word if i % 3 == 0 else f"city {i % 7}"
        bounds = [{"key": 1, "value": text.encode()}, {"key": path, "value": b"s3://b/x%d.parquet" % i}]
        bounds += [{"key": 77, "value": bytes([i % 256])}, {"key": path, "value": b"\xff\xfe"}]
        file = {
            "file_path": f"s3://b/db/city=c{i % 5}/{i}.parquet" if i % 4 else f"s3://b/{word}",
            "file_format": "PARQUET" if i % 5 else word,
            "partition": {
                "city_p": text if i % 6 else None,
                "raw": text.encode(),
                "flag": bytes([i % 9]) * 40,
                "n": -i,
            },
            "lower_bounds": [bounds, bounds[2:3], [], None][i % 4],
            "key_metadata": b"key" if i % 7 == 0 else None,
            "referenced_data_file": f"s3://b/{i}.parquet" if i % 2 else None,
            "own_number": i * 7919,
            "record_count": 2**40 + i,
            "file_size_in_bytes": 3,
            "split_offsets": [4, 2**33] if i % 2 else None,
            "own_texts": [word, ""] if i % 2 else None,
            "own_record": {"a": word.encode() if i % 3 else None, "d": i / 3},
        }
        rows.append({"status": i % 3, "data_file": file})
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, codec="deflate", sync_interval=3000)
    return out.getvalue()


def _avro_files() -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    yield "plain", _plain_manifest(), {}
    for kind in ("proposal", "draft"):
        fields, words = [*V4[kind](), *_unknown()], list[str]()
        rows = [
            _filled(fields, f"{kind} {i % 3}", words, CREDENTIALS[i % 7] if i % 2 else str)
            | {"content_type": i % 5} for i in range(60)
        ]  # fmt: skip
        yield kind, v4_files.avro(fields, rows), {}
    for storage in ("derived", "source", "tuple"):
        t = simulated(4, manifest_format="avro", partition_storage=storage, inline_dv_bytes=0)
        places = [s.root_location for s in t.snapshots]
        places += [p for p in t.inspect.all_manifests.arrow()["path"].to_pylist() if p not in places]
        for place in places:
            yield storage, t.state.storage.read(place or "", kind="manifest-list"), dict(t.state.opened.document)


@pytest.mark.parametrize(
    "kinds", [REDACTIONS, ("values",), ("credentials",), ("paths",), ("names",), ("credentials", "paths")]
)
def test_columns_are_redacted_as_records_are(kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes in each block, whichever way a file goes, and none of the way that was not asked for."""
    from iceexplore.manifests.redaction import _avro as _redact_avro

    by_columns = _redact_avro._by_columns
    lengths = {"s3://b/db/city=c1/1.parquet": 99}
    for name, data, given in _avro_files():
        it = redactor(*kinds, given=given)
        went: list[Any] = []

        def columns(file: Any, kept: list[Any] = went, **how: Any) -> Any:
            kept.append(by_columns(file, **how))
            return kept[-1]

        monkeypatch.setattr(_redact_avro, "worth_bulk", lambda size: True)
        monkeypatch.setattr(_redact_avro, "_by_columns", columns)
        made = redact_manifest(it, data, "x", lengths)
        assert went and went[0] is not None, f"{name} goes by columns"
        monkeypatch.setattr(_redact_avro, "worth_bulk", lambda size: False)
        other = redact_manifest(it, data, "x", lengths)
        assert list(layers(made)) == list(layers(other)), name
        if name == "plain" and "credentials" in kinds:
            assert not found([token(("columns", i)) for i in range(84)], [(name, made)])


def test_a_manifest_without_secrets_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """By either way, byte for byte."""
    from iceexplore.manifests.redaction import _avro as _redact_avro

    t = ix.sample("trips")
    for entry in t.inspect.manifests().to_dict("records")[:3]:
        data = t.state.storage.read(entry["path"], kind="manifest")
        for bulk in (True, False):
            monkeypatch.setattr(_redact_avro, "worth_bulk", lambda size, bulk=bulk: bulk)
            assert redact_manifest(redactor("credentials"), data, "x", {}) == data


def test_a_hundred_thousand_entries_take_seconds() -> None:
    """Record by record it was 20 to 30 seconds; machines differ, and are shared."""
    count = 100_000
    schema: Any = json.loads(json.dumps(ENTRY))
    inner = schema["fields"][1]["type"]
    inner["fields"] = [f for f in inner["fields"] if f["field-id"] in (100, 101, 125, 131)]
    pairs = pa.StructArray.from_arrays(
        [pa.array([1, 2] * count, pa.int32()), pa.array([b"bound %d" % i for i in range(2 * count)])],
        names=["f0", "f1"],
    )
    bounds = pa.ListArray.from_arrays(pa.array(range(0, 2 * count + 1, 2), pa.int32()), pairs)
    files = pa.StructArray.from_arrays(
        [
            pa.array([f"s3://bucket/db/trips/data/city_p=x{i % 97}/{i}.parquet" for i in range(count)]),
            pa.array(["PARQUET"] * count),
            bounds,
            pa.nulls(count, pa.binary()),
        ],
        names=["f0", "f1", "f2", "f3"],
    )
    rows = pa.table({"f0": pa.array([1] * count, pa.int32()), "f1": files})
    body, starts = encode_records(schema, rows)
    sync = b"0123456789abcdef"
    head = header_bytes({b"avro.schema": json.dumps(schema).encode(), b"avro.codec": b"deflate"}, sync)
    step = 2000
    data = head + b"".join(
        block_bytes(step, body[starts[i] : starts[i + step]], "deflate", sync) for i in range(0, count, step)
    )
    for kinds in (REDACTIONS, ("credentials",)):
        with ends(40):
            made = redact_manifest(redactor(*kinds), data, "x", {})
    assert len(list(fastavro.reader(io.BytesIO(made)))) == count


def test_the_search_finds_every_form() -> None:
    word = token("form")
    for form in forms(word):
        assert found([word], [("x", b"before" + form + b"after")])
    for shift in range(3):
        assert found([word], [("x", base64.b64encode(b"x" * shift + word.encode() + b"and more"))])
