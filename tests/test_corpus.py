"""Every real table opens, or ends in a `Problem` or one of our errors; healthy ones without either.

The tables were written by other engines (Spark, Trino, Flink, Hive, Impala, DuckDB, PyIceberg, Go, Rust, BigQuery …)
and most of them were moved. Their folder is given by ICEEXPLORE_CORPUS; a ``CATALOG.md`` in it says of each
whether its metadata is whole, and ``expected.json`` names each one's metadata file and snapshots.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.arrow import build

pytestmark = pytest.mark.corpus


@dataclass
class Result:
    """What came of one table."""

    name: str
    health: str
    error: str = ""
    version: int = 0
    snapshots: int = 0
    files: int = 0
    entries: int = 0
    problems: list[ix.Problem] = field(default_factory=list)

    def line(self) -> str:
        codes = ", ".join(sorted({f"{p.severity}:{p.code}" for p in self.problems})) or "—"
        counts = f"v{self.version} {self.snapshots:>4} snapshots {self.files:>5} files {self.entries:>6} entries"
        outcome = self.error[:90] or counts
        return f"{self.name:<62} {outcome:<52} {codes}"


def _expected() -> dict[str, dict[str, object]]:
    folder = os.environ.get("ICEEXPLORE_CORPUS")
    if not folder:
        return {}
    return json.loads((Path(folder) / "expected.json").read_text())  # type: ignore[no-any-return]


def _health(corpus: Path) -> dict[str, str]:
    out = {}
    for line in (corpus / "CATALOG.md").read_text().splitlines():
        cells = [c.strip() for c in line.split("|")]
        if len(cells) > 10 and cells[1].startswith("`"):
            out[cells[1].strip("`")] = cells[10].split("— PyIceberg")[0].strip()
    return out


def _read_all(t: ix.Table, result: Result) -> None:
    """Everything metadata can show: card, tree, every manifest of every snapshot, each snapshot as it was."""
    result.version = t.format_version
    result.snapshots = len(t.snapshots)
    repr(t), t._repr_html_()
    t.tree(snapshots="all", depth="files").to_text()
    result.files = t.inspect.files.arrow().num_rows
    result.entries = t.inspect.all_entries.arrow().num_rows
    for name in ("snapshots", "history", "refs", "metadata_log_entries", "manifests", "all_manifests", "partitions"):
        getattr(t.inspect, name).arrow()
    for snapshot in t.snapshots:
        t.at(snapshot=snapshot.snapshot_id).tree().to_svg()
    result.problems = list(t.problems)


def _open(path: Path, name: str, health: str) -> Result:
    result = Result(name, health)
    try:
        t = ix.open(path)
    except ix.IceexploreError as e:
        result.error = f"{type(e).__name__}: {e}"
        return result
    _read_all(t, result)
    return result


# What the catalog says of a table whose metadata is whole: any fault it names lies in data or delete files, which
# metadata views do not open.
_METADATA_IS_WHOLE = ("file_size_in_bytes wrong", "pos-delete path", "referenced files absent", "healthy")

#: Tables whose snapshot ids were rounded in the metadata file, not in the manifest lists.
_ROUNDED = (
    "impala/iceberg_v3_all_types",
    "impala/test_complex_default",
    "impala/test_default_part",
    "impala/trino_nested_variant",
)
# Tables that the catalog calls healthy because everything in them opens, and that break the spec all the same.
_BREACHES = {
    **{name: {"snapshot-id-rounded"} for name in _ROUNDED},  # the ids in the metadata file went through floats
    "altinity/iceberg_table": {"avro-no-field-ids"},  # made by hand
    "altinity/iceberg_table_traversal": {"avro-no-field-ids"},  # made by hand
    "apache-iceberg/hist_mr_test-table": {"location-guessed"},  # its files are named under a folder that it never had
    "duckdb/big_query_error": {"count-mismatch", "metadata-invalid"},  # the list gives manifests another length
    "duckdb/equality_delete_cross_partition": {"count-mismatch", "metadata-invalid"},  # a snapshot id past 2⁶³
    "duckdb/equality_delete_extra_column": {"count-mismatch", "metadata-invalid"},  # the same
    "duckdb/generated_bounds": {"count-mismatch"},  # manifest_length 0
    # cut down by hand, its list not: 4,060 files there, one in the manifest, and 0 in the summary
    "duckdb/large_partitioned_table": {"count-mismatch", "sequence-number", "totals-differ"},
    # paths and bounds made anonymous in the manifests alone: min_val_1 to max_val_1
    "duckdb/moved_positional_delete_path": {"bounds-untrue", "count-mismatch"},
    "duckdb/null_stats": {"count-mismatch"},  # manifests rewritten, their list not
    "duckdb/struct_filter_issue": {"count-mismatch"},  # the writer counts the bytes before compression
    "duckdb/timestamptz_ns": {"metadata-invalid"},  # v3 without next-row-id
    # manifests rewritten, their list not; totals of an append that are all 0
    "duckdb/unknown_puffin": {"count-mismatch", "totals-differ"},
    # made by hand: five entries where the list says one, and a delete manifest above the snapshot and the log
    "impala/iceberg_v2_null_delete_record": {"count-mismatch", "metadata-invalid", "sequence-number", "totals-differ"},
    "impala/iceberg_with_puffin_stats": {"count-mismatch"},  # a manifest rewritten, its list not
}


def _health_of(name: str, health: dict[str, str]) -> str:
    """The catalog lists some tables by a folder above them."""
    best = max((k for k in health if name == k or name.startswith((k + "/", k + "__"))), key=len, default="")
    return health.get(best, "")


@pytest.fixture(scope="module")
def results(corpus: Path) -> list[Result]:
    health = _health(corpus)
    out = []
    for name, row in _expected().items():
        out.append(_open(corpus / name / str(row["metadata"]), name, _health_of(name, health)))
    return out


def test_every_table_opens_or_says_what_is_wrong(results: list[Result], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print()
        print("\n".join(r.line() for r in results))
    assert len(results) > 100
    for r in results:
        assert r.error or r.version, r.name
        assert all(p.text and p.where for p in r.problems), r.name


def test_healthy_tables_have_no_problem(results: list[Result]) -> None:
    healthy = [
        r for r in results if any(h in r.health for h in _METADATA_IS_WHOLE) and "absent metadata" not in r.health
    ]
    assert len(healthy) > 100
    assert not [r for r in healthy if r.error]
    found = {r.name: {p.code for p in r.problems} for r in healthy}
    assert {name: codes for name, codes in found.items() if codes - _BREACHES.get(name, set())} == {}


def test_breaches_are_found(results: list[Result]) -> None:
    for r in results:
        if r.name in _BREACHES:
            assert r.problems, f"{r.name} has no problem any more: take it off the list"


def test_absent_metadata_is_a_problem(results: list[Result]) -> None:
    absent = [r for r in results if "absent metadata" in r.health]
    assert len(absent) >= 8
    for r in absent:
        assert {"file-missing", "outside-roots"} & {p.code for p in r.problems}, (r.name, r.error, r.problems)


def test_snapshots_are_those_expected(results: list[Result]) -> None:
    for r in results:
        if not r.error:
            assert r.snapshots >= len(_expected()[r.name]["rows_by_snapshot"]), r.name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "file",
    ["iceberg_table/local_metadata/metadata_outside.json", "iceberg_table_traversal/metadata/metadata_traversal.json"],
)
def test_a_path_that_climbs_out_is_refused(corpus: Path, file: str) -> None:
    t = ix.open(corpus / "altinity" / file)
    (path,) = build.to_pylist(t.inspect.files.arrow()["file_path"])
    assert "/../" in path
    for use in (
        lambda: t.state.storage.resolve(path),
        lambda: t.state.storage.read(path, kind="other"),
        lambda: t.state.storage.open(path, kind="other"),
        lambda: t.state.storage.stat(path),
    ):
        with pytest.raises(ix.OutsideRootsError, match=r"etc/passwd.*allow="):
            use()
    assert not any("passwd" in read.real for read in t.reads)


@pytest.mark.parametrize("name", sorted(_expected()))
def test_totals_match_the_manifests(corpus: Path, name: str) -> None:
    """Rows by manifest equal an independent reader's, unless deletes or missing files intervene."""
    row = _expected()[name]
    t = ix.open(corpus / name / str(row["metadata"]))
    for snapshot_id, rows in row["rows_by_snapshot"].items():  # type: ignore[attr-defined]
        if rows is None:
            continue
        then = t.at(snapshot=int(snapshot_id))
        files = then.inspect.files.arrow()
        if any(p.severity == "error" for p in then.problems):
            continue
        counts = Counter[int]()
        for file in files.select(["content", "file_format", "record_count"]).to_pylist():
            # duckdb/unknown_puffin: its writer keeps an index of its own as a "data file"; the reader passes it over.
            if (file["content"], file["file_format"].lower()) != (0, "puffin"):
                counts[file["content"]] += file["record_count"]
        assert counts[0] >= rows, snapshot_id
        if not counts[1] and not counts[2]:
            assert counts[0] == rows, snapshot_id
