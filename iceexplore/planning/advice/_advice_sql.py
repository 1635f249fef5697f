"""Statements that a person may run, in Spark's SQL. Names are somebody else's text: quoted, never put in bare."""

from __future__ import annotations

import re

from iceexplore.planning.advice._spread import Files

__all__ = ["add_partition_field", "call", "options", "quoted", "set_property", "sort", "sql_name"]

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
