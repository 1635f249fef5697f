"""The real tables: which metadata file is taken, where they moved, and that nothing climbs out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iceexplore.errors import FormatError, IceexploreError, MetadataNotFoundError, OutsideRootsError, UnsupportedError
from iceexplore.storage import Opened, open_source, same_location

pytestmark = pytest.mark.corpus

# Files that names alone do not rank: several were written in the same millisecond, and any may be the newest.
TIED = {"jankaul-rust/nyc_taxis"}
# Folders of metadata files of several tables: an error that lists them.
SEVERAL = {"iceberg-rust/testdata"}
# Two prefixes lead to one folder.
MERGED = {"impala/ice_puffin", "duckdb/big_query_error", "duckdb/large_partitioned_table"}
# The corpus says that these have no manifest list, or point elsewhere.
ABSENT = {
    "altinity/ice_cli",
    "icescope/warehouse/analytics/events",
    "icescope/warehouse/analytics/users",
    "iceberg-rust/datafusion_testdata",
    "duckdb/table_statistics",
    "duckdb/table_statistics_bad_footer",
    "duckdb/table_partition_statistics",
    "duckdb/table_partition_statistics_bad_size",
}


def current_files(opened: Opened) -> list[str]:
    """The current snapshot's manifest list, or its inline manifests."""
    current = opened.document.get("current-snapshot-id")
    found = [s for s in opened.document.get("snapshots") or [] if s.get("snapshot-id") == current]
    return [p for s in found for p in ([s["manifest-list"]] if s.get("manifest-list") else s.get("manifests") or [])]


def test_every_table_opens_on_the_right_file_and_finds_its_manifest_list(corpus: Path) -> None:
    expected = json.loads((corpus / "expected.json").read_text())
    wrong = []
    for name, about in sorted(expected.items()):
        if name in SEVERAL:
            with pytest.raises(MetadataNotFoundError, match="tables"):
                open_source(corpus / name)
            continue
        opened = open_source(corpus / name)
        s = opened.storage
        taken = os.path.relpath(s.resolve(opened.metadata_location), corpus / name)
        print(f"{name:<70} {taken:<95} {dict(s.moved)}".replace(str(corpus), "…"))
        if taken != about["metadata"] and name not in TIED:
            wrong.append(f"{name}: took {taken}, not {about['metadata']}")
        for file in current_files(opened) if name not in ABSENT else []:
            if not s.exists(file):
                wrong.append(f"{name}: {file} is missing")
            # Where people edited `location` alone, or put two folders into one, one of two spellings is read back.
            if name not in MERGED and not same_location(s.unresolve(s.resolve(file)), file):
                wrong.append(f"{name}: {file} does not lead back")
    assert not wrong, "\n".join(wrong)


def test_everything_else_ends_in_an_error_of_ours(corpus: Path) -> None:
    seen: dict[str, str] = {}
    for folder in sorted(p for p in corpus.glob("*/*") if p.is_dir()):
        try:
            open_source(folder).storage.close()
        except IceexploreError as e:
            seen[str(folder.relative_to(corpus))] = f"{type(e).__name__}: {e}"
    assert "nested" not in seen and seen["duckdb/bad_data"].startswith("FormatError: invalid JSON")
    assert "metadata of a view" in seen["iceberg_book_jp/sample_view"]
    assert "warehouse with 24 tables" in seen["iceberg-rust-tro/interop"]


def test_every_json_file_opens_or_says_what_it_is(corpus: Path) -> None:
    opened, refused = 0, 0
    for path in sorted(corpus.rglob("*.json")):
        try:
            open_source(path)
            opened += 1
        except (FormatError, UnsupportedError):
            refused += 1
    assert opened > 400 and refused > 20


def test_paths_that_climb_out_are_refused(corpus: Path) -> None:
    for name, location in (
        ("iceberg_table", "/var/lib/clickhouse/user_files/iceberg_local_basic/../../../../../etc/passwd"),
        ("iceberg_table_traversal", "/var/lib/clickhouse/user_files/iceberg_traversal_test/../../../../etc/passwd"),
    ):
        storage = open_source(corpus / "altinity" / name).storage
        with pytest.raises(OutsideRootsError, match=r"passwd is outside the table"):
            storage.read(location, kind="data-footer")
        assert not any("passwd" in r.real for r in storage.reads)


def test_data_outside_the_location_is_found_in_the_copy(corpus: Path) -> None:
    storage = open_source(corpus / "impala" / "iceberg_multiple_storage_locations").storage
    base = "/test-warehouse/iceberg_test/hadoop_catalog/ice/iceberg_multiple_storage_locations"
    for tail in (
        "_data/col_int=0/00001-1-5a94b6af-6ee7-4910-9bf5-165a9a4e71df-00001.parquet",
        "_data01/col_int=1/00001-1-7ac79643-e19f-4294-914e-7b122aff576c-00001.parquet",
        "_data02/col_int=0/00001-1-26bc91ef-b403-4b65-a6b0-566396b8d097-00002.parquet",
    ):
        assert storage.read(base + tail, kind="data-footer", length=4) == b"PAR1"
        assert storage.unresolve("file:" + storage.resolve(base + tail)) == base + tail
