"""One thing that would help a filter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

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
    """A dotted name as Spark's SQL takes it: parts that are no plain words in backticks."""
    return ".".join(part if _PLAIN.match(part) else "`" + part.replace("`", "``") + "`" for part in name.split("."))


def quoted(text: str) -> str:
    """A text literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def options(**given: object) -> str:
    """A map of options; underscores in names become hyphens."""
    pairs = ", ".join(f"{quoted(name.replace('_', '-'))}, {quoted(str(value))}" for name, value in given.items())
    return f"map({pairs})"


def call(procedure: str, table: str, **arguments: str) -> str:
    """A procedure of the current catalog; arguments are SQL."""
    parts = [f"table => {quoted(sql_name(table))}", *(f"{name} => {sql}" for name, sql in arguments.items())]
    return f"CALL system.{procedure}({', '.join(parts)})"


def sort(table: str, column: str, files: Files, *, ordered: bool = False) -> tuple[str, ...]:
    """Sort what is written from now on, and what is there, into files as large as today's.

    Parameters
    ----------
    ordered
        The table's sort order begins with the column already.
    """
    size = max(1, round(float(files.bytes.mean()))) if len(files.bytes) else 1
    order = f"{sql_name(column)} ASC NULLS FIRST"
    return (
        *(() if ordered else (f"ALTER TABLE {sql_name(table)} WRITE ORDERED BY {sql_name(column)}",)),
        call("rewrite_data_files", table, strategy="'sort'", sort_order=quoted(order),
             options=options(rewrite_all="true", target_file_size_bytes=size)),
    )  # fmt: skip


def add_partition_field(table: str, column: str, transform: str, instead_of: str | None = None) -> tuple[str, ...]:
    """A partition field for what is written from now on, and what is there written anew with it.

    Parameters
    ----------
    transform
        With ``{}`` for the column.
    instead_of
        The name of a field that the new one makes needless.
    """
    made = transform.format(sql_name(column))
    change = (
        f"REPLACE PARTITION FIELD {sql_name(instead_of)} WITH {made}" if instead_of else f"ADD PARTITION FIELD {made}"
    )
    return (
        f"ALTER TABLE {sql_name(table)} {change}",
        call("rewrite_data_files", table, options=options(rewrite_all="true")),
    )


def set_property(table: str, name: str, value: str) -> str:
    """A table property."""
    return f"ALTER TABLE {sql_name(table)} SET TBLPROPERTIES ({quoted(name)} = {quoted(value)})"


Kind: TypeAlias = Literal["bounds", "deletes", "manifests", "metrics", "old-spec", "partition", "small-files", "sort"]
#: What writes all data anew, and the share of the cost that must be left at most.
_REWRITES = frozenset(("bounds", "metrics", "old-spec", "partition", "sort"))
_WORTH = 0.9


@dataclass(frozen=True)
class Suggestion:
    """One thing that would help.

    Attributes
    ----------
    kind
        ``sort``, ``partition``, ``old-spec``, ``metrics``, ``bounds``, ``small-files``, ``deletes`` or ``manifests``.
    title, why
        A phrase; and sentences with the numbers behind it.
    unit
        What is counted: ``data files``, ``delete files`` or ``manifests``.
    before, after
        What the plan reads now, and would read; None where nothing can be said.
    basis
        ``estimate``, ``at most`` (a limit that the gain does not pass), or ``exact``.
    statements
        SQL for Spark, to be read before it is run.
    assumes
        What the estimate takes for granted.
    column
        The filter's column that it is about.
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
        """Fewer files to open; 0 where nothing can be said."""
        return 0 if self.before is None or self.after is None else self.before.files - self.after.files

    @property
    def bytes_saved(self) -> int:
        """Fewer bytes to read; 0 where nothing can be said."""
        return 0 if self.before is None or self.after is None else self.before.bytes - self.after.bytes

    @property
    def helps(self) -> bool:
        """Whether it is worth the work; true where nothing can be said.

        Bytes are weighed with the files to open (`Reading.cost`). To write the table anew for one filter must save a
        tenth of that.
        """
        if self.before is None or self.after is None:
            return True
        return self.after.cost < self.before.cost * (_WORTH if self.kind in _REWRITES else 1.0)


def amount(count: int, one: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"
