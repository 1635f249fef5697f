"""What readers are known to get wrong, or do not support: each explains differences that are not ours."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]


@dataclass(frozen=True)
class Fault:
    """One fault of one reader.

    Attributes
    ----------
    reader
        The reader's key.
    text
        What a user of this reader should know, as a sentence.
    features
        A table shows it only if it has all of these features.
    kind
        ``error``: it refuses, so nobody is misled. ``rows``: it returns other rows.
    message
        A pattern that the difference's line contains.
    """

    reader: str
    text: str
    features: frozenset[str] = frozenset()
    kind: str = "error"
    message: str = ""

    def explains(self, reader: str, features: set[str], kind: str, line: str) -> bool:
        """Return whether a difference is this fault."""
        return (
            reader == self.reader and kind == self.kind and self.features <= features
            and re.search(self.message, line) is not None
        )  # fmt: skip


def _of(reader: str, text: str, *features: str, kind: str = "error", message: str = "") -> Fault:
    return Fault(reader, text, frozenset(features), kind, message)


#: Sentences that hold of several readers.
_WRAPPED = (
    "Rows with the least int or long are missing from filters on a column partitioned by `truncate`: the spec's formula"
    " underflows there, and the value wraps round to a positive partition value."
)
_NULL_LISTS = "A null list or map of nested values is returned as an empty one."
_NO_DEFAULTS = "Initial defaults (v3) are read as null in files written before the column was added."
_NANOSECONDS = "Manifests whose partition tuples hold nanosecond timestamps cannot be read (`timestamp-nanos` in Avro)."

FAULTS: tuple[Fault, ...] = (
    # Iceberg's runtime
    *(
        _of("spark", _WRAPPED, "transform truncate", f"type {type_}", kind="rows", message=r"v < 0")
        for type_ in ("int", "long")
    ),
    _of(
        "spark", "A filter on a column with an initial default skips files written before the column was added.",
        "initial defaults", kind="rows", message="grade = 7",
    ),
    _of("spark", "Spark has no type for `time`.", "type time", message="does not support time"),
    *(
        _of("spark", "Spark 4.1 with Iceberg 1.11 has no type for nanosecond timestamps.", f"type {type_}", message="unsupported type")
        for type_ in ("timestamp_ns", "timestamptz_ns")
    ),
    _of("spark", "Tables partitioned by identity of a `fixed` column cannot be read.", "transform identity", "type fixed"),
    # PyIceberg
    *(
        _of("pyiceberg", _WRAPPED, "transform truncate", f"type {type_}", kind="rows", message=r"v < 0")
        for type_ in ("int", "long")
    ),
    *(_of("pyiceberg", _NULL_LISTS, f"type {type_}", kind="rows", message=r"null\].*\[\]") for type_ in ("list", "map")),
    _of("pyiceberg", _NANOSECONDS, message="timestamp-nanos"),
    # polars
    _of("polars", _NANOSECONDS, message="timestamp-nanos"),
    # DuckDB
    *(
        _of("duckdb", _WRAPPED, "transform truncate", f"type {type_}", kind="rows", message=r"v < 0")
        for type_ in ("int", "long")
    ),
    _of(
        "duckdb", "A table upgraded from version 1 cannot be read while manifests of version 1 are left in it; rewrite them"
        " (`rewrite_manifests`).", "upgraded", message="only allowed to be NULL for ADDED",
    ),
    _of("duckdb", "`timestamptz_ns` is not a known type.", "type timestamptz_ns", message="Unrecognized primitive type"),
    _of("duckdb", "`unknown` is not a known type.", "type unknown", message="Unrecognized primitive type"),
    # daft
    *(
        _of("daft", _WRAPPED, "transform truncate", f"type {type_}", kind="rows", message=r"v < 0")
        for type_ in ("int", "long")
    ),
    _of("daft", _NO_DEFAULTS, "initial defaults", kind="rows"),
    _of("daft", "Deletion vectors are not supported: the Puffin file is opened as Parquet.", message="puffin"),
    _of(
        "daft", "Files written before columns were added, dropped or renamed cannot be read.", "evolved schema",
        message="Failed to decode parquet column",
    ),
    _of(
        "daft", "Several partition fields of one column cannot be read, filtered or not.", "evolved spec",
        message="Duplicate Partitioning Columns",
    ),
    _of("daft", "Filters fail on a partition field that was added later.", "evolved spec", message="FieldNotFound"),
    _of("daft", "Columns of type `uuid` cannot be read from a table partitioned by one.", "type uuid", message="Cannot cast UUID"),
    _of("daft", _NANOSECONDS, message="timestamp-nanos"),
    # chDB
    *(
        _of("chdb", _WRAPPED, "transform truncate", f"type {type_}", kind="rows", message=r"v < 0")
        for type_ in ("int", "long")
    ),
    _of("chdb", _NO_DEFAULTS, "initial defaults", kind="rows"),
    _of("chdb", "Deletion vectors are not supported.", message="Position deletes are supported only for parquet"),
    _of("chdb", "Microseconds of `time` are dropped.", "type time", kind="rows"),
    *(
        _of("chdb", "A null list, map or struct is returned as an empty one: ClickHouse has no null there.", f"type {type_}", kind="rows")
        for type_ in ("list", "map", "struct")
    ),
    _of("chdb", "Filters by a `date` before 1970 miss rows.", "type date", kind="rows", message=r"v (=|>=|<) datetime"),
    _of("chdb", "Tables partitioned by `truncate` of a decimal cannot be read.", "transform truncate", "type decimal"),
    _of("chdb", "Tables partitioned by identity of a `uuid` cannot be read.", "transform identity", "type uuid"),
    _of("chdb", "`unknown` is not a known type.", "type unknown", message="Cannot parse Iceberg table schema"),
    _of("chdb", "Tables partitioned by identity of a `timestamp_ns` cannot be read.", "transform identity", "type timestamp_ns"),
    _of(
        "chdb", "`timestamptz_ns` as a partition value (identity) is taken for microseconds.",
        "transform identity", "type timestamptz_ns", kind="rows",
    ),
)  # fmt: skip
