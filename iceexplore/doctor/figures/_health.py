"""The health of a table: figures (charts with a verdict), gains of rewrites, and a list of what was not checked."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iceexplore.arrow import compute as pc
from iceexplore.doctor.figures._figure import FigureKey, HealthFigure, HealthGain
from iceexplore.doctor.figures._files import deletes_figure, partitions_figure, sizes_figure
from iceexplore.doctor.figures._gains import gain_of
from iceexplore.doctor.figures._metadata import clustering_figure, manifests_figure, unread_manifests
from iceexplore.doctor.maintenance._files import strict
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, amount, format_ms, live_manifests
from iceexplore.planning import FileTasks, ScanPlan, plan_scan
from iceexplore.render import (
    Card,
    Html,
    bars_text,
    card_html,
    card_text,
    details,
    html_lines,
    shown_frame,
    spoken,
    svg_image,
    whole_numbers,
)
from iceexplore.storage import result_of
from iceexplore.writing import default_order

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FEW_FILES", "MetadataSize", "TableHealth", "metadata_size"]

#: Up to this number of data files, clustering and the gains of rewrites are computed without being requested. Each of
#: these computations takes another pass over the files: in all, some seconds for 100,000 files, a minute and several
#: gigabytes for a million.
FEW_FILES = 100_000

_KEYS: tuple[FigureKey, ...] = ("sizes", "deletes", "manifests", "partitions", "clustering")
_ALWAYS = (
    "Data and delete files were not opened: t.check('files') compares them with their metadata.",
    "Snapshots to expire, orphan files and old metadata files were not looked for: t.maintenance() finds them.",
)
_OF_DELTA = "Iceberg's procedures do not apply to a Delta table; its OPTIMIZE and VACUUM maintain it."
_NO_PROCEDURE = (
    "No procedure changes this by itself: first add a partition field (a bucket, or the day instead of the month), "
    "then rewrite the files with rewrite_data_files."
)


@dataclass(frozen=True)
class MetadataSize:
    """The number of live manifests of a snapshot, and their total size in bytes.

    Making the figures of a table's health reads all of these manifests.
    """

    manifests: int
    size: int


def metadata_size(state: TableState) -> MetadataSize:
    """Return the number and total size of the snapshot's manifests, from its manifest list or root manifest."""
    root = state.root()
    places = [] if root is None else live_manifests(root)
    if root is None or not places:
        return MetadataSize(0, 0)
    sizes = root.entries["file_size_in_bytes"].take(places)
    return MetadataSize(len(places), int(pc.sum(sizes, min_count=0).as_py() or 0))


@dataclass(frozen=True, eq=False, repr=False)
class TableHealth(Mapping[str, HealthFigure]):
    """Figures of a table's health, by key: ``sizes``, ``deletes``, ``manifests``, ``partitions`` and ``clustering``.

    Returned by ``t.health()``. Each figure is a chart with a verdict about the snapshot of ``t``, computed from
    metadata only. What a rewrite would gain is computed when it is first requested. For a table of up to 100,000 data
    files, it is also computed when the health is displayed.

    Attributes
    ----------
    state
        The table's state.
    scan
        The plan of a full scan, from which the figures are computed.
    missing
        Sentences on why files or deletes may be missing from the figures; empty if all metadata could be read.
    """

    state: TableState
    scan: ScanPlan
    missing: str = ""
    #: The plan of a full scan, like `scan`, but made with strict reading, which fails if metadata cannot be read. None
    #: if it failed; `_why` has the reason.
    _strict: ScanPlan | None = None
    _why: str = ""
    #: The columns whose clustering is measured; None if the caller named none.
    _columns: tuple[str, ...] | None = None
    _figures: dict[FigureKey, HealthFigure] = field(default_factory=dict)
    #: By a figure's key: what running its maintenance procedure would gain; or a text that says why no gain can be
    #: stated, empty if the figure needs no improvement; or None if there is nothing for the procedure to work on.
    _gains: dict[str, HealthGain | str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, state: TableState, columns: Iterable[str] | None = None) -> TableHealth:
        """Read the manifests of a state's snapshot, and make the figures.

        To measure clustering, the manifests are read again, for the bounds of columns. This is done now if ``columns``
        is given or if the table `is_small`. Otherwise it is done when the figure ``clustering`` is first requested.

        Parameters
        ----------
        columns
            The names of the columns whose clustering is measured; by default those of
            `iceexplore.doctor.Maintenance.clustering`.

        Raises
        ------
        OptionError
            The table has no column with one of these names, or the column does not have a single value per row: it is a
            struct, a list or a map, or an element of a list or map.
        """
        return result_of(cls.steps(state, columns))

    @classmethod
    def steps(cls, state: TableState, columns: Iterable[str] | None = None) -> Generator[str, None, TableHealth]:
        """Do the same as `of` in steps: yield the name of each step before doing it."""
        named = None if columns is None else ((columns,) if isinstance(columns, str) else tuple(columns))
        exact, why = None, ""
        try:
            exact = plan_scan(strict(state))
        except IceexploreError as error:  # A manifest is damaged: the figures lack its files, and note this.
            why = str(error)
        scan = exact or plan_scan(state)
        missing = " ".join(_sentence(note) for note in (*scan.notes, *((why,) if why and not scan.notes else ())))
        made = cls(state, scan, missing, exact, why, named)
        tasks: FileTasks = scan.files
        for figure in (
            sizes_figure(state, tasks),
            deletes_figure(state, tasks),
            manifests_figure(state, tasks),
            partitions_figure(state, tasks),
        ):
            made._figures[figure.key] = made._marked(figure)
        if named is not None or made.is_small:
            yield "Measuring clustering …"
            made.measure_clustering()
        return made

    def plan_gains(self) -> Iterator[str]:
        """Compute the gain of each figure that has been made so far; yield the name of each step before doing it.

        The gain of a figure is what the maintenance procedure for it would improve: see `gain`. Gains that are known
        already are not computed again.
        """
        for figure in self.measured:
            if not self.gain_known(figure.key):
                yield f"Computing what a rewrite would gain: {figure.title} …"
                self.gain(figure.key)

    def _marked(self, figure: HealthFigure) -> HealthFigure:
        """Return a figure with a note, if data files are missing from it because metadata cannot be read.

        If no data file could be read at all, the verdict is also replaced, by "Unknown". The figure of manifests is
        returned unchanged, because it has such a note already.
        """
        if not self.missing or figure.key == "manifests":
            return figure
        note = f"Incomplete: {unread_manifests(self.state) or self.missing}"
        verdict = figure.verdict if len(self.scan.files) else "Unknown: no manifest entry of a data file could be read."
        return HealthFigure(**{**vars(figure), "verdict": verdict, "notes": (note, *figure.notes)})

    def measure_clustering(self) -> HealthFigure:
        """Return the figure of clustering. The first call measures clustering, by reading the bounds of the columns."""
        if "clustering" not in self._figures:
            found = self.scan.clustering(self._columns)
            self._figures["clustering"] = self._marked(clustering_figure(self.state, found))
        return self._figures["clustering"]

    def __getitem__(self, key: str) -> HealthFigure:
        if key == "clustering":
            return self.measure_clustering()
        for known, figure in self._figures.items():
            if known == key:
                return figure
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(_KEYS)

    def __len__(self) -> int:
        return len(_KEYS)

    @property
    def measured(self) -> tuple[HealthFigure, ...]:
        """The figures that have been made so far."""
        return tuple(self._figures[key] for key in _KEYS if key in self._figures)

    @property
    def is_small(self) -> bool:
        """True if the table has so few files that clustering and gains are computed without being requested."""
        return len(self.scan.files) <= FEW_FILES

    def gain(self, key: str) -> HealthGain | None:
        """Return the gain of a figure: what the maintenance procedure for this figure would improve.

        For example, the procedure for ``sizes`` is ``rewrite_data_files``, which reduces the number of data files.

        Return None if there is no procedure for the figure, or if the procedure cannot be planned; `gain_note` may then
        give the reason. The first call for a figure plans the procedure; later calls return the same result.

        Parameters
        ----------
        key
            The key of the figure: ``sizes``, ``deletes``, ``manifests``, ``partitions`` or ``clustering``.

        Raises
        ------
        KeyError
            There is no figure with this key.
        """
        found = self._planned(key)
        return None if isinstance(found, str) else found

    def gain_note(self, key: str) -> str:
        """Return why `gain` is None for a figure; empty if there is a gain, or if the figure needs no improvement."""
        found = self._planned(key)
        return found if isinstance(found, str) else ""

    def gain_known(self, key: str) -> bool:
        """Return whether the gain of a figure is known, so that `gain` returns it without planning a procedure.

        It is known after the first call of `gain` or `gain_note` for this figure. For ``partitions``, it is always
        known: there is no procedure that could be planned.
        """
        return key in self._gains or key == "partitions"

    def _planned(self, key: str) -> HealthGain | str | None:
        if key not in _KEYS:
            raise KeyError(key)
        if key not in self._gains:
            self._gains[key] = self._plan(key)
        return self._gains[key]

    def _plan(self, key: FigureKey) -> HealthGain | str | None:
        if self.state.opened.is_delta:
            return _OF_DELTA
        if self.state.snapshot is None:
            return "There is no snapshot."
        if key == "partitions":
            return _NO_PROCEDURE if self["partitions"].attention else ""
        if self._strict is None:
            return "No rewrite can be planned while metadata is missing: engines would fail, too."
        try:
            made = gain_of(key, self.state, self._strict)
        except IceexploreError as error:
            return f"No rewrite can be planned: {error}"
        if made is None and key == "clustering" and default_order(self.state.metadata) is not None:
            return "There are no data files to sort."
        if made is None and key == "clustering":
            return "The table has no sort order: t.plan(filter).advice() shows what a sort would gain for a filter."
        return made

    @property
    def attention(self) -> tuple[HealthFigure, ...]:
        """The figures that show something that makes scans slower."""
        return tuple(figure for figure in self.measured if figure.attention)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences on possible errors of the figures and gains; empty if there are none.

        There is a sentence for each of these cases: data files may be missing from the figures; no rewrite can be
        planned; the figures are not of the table's current snapshot, which is the one that engines would rewrite.
        """
        out = []
        if self.missing:
            out.append(f"Files may be missing from the figures: {self.missing}")
        if self._why and self._why not in self.missing:
            out.append(f"No rewrite can be planned: {self._why}")
        current = self.state.metadata.snapshot()
        if self.state.snapshot is not None and current is not None and self.state.snapshot is not current:
            out.append("Engines would rewrite the table's current snapshot, which is not the one that is shown.")
        return tuple(out)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Sentences on what these figures do not cover, such as the content of data files; includes the `caveats`."""
        clustering = () if "clustering" in self._figures else (
            f"Clustering was not measured: the table has more than {FEW_FILES:,} data files. "
            "t.health()['clustering'] measures it.",
        )  # fmt: skip
        return (*clustering, *self.caveats, *_ALWAYS)

    @property
    def scope(self) -> str:
        """The snapshot that the figures describe, with its numbers of data files and manifests, in a phrase."""
        snapshot = self.state.snapshot
        if snapshot is None:
            return "no snapshot"
        size = metadata_size(self.state)
        return (
            f"snapshot {snapshot.snapshot_id} of {format_ms(snapshot.timestamp_ms)}: "
            f"{amount(len(self.scan.files), 'data file')}, {amount(size.manifests, 'manifest')}"
        )

    # Display ----------------------------------------------------------------------------------------------------------

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per figure: the verdict, and what a rewrite would gain.

        This measures clustering and plans all gains, unless that has been done before.
        """
        import pandas as pd

        rows: list[tuple[Any, ...]] = []
        for key in _KEYS:
            figure, gain = self[key], self.gain(key)
            counts: tuple[int | None, ...] = (None,) * 6
            if gain is not None:
                counts = (*gain.files, *gain.size, *gain.requests)
            text = "" if gain is None else gain.sql
            rows.append((key, figure.attention, figure.verdict, text, *counts))
        columns = ["figure", "attention", "verdict", "sql"]
        numbers = [f"{what}_{when}" for what in ("files", "bytes", "requests") for when in ("before", "after")]
        frame = pd.DataFrame(rows, columns=[*columns, *numbers])
        for at, name in enumerate(numbers, len(columns)):
            frame[name] = whole_numbers(row[at] for row in rows)
        return shown_frame(frame)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts, the gains and the list of what was not checked, as plain values.

        This measures clustering and plans all gains, unless that has been done before.
        """
        figures = {}
        for key in _KEYS:
            figure, gain = self[key], self.gain(key)
            figures[key] = {
                "title": figure.title, "verdict": figure.verdict, "attention": figure.attention,
                "notes": list(figure.notes), "gain": None if gain is None else gain.to_dict(),
                "gain_note": self.gain_note(key),
            }  # fmt: skip
        return {"scope": self.scope, "figures": figures, "unchecked": list(self.unchecked)}

    def _shown_gain(self, key: str) -> tuple[str, str]:
        """Return a sentence about the gain of a figure, and the SQL statement to achieve it; each may be empty.

        For a large table whose gain has not been planned, the sentence says how to plan it.
        """
        if not (self.is_small or self.gain_known(key)):
            return f"t.health().gain({key!r}) computes what a rewrite would gain.", ""
        gain = self.gain(key)
        return (self.gain_note(key), "") if gain is None else (gain.sentence, gain.sql)

    def card(self) -> Card:
        """Return a card with the verdicts, the gains, and the list of what was not checked."""
        facts = []
        for figure in self.measured:
            sentence, sql = self._shown_gain(figure.key)
            facts.append((f"{figure.title}{' ▲' if figure.attention else ''}", figure.verdict))
            facts += [("", text) for text in (*figure.notes, sentence, sql) if text]
        many, caveats = len(self.attention), self.caveats
        return Card(
            title=f"Health of {self.state.name}",
            badges=(
                *(("incomplete",) if self.missing else ()),
                *((f"▲ {amount(many, 'figure')} {'needs' if many == 1 else 'need'} attention",) if many else ()),
                *(("nothing needs attention",) if not (many or self.missing) else ()),
            ),
            subtitle=self.scope,
            facts=tuple(facts),
            notes=tuple(text if text in caveats else f"Not checked: {text}" for text in self.unchecked),
        )

    def __repr__(self) -> str:
        return card_text(self.card())

    def to_text(self) -> str:
        """Return all charts as text, below the card."""
        charts = (bars_text(figure.chart()) for figure in self.measured)
        return "\n\n".join([card_text(self.card()), *charts])

    def _repr_html_(self) -> str:
        parts = [card_html(self.card())]
        for figure in self.measured:
            if figure.bars:
                chart = figure.chart()
                image = svg_image(figure.to_svg(), f"{chart.title}. {spoken(chart)}")
                parts.append(details(figure.title, Html(image + html_lines(bars_text(chart))), opened=figure.attention))
        return "".join(parts)


def _sentence(text: str) -> str:
    text = text.rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."
