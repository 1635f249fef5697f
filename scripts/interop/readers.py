"""Read tables with one reader, a line of JSON for each: ``python -m scripts.interop.readers <reader> <cases.json>``.

It runs in an environment of its own, without iceexplore. A case whose reader ends the process (some are native code)
is found by the missing line; the caller starts again behind it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .canonical import from_json_value, rows_of

#: A case's filter: column, operator, value.
Filter = tuple[str, str, Any] | None


def _pyiceberg(case: dict[str, Any], where: Filter) -> Any:
    from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNull, LessThan
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(case["metadata"])
    if where is None:
        return table.scan().to_arrow()
    column, operator, value = where
    kinds = {"=": EqualTo, ">=": GreaterThanOrEqual, "<": LessThan}
    return table.scan(row_filter=IsNull(column) if operator == "null" else kinds[operator](column, value)).to_arrow()


def _polars(case: dict[str, Any], where: Filter) -> Any:
    import polars

    frame = polars.scan_iceberg(case["metadata"], reader_override="native")
    if where is not None:
        column, operator, value = where
        at = polars.col(column)
        frame = frame.filter(
            {"null": at.is_null, "=": lambda: at == value, ">=": lambda: at >= value, "<": lambda: at < value}[
                operator
            ]()
        )
    return frame.collect().to_arrow()


def _sql_literal(value: Any) -> str:
    text = str(value).replace("'", "''")
    return text if isinstance(value, bool | int | float) else f"'{text}'"


def _sql_where(where: Filter) -> str:
    if where is None:
        return ""
    column, operator, value = where
    return f' WHERE "{column}" ' + ("IS NULL" if operator == "null" else f"{operator} {_sql_literal(value)}")


_DUCKDB: list[Any] = []


def _duckdb(case: dict[str, Any], where: Filter) -> Any:
    if not _DUCKDB:
        import duckdb
        import duckdb_extensions

        for name in ("avro", "iceberg"):
            duckdb_extensions.import_extension(name)
        _DUCKDB.append(duckdb.connect())
        _DUCKDB[0].execute("LOAD avro; LOAD iceberg; SET TimeZone = 'UTC'")
    location = case["metadata"].replace("'", "''")
    found = _DUCKDB[0].execute(f"SELECT * FROM iceberg_scan('{location}'){_sql_where(where)}")
    return found.to_arrow_table()


def _daft(case: dict[str, Any], where: Filter) -> Any:
    import daft
    from pyiceberg.table import StaticTable

    frame = daft.read_iceberg(StaticTable.from_metadata(case["metadata"]))
    if where is not None:
        column, operator, value = where
        at = daft.col(column)
        frame = frame.where(
            {"null": at.is_null, "=": lambda: at == value, ">=": lambda: at >= value, "<": lambda: at < value}[
                operator
            ]()
        )
    return frame.to_arrow()


def _chdb(case: dict[str, Any], where: Filter) -> Any:
    import io
    import os

    import chdb
    import pyarrow

    os.chdir(Path(case["folder"]).parent)  # it reads files below the current folder alone
    folder = case["folder"].replace("'", "\\'")
    condition = _sql_where(where).replace('"', "`")
    # its String is bytes: Arrow's strings would have to be UTF-8
    settings = "SETTINGS output_format_arrow_string_as_string = 0"
    query = f"SELECT * FROM icebergLocal('{folder}'){condition} {settings}"
    found = chdb.query(query, "ArrowStream").bytes()
    return pyarrow.ipc.open_stream(io.BytesIO(found)).read_all()


_SPARK: list[Any] = []


def _spark(case: dict[str, Any], where: Filter) -> Any:
    if not _SPARK:
        import iceexplore as ix

        _SPARK.append(ix.spark(iceberg=True, config={"spark.sql.session.timeZone": "UTC"}))
    frame = _SPARK[0].read.format("iceberg").load(case["metadata"])
    if where is not None:
        frame = frame.where(_sql_where(where).removeprefix(" WHERE ").replace('"', "`"))
    return frame.toArrow()


def _iceexplore(case: dict[str, Any], where: Filter) -> Any:
    import iceexplore as ix

    if where is None:
        return ix.open(case["folder"]).to_arrow()
    return ix.open(case["folder"]).to_arrow(_sql_where(where).removeprefix(" WHERE "))


READERS: dict[str, Callable[[dict[str, Any], Filter], Any]] = {
    "iceexplore": _iceexplore, "spark": _spark, "pyiceberg": _pyiceberg, "polars": _polars, "duckdb": _duckdb,
    "daft": _daft, "chdb": _chdb,
}  # fmt: skip

_VERSIONS = {
    "pyiceberg": ["pyiceberg"], "polars": ["polars"], "duckdb": ["duckdb", "duckdb-extension-iceberg"],
    "daft": ["daft"], "chdb": ["chdb-core"], "spark": ["pyspark"], "iceexplore": ["iceexplore"],
}  # fmt: skip


def versions(reader: str) -> str:
    """Return what is installed of a reader, as text."""
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in _VERSIONS[reader])


def _cause(error: BaseException) -> str:
    """Return an error as one line: of Java's, what caused it."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    causes = [line.strip() for line in lines if line.startswith("Caused by:")]
    return (causes[-1] if causes else lines[0])[:300]


def outcome(reader: str, case: dict[str, Any]) -> dict[str, Any]:
    """Read one table whole and by each of its filters.

    Returns
    -------
    dict
        ``rows`` and ``filtered``, each with the rows' texts or with ``error``, a line of text.
    """

    def read(where: Filter) -> Any:
        try:
            return rows_of(READERS[reader](case, where), case["columns"])
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return {"error": _cause(error)}

    filters = [(column, operator, from_json_value(value)) for column, operator, value, _ in case["filters"]]
    return {"name": case["name"], "rows": read(None), "filtered": [read(where) for where in filters]}


def main() -> None:
    """Read the cases from the one given on."""
    reader, path = sys.argv[1:]
    cases = json.loads(Path(path).read_text(encoding="utf-8"))
    print(json.dumps({"versions": versions(reader)}), flush=True)
    for case in cases:
        print(json.dumps(outcome(reader, case)), flush=True)


if __name__ == "__main__":
    main()
