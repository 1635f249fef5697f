"""Choose the schema with which a state of the table is read, and parse times that users give."""

from __future__ import annotations

from datetime import UTC, date, datetime

from iceexplore.errors import OptionError
from iceexplore.metadata.document._model import Snapshot, TableMetadata
from iceexplore.metadata.types._types import Schema

__all__ = ["schema_at", "to_ms"]


def schema_at(metadata: TableMetadata, snapshot: Snapshot | None, ref: str | None = None) -> Schema:
    """Return the schema with which to read a snapshot.

    A branch, given by ``ref``, is read with the table's current schema (Java: ``SnapshotUtil.schemaFor``), a tag or a
    snapshot with the snapshot's schema. If a v1 snapshot has no schema id, the current schema is used.
    """
    if snapshot is None:
        return metadata.schema()
    if ref is not None and ref in metadata.refs and metadata.refs[ref].type == "branch":
        return metadata.schema()
    return metadata.schema(snapshot.schema_id)


def to_ms(when: object) -> int:
    """Return a time as milliseconds since the epoch.

    Takes a datetime, date, ISO text, pandas Timestamp, or milliseconds. A time without a zone is UTC.

    Raises
    ------
    OptionError
        The value has a different type, or is a text in a different format.
    """
    if isinstance(when, bool):
        raise OptionError(f"timestamp={when!r}: give a datetime, ISO text or milliseconds since the epoch")
    if isinstance(when, int):
        return when
    if isinstance(when, str):
        text = when.strip()
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            raise OptionError(
                f"timestamp={text!r} is not an ISO date or time; use '2024-01-31' or '2024-01-31T12:00:00+00:00'"
            ) from None
    if isinstance(when, datetime):
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        # Use integers: seconds as floats lose milliseconds from the year 2255 on.
        delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000
    if isinstance(when, date):
        return to_ms(datetime(when.year, when.month, when.day, tzinfo=UTC))
    raise OptionError(f"timestamp={when!r}: give a datetime, ISO text or milliseconds since the epoch")
