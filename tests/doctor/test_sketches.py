"""Numbers of distinct values are compared with the sketches of statistics files."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.deletes import read_puffin_footer


@pytest.fixture
def folder(trips: Path, tmp_path: Path) -> Path:
    """A copy of the sample table, whose statistics file has the sketches of two columns."""
    return Path(shutil.copytree(trips, tmp_path / "trips"))


def _state_ndv(folder: Path, ndv: object) -> None:
    path = folder / "metadata" / ix.open(folder).metadata_location.rpartition("/")[2]
    document = json.loads(gzip.decompress(path.read_bytes()))
    document["statistics"][0]["blob-metadata"][0]["properties"]["ndv"] = ndv
    path.write_bytes(gzip.compress(json.dumps(document).encode()))


def _found(folder: Path, level: str = "files") -> list[tuple[str, str | None, str | None]]:
    report = ix.open(folder).check(level, only=["ndv-untrue", "statistics-untrue"])  # type: ignore[arg-type]
    return [(f.code, f.found, f.expected) for f in report]


def test_true_numbers_are_no_finding(folder: Path) -> None:
    assert _found(folder) == []


@pytest.mark.parametrize("ndv", ["642", "643", "644"])
def test_rounding_is_no_finding(folder: Path, ndv: str) -> None:
    _state_ndv(folder, ndv)
    assert _found(folder) == []


def test_a_number_that_is_not_the_sketchs(folder: Path) -> None:
    _state_ndv(folder, "64")
    assert _found(folder, "metadata") == []
    assert _found(folder) == [("ndv-untrue", "64", "643")]
    (finding,) = ix.open(folder).check("files", only="ndv-untrue")
    assert finding.severity == "slow" and "column 1" in finding.text and "the metadata file" in finding.text.lower()
    assert finding.where.endswith(".stats#blob 0") and finding.snapshots


@pytest.mark.parametrize("ndv", ["many", "", "9" * 30, "-5", "٣"])
def test_what_is_no_number_is_not_compared(folder: Path, ndv: str) -> None:
    _state_ndv(folder, ndv)
    assert _found(folder) == []


def test_a_footer_with_another_number_is_found_too(folder: Path) -> None:
    t = ix.open(folder)
    path = next(folder.rglob("*.stats"))
    data = path.read_bytes()
    size = read_puffin_footer(t.state.storage, t.metadata.statistics[0].statistics_path).footer_size
    head, footer = data[:-size], data[-size:]
    changed = footer.replace(b'"ndv":"643"', b'"ndv":"999"')
    assert changed != footer and json.loads(changed[4 : changed.rindex(b"}") + 1])
    path.write_bytes(head + changed)
    _state_ndv(folder, "643")
    assert _found(folder) == [("ndv-untrue", "999", "643")]


def test_a_statistics_file_that_cannot_be_read(folder: Path) -> None:
    path = next(folder.rglob("*.stats"))
    path.write_bytes(b"\0" * path.stat().st_size)
    assert [code for code, _, _ in _found(folder)] == ["statistics-untrue"]
    assert ix.open(folder).check("files").ok


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("all_stats_in_1_file", set()),
        ("duplicate_stats_in_2_files", set()),
        ("all_files_corrupt", {"statistics-untrue"}),
        ("invalidAndCorruptSketches", {"statistics-untrue"}),
        ("missing_file", {"statistics-missing"}),
    ],
)
def test_impalas_statistics_files(corpus: Path, name: str, codes: set[str]) -> None:
    t = ix.open(corpus / "impala" / "ice_puffin" / "generated" / f"{name}.metadata.json")
    report = t.check("files", snapshots="all", only=["ndv-untrue", "statistics-untrue", "statistics-missing"])
    assert {f.code for f in report} == codes
