"""Define a figure of a table's health: its bar chart, its verdict, and the rows or pictures to which it links.

Also define the gain of a figure: what a maintenance procedure would improve.
"""

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
    """What a figure, or one of its bars, links to: rows of a metadata table, or a picture of data files.

    Attributes
    ----------
    table
        A metadata table of the snapshot (``files``, ``manifests`` or ``partitions``), or a picture. The picture ``map``
        is the file map: it draws data files as cells, and the color of a cell shows the deletes that apply. The picture
        ``ranges`` draws each data file as a bar, from the lower to the upper bound of a column.
    where
        Conditions, each of them a column, an operator (``=``, ``!=``, ``<``, ``>=``, ``null``, ``not null``) and a
        value, which is empty for ``null`` and ``not null``. Only rows that meet all conditions are shown.
    largest
        The column by which the rows are sorted, the largest value first; None to keep their order.
    of
        For ``map``, the name of the group of data files that is shown: one of `DELETE_GROUPS`. For ``ranges``, the name
        of the column. For ``manifests``, the row number of the only manifest that is shown, in the snapshot's manifest
        list or root manifest, from 0; None for all manifests. For ``files`` and ``partitions``, None.
    instead
        A replacement, which is linked to in two cases: in a saved page, because it has no pictures of data files and
        its values may be redacted; and if a value in `where` has control characters, which filters of a displayed table
        must not have. None if there is no replacement.
    """

    table: Literal["files", "manifests", "partitions", "map", "ranges"]
    where: tuple[tuple[str, str, str], ...] = ()
    largest: str | None = None
    of: str | int | None = None
    instead: Shown | None = None


@dataclass(frozen=True)
class FigureBar:
    """A row of a figure: a bar for each column of the figure.

    Attributes
    ----------
    label
        The name of the row.
    values
        For each column of the figure, the length of the bar and the text beside it; None if there is no value.
    note
        A remark, such as ``cannot be read``; empty if there is none.
    show
        The rows of a metadata table that this row is about; None if there are none.
    """

    label: str
    values: tuple[tuple[float, str] | None, ...]
    note: str = ""
    show: Shown | None = None


@dataclass(frozen=True)
class HealthGain:
    """The gain of running a maintenance procedure of the engines, computed from the plan of the procedure.

    Attributes
    ----------
    procedure
        The name of the procedure.
    text
        A description of what the procedure would do, from its plan.
    nothing
        True if the procedure would do nothing.
    sql
        The statement for Spark; empty if there is nothing to do.
    unit
        What is counted: ``data files``, ``delete files``, ``data and delete files`` or ``manifests``.
    files, size
        The number of these files, and their total bytes, each before and after the procedure.
    requests
        The number of requests for planning a full scan, before and after the procedure: one for the manifest list or
        root, and one for each manifest. The second number is None if it is unknown.
    accuracy
        How exact the number of files after the procedure is: ``exactly``, ``at least``, ``at most`` or ``about``.
    notes
        Sentences on what the plan does not take into account.
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
            return f"{text}; planning a full scan takes {before:,} requests now."
        if after == before:
            return f"{text}; planning a full scan takes {before:,} requests before and after it."
        why = ", because the commit adds manifests" if after > before else ""
        return f"{text}; planning a full scan would take {after:,} requests instead of {before:,}{why}."

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
        True if the figure shows something that makes scans slower. The thresholds are those of
        `iceexplore.Table.check`.
    columns, bars
        The names of the measures, and the rows of the chart, each with a value per measure.
    rows
        All rows behind the chart, as an Arrow table.
    show
        The rows of a metadata table that the verdict is about; None if there are none.
    notes
        Sentences on what is missing from the figure, or only estimated.
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
        """Return the content of the chart: its title, the verdict and the notes, the names of columns, and the bars."""
        rows = tuple(
            BarRow(bar.label, bar.note, tuple(None if v is None else Bar(v[0], v[1]) for v in bar.values))
            for bar in self.bars
        )
        return BarChart(self.title, " ".join((self.verdict, *self.notes)), self.columns if rows else (), rows)
