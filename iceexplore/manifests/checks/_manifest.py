"""Checks of manifests that need no additional reads: what they compare is read anyway. The doctor checks the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.manifests.rules._counts import stored_counts
from iceexplore.manifests.rules._leaf_content import misplaced
from iceexplore.manifests.rules._rows import Rows
from iceexplore.manifests.rules._values import repeated
from iceexplore.metadata import TableMetadata, decode_values, partition_type, type_base

__all__ = [
    "count_problems",
    "header_problems",
    "kind_problems",
    "length_problems",
    "other_snapshot_problems",
    "repeated_problems",
    "summary_problems",
]

#: Types whose bounds are not compared: Java orders UUIDs differently, and bounds of the other types are not values of
#: the type.
_UNORDERED = frozenset({"uuid", "geometry", "geography", "variant", "unknown"})


def summary_problems(location: str, entries: pa.Table, metadata: TableMetadata) -> list[Problem]:
    """Check that 510 ``lower_bound`` is not above 511 ``upper_bound``; one problem per field, on the first manifest."""
    out: list[Problem] = []
    summaries, ids = whole(entries["partition_summaries"]), whole(entries["partition_spec_id"])
    for spec in metadata.partition_specs:
        mine = pc.and_(pc.equal(ids, spec.spec_id), pc.equal(pc.list_value_length(summaries), len(spec.fields)))
        rows = np.flatnonzero(np.asarray(pc.fill_null(mine, False)))
        if not spec.fields or not len(rows):
            continue
        flat = cast(AnyListArray, summaries.take(build.array(rows))).flatten()
        for i, field in enumerate(partition_type(spec, metadata).fields):
            if type_base(field.type) in _UNORDERED:
                continue
            one = flat.take(build.array(np.arange(i, len(flat), len(spec.fields))))
            low, high = (decode_values(field.type, pc.struct_field(one, n))[0] for n in ("lower_bound", "upper_bound"))
            if low.null_count == len(low) or pa.types.is_null(low.type):
                continue
            above = pc.fill_null(pc.greater(low, high), False)
            if not above.true_count:
                continue
            hit = np.flatnonzero(np.asarray(above))
            at = int(hit[0])
            ordinals = np.asarray(entries["ordinal"])[rows[hit]]
            place = f"{location}#entry {ordinals[0]}"
            text = (
                f"The lower bound of partition field {field.name!r} is above the upper bound in {above.true_count} of "
                f"{len(rows)} manifests: readers that use the bounds skip files and deletes."
            )
            between = f"{low[at].as_py()} to {high[at].as_py()}"
            how: dict[str, Any] = {"field": "507 partitions", "found": between, "severity": "warning"}
            out.append(problem("bounds-untrue", place, text, **how, entries=ordinals))
    return out


_COUNTS = {
    "added_files_count": ("ADDED", 504),
    "existing_files_count": ("EXISTING", 505),
    "deleted_files_count": ("DELETED", 506),
}
#: Rows of DELETED entries are not compared.
_ROWS = {"added_rows_count": ("ADDED", 512), "existing_rows_count": ("EXISTING", 513)}


def length_problems(location: str, stated: int | None, actual: int) -> list[Problem]:
    """Compare 501 ``manifest_length`` with the file: readers that trust it read only a part, or past the end."""
    if stated is None or stated == actual:
        return []
    text = f"The manifest list states {stated} bytes, the file has {actual}."
    return [problem("count-mismatch", location, text, field="501 manifest_length", found=stated, expected=actual)]


def other_snapshot_problems(location: str, header: ManifestHeader, snapshot_id: int) -> list[Problem]:
    """Compare ``snapshot-id`` in the header of a manifest list with the snapshot that names the list."""
    number = header.metadata.get("snapshot-id")
    if not number or not number.lstrip("-").isdigit() or len(number) > 20:
        return []
    written = int(number)
    if written % 2**64 == snapshot_id % 2**64:  # the header has the same id, written as an unsigned number
        return []
    if float(written) == float(snapshot_id):
        text = (
            f"The id of snapshot {snapshot_id} is {written} in its manifest list: a tool that keeps numbers as floats "
            "wrote the metadata file. Entries keep the exact id."
        )
        return [
            problem("snapshot-id-rounded", location, text, field="snapshot-id", found=snapshot_id, expected=written)
        ]
    text = (
        f"The manifest list of snapshot {snapshot_id} was written for snapshot {number}: it belongs to another commit, "
        "or to another attempt of this one."
    )
    return [
        problem(
            "root-other-snapshot", location, text, field="snapshot-id", found=number, expected=snapshot_id,
            severity="warning",
        )
    ]  # fmt: skip


def repeated_problems(entries: pa.Table) -> list[Problem]:
    """Check for a 500 ``manifest_path`` listed more than once: readers read its files as many times."""
    again = build.to_pylist(repeated(entries["location"]))
    return [
        problem(
            "file-twice",
            item["values"],
            f"The manifest list contains this manifest {item['counts']} times: its rows are read as many times.",
            field="500 manifest_path",
            found=item["counts"],
            expected=1,
        )
        for item in again
        if item["values"]
    ]


def kind_problems(
    location: str, stated: int, stated_spec: int | None, own_spec: int | None, entries: pa.Table
) -> list[Problem]:
    """Compare 517 ``content`` and 502 ``partition_spec_id`` in a v1 to v3 manifest list with the manifest itself."""
    problems: list[Problem] = []
    rows = np.flatnonzero(misplaced(Rows(entries), stated))
    if count := len(rows):
        deletes = stated == ContentType.DELETE_MANIFEST
        stated_kind, holds = ("deletes", "data files") if deletes else ("data", "delete files")
        listed = f"1 entry is a {holds[:-1]}" if count == 1 else f"{count} entries are {holds}"
        text = f"The manifest list states that this manifest has {stated_kind}, but {listed}."
        how: dict[str, Any] = {"field": "517 content", "found": stated_kind, "expected": holds}
        problems.append(problem("file-corrupt", location, text, **how, entries=np.asarray(entries["ordinal"])[rows]))
    if None not in (stated_spec, own_spec) and stated_spec != own_spec:
        text = f"The manifest list states partition spec {stated_spec}, the manifest itself {own_spec}."
        field = "502 partition_spec_id"
        problems.append(
            problem(
                "file-corrupt", location, text, field=field, found=stated_spec, expected=own_spec, severity="warning"
            )
        )
    return problems


def header_problems(location: str, header: ManifestHeader) -> list[Problem]:
    """Check that keys in a v1 to v3 manifest's header have valid values, because other engines depend on them."""
    wrong: list[tuple[str, str]] = []
    for key, kind, what in (("schema", dict, "a schema"), ("partition-spec", list, "a list of partition fields")):
        if key in header.metadata and not isinstance(header.json(key), kind):
            wrong.append((key, f"JSON of {what}"))
    numbers = ("schema-id", "partition-spec-id", "format-version")
    wrong += [(key, "a number") for key in numbers if key in header.metadata and header.number(key) is None]
    if header.content not in (None, "data", "deletes"):
        wrong.append(("content", "data or deletes"))
    text = "The manifest's header has an invalid value for {!r}: engines that use it cannot read the manifest."
    return [
        problem(
            "file-corrupt", location, text.format(key), field=key, found=header.metadata[key][:100], expected=right,
            severity="warning",
        )
        for key, right in wrong
    ]  # fmt: skip


def count_problems(
    location: str, stated: Mapping[str, int | None] | None, entries: pa.Table, dialect: str = ""
) -> list[Problem]:
    """Compare fields 504-506 and 512-513 with the entries: readers skip manifests with counts of 0. Null means unknown.

    See `stored_counts` for the entries that count.
    """
    problems: list[Problem] = []
    if stated is None:
        return problems
    counted = stored_counts(entries, dialect)
    for name, (status, field_id) in _COUNTS.items():
        claimed, actual = stated[name], counted.get(name)
        if claimed is not None and actual is not None and actual != claimed:
            text = f"The manifest list states {claimed} {status} entries, the manifest has {actual}."
            problems.append(
                problem("count-mismatch", location, text, field=f"{field_id} {name}", found=claimed, expected=actual)
            )
    for name, (status, field_id) in _ROWS.items():
        claimed, actual = stated[name], counted.get(name)
        if claimed is not None and actual is not None and actual != claimed:
            text = (
                f"The manifest list states {claimed:,} rows in {status} entries, their record counts add up to "
                f"{actual:,}: one of the two is wrong, and so are row counts from metadata."
            )
            problems.append(
                problem("totals-differ", location, text, field=f"{field_id} {name}", found=claimed, expected=actual)
            )
    return problems
