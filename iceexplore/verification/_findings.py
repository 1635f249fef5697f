"""Findings: what verification says of files, as rows that Arrow and Spark carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from iceexplore.errors import IceexploreError, Problem, Problems, Severity, problem
from iceexplore.graph import json_safe
from iceexplore.storage import path_only

__all__ = ["CHECKED_SCHEMA", "Checked", "FINDING_SCHEMA", "Place", "Role"]

#: Of ``t.verify()``: ``entry`` is the ordinal in ``manifest``; ``snapshot_id`` the one that the entry names.
FINDING_SCHEMA = pa.schema(
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
    """What a row of `CHECKED_SCHEMA` is: a finding; a data file; a delete file's or a vector's claim on one; row ids
    that a data file takes."""

    FINDING, DATA, POSITIONS, VECTOR, IDS = range(5)


#: What checking one file gives: findings, and what can be judged only next to other files. ``key`` is the data file
#: that a row is about, without scheme and host, which tables that were moved by editing their metadata have in some
#: places only; ``named`` the same as it is spelled there, ``rows`` how many rows the data file has,
#: or, of a claim, how many it must have. Of row ids ``key`` is a part of all that the table has given out, ``first_id``
#: and ``end_id`` what the file takes, the end not with it; ``rows`` is 1 in the part where they begin, else 0.
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
    """The entry that is checked."""

    location: str
    content: int | None = None
    manifest: str | None = None
    entry: int | None = None
    snapshot_id: int | None = None


@dataclass
class Checked:
    """Collects the rows of `CHECKED_SCHEMA`: one Python object a finding or claim, of one slice of a manifest."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, place: Place, item: Problem) -> None:
        """A finding."""
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
        """A finding of one of the codes in `iceexplore.errors.PROBLEM_KINDS`."""
        made = problem(
            code, place.location, text, field=field, found=_short(found), expected=_short(expected), severity=severity
        )
        self.add(place, made)

    def fail(self, place: Place, error: IceexploreError) -> None:
        """An error of ours as a finding."""
        self.add(place, Problems().add_error(error, place.location))

    def data(self, place: Place, rows: int | None) -> None:
        """A live data file, with its rows where they are known."""
        self._claim(Role.DATA, place, place.location, rows)

    def claim(self, role: int, place: Place, named: str, rows: int) -> None:
        """A delete on a data file that must have so many rows."""
        self._claim(role, place, named, rows)

    def row_ids(self, place: Place, keys: Iterable[str], first: int, end: int) -> None:
        """Row ids that a data file takes, in each part of the table's."""
        taken = {"role": Role.IDS, "named": place.location, "first_id": first, "end_id": end, **_columns(place)}
        self.rows += ({**taken, "key": key, "rows": int(i == 0)} for i, key in enumerate(keys))

    def _claim(self, role: int, place: Place, named: str, rows: int | None) -> None:
        self.rows.append({"role": role, "key": path_only(named), "named": named, "rows": rows, **_columns(place)})

    def table(self) -> pa.Table:
        """All of it."""
        try:
            return pa.Table.from_pylist(self.rows, schema=CHECKED_SCHEMA)
        except UnicodeEncodeError:  # a location of the metadata file with a lone surrogate, which Arrow cannot hold
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
