"""Ways to damage manifests, manifest lists and metadata files that `tests.doctor.damages` does not have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro

import iceexplore as ix
from tests.doctor.damages import (
    Record,
    damage,
    document_path,
    edit_avro,
    edit_json,
    local,
    manifest_paths,
    records,
    root_path,
)
from tests.doctor.file_damages import document_of, edit_entry


def edit_schema(path: Path, change: Callable[[Record], None], *, list_path: Path | None = None) -> None:
    """Change the Avro schema of a file in place; the schema is a tree of dictionaries without names to resolve."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema = json.loads(reader.metadata["avro.schema"])
    change(schema)
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), rows, metadata=header)
    if list_path is not None:
        edit_avro(path, lambda rows, header: None, list_path=list_path)


def _nodes(schema: Any) -> list[Record]:
    if isinstance(schema, dict):
        return [schema, *(n for value in schema.values() for n in _nodes(value))]
    return [n for item in schema for n in _nodes(item)] if isinstance(schema, list) else []


def _field(schema: Record, name: str) -> Record:
    return next(n for n in _nodes(schema) if n.get("name") == name and "type" in n)


# Files of metadata ----------------------------------------------------------------------------------------------------


@damage(6, "file-missing", "fail")
def list_and_manifests_of_a_commit_cleaned_up(folder: Path) -> str:
    path = root_path(folder)
    newest = document_of(folder)["current-snapshot-id"]
    with path.open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    for row in rows:
        if row["added_snapshot_id"] == newest:
            local(row["manifest_path"]).unlink()
    path.unlink()
    return path.name


@damage(2, "file-missing", "fail", version=3)
def rewritten_manifest_gone(folder: Path) -> str:
    ix.lab(folder).rewrite_manifests()  # older snapshots still list the ones that it replaces
    (path,) = manifest_paths(folder)
    path.unlink()
    return path.name


@damage(2, "file-missing", "fail")
def manifest_gone_with_its_files(folder: Path) -> str:
    path = manifest_paths(folder)[0]
    with path.open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    for row in rows:
        local(row["data_file"]["file_path"]).unlink()
    path.unlink()
    return path.name


@damage(6, "file-missing", "fail")
def manifests_of_a_commit_cleaned_up(folder: Path) -> str:
    newest = document_of(folder)["current-snapshot-id"]
    with root_path(folder).open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    name = ""
    for row in rows:
        if row["added_snapshot_id"] == newest:
            local(row["manifest_path"]).unlink()
            name = local(row["manifest_path"]).name
    return name


@damage(11, "table-moved", "untidy", opens="../moved")
def table_moved(folder: Path) -> str:
    shutil.move(folder, folder.with_name("moved"))
    return ".metadata.json"


@damage(11, "outside-roots", "fail")
def data_file_in_another_bucket(folder: Path) -> str:
    return edit_entry(folder, lambda file: file.update({"file_path": "s3://other/place/x.parquet"}))


@damage(14, "metadata-large", "slow")
def metadata_file_large(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["properties"].update({"note": "x" * (17 << 20)}))
    return ".metadata.json"


@damage(14, "metadata-large", "slow")
def metadata_file_large_when_unpacked(folder: Path) -> str:
    import gzip

    path = document_path(folder)
    edit_json(path, lambda d: d["properties"].update({"note": "x" * (17 << 20)}))
    packed = path.with_name(path.name.replace(".metadata.json", ".gz.metadata.json"))
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed.name


@damage(67, "metadata-newer", "wrong", opens="metadata/v4.metadata.json")
def catalog_points_to_an_old_file(folder: Path) -> str:
    return "v4.metadata.json"


@damage(70, "totals-differ", "wrong")
def summary_without_the_deletes(folder: Path) -> str:
    def change(document: Record) -> None:
        summary = document["snapshots"][-1]["summary"]
        summary.update({"total-delete-files": "0", "total-position-deletes": "0"})

    edit_json(document_path(folder), change)
    return ".avro"


@damage(83, "snapshot-lost", "wrong")
def commit_on_an_older_file(folder: Path) -> str:
    newest = document_path(folder)
    before = newest.with_name(f"v{int(newest.name[1:].split('.')[0]) - 1}.metadata.json")

    def change(document: Record) -> None:
        old = json.loads(before.read_text())
        last = document["snapshots"][-1]
        kept = [s for s in old["snapshots"] if s["snapshot-id"] != old["current-snapshot-id"]]
        last["parent-snapshot-id"] = kept[-1]["snapshot-id"]
        document["snapshots"] = [*kept, last]
        ids = {s["snapshot-id"] for s in document["snapshots"]}
        document["snapshot-log"] = [e for e in document["snapshot-log"] if e["snapshot-id"] in ids]
        document["metadata-log"] = [e for e in document["metadata-log"] if not e["metadata-file"].endswith(before.name)]

    edit_json(newest, change)
    return before.name


# Manifest lists -------------------------------------------------------------------------------------------------------


@damage(28, "sequence-number", "wrong")
def least_sequence_number_of_data_too_high(folder: Path) -> str:
    edit_avro(root_path(folder), records(lambda r: r.update({"min_sequence_number": 99}), lambda r: r["content"] == 0))
    return ".avro"


@damage(28, "sequence-number", "wrong")
def sequence_number_of_deletes_too_low(folder: Path) -> str:
    edit_avro(
        root_path(folder),
        records(lambda r: r.update({"sequence_number": 1, "min_sequence_number": 1}), lambda r: r["content"] == 1),
    )
    return ".avro"


@damage(30, "manifests-fragmented", "slow")
def many_small_manifests(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["properties"].update({"commit.manifest.min-count-to-merge": "3"}))
    return root_path(folder).name


# Manifests ------------------------------------------------------------------------------------------------------------


@damage(38, "file-corrupt", "wrong")
def tuple_without_a_field_of_the_spec(folder: Path) -> str:
    def change(schema: Record) -> None:
        partition = _field(schema, "partition")
        partition["type"]["fields"][0].update({"name": "other", "field-id": 1009, "default": None})

    path = manifest_paths(folder)[0]
    edit_schema(path, change, list_path=root_path(folder))
    return path.name


@damage(40, "avro-no-field-ids", "fail")
def manifest_without_field_ids(folder: Path) -> str:
    def change(schema: Record) -> None:
        for node in _nodes(schema):
            for key in ("field-id", "element-id", "key-id", "value-id"):
                node.pop(key, None)

    path = manifest_paths(folder)[0]
    edit_schema(path, change, list_path=root_path(folder))
    return path.name


@damage(75, "avro-nullability", "untidy")
def required_field_may_be_null(folder: Path) -> str:
    def change(schema: Record) -> None:
        field = _field(schema, "record_count")
        field["type"] = ["null", field["type"]]

    path = manifest_paths(folder)[0]
    edit_schema(path, change, list_path=root_path(folder))
    return path.name


@damage(75, "avro-nullability", "untidy")
def required_field_of_the_list_may_be_null(folder: Path) -> str:
    def change(schema: Record) -> None:
        field = _field(schema, "added_snapshot_id")
        field["type"] = ["null", field["type"]]

    edit_schema(root_path(folder), change)
    return root_path(folder).name


@damage(76, "value-undecodable", "wrong")
def partition_value_of_the_wrong_type(folder: Path) -> str:
    def change(schema: Record) -> None:
        field = _field(schema, "partition")["type"]["fields"][0]
        field["type"] = ["null", "long"]

    path = manifest_paths(folder)[0]
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema = json.loads(reader.metadata["avro.schema"])
    change(schema)
    for row in rows:
        row["data_file"]["partition"] = {"k": 7}
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), rows, metadata=header)
    edit_avro(path, lambda rows, header: None, list_path=root_path(folder))
    return path.name


@damage(80, "key-metadata-plain", "untidy")
def key_in_plain_text(folder: Path) -> str:
    return edit_entry(folder, lambda file: file.update({"key_metadata": b"0123456789abcdef"}))


@damage(80, "key-metadata-plain", "untidy")
def key_of_a_manifest_in_plain_text(folder: Path) -> str:
    edit_avro(root_path(folder), records(lambda r: r.update({"key_metadata": b"0123456789abcdef"})))
    return root_path(folder).name
