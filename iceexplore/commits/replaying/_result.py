"""The result of a replay: the metadata before and after, per snapshot, as a table, a summary and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from iceexplore.arrow import compute as pc
from iceexplore.commits.replaying._changes import Moves
from iceexplore.commits.replaying._check import differences_of
from iceexplore.commits.transaction._sandbox import Sandbox
from iceexplore.errors import MissingDependencyError
from iceexplore.graph import TableState, human_bytes
from iceexplore.manifests import ContentType
from iceexplore.metadata import Snapshot
from iceexplore.render import shown_frame, whole_numbers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "LEFT_OUT",
    "NO_EFFECT",
    "REWRITTEN",
    "Replay",
    "ReplayedSnapshot",
    "START",
    "Side",
]

_BEFORE, _AFTER = "#D55E00", "#0072B2"  # distinguishable for colour-blind readers (Okabe and Ito)
_GREY = "#808080"  # readable on white and on black
_PANELS = (
    ("bytes", "metadata written, bytes"),
    ("files", "metadata written, files"),
    ("plan_cold_bytes", "planning without a cache, bytes read"),
    ("plan_warm_bytes", "planning with a cache, bytes read"),
)


def replay_figure(snapshots: Sequence[ReplayedSnapshot], after: str) -> Figure:
    """Plot the metadata of the snapshots, in the table and in its replay, as a figure with four panels.

    The panels show the bytes and the files that each commit writes, and the bytes that planning reads without and with
    a cache. A panel has a logarithmic axis if its values are positive and differ by more than a factor of 100.

    Parameters
    ----------
    after
        The name of the replay's dialect, for the legend.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter, MaxNLocator
    except ImportError as e:
        raise MissingDependencyError("plots need matplotlib: pip install 'iceexplore[jupyter]'") from e

    class Shown(Figure):
        """A matplotlib figure that notebooks display although it was not created with pyplot."""

        def _repr_png_(self) -> bytes:
            out = BytesIO()
            self.savefig(out, format="png", dpi=110)
            return out.getvalue()

    figure = Shown(figsize=(10, 6), layout="constrained")
    figure.patch.set_alpha(0)
    mine = [(i, s.before, s.after) for i, s in enumerate(snapshots, 1) if s.after is not None and s.counts]
    for axes, (name, title) in zip(figure.subplots(2, 2).flat, _PANELS, strict=True):
        values = {side: [getattr(row[side], name) for row in mine] for side in (1, 2)}
        for side, colour, label, marker in ((1, _BEFORE, "before", "o"), (2, _AFTER, f"after: {after}", "s")):
            axes.plot([row[0] for row in mine], values[side], color=colour, label=label, marker=marker, markersize=3)
        numbers = [n for side in values.values() for n in side]
        if numbers and min(numbers) > 0 and max(numbers) > 100 * min(numbers):
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_title(title, color=_GREY, fontsize=10)
        axes.set_xlabel("snapshot", color=_GREY)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_facecolor("none")
        axes.tick_params(which="both", colors=_GREY)
        axes.grid(visible=True, color=_GREY, alpha=0.25)
        for spine in axes.spines.values():
            spine.set_color(_GREY)
    legend = figure.axes[0].legend(frameon=False)
    for text in legend.get_texts():
        text.set_color(_GREY)
    return figure


T = TypeVar("T")
START = "start: all files that are live in this snapshot"
REWRITTEN = "manifests rewritten"
LEFT_OUT = "left out: changed no file"
NO_EFFECT = "left out: its deletes change no deletion vector"


@dataclass(frozen=True)
class Side:
    """Sizes of the metadata that one snapshot wrote, and of the metadata that a scan of the snapshot must read.

    The snapshot is either a snapshot of the table or the corresponding snapshot of the replay.

    Attributes
    ----------
    files, bytes
        Number and bytes of the metadata files that the snapshot references, but that no earlier snapshot referenced:
        its manifest list or root, manifests, and manifest DVs in Puffin files (only the blobs). The metadata file
        (JSON) is not counted.
    manifests_rewritten
        Live manifests of the previous snapshot that this snapshot no longer lists.
    plan_cold_files, plan_cold_bytes
        Number and bytes of all metadata files that the snapshot references, for a planner without a cache. In contrast
        to `PlanCost`, manifests that planning may skip are counted, and the metadata file (JSON) is not.
    plan_warm_files, plan_warm_bytes
        The same, without the files that the previous snapshot also references: a planner has these in its cache.
    retained_bytes
        Bytes of all metadata files that this or an earlier snapshot references, as if no snapshot had expired.
    json_bytes
        Size of the metadata file that made the snapshot current; None if the table does not have this file (any more).
    """

    files: int
    bytes: int
    manifests_rewritten: int
    plan_cold_files: int
    plan_cold_bytes: int
    plan_warm_files: int
    plan_warm_bytes: int
    retained_bytes: int
    json_bytes: int | None


@dataclass(frozen=True)
class ReplayedSnapshot:
    """One snapshot of the table and its replay.

    Attributes
    ----------
    replayed
        The replayed snapshot; None if it was left out.
    note
        `START`, `REWRITTEN`, `LEFT_OUT`, `NO_EFFECT`, or empty.
    estimated
        Number of deletion vectors with an estimated number of positions, because position delete files could not be
        read.
    unapplied
        Number of added position delete files and deletion vectors that are left out, because no live data file has the
        location that they reference (in exactly this spelling).
    twice
        Number of repeated entries, which list a file that the snapshot already lists; the replay lists each file
        once.
    """

    snapshot: Snapshot
    replayed: Snapshot | None
    files_added: int
    files_removed: int
    deletes_added: int
    deletes_removed: int
    estimated: int
    unapplied: int
    twice: int
    note: str
    before: Side
    after: Side | None

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        replayed: Snapshot | None,
        moves: Moves,
        note: str,
        vectors: tuple[int, int],
        before: Side,
        after: Side | None,
    ) -> ReplayedSnapshot:
        """Create the record of a snapshot, and count the files that it added and removed.

        Parameters
        ----------
        moves
            The files that the snapshot added and removed.
        vectors
            The values of `estimated` and `unapplied`, in this order.
        before, after
            The sizes of the metadata of ``snapshot`` and of ``replayed``; ``after`` is None if ``replayed`` is.
        """
        counts = []
        for batch in (moves.added, moves.removed):
            data = pc.sum(pc.equal(batch.entries["content_type"], int(ContentType.DATA))).as_py() or 0
            counts.append((data, len(batch) - data))
        (added, deletes), (removed, undeleted) = counts
        return cls(snapshot, replayed, added, removed, deletes, undeleted, *vectors, moves.twice, note, before, after)

    @property
    def counts(self) -> bool:
        """Whether the summary and the plot include the snapshot when they compare the table with its replay.

        They do not include a snapshot that the replay left out. They do not include one with the note `START` either:
        its replay adds all live files in one commit, whereas the table added them in several commits.
        """
        return self.after is not None and self.note != START


@dataclass(frozen=True, eq=False)
class Replay(Generic[T]):
    """A table's history before and after a replay.

    Attributes
    ----------
    sandbox
        The sandbox that the replay was committed to.
    snapshots
        The snapshots, oldest first.
    simulation
        The replay as a table to inspect and continue from.
    differences
        Differences between the live files of the newest snapshot and of its replay, as sentences. `check` compares
        every snapshot.
    """

    state: TableState = field(repr=False)
    sandbox: Sandbox = field(repr=False)
    snapshots: tuple[ReplayedSnapshot, ...]
    simulation: T
    differences: tuple[str, ...] = ()

    def check(self) -> tuple[str, ...]:
        """Return the differences between the live files of each snapshot and those of its replay, as sentences.

        Reads every manifest, and compares the locations, specs, partition tuples, row counts and sizes of data files,
        delete files and deletion vectors. Position delete files are not compared with the deletion vectors that replace
        them.
        """
        pairs = [(s.snapshot, s.replayed) for s in self.snapshots if s.replayed is not None]
        return differences_of(self.state, self.sandbox.newest(), pairs)

    def close(self) -> None:
        """Remove the replay's temporary folder."""
        self.sandbox.close()

    @property
    def table(self) -> pd.DataFrame:
        """One row per snapshot: its changes, and the fields of `Side` with the prefixes ``before_`` and ``after_``."""
        import pandas as pd

        names = [f.name for f in fields(Side)]
        rows = []
        for s in self.snapshots:
            row: dict[str, Any] = {
                "committed_at": pd.Timestamp(s.snapshot.timestamp_ms, unit="ms", tz="UTC"),
                "snapshot_id": s.snapshot.snapshot_id,
                "replayed_id": None if s.replayed is None else s.replayed.snapshot_id,
                "operation": s.snapshot.operation,
            }
            row |= {n: getattr(s, n) for n in ("files_added", "files_removed", "deletes_added", "deletes_removed")}
            for n in names:
                row[f"before_{n}"] = getattr(s.before, n)
                row[f"after_{n}"] = None if s.after is None else getattr(s.after, n)
            rows.append({**row, "estimated": s.estimated, "unapplied": s.unapplied, "note": s.note})
        out = pd.DataFrame(rows)
        whole = [c for c in out.columns if c.startswith(("before_", "after_"))] + ["replayed_id"]
        for name in whole:
            out[name] = whole_numbers(row[name] for row in rows)
        return shown_frame(out)

    @property
    def summary(self) -> str:
        """A summary in words, such as how much less metadata the replay writes."""
        mine = [s for s in self.snapshots if s.counts]
        layout = f"version {self.sandbox.options.format_version} ({self.sandbox.options.dialect})"
        if not mine:
            return f"No commit can be compared in {layout}: the history consists only of its start."
        out = [
            f"{len(mine):,} of {len(self.snapshots):,} snapshots committed again in {layout}:",
            f"metadata files written {_change(mine, 'files')}, bytes {_change(mine, 'bytes')},",
            f"manifests rewritten {_change(mine, 'manifests_rewritten')}.",
            f"On average, planning reads {_change(mine, 'plan_cold_bytes', mean=True)} without a cache,",
            f"and {_change(mine, 'plan_warm_bytes', mean=True)} with the previous snapshot cached.",
        ]
        text = " ".join(out)
        if any(s.note == START for s in self.snapshots):
            text += " The oldest snapshot is the start, with all of its files in one commit, and is not counted."
        if left := sum(s.replayed is None for s in self.snapshots):
            text += f" Snapshots left out because they change nothing: {left:,}."
        if guessed := sum(s.estimated for s in self.snapshots):
            text += f" Deletion vectors of estimated size, because position delete files cannot be read: {guessed:,}."
        if lost := sum(s.unapplied for s in self.snapshots):
            text += (
                " Position delete files and deletion vectors left out because no live data file has the location that "
                f"they reference, in the same spelling: {lost:,}."
            )
        if twice := sum(s.twice for s in self.snapshots):
            text += f" Files that the table lists twice: {twice:,}."
        if self.differences:
            text += f" The replay differs from the table: {'; '.join(self.differences[:3])}."
        return text

    def plot(self) -> Figure:
        """Plot the metadata files and bytes that commits write, and the bytes that planning reads, with matplotlib.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from iceexplore.commits.replaying._result import replay_figure

        return replay_figure(self.snapshots, self.sandbox.options.dialect)

    def _shown(self) -> pd.DataFrame:
        out = self.table
        columns = ["committed_at", "operation", "files_added", "files_removed", "deletes_added", "deletes_removed"]
        for name in ("files", "bytes", "manifests_rewritten", "plan_cold_bytes", "plan_warm_bytes"):
            columns += [f"before_{name}", f"after_{name}"]
        out = out[[*columns, "note"]].assign(committed_at=out["committed_at"].dt.strftime("%Y-%m-%d %H:%M:%S"))
        return out.astype(object).where(out.notna(), None)

    def __repr__(self) -> str:
        return f"{self._shown().to_string(index=False, na_rep='', max_rows=60)}\n{self.summary}"

    def _repr_html_(self) -> str:
        from iceexplore.render import escape, html_table

        shown = self._shown()
        rows = [tuple(v.item() if isinstance(v, np.generic) else v for v in row) for row in shown.to_numpy()]
        heads = tuple(c.replace("_", " ") for c in shown.columns)
        return f"<p>{escape.html(self.summary)}</p>{html_table(heads, rows)}"


def _change(snapshots: Sequence[ReplayedSnapshot], name: str, *, mean: bool = False) -> str:
    """Return a comparison of the replay with the table, such as ``3.2 MB instead of 9.6 MB (3.0 times less)``.

    Parameters
    ----------
    name
        The attribute of `Side` to compare.
    mean
        Compare the mean over the snapshots; by default the sum.
    """
    before = sum(getattr(s.before, name) for s in snapshots)
    after = sum(getattr(s.after, name) for s in snapshots)
    if mean:
        before, after = before / len(snapshots), after / len(snapshots)
    shown = [human_bytes(round(n)) if name.endswith("bytes") else f"{n:,}" for n in (after, before)]
    return f"{shown[0]} instead of {shown[1]}{_factor(before, after)}"


def _factor(before: float, after: float) -> str:
    if before == after or not before or not after:
        return ""
    times = max(before, after) / min(before, after)
    return f" ({times:{'.2g' if times < 10 else ',.0f'}} times {'more' if after > before else 'less'})"
