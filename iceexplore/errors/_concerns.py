"""Decide which problems make the rows and row counts of a scan doubtful.

Many faults make other engines fail or return wrong rows, but not this package: a wrong ``manifest_length``, for
example, has no effect here, because the whole file is read. Such faults need no warning beside the rows.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from iceexplore.errors._kinds import Severity

__all__ = ["Concern", "concern_of"]

#: What a problem makes doubtful. ``rows``: the rows of every scan, and their number; ``filters``: the rows of scans
#: that prune by metadata; ``lineage``: the columns ``_row_id`` and ``_last_updated_sequence_number``.
Concern = Literal["rows", "filters", "lineage"]

#: For each code: patterns for the whole field name ("" if there is none), and what is doubtful. The first pattern that
#: matches counts. Codes and fields that are not listed do not affect the rows.
_CONCERNS: dict[str, tuple[tuple[str, Concern | None], ...]] = {
    **dict.fromkeys(
        (
            "access-denied",
            "data-no-field-ids",
            "delete-no-effect",
            "delete-path",
            "delete-position",
            "delete-scope",
            "deletes-dropped",
            "dv-twice",
            "entry-invalid",
            "equality-ids-invalid",
            "field-id-twice",
            "file-missing",
            "file-overwritten",
            "file-truncated",
            "file-twice",
            "location-invalid",
            "manifest-dv-invalid",
            "manifest-salvaged",
            "memory-limit",
            "metadata-ambiguous",
            "metadata-newer",
            "null-in-required",
            "outside-roots",
            "partition-unknown",
            "root-other-snapshot",
            "sequence-number",
            "snapshot-lost",
            "storage-failed",
            "stored-type",
            "totals-differ",
        ),
        ((".*", "rows"),),
    ),
    **dict.fromkeys(("bounds-untrue", "partition-untrue", "summary-untrue"), ((".*", "filters"),)),
    **dict.fromkeys(
        ("last-updated-beyond", "row-ids-beyond", "row-ids-reassigned", "row-ids-twice"), ((".*", "lineage"),)
    ),
    "count-mismatch": (
        (r"501 .*|506 .*|(104 )?file_size_in_bytes", None),
        (r"(null|nan|value)_count of .*|(109|110|111|137) .*", "filters"),
        (".*", "rows"),
    ),
    "field-id-reserved": (("id", "rows"),),
    # Only other engines use these keys of a manifest's header.
    "file-corrupt": (
        (r"schema|partition-spec|partition-spec-id|schema-id|content|format-version", None),
        (".*", "rows"),
    ),
    "metadata-invalid": (
        (r"current-snapshot-id|current-schema-id|schema-id|snapshot-id|manifest-list|id|field-id|type", "rows"),
    ),
    "value-undecodable": (("102 partition", "filters"),),
}


@cache
def _patterns(code: str) -> tuple[tuple[re.Pattern[str], Concern | None], ...]:
    return tuple((re.compile(text), concern) for text, concern in _CONCERNS.get(code, ()))


def concern_of(code: str, field: str | None, severity: Severity) -> Concern | None:
    """Return what a problem makes doubtful; None if it affects neither the rows nor their number.

    Faults of the metadata file that readers tolerate have the severity ``warning`` and do not affect the rows.
    """
    if code == "metadata-invalid" and severity != "error":
        return None
    return next((concern for pattern, concern in _patterns(code) if pattern.fullmatch(field or "")), None)
