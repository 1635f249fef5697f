"""How a table is shown: which columns come first, which are essential, and how their values are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from iceexplore.arrow import AnyArray, PlainValue
from iceexplore.graph import human_bytes
from iceexplore.widgets.grid._table import Columns

__all__ = ["Derived", "Look", "TableView", "looks_of"]

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_DURATIONS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"))


@dataclass(frozen=True)
class Derived:
    """A column that is computed from other columns of the same table.

    Attributes
    ----------
    sources
        The names of the columns that `make` needs.
    make
        A function that returns the column's values for some rows, which have the columns `sources`.
    right
        Whether the column is numeric, and so right-aligned.
    """

    name: str
    sources: tuple[str, ...]
    make: Callable[[Columns], AnyArray]
    right: bool = False


@dataclass(frozen=True)
class Look:
    """How the values of a column are written in cells and typed in filters; copies and exports keep the exact value.

    Attributes
    ----------
    kind
        ``bytes`` and ``ms`` are integers written as a size and a duration with units, ``count`` is an integer written
        with thousands separators, ``time`` is a time written without a fraction of a second, ``code`` is an integer
        written as a name, and ``text`` is any value that `texts` converts.
    words
        The names of codes, by code.
    sources
        The names of the columns that `texts` needs.
    texts
        A function that returns the texts to show for some rows of the table.
    """

    kind: Literal["bytes", "count", "ms", "time", "code", "text"]
    words: Mapping[int, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    texts: Callable[[Columns], AnyArray] | None = None

    @property
    def unit(self) -> str:
        """The unit of the exact value; empty if it has none."""
        return self.kind if self.kind in ("bytes", "ms") else ""

    @property
    def bar(self) -> bool:
        """Whether cells show the value's share of the column's maximum as a bar."""
        return self.kind in ("bytes", "count")

    def text(self, value: PlainValue) -> str | None:
        """Return the text to show for a value; None to show its exact text."""
        if self.kind == "time":
            return _time(str(value)) if value is not None else None
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        match self.kind:
            case "bytes":
                return human_bytes(value)
            case "count":
                return f"{value:,}"
            case "ms":
                return duration(value)
            case "code":
                return self.words.get(value)
        return None


def duration(ms: int) -> str:
    """Return milliseconds in the largest unit that they reach, rounded to a tenth of it: ``1.5 h``, ``250 ms``."""
    for size, unit in _DURATIONS:
        if abs(ms) >= size:
            return f"{ms / size:,.1f} {unit}".replace(".0 ", " ")
    return f"{ms} ms"


def _time(text: str) -> str:
    """Return a time without the fraction of a second and without the offset +00:00: ``2024-05-01 10:30:00``."""
    day, _, clock = text.partition(" ")
    if not clock:
        return text
    clock, is_utc = clock.removesuffix("+00:00"), clock.endswith("+00:00")
    whole = clock.split(".")[0] if is_utc or not ("+" in clock or "-" in clock) else clock
    return f"{day} {whole}"


@dataclass(frozen=True)
class TableView:
    """How a table is shown.

    Attributes
    ----------
    first
        The names of the columns that come first, in this order. Names that the table lacks are ignored.
    every
        Whether all columns are shown. If not, only those of `first` are shown, or all if the table has none of these;
        the user can add others in the column menu.
    head
        Whether the first column names the rows.
    looks
        How values are written, by column.
    derived
        Computed columns to add to the table.
    """

    first: tuple[str, ...] = ()
    every: bool = False
    head: bool = True
    looks: Mapping[str, Look] = field(default_factory=dict)
    derived: tuple[Derived, ...] = ()

    def arrange(self, names: Sequence[str]) -> list[int | Derived]:
        """Return the columns in the order shown: an index for each of the table's columns, and the computed columns."""
        added = {one.name: one for one in self.derived if one.name not in names}
        first: list[int | Derived] = [
            added[name] if name in added else names.index(name) for name in self.first if name in added or name in names
        ]
        rest = [*range(len(names)), *added.values()]
        return [*first, *(one for one in rest if one not in first)]

    def essential(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the indexes of the columns to show, given the names of an arranged table's columns."""
        first = [i for i, name in enumerate(names) if name in self.first]
        return tuple(range(len(names)) if self.every or not first else first)


_BYTES = ("size_in_bytes", "_bytes", "length", "column_size")
_COUNTS = ("_count", "cardinality", "deleted_rows", "rows", "ndv")


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """Return a `Look` for each column whose name shows what it measures, by the conventions of the spec and Spark."""
    found: dict[str, Look] = {}
    for name in names:
        if name.endswith("_ms"):
            found[name] = Look("ms")
        elif name.endswith(_BYTES):
            found[name] = Look("bytes")
        elif name.endswith(_COUNTS):
            found[name] = Look("count")
        elif name.endswith(("_at", "timestamp")):
            found[name] = Look("time")
    return found
