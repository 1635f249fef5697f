"""Healthy tables, and ways to damage them: each is one of the ways that people reported their tables to break."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro

import iceexplore as ix

Record = dict[str, Any]


def healthy(folder: Path, version: int = 2) -> Path:
    """Return a table with two partitions, three appends, merge-on-read deletes and a tag."""
    lab = ix.create(
        folder / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=version,
        properties={"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"},
    )  # fmt: skip
    lab.append({"id": list(range(10)), "k": ["a"] * 5 + ["b"] * 5})
    lab.append({"id": list(range(10, 16)), "k": ["a", "b"] * 3})
    lab.tag("audited")
    lab.delete("id = 3")
    lab.append({"id": [20, 21], "k": ["a", "b"]})
    return folder / "t"


# Places ---------------------------------------------------------------------------------------------------------------


def local(location: str) -> Path:
    """Return a location of a lab as a path."""
    return Path(location.removeprefix("file://"))


def document_path(folder: Path) -> Path:
    """Return the table's current metadata file."""
    return local(ix.open(folder).metadata_location)


def root_path(folder: Path, back: int = 0) -> Path:
    """Return the manifest list of a snapshot, counted back from the newest."""
    snapshots = sorted(ix.open(folder).metadata.snapshots, key=lambda s: s.sequence_number)
    return local(str(snapshots[-1 - back].root_location))


def manifest_paths(folder: Path, content: int = 0) -> list[Path]:
    """Return the manifests of data (0) or deletes (1) of the current snapshot, as listed."""
    rows = ix.open(folder).inspect.manifests.arrow().to_pylist()
    return [local(r["path"]) for r in rows if r["content"] == content]


def file_paths(folder: Path, content: int = 0) -> list[Path]:
    """Return the live data (0) or position delete (1) files."""
    rows = ix.open(folder).inspect.files.arrow().to_pylist()
    return [local(r["file_path"]) for r in rows if r["content"] == content]


# Edits ----------------------------------------------------------------------------------------------------------------


def edit_json(path: Path, change: Callable[[Record], None]) -> None:
    """Change a metadata file in place."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def edit_avro(
    path: Path, change: Callable[[list[Record], dict[str, str]], None], *, list_path: Path | None = None
) -> None:
    """Change the records and the header of an Avro file in place; with ``list_path``, correct its length there."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema: Any = reader.writer_schema
    change(rows, header)
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=header)
    if list_path is not None:
        size = path.stat().st_size

        def corrected(rows: list[Record], header: dict[str, str]) -> None:
            for row in rows:
                if local(row["manifest_path"]) == path:
                    row["manifest_length"] = size

        edit_avro(list_path, corrected)


def records(change: Callable[[Record], None], where: Callable[[Record], bool] = lambda r: True) -> Any:
    """Return a change of the first record that fits."""

    def apply(rows: list[Record], header: dict[str, str]) -> None:
        change(next(r for r in rows if where(r)))

    return apply


def edit_manifest(
    folder: Path, change: Callable[[list[Record], dict[str, str]], None], content: int = 0, *, recount: bool = False
) -> Path:
    """Change the first manifest of data or deletes; its length in the list stays right, its counts on demand."""
    path = manifest_paths(folder, content)[0]
    edit_avro(path, change, list_path=root_path(folder))
    if recount:
        with path.open("rb") as file:
            rows: list[Any] = list(fastavro.reader(file))

        def counted(record: Record) -> None:
            for status, name in ((1, "added"), (0, "existing"), (2, "deleted")):
                mine = [r for r in rows if r["status"] == status]
                record[f"{name}_files_count"] = len(mine)
                record[f"{name}_rows_count"] = sum(r["data_file"]["record_count"] for r in mine)

        edit_avro(root_path(folder), records(counted, lambda r: local(r["manifest_path"]) == path))
    return path


# The damages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Damage:
    """One way to damage a healthy table, and the finding that must tell it.

    Attributes
    ----------
    mode
        Its number in ``docs/doctor.md``.
    damage
        Damages the table in the folder; returns a part of the finding's place.
    opens
        What is opened, from the table's folder.
    """

    mode: int
    name: str
    code: str
    severity: str
    damage: Callable[[Path], str]
    version: int = 2
    level: str = "metadata"
    snapshots: str = "current"
    opens: str = ""


DAMAGES: list[Damage] = []


def damage(
    mode: int,
    code: str,
    severity: str,
    *,
    version: int = 2,
    level: str = "metadata",
    snapshots: str = "current",
    opens: str = "",
) -> Any:
    """Register a damage under its function's name."""

    def register(function: Callable[[Path], str]) -> Callable[[Path], str]:
        DAMAGES.append(Damage(mode, function.__name__, code, severity, function, version, level, snapshots, opens))
        return function

    return register


@damage(1, "file-missing", "fail")
def data_file_gone(folder: Path) -> str:
    file_paths(folder)[0].unlink()
    return "#entry"


@damage(2, "file-missing", "fail")
def manifest_gone(folder: Path) -> str:
    path = manifest_paths(folder)[0]
    path.unlink()
    return path.name


@damage(3, "file-missing", "fail")
def current_list_gone(folder: Path) -> str:
    path = root_path(folder)
    path.unlink()
    return path.name


@damage(4, "file-missing", "fail", snapshots="all")
def old_list_gone(folder: Path) -> str:
    path = root_path(folder, 1)
    path.unlink()
    return path.name


@damage(8, "statistics-missing", "untidy")
def statistics_file_gone(folder: Path) -> str:
    def change(document: Record) -> None:
        place = f"{document['location']}/metadata/stats.puffin"
        document["statistics"] = [
            {
                "snapshot-id": document["current-snapshot-id"], "statistics-path": place, "file-size-in-bytes": 10,
                "file-footer-size-in-bytes": 5, "blob-metadata": [],
            }
        ]  # fmt: skip

    edit_json(document_path(folder), change)
    return "stats.puffin"


@damage(9, "table-uuid-differs", "untidy")
def another_table_in_the_folder(folder: Path) -> str:
    path = document_path(folder)
    other = path.with_name("v0.metadata.json")
    shutil.copy(path, other)
    edit_json(other, lambda d: d.update({"table-uuid": "11111111-2222-3333-4444-555555555555"}))
    return "v0.metadata.json"


@damage(10, "file-truncated", "fail", level="files")
def data_file_cut(folder: Path) -> str:
    path = file_paths(folder)[0]
    path.write_bytes(path.read_bytes()[:-20])
    return "#entry"


@damage(12, "hint-invalid", "fail")
def hint_of_no_version(folder: Path) -> str:
    (document_path(folder).parent / "version-hint.text").write_text("99")
    return "version-hint.text"


@damage(12, "hint-stale", "wrong")
def hint_of_an_old_version(folder: Path) -> str:
    (document_path(folder).parent / "version-hint.text").write_text("2")
    return "version-hint.text"


@damage(13, "metadata-compression", "fail")
def gzip_under_a_plain_name(folder: Path) -> str:
    import gzip

    path = document_path(folder)
    path.write_bytes(gzip.compress(path.read_bytes()))
    return path.name


@damage(15, "snapshot-lost", "wrong")
def update_lost(folder: Path) -> str:
    def change(document: Record) -> None:
        lost = document["snapshots"].pop(-2)
        document["snapshots"][-1]["parent-snapshot-id"] = lost["parent-snapshot-id"]
        document["snapshot-log"] = [e for e in document["snapshot-log"] if e["snapshot-id"] != lost["snapshot-id"]]

    edit_json(document_path(folder), change)
    return ".metadata.json"


@damage(16, "metadata-invalid", "fail")
def ref_to_no_snapshot(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["refs"]["audited"].update({"snapshot-id": 12345}))
    return "#ref audited"


@damage(17, "metadata-invalid", "fail")
def snapshot_id_twice(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["snapshots"].append(dict(d["snapshots"][0])))
    return "#snapshot"


@damage(18, "metadata-invalid", "fail")
def last_sequence_number_too_low(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d.update({"last-sequence-number": 1}))
    return "#snapshot"


@damage(19, "metadata-invalid", "wrong")
def snapshot_log_out_of_order(folder: Path) -> str:
    def change(document: Record) -> None:
        document["snapshot-log"][0]["timestamp-ms"] += 3_600_000

    edit_json(document_path(folder), change)
    return ".metadata.json"


@damage(20, "metadata-incomplete", "untidy")
def parent_of_minus_one(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["snapshots"][0].update({"parent-snapshot-id": -1}))
    return "#snapshot"


@damage(21, "metadata-invalid", "fail")
def field_id_twice(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["schemas"][0]["fields"][1].update({"id": 1}))
    return "#schema"


@damage(22, "spec-source-dropped", "untidy")
def source_of_a_spec_dropped(folder: Path) -> str:
    def change(document: Record) -> None:
        document["partition-specs"].append(
            {"spec-id": 7, "fields": [{"name": "x", "transform": "identity", "source-id": 99, "field-id": 1007}]}
        )

    edit_json(document_path(folder), change)
    return "#spec 7"


@damage(23, "metadata-invalid", "fail", version=3)
def next_row_id_gone(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d.pop("next-row-id"))
    return ".metadata.json"


@damage(23, "metadata-invalid", "wrong", version=3)
def next_row_id_too_low(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d.update({"next-row-id": 2}))
    return "#snapshot"


@damage(24, "count-mismatch", "wrong")
def counts_of_a_manifest_zero(folder: Path) -> str:
    edit_avro(root_path(folder), records(lambda r: r.update({"added_files_count": 0}), lambda r: r["content"] == 0))
    return "-m0.avro"


@damage(24, "totals-differ", "wrong")
def row_counts_of_manifests_wrong(folder: Path) -> str:
    def change(record: Record) -> None:
        record["added_rows_count"] += 1

    edit_avro(root_path(folder), records(change, lambda r: r["content"] == 0 and r["added_rows_count"] > 0))
    return ".avro"


@damage(25, "count-mismatch", "fail")
def length_of_a_manifest_wrong(folder: Path) -> str:
    edit_avro(root_path(folder), records(lambda r: r.update({"manifest_length": r["manifest_length"] + 7})))
    return "-m0.avro"


@damage(26, "summary-missing", "slow")
def partition_summaries_null(folder: Path) -> str:
    edit_avro(root_path(folder), records(lambda r: r.update({"partitions": None})))
    return "#entry"


@damage(27, "bounds-untrue", "wrong")
def summary_bounds_the_wrong_way_round(folder: Path) -> str:
    def change(record: Record) -> None:
        record["partitions"][0].update({"lower_bound": b"z", "upper_bound": b"a"})

    edit_avro(root_path(folder), records(change))
    return "#entry"


@damage(28, "sequence-number", "wrong")
def least_sequence_number_too_high(folder: Path) -> str:
    edit_avro(root_path(folder), records(lambda r: r.update({"min_sequence_number": 99}), lambda r: r["content"] == 1))
    return ".avro"


@damage(29, "totals-differ", "wrong")
def summary_totals_wrong(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["snapshots"][-1]["summary"].update({"total-records": "999999"}))
    return ".avro"


@damage(31, "file-twice", "wrong")
def path_live_twice(folder: Path) -> str:
    def change(rows: list[Record], header: dict[str, str]) -> None:
        rows.append(rows[0])

    path = edit_manifest(folder, change, recount=True)
    return path.name


@damage(32, "file-overwritten", "wrong")
def file_with_two_sizes(folder: Path) -> str:
    paths = manifest_paths(folder)

    def first(rows: list[Record], header: dict[str, str]) -> None:
        first.row = json.loads(json.dumps(rows[0], default=str))  # type: ignore[attr-defined]
        first.path = rows[0]["data_file"]["file_path"]  # type: ignore[attr-defined]

    edit_avro(paths[0], first, list_path=root_path(folder))

    def second(rows: list[Record], header: dict[str, str]) -> None:
        rows[0]["data_file"]["file_path"] = first.path  # type: ignore[attr-defined]
        rows[0]["data_file"]["file_size_in_bytes"] += 100

    edit_avro(paths[1], second, list_path=root_path(folder))
    return "#entry"


@damage(33, "count-mismatch", "wrong", level="files")
def record_count_wrong(folder: Path) -> str:
    edit_manifest(folder, records(lambda r: r["data_file"].update({"record_count": 77})))
    return "#entry"


@damage(34, "bounds-untrue", "wrong")
def bounds_the_wrong_way_round(folder: Path) -> str:
    def change(record: Record) -> None:
        lower, upper = record["data_file"]["lower_bounds"], record["data_file"]["upper_bounds"]
        for one in lower:
            one["value"] = (1000).to_bytes(8, "little") if one["key"] == 1 else one["value"]
        assert upper

    edit_manifest(folder, records(change))
    return "#entry"


@damage(35, "count-mismatch", "wrong")
def more_nulls_than_values(folder: Path) -> str:
    def change(record: Record) -> None:
        record["data_file"]["null_value_counts"] = [{"key": 1, "value": 1000}]

    edit_manifest(folder, records(change))
    return "#entry"


@damage(36, "metrics-missing", "slow")
def metrics_lost(folder: Path) -> str:
    names = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")

    def change(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            row["data_file"].update(dict.fromkeys(names))

    path = edit_manifest(folder, change)
    return path.name


@damage(37, "split-offsets-invalid", "fail")
def split_offsets_past_the_end(folder: Path) -> str:
    edit_manifest(folder, records(lambda r: r["data_file"].update({"split_offsets": [4, 10**9]})))
    return "#entry"


@damage(39, "file-corrupt", "fail")
def header_with_a_whole_spec(folder: Path) -> str:
    def change(rows: list[Record], header: dict[str, str]) -> None:
        header["partition-spec"] = json.dumps({"spec-id": 0, "fields": json.loads(header["partition-spec"])})

    return edit_manifest(folder, change).name


@damage(41, "file-corrupt", "wrong")
def data_in_a_delete_manifest(folder: Path) -> str:
    edit_manifest(folder, records(lambda r: r["data_file"].update({"content": 0})), content=1)
    return ".avro"


@damage(43, "sequence-number", "wrong")
def existing_without_a_sequence_number(folder: Path) -> str:
    def change(record: Record) -> None:
        record.update({"status": 0, "sequence_number": None, "file_sequence_number": None})

    edit_manifest(folder, records(change), recount=True)
    return "#entry"


@damage(46, "delete-dangling", "untidy", version=3)
def vector_of_a_file_that_is_not_live(folder: Path) -> str:
    def change(record: Record) -> None:
        record["data_file"]["referenced_data_file"] = "file:///nowhere/x.parquet"

    edit_manifest(folder, records(change), content=1)
    return "#entry"


@damage(47, "dv-twice", "wrong", version=3)
def two_vectors_of_one_file(folder: Path) -> str:
    def change(rows: list[Record], header: dict[str, str]) -> None:
        rows.append(rows[0])

    edit_manifest(folder, change, content=1, recount=True)
    return "#entry"


@damage(59, "summary-untrue", "wrong")
def summary_bounds_too_narrow(folder: Path) -> str:
    def change(record: Record) -> None:
        record["partitions"][0].update({"lower_bound": b"a", "upper_bound": b"a"})

    edit_avro(root_path(folder), records(change, lambda r: r["content"] == 0))
    return "#entry"


@damage(60, "row-ids-twice", "wrong", version=3)
def row_ids_negative(folder: Path) -> str:
    edit_manifest(folder, records(lambda r: r["data_file"].update({"first_row_id": -5})))
    return "#entry"


@damage(66, "root-other-snapshot", "wrong")
def list_of_another_attempt(folder: Path) -> str:
    def change(rows: list[Record], header: dict[str, str]) -> None:
        header["snapshot-id"] = "4242"

    path = root_path(folder)
    edit_avro(path, change)
    return path.name


@damage(68, "delete-no-effect", "wrong")
def deletes_of_a_newer_spec(folder: Path) -> str:
    def add_spec(document: Record) -> None:
        document["partition-specs"].append(
            {"spec-id": 1, "fields": [{"name": "k_1", "transform": "identity", "source-id": 2, "field-id": 1000}]}
        )

    edit_json(document_path(folder), add_spec)
    edit_avro(root_path(folder), records(lambda r: r.update({"partition_spec_id": 1}), lambda r: r["content"] == 1))

    def change(rows: list[Record], header: dict[str, str]) -> None:
        header["partition-spec-id"] = "1"

    edit_manifest(folder, change, content=1)
    return "#entry"


@damage(71, "metadata-incomplete", "untidy")
def snapshot_without_a_summary(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["snapshots"][0].pop("summary"))
    return "#snapshot"


@damage(72, "field-id-reserved", "fail")
def field_id_zero(folder: Path) -> str:
    def change(document: Record) -> None:
        document["schemas"][0]["fields"].append({"id": 0, "name": "zero", "required": False, "type": "int"})

    edit_json(document_path(folder), change)
    return "#schema"


@damage(73, "header-version-missing", "wrong")
def delete_manifest_without_a_version(folder: Path) -> str:
    def change(rows: list[Record], header: dict[str, str]) -> None:
        header.pop("format-version")

    return edit_manifest(folder, change, content=1).name


@damage(74, "file-corrupt", "fail")
def header_with_the_schema_of_entries(folder: Path) -> str:
    def change(rows: list[Record], header: dict[str, str]) -> None:
        header["schema"] = json.dumps(
            {"type": "struct", "fields": [
                {"id": 0, "name": "status", "required": True, "type": "int"},
                {"id": 2, "name": "data_file", "required": True, "type": {"type": "struct", "fields": []}},
            ]}
        )  # fmt: skip

    return edit_manifest(folder, change).name


@damage(78, "file-truncated", "fail")
def manifest_closed_early(folder: Path) -> str:
    path = manifest_paths(folder)[0]
    path.write_bytes(path.read_bytes()[:-40])
    return path.name


@damage(81, "metadata-invalid", "wrong")
def schema_of_a_snapshot_lost(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d["snapshots"][0].update({"schema-id": 9}))
    return "#snapshot"


@damage(82, "metadata-times", "untidy")
def last_updated_before_the_log(folder: Path) -> str:
    edit_json(document_path(folder), lambda d: d.update({"last-updated-ms": d["last-updated-ms"] - 3_600_000}))
    return ".metadata.json"


@damage(84, "header-incomplete", "untidy")
def header_without_a_schema(folder: Path) -> str:
    def change(rows: list[Record], header: dict[str, str]) -> None:
        header.pop("schema")

    return edit_manifest(folder, change).name
