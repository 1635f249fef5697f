"""A figure of a table's health: bars, a sentence about them, the rows of metadata tables behind them, and a gain."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from iceexplore.doctor.maintenance._size_based import Accuracy
from iceexplore.graph import human_bytes, to_frame
from iceexplore.render import Bar, BarChart, BarPicture, BarRow

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FigureBar", "FigureKey", "HealthFigure", "HealthGain", "Shown"]

FigureKey = Literal["sizes", "deletes", "manifests", "partitions", "clustering"]


@dataclass(frozen=True)
class Shown:
    """The rows of a metadata table that a figure, or one of its bars, is about.

    Attributes
    ----------
    table
        ``files``, ``manifests`` or ``partitions`` of the snapshot; ``map``, the data files of the group ``of`` as
        cells, shaded by deletes; or ``ranges``, the files by their ranges of the column ``of``.
    where
        Conditions, all of which the rows meet: a column, an operator (``=``, ``!=``, ``<``, ``>=``, ``null``, ``not
        null``) and a value.
    largest
        The column by which the rows are sorted, the largest value first.
    of
        A column of the table, a group of data files by their deletes, or the row of a manifest in the snapshot's
        manifest list or root.
    instead
        What a saved page shows instead: such a page has only metadata tables, whose values may be redacted.
    """

    table: Literal["files", "manifests", "partitions", "map", "ranges"]
    where: tuple[tuple[str, str, str], ...] = ()
    largest: str | None = None
    of: str | int | None = None
    instead: Shown | None = None


@dataclass(frozen=True)
class FigureBar:
    """A row of a figure: its name, a note, a value per column of the figure, and what it is about.

    Attributes
    ----------
    values
        Pairs of a length and the text beside it; None where there is no value.
    """

    label: str
    values: tuple[tuple[float, str] | None, ...]
    note: str = ""
    show: Shown | None = None


@dataclass(frozen=True)
class HealthGain:
    """What a procedure of the engines would gain, taken from its maintenance plan.

    Attributes
    ----------
    procedure
        The name of the procedure.
    text
        What it would do, as its plan words it.
    nothing
        True if it would do nothing.
    sql
        The statement for Spark; empty if there is nothing to do.
    unit
        What is counted: ``data files``, ``delete files``, ``data and delete files`` or ``manifests``.
    files, size
        Their number and bytes, before and after.
    requests
        The requests that planning a full scan takes, before and after: one for the manifest list or root, and one for
        each manifest. The second number is None if it is unknown.
    accuracy
        The accuracy of the number of files afterwards.
    notes
        Limits of the plan.
    """

    procedure: str
    text: str
    nothing: bool
    sql: str = ""
    unit: str = "data files"
    files: tuple[int, int] = (0, 0)
    size: tuple[int, int] = (0, 0)
    requests: tuple[int, int | None] = (0, None)
    accuracy: Accuracy = "exactly"
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The gain as a sentence."""
        if self.nothing:
            return f"{self.procedure} has nothing to do: {self.text}."
        about = "" if self.accuracy == "exactly" else f"{self.accuracy} "
        text = (
            f"{self.procedure}: {self.files[0]:,} {self.unit} ({human_bytes(self.size[0])}) would become "
            f"{about}{self.files[1]:,} (about {human_bytes(self.size[1])})"
        )
        before, after = self.requests
        if after is None:
            return f"{text}; a full plan takes {before:,} requests now."
        if after == before:
            return f"{text}; a full plan takes {before:,} requests before and after it."
        why = ", as the commit adds manifests" if after > before else ""
        return f"{text}; a full plan would take {after:,} requests instead of {before:,}{why}."

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as plain values."""
        return {**asdict(self), "sentence": self.sentence}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HealthFigure(BarPicture):
    """One figure of a table's health.

    In a notebook it is shown as a chart; ``print`` shows it as text.

    Attributes
    ----------
    key
        ``sizes``, ``deletes``, ``manifests``, ``partitions`` or ``clustering``.
    title, verdict
        A title, and what the figure shows, in a sentence.
    attention
        True if it shows something that makes scans slower; the thresholds are those of `iceexplore.Table.check`.
    columns, bars
        The measures, and a bar per row of the chart.
    rows
        All rows behind the chart, as an Arrow table.
    show
        The rows of a metadata table that the verdict is about; None if there are none.
    notes
        What is missing, or only estimated.
    """

    key: FigureKey
    title: str
    verdict: str
    attention: bool = False
    columns: tuple[str, ...] = ()
    bars: tuple[FigureBar, ...] = ()
    rows: pa.Table = field(default_factory=lambda: pa.table({}))
    show: Shown | None = None
    notes: tuple[str, ...] = ()

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows behind the chart."""
        return to_frame(self.rows)

    def chart(self) -> BarChart:
        """Return the bars as plain data."""
        rows = tuple(
            BarRow(bar.label, bar.note, tuple(None if v is None else Bar(v[0], v[1]) for v in bar.values))
            for bar in self.bars
        )
        return BarChart(self.title, " ".join((self.verdict, *self.notes)), self.columns if rows else (), rows)
