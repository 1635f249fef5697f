"""Check the numbers of distinct values (NDV) in statistics files against their theta sketches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iceexplore.deletes import PuffinBlob, read_puffin_blob, read_puffin_footer, theta_ndv
from iceexplore.doctor.examination._examination import Examination
from iceexplore.errors import FileMissingError, IceexploreError, Problem, problem
from iceexplore.metadata import StatisticsFile
from iceexplore.storage import Storage

__all__ = ["check_sketches"]

#: The blob type of theta sketches (Puffin spec, "Blob types").
_THETA = "apache-datasketches-theta-v1"
#: The largest difference between an NDV and the sketch's estimate that is not reported. Writers round the estimate down
#: (Spark, Java) or to the nearest integer (Trino).
_ROUNDING = 1.0


def check_sketches(examination: Examination) -> None:
    """Report statistics files that cannot be read, and NDVs that differ from the estimates of their sketches.

    Engines take the NDV from the table's metadata file, or from the Puffin file's footer. Only the statistics files of
    the examined snapshots are opened.
    """
    examined = {s.snapshot_id for s in examination.snapshots}
    for file in examination.state.metadata.statistics:
        if file.snapshot_id not in examined:
            continue
        try:
            for item in _untrue(examination.state.storage, file):
                examination.report(item, snapshots=(file.snapshot_id,))
        except FileMissingError:
            pass  # reported by the check of existence
        except IceexploreError as error:
            text = f"The statistics file of snapshot {file.snapshot_id} cannot be read: {error}"
            item = problem("statistics-untrue", file.statistics_path, text, field="statistics-path")
            examination.report(item, modes=(8,), snapshots=(file.snapshot_id,))


def _untrue(storage: Storage, file: StatisticsFile) -> Iterator[Problem]:
    stated = {(b.type, b.fields): b.properties for b in file.blob_metadata}
    for blob in read_puffin_footer(storage, file.statistics_path).blobs:
        if blob.type == _THETA:
            yield from _compared(storage, file, blob, stated.get((blob.type, blob.fields), {}))


def _compared(storage: Storage, file: StatisticsFile, blob: PuffinBlob, stated: Mapping[str, str]) -> Iterator[Problem]:
    estimate = theta_ndv(read_puffin_blob(storage, file.statistics_path, blob), file.statistics_path)
    column = ", ".join(map(str, blob.fields))
    place = f"{file.statistics_path}#blob {blob.ordinal}"
    sources = (("the metadata file", stated.get("ndv")), ("the file's footer", blob.properties.get("ndv")))
    for source, text in sources:
        ndv = _number(text)
        if ndv is None or estimate is None or abs(ndv - estimate) <= _ROUNDING:
            continue
        source = f"{source[:1].upper()}{source[1:]}"
        what = f"{source} states {ndv:,} distinct values of column {column}; the sketch estimates"
        yield problem(
            "ndv-untrue", place, f"{what} {estimate:,.0f}.", field="ndv", found=ndv, expected=f"{estimate:.0f}"
        )
        return  # writers put the same number into the metadata file and the footer: one problem is enough


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 20 else None
