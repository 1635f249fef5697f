"""Findings of verification, as rows of Arrow tables, which Spark can also process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import IceexploreError, Problem, Problems, Severity, problem
from iceexplore.graph import json_safe
from iceexplore.storage import path_only

__all__ = ["CHECKED_SCHEMA", "Checked", "FINDING_SCHEMA", "Place", "Role"]

#: The result of ``t.verify()``: ``entry`` is the ordinal of an entry in ``manifest``, ``snapshot_id`` is its snapshot.
FINDING_SCHEMA = build.schema(
    [
        pa.field("code", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("location", pa.string()),
        pa.field("content", pa.int32()),
        pa.field("manifest", pa.string()),
        pa.field("entry", pa.int64()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("field", pa.string()),
        pa.field("found", pa.string()),
        pa.field("expected", pa.string()),
        pa.field("text", pa.string()),
    ]
)


class Role:
    """The kinds of rows in `CHECKED_SCHEMA`.

    These are: a finding; a live data file; a claim, which is that a position delete file or a deletion vector deletes
    rows of some data file; a range of row ids that a data file occupies.
    """

    FINDING, DATA, POSITIONS, VECTOR, IDS = range(5)


#: The result of checking one file: findings, and facts that can be judged only together with other files. ``key`` is
#: the location of the data file concerned, without scheme and host, because a table that was moved by editing its
#: metadata has them in some locations only. ``named`` is the location as spelled. ``rows`` is the row count of the data
#: file or, for a claim about it, the minimum row count that the claim requires. In rows about row ids, the columns have
#: a different meaning: the table's row ids are divided into parts, and ``key`` is a part that a file's range overlaps;
#: ``first_id`` (inclusive) and ``end_id`` (exclusive) are the range; ``rows`` is 1 in the part where it begins, else 0.
CHECKED_SCHEMA = pa.schema(
    [
        pa.field("role", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("named", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("first_id", pa.int64()),
        pa.field("end_id", pa.int64()),
        *FINDING_SCHEMA,
    ]
)


@dataclass(frozen=True)
class Place:
    """The manifest entry that is checked."""

    location: str
    content: int | None = None
    manifest: str | None = None
    entry: int | None = None
    snapshot_id: int | None = None


@dataclass
class Checked:
    """A collector of rows of `CHECKED_SCHEMA` for one slice of a manifest, with a Python dictionary for each row."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, place: Place, item: Problem) -> None:
        """Add a problem as a finding."""
        self.rows.append(
            {
                "role": Role.FINDING,
                "key": place.location,
                "code": item.code,
                "severity": item.severity,
                **_columns(place),
                "field": item.field,
                "found": item.found,
                "expected": item.expected,
                "text": item.text,
            }
        )

    def say(
        self,
        place: Place,
        code: str,
        text: str,
        *,
        field: str | None = None,
        found: object = None,
        expected: object = None,
        severity: Severity | None = None,
    ) -> None:
        """Add a finding with one of the codes in `iceexplore.errors.PROBLEM_KINDS`."""
        made = problem(
            code, place.location, text, field=field, found=_short(found), expected=_short(expected), severity=severity
        )
        self.add(place, made)

    def fail(self, place: Place, error: IceexploreError, *, field: str | None = None) -> None:
        """Add an error of this library as a finding; ``field`` is used if the error names no field."""
        item = Problems().add_error(error, place.location)
        self.add(place, item if item.field or field is None else replace(item, field=field))

    def data(self, place: Place, rows: int | None) -> None:
        """Add a live data file with its row count; None if unknown."""
        self._claim(Role.DATA, place, place.location, rows)

    def claim(self, role: int, place: Place, named: str, rows: int) -> None:
        """Add the claim of a delete that the data file ``named`` has at least ``rows`` rows."""
        self._claim(role, place, named, rows)

    def row_ids(self, place: Place, keys: Iterable[str], first: int, end: int) -> None:
        """Add a row id range, ``first`` to ``end`` (exclusive), once for each of the parts (``keys``) it overlaps."""
        taken = {"role": Role.IDS, "named": place.location, "first_id": first, "end_id": end, **_columns(place)}
        self.rows += ({**taken, "key": key, "rows": int(i == 0)} for i, key in enumerate(keys))

    def _claim(self, role: int, place: Place, named: str, rows: int | None) -> None:
        self.rows.append({"role": role, "key": path_only(named), "named": named, "rows": rows, **_columns(place)})

    def table(self) -> pa.Table:
        """Return all rows as a table of `CHECKED_SCHEMA`."""
        try:
            return pa.Table.from_pylist(self.rows, schema=CHECKED_SCHEMA)
        except UnicodeEncodeError:  # a location in the metadata has a lone surrogate, which Arrow cannot hold
            rows = [{k: json_safe(v) if isinstance(v, str) else v for k, v in row.items()} for row in self.rows]
            return pa.Table.from_pylist(rows, schema=CHECKED_SCHEMA)


def _columns(place: Place) -> dict[str, Any]:
    return {
        "location": place.location,
        "content": place.content,
        "manifest": place.manifest,
        "entry": place.entry,
        "snapshot_id": place.snapshot_id,
    }


def _short(value: object) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= 200 else text[:199] + "…"
