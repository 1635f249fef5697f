"""Each health check finds what it is for, with its threshold and the threshold's source, and is silent without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.doctor import Finding
from iceexplore.errors import PROBLEM_KINDS, OptionError
from tests.doctor.damages import document_path, edit_json

Record = dict[str, Any]
MIB = 1 << 20
#: One read task of 128 MiB holds 32 small files at the open cost of 4 MiB.
TASK = 32


def simulated(folder: Path, files: list[Record], **properties: str) -> Any:
    """Return a simulation with data files that have a size, bounds of ``id`` and a partition, but no data."""
    lab = ix.create(folder, {"id": "long", "k": "string"}, partition_by="k", sort_by="id", properties=properties)
    simulation = lab.simulate()
    simulation.append([entry(number, **one) for number, one in enumerate(files)])
    return simulation


def entry(number: int, k: str = "a", mib: int = 512, low: int = 0, high: int = 0, order: int = 1) -> Record:
    return {
        "location": f"data/{number}.parquet", "record_count": 100, "file_size_in_bytes": mib * MIB,
        "partition": {"k": k}, "lower_bounds": {"id": low, "k": k}, "upper_bounds": {"id": high, "k": k},
        "value_counts": {"id": 100, "k": 100}, "sort_order_id": order,
    }  # fmt: skip


def spread(count: int, **one: Any) -> list[Record]:
    """Return files whose ranges do not overlap."""
    return [{"low": i * 10, "high": i * 10 + 9, **one} for i in range(count)]


def with_positions(folder: Path, times: int, rows: int) -> Any:
    """Return a table of one file to which this many position delete files apply, with this many rows each."""
    made = simulated(folder, spread(1))
    (name,) = made.inspect.files.arrow()["file_path"].to_pylist()
    for number in range(times):
        made.row_delta(deletes={name: [number * rows + i for i in range(rows)]})
    return made


def with_equality(folder: Path, times: int) -> Any:
    """Return a table of a small file, which costs as much as opening it, with equality deletes."""
    made = simulated(folder, spread(1, mib=1))
    for number in range(times):
        made.row_delta(equality={"id": [number]}, equality_partition={"k": "a"})
    return made


def aged(folder: Path, days: int, **properties: str) -> Any:
    """Return a table with two snapshots that are this old."""
    lab = ix.create(folder, {"id": "long"}, properties=properties)
    lab.append({"id": [1]})
    lab.append({"id": [2]})

    def older(document: Record) -> None:
        for one in document["snapshots"]:
            one["timestamp-ms"] -= days * 86_400_000
        document["snapshot-log"] = []

    edit_json(document_path(folder), older)
    return ix.open(folder)


def logged(folder: Path, **properties: str) -> Any:
    lab = ix.create(folder, {"id": "long"}, properties={"write.metadata.previous-versions-max": "2", **properties})
    for number in range(4):
        lab.set_properties({"n": str(number)})
    return ix.open(folder)


def evolved(folder: Path, times: int) -> Any:
    """Return a table without snapshots: only its current schema is used."""
    lab = ix.create(folder, {"id": "long"})
    for number in range(times):
        lab.evolve_schema(add={f"c{number}": "int"})
    return ix.open(folder)


def bounded(folder: Path, mode: str | None = None) -> Any:
    properties = {} if mode is None else {"write.metadata.metrics.column.name": mode}
    lab = ix.create(folder, {"id": "long", "name": "string", "tags": "list<string>"}, properties=properties)
    lab.append({"id": [1], "name": ["x"], "tags": [["y"]]})
    return lab


def appended(folder: Path, times: int) -> Any:
    lab = ix.create(folder, {"id": "long"}, properties={
        "commit.manifest-merge.enabled": "false", "commit.manifest.min-count-to-merge": "3"})  # fmt: skip
    for number in range(times):
        lab.append({"id": [number]})
    return lab


def sizes(*mib: int) -> list[Record]:
    return [{"k": f"p{number}", "mib": size} for number, size in enumerate(mib)]


@dataclass(frozen=True)
class Health:
    """One fault of a table's health: a table that has it, a table that just has not, and what the finding says."""

    code: str
    severity: str
    ill: Callable[[Path], Any]
    well: Callable[[Path], Any]
    texts: tuple[str, ...]


#: Every fault; those with two severities twice.
CASES = (
    Health(
        "files-small", "untidy", lambda f: simulated(f, spread(5, mib=1)), lambda f: simulated(f, spread(4, mib=1)),
        ("5 of 5 data files", "min-input-files = 5, default of Iceberg", "rewrite_data_files()"),
    ),
    Health(
        "files-small", "slow", lambda f: simulated(f, spread(TASK + 1, mib=1)),
        lambda f: simulated(f, spread(TASK + 1, mib=1), **{"write.target-file-size-bytes": str(MIB)}),
        ("33 of 33 data files", "read.split.target-size = 134217728", "target-file-size-bytes = 536870912"),
    ),
    Health(
        "delete-ratio-high", "slow", lambda f: with_positions(f, 1, 30), lambda f: with_positions(f, 1, 29),
        ("30 of the 100 rows", "delete-ratio-threshold = 0.3, default of Iceberg", "rewrite_data_files()"),
    ),
    Health(
        "delete-files-many", "untidy", lambda f: with_positions(f, 5, 1), lambda f: with_positions(f, 4, 1),
        ("up to 5 for one data file", "min-input-files = 5, default of Iceberg", "delete_file_threshold=5"),
    ),
    Health(
        "equality-deletes-costly", "untidy", lambda f: with_equality(f, 3), lambda f: with_equality(f, 2),
        ("12.0 MiB per scan", "read.split.open-file-cost = 4194304", "delete_file_threshold=1"),
    ),
    Health(
        "partition-skew", "untidy", lambda f: simulated(f, sizes(512, 512, 512, 6000)),
        lambda f: simulated(f, sizes(512, 512, 512, 5000)),
        ("1 partition of 4", "12 times the median", "largest partition / median = 10, iceexplore's default"),
    ),
    Health(
        "files-unsorted", "untidy", lambda f: simulated(f, [*spread(1), {"low": 20, "high": 29, "order": 0}]),
        lambda f: simulated(f, spread(2)),
        ("1 of 2 data files", "default-sort-order-id = 1", "strategy='sort'"),
    ),
    Health(
        "ranges-overlap", "slow",
        lambda f: simulated(f, [{"high": 99}] * 5), lambda f: simulated(f, [{"high": 99}] * 4),
        ("depth 5.0", "overlap depth = 5", "strategy='sort'"),
    ),
    Health(
        "bounds-off", "untidy", lambda f: bounded(f, "counts"), bounded,
        ("1 column (name)", "write.metadata.metrics.column.name = counts, table property", "rewrite_all=True"),
    ),
    Health(
        "snapshots-old", "untidy", lambda f: aged(f, 6), lambda f: aged(f, 4),
        ("1 snapshot of branch main", "history.expire.max-snapshot-age-ms = 432000000 (5 days), default of Iceberg",
         "expire_snapshots()"),
    ),
    Health(
        "snapshots-old", "untidy",
        lambda f: aged(f, 3, **{"history.expire.max-snapshot-age-ms": str(2 * 86_400_000)}),
        lambda f: aged(f, 6, **{"history.expire.min-snapshots-to-keep": "2"}),
        ("history.expire.max-snapshot-age-ms = 172800000 (2 days), table property",),
    ),
    Health(
        "metadata-files-many", "untidy", logged,
        lambda f: logged(f, **{"write.metadata.previous-versions-max": "9"}),
        ("write.metadata.previous-versions-max = 2, table property", "metadata_files()"),
    ),
    Health(
        "schemas-unused", "untidy", lambda f: evolved(f, 1), lambda f: evolved(f, 0),
        ("schema 0", "clean_expired_metadata = false, default of Iceberg", "unused_schemas_and_specs()"),
    ),
    Health(
        "manifests-fragmented", "slow", lambda f: appended(f, 3), lambda f: appended(f, 2),
        ("commit.manifest.min-count-to-merge = 3, table property",
         "commit.manifest.target-size-bytes = 8388608, default of Iceberg", "rewrite_manifests()"),
    ),
)  # fmt: skip


def _found(table: Any, code: str) -> list[Finding]:
    return list(table.check(only=[code]))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.code}-{c.severity}")
def test_a_fault_of_the_health_is_found(case: Health, tmp_path: Path) -> None:
    (found,) = _found(case.ill(tmp_path / "ill"), case.code)
    assert found.severity == case.severity
    evidence = f"{found.text} {found.found} {found.expected} {found.advice}"
    assert [text for text in case.texts if text not in evidence] == [], evidence
    assert found.found and found.expected and "t.maintenance()." in found.advice
    assert _found(case.well(tmp_path / "well"), case.code) == []


def test_every_health_code_is_tested() -> None:
    tested = {case.code for case in CASES}
    of_tables = {code for code, kind in PROBLEM_KINDS.items() if kind.health and not code.startswith("view-")}
    assert tested | {"metadata-large"} == of_tables


def test_health_and_damage_are_groups(tmp_path: Path) -> None:
    table = logged(tmp_path / "t")
    (document_path(tmp_path / "t").parent / "version-hint.text").unlink()
    codes = {how: {f.code for f in table.check(**{how: ["health"]})} for how in ("only", "skip")}
    assert codes == {"only": {"metadata-files-many"}, "skip": {"hint-missing"}}
    both = [f.code for f in table.check()]
    assert both == ["hint-missing", "metadata-files-many"], "damage comes first"
    assert [f.code for f in table.check(skip=["damage", "metadata-files-many"])] == []
    with pytest.raises(OptionError, match="healt"):
        table.check(only=["healt"])


def test_a_branch_has_its_own_age(tmp_path: Path) -> None:
    def keep(document: Record) -> None:
        document["refs"]["main"]["max-snapshot-age-ms"] = 8 * 86_400_000

    table = aged(tmp_path / "t", 9)
    edit_json(document_path(tmp_path / "t"), keep)
    (found,) = _found(ix.open(tmp_path / "t"), "snapshots-old")
    assert "max-snapshot-age-ms = 691200000 (8 days), branch main" in str(found.expected)
    assert found.snapshots == (table.metadata.snapshots[0].snapshot_id,)


def test_a_table_whose_snapshots_must_not_expire_has_no_old_ones(tmp_path: Path) -> None:
    assert _found(aged(tmp_path / "t", 9, **{"gc.enabled": "false"}), "snapshots-old") == []


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"write.metadata.metrics.default": "none"}, "write.metadata.metrics.default = none, table property"),
        ({"write.metadata.metrics.max-inferred-column-defaults": "1"}, "max-inferred-column-defaults = 1, table"),
    ],
)
def test_columns_without_bounds_have_a_reason(properties: Record, reason: str, tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "name": "string"}, properties=properties)
    lab.append({"id": [1], "name": ["x"]})
    (found,) = _found(lab, "bounds-off")
    assert reason in str(found.expected)
    assert ("2 columns (id, name)" in found.text) is ("default = none" in reason)


def test_a_column_of_nulls_is_not_missed(tmp_path: Path) -> None:
    lab = bounded(tmp_path / "t")
    lab.evolve_schema(add={"later": "int"})
    assert _found(lab, "bounds-off") == []
    lab.append({"id": [2], "name": ["y"], "tags": [[]], "later": [None]})
    assert _found(lab, "bounds-off") == []
