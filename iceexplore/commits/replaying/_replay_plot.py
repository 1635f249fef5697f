"""The plot of a replay, by matplotlib, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from iceexplore.errors import MissingDependencyError

if TYPE_CHECKING:
    from iceexplore.commits.replaying._result import ReplayedSnapshot

__all__ = ["replay_figure"]

_BEFORE, _AFTER = "#D55E00", "#0072B2"  # told apart by everybody (Okabe and Ito)
_GREY = "#808080"  # on white and on black alike
_PANELS = (
    ("bytes", "metadata written, bytes"),
    ("files", "metadata written, files"),
    ("plan_cold_bytes", "planning cold, bytes read"),
    ("plan_warm_bytes", "planning warm, bytes read"),
)


def replay_figure(snapshots: Sequence[ReplayedSnapshot], after: str) -> Any:
    """Four panels over the snapshots in order; logarithmic where the numbers differ by more than a hundred.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter, MaxNLocator
    except ImportError as e:
        raise MissingDependencyError("plots need matplotlib; pip install 'iceexplore[lab]'") from e

    class Shown(Figure):
        """A figure that notebooks show without pyplot."""

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
