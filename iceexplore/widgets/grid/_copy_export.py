"""Copy and export a table's data uncut: one cell, one row as JSON, all rows as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

from iceexplore.errors import OptionError
from iceexplore.widgets.grid._cells import nested_value, safe_text, text_of, values_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from iceexplore.widgets.grid._table import GridTable

__all__ = ["MAX_CSV", "MAX_TEXT", "cell_text", "csv_chunk", "row_json"]

#: Maximum number of characters that are copied. A message to the browser must stay below Databricks' limit of 5 MB.
MAX_TEXT = 1_000_000
#: Maximum number of characters of a CSV, limited because the browser holds all of it in memory.
MAX_CSV = 200_000_000
_CHUNK = 1_500_000
_MAX_CELL = 32_767  # the maximum number of characters in a spreadsheet's cell
#: How many rows are converted at once: at first, and at most.
_FIRST = 64
_STEP = 2000
#: The first characters of text that spreadsheets treat as a formula (OWASP, "CSV Injection"), also in full-width form.
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def cell_text(table: GridTable, row: int, column: int) -> str:
    """Return a cell's complete text, up to a million characters; empty for null."""
    text = text_of(values_of(_row(table, row, column).iloc[:, column])[0]) or ""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def row_json(table: GridTable, row: int) -> str:
    """Return a row as JSON, with all digits of integers.

    Raises
    ------
    OptionError
        There is no such row, or its text has more than a million characters.
    """
    frame = _row(table, row, 0)
    record = {name: nested_value(values_of(frame.iloc[:, i])[0], key=name) for i, name in enumerate(table.names)}
    text = safe_text(json.dumps(record, ensure_ascii=False, indent=2, default=str))
    if len(text) > MAX_TEXT:
        raise OptionError(f"the row has {len(text):,} characters of JSON; at most {MAX_TEXT:,} can be copied")
    return text


def csv_chunk(table: GridTable, rows: npt.NDArray[np.int64] | None, start: int) -> tuple[str, int | None]:
    """Return the rows from ``start`` on as CSV, and the row with which to continue; None at the end.

    The first part begins with the header. A part has at most about 1.5 million characters, unless its only row is
    longer. Text that a spreadsheet would treat as a formula (it begins with ``=``, ``+``, ``-``, ``@``, the full-width
    form of one of these, a tab or a line break) gets an apostrophe as prefix. Null is empty. A cell has at most 32,767
    characters.
    """
    total = len(table) if rows is None else len(rows)
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\r\n").writerow  # line ends as in RFC 4180
    if start == 0:
        write([_escaped(safe_text(name)) for name in table.names])
    at, step = max(0, start), _FIRST
    while at < total:
        began, written = at, out.tell()
        part = table.rows(slice(at, min(at + step, total)), rows)
        columns = [_column(part.iloc[:, i]) for i in range(part.shape[1])]
        for record in zip(*columns, strict=True):
            write(record)
            at += 1
            if out.tell() >= _CHUNK:
                return out.getvalue(), at if at < total else None
        # Convert only as many rows as may still fit: the next part would have to convert the others again.
        fit = (_CHUNK - out.tell()) * (at - began) // max(1, out.tell() - written)
        step = min(max(_FIRST, fit), _STEP)
    return out.getvalue(), None


def _column(series: pd.Series) -> list[str]:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype):
        return [text_of(v) or "" for v in values_of(series)]  # not escaped: a negative number is not a formula
    return [_escaped(text_of(v, most=_MAX_CELL) or "") for v in values_of(series)]


def _escaped(text: str) -> str:
    text = "'" + text if _FORMULA.match(text) else text
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"


def _row(table: GridTable, row: int, column: int) -> pd.DataFrame:
    """Return one row as a DataFrame; raise an `OptionError` if the table lacks this row or column."""
    width = len(table.names)
    if not (0 <= row < len(table) and 0 <= column < max(1, width)):
        raise OptionError(
            f"the table has {len(table):,} rows and {width} columns: no cell in row {row}, column {column}"
        )
    return table.rows(slice(row, row + 1))
