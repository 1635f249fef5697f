"""Represent a suggested change of a table, after which a scan would read less, and write its SQL statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from iceexplore.metadata import Transform
from iceexplore.planning.advice._spread import Files, Reading

__all__ = [
    "Kind",
    "Suggestion",
    "add_partition_field",
    "amount",
    "call",
    "options",
    "set_property",
    "sort",
]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def sql_name(name: str) -> str:
    """Quote a dotted name for Spark SQL.

    A part of the name gets backticks if it begins with a digit, or if it contains anything but ASCII letters, digits
    and underscores.
    """
    return ".".join(part if _PLAIN.match(part) else "`" + part.replace("`", "``") + "`" for part in name.split("."))


def quoted(text: str) -> str:
    """Return a text as a string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def options(**given: object) -> str:
    """Return a SQL expression for a map of options: ``map('rewrite-all', 'true')`` for ``rewrite_all="true"``.

    Underscores in the names of options become hyphens.
    """
    pairs = ", ".join(f"{quoted(name.replace('_', '-'))}, {quoted(str(value))}" for name, value in given.items())
    return f"map({pairs})"


def call(procedure: str, table: str, **arguments: str) -> str:
    """Return a Spark SQL statement that calls an Iceberg procedure of the current catalog.

    For example, ``call("rewrite_data_files", "db.t", strategy="'sort'")`` returns
    ``CALL system.rewrite_data_files(table => 'db.t', strategy => 'sort')``.

    Parameters
    ----------
    procedure, table
        The names of the procedure and of the table.
    **arguments
        Further arguments of the procedure, by name. A value is a SQL expression, so a string has SQL quotes.
    """
    parts = [f"table => {quoted(sql_name(table))}", *(f"{name} => {sql}" for name, sql in arguments.items())]
    return f"CALL system.{procedure}({', '.join(parts)})"


def sort(table: str, column: str, files: Files, *, ordered: bool = False) -> tuple[str, ...]:
    """Return SQL statements that set the table's sort order to a column, and rewrite all data files in this order.

    Parameters
    ----------
    table, column
        The names of the table and of the column.
    files
        The table's data files. Their average size becomes the target size of the rewritten files.
    ordered
        Whether the table's sort order already begins with the column. If true, no statement sets it.
    """
    size = max(1, round(float(files.bytes.mean()))) if len(files.bytes) else 1
    order = f"{sql_name(column)} ASC NULLS FIRST"
    return (
        *(() if ordered else (f"ALTER TABLE {sql_name(table)} WRITE ORDERED BY {sql_name(column)}",)),
        call("rewrite_data_files", table, strategy="'sort'", sort_order=quoted(order),
             options=options(rewrite_all="true", target_file_size_bytes=size)),
    )  # fmt: skip


def add_partition_field(
    table: str, column: str, transform: Transform, instead_of: str | None = None
) -> tuple[str, ...]:
    """Return SQL statements that add a partition field, and rewrite all data files with it.

    Parameters
    ----------
    table, column
        The names of the table and of the column from which the partition field is derived.
    transform
        The field's transform.
    instead_of
        Name of a partition field that the new one replaces; None to replace no field.
    """
    made = transform.to_sql(sql_name(column))
    change = (
        f"REPLACE PARTITION FIELD {sql_name(instead_of)} WITH {made}" if instead_of else f"ADD PARTITION FIELD {made}"
    )
    return (
        f"ALTER TABLE {sql_name(table)} {change}",
        call("rewrite_data_files", table, options=options(rewrite_all="true")),
    )


def set_property(table: str, name: str, value: str) -> str:
    """Return a Spark SQL statement that sets a table property."""
    return f"ALTER TABLE {sql_name(table)} SET TBLPROPERTIES ({quoted(name)} = {quoted(value)})"


Kind: TypeAlias = Literal["bounds", "deletes", "manifests", "metrics", "old-spec", "partition", "small-files", "sort"]
#: Kinds of suggestions that rewrite all data.
_REWRITES = frozenset(("bounds", "metrics", "old-spec", "partition", "sort"))
#: A rewrite of all data is suggested only if it lowers the cost of reading (`Reading.cost`: bytes, plus 4 MiB for each
#: file) to less than this share of the present cost.
_WORTH = 0.9


@dataclass(frozen=True)
class Suggestion:
    """A suggested change of a table, after which a scan with the filter would read less.

    Attributes
    ----------
    kind
        The kind of change: ``sort`` (sort by a column), ``partition`` (partition by a column), ``old-spec`` (rewrite
        files of older partition specs), ``metrics`` (write missing bounds), ``bounds`` (write full bounds instead of
        truncated ones), ``small-files`` (compact small files), ``deletes`` (rewrite data files or position delete
        files, so that fewer deletes are read) or ``manifests`` (cluster manifests by partition).
    title, why
        A short title, and an explanation with the numbers behind it.
    unit
        The kind of files that ``before`` and ``after`` count: ``data files``, ``data and delete files`` or
        ``manifests``.
    before, after
        The files and bytes that the plan reads now, and those that it would read after the change; None if unknown.
    basis
        How exact the saving from ``before`` to ``after`` is: ``estimate``, ``at most`` (an upper limit) or ``exact``.
    statements
        SQL for Spark; review it before running it.
    assumes
        Assumptions on which ``after`` is based; empty if there are none.
    column
        Name of the filter's column that the suggestion is about; None if it is not about one column.
    """

    kind: Kind
    title: str
    why: str
    before: Reading | None = None
    after: Reading | None = None
    unit: str = "data files"
    basis: Literal["estimate", "at most", "exact"] = "estimate"
    statements: tuple[str, ...] = ()
    assumes: str = ""
    column: str | None = None

    @property
    def files_saved(self) -> int:
        """Return how many fewer files the plan would read after the suggested change; 0 if unknown."""
        return 0 if self.before is None or self.after is None else self.before.files - self.after.files

    @property
    def bytes_saved(self) -> int:
        """Return how many fewer bytes the plan would read after the suggested change; 0 if unknown."""
        return 0 if self.before is None or self.after is None else self.before.bytes - self.after.bytes

    @property
    def helps(self) -> bool:
        """Return whether the suggestion is worth the work; True if the saving is unknown.

        A suggestion is worth the work if it lowers the cost of a scan with the filter: the bytes to read plus the cost
        of opening files (`Reading.cost`). A rewrite of all data files is much work, so it must lower the cost by more
        than a tenth.
        """
        if self.before is None or self.after is None:
            return True
        return self.after.cost < self.before.cost * (_WORTH if self.kind in _REWRITES else 1.0)


def amount(count: int, one: str) -> str:
    """Return a count with its noun: ``1 file``, ``2 files``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"
