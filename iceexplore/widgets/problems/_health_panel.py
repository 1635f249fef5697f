"""The health of the table: figures about its files and manifests, with what a rewrite would gain."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.errors import OptionError
from iceexplore.render import card_html
from iceexplore.storage import is_local
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait
from iceexplore.widgets.problems._health_blocks import Links, health_blocks, unread_blocks

if TYPE_CHECKING:
    from iceexplore.doctor import MetadataSize, TableHealth

__all__ = ["HealthPanel"]

#: Maximum number of bytes of manifests to read without a request. A core decodes about 25 MB in a second, and computing
#: the figures and gains takes several times as long.
_CHEAP_BYTES = 8 << 20
#: Maximum number of manifests to read without a request: for a local table, and for a remote one.
_CHEAP_MANIFESTS, _CHEAP_REMOTE = 200, 20
_STEPS = {"sizes", "deletes", "manifests", "partitions", "clustering"}


class HealthPanel(Panel):
    """The panel that shows the figures of `iceexplore.Table.health`.

    The figures are computed when they are first shown if that is cheap, otherwise when the user asks for them.

    Attributes
    ----------
    health
        ``blocks``, the blocks to show; the trait is empty before the browser's first request.
    health_asked
        The browser's last request: ``do`` is ``look`` (the figures are shown), ``read``, ``clustering`` (measure it) or
        ``gain`` (plan the rewrite for the figure ``of``).
    """

    later = ("iceexplore.doctor",)

    health = SyncedTrait(traitlets.Dict())
    health_asked = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self.made: TableHealth | None = None
        self._count = 0

    def begin(self) -> None:
        """Answer requests."""
        self.host.observe_requests(self._on_asked, "health_asked")

    def close(self) -> None:
        """Release the figures and the data from which they are computed."""
        self.made = None

    def no_kernel_html(self) -> str:
        """Return the figures as HTML; empty before they are computed."""
        return "" if self.made is None else card_html(self.made.card())

    def of_page(self, *, shown: bool, hidden: bool) -> list[Block]:
        """Return the figures as blocks for a saved page if they were shown or are cheap to compute, else an empty list.

        Parameters
        ----------
        shown
            Whether another widget of the same table has shown them.
        hidden
            Leave out SQL statements, as they contain the table's name.
        """
        from iceexplore.doctor import TableHealth, metadata_size

        state = self.host.state
        if self.made is None and (shown or _is_cheap(metadata_size(state), remote=self._is_remote)):
            self.made = TableHealth.of(state)
        return [] if self.made is None else health_blocks(self.made, "tables", hidden=hidden)

    @property
    def _is_remote(self) -> bool:
        return not is_local(self.host.state.storage.folder)

    def _on_asked(self, asked: Mapping[str, Any]) -> None:
        self.host.shown(lambda: self._answer(asked))

    def _answer(self, asked: Mapping[str, Any]) -> None:
        do, of = asked.get("do"), asked.get("of")
        if do in ("look", "read"):
            self._read(forced=do == "read")
        elif do == "clustering" or (do == "gain" and of in _STEPS):
            self._more(str(of) if do == "gain" else "")
        else:
            raise OptionError(f"health_asked={str(dict(asked))[:60]}: choose 'look', 'read', 'clustering' or 'gain'")

    def _read(self, *, forced: bool) -> None:
        if self.made is not None:
            self._show(self.made)
            return
        state, remote = self.host.state, self._is_remote

        def read() -> Generator[str, None, TableHealth | MetadataSize]:
            from iceexplore.doctor import TableHealth, metadata_size  # slow, so it is imported in the worker

            size = metadata_size(state)
            if not forced and not _is_cheap(size, remote=remote):
                return size
            return (yield from TableHealth.steps(state))

        self.host.run("health", "Reading the manifests", read, self._show)

    def _more(self, of: str) -> None:
        """Plan the gain of one figure, or measure clustering if ``of`` is empty, and show all figures again."""
        health = self.made
        if health is None:
            self._read(forced=True)
            return

        def read() -> TableHealth:
            if of:
                health.gain(of)
            else:
                health.measure_clustering()
            return health

        what = "Computing what a rewrite would gain" if of else "Measuring clustering"
        self.host.run("health", what, read, self._show)

    def _show(self, found: TableHealth | MetadataSize) -> None:
        from iceexplore.doctor import MetadataSize

        if isinstance(found, MetadataSize):
            self.health = {"blocks": unread_blocks(found, self._next())}
            return
        self.made = found
        plans = found.is_small and not all(found.gain_known(figure.key) for figure in found.measured)
        self._show_figures(found, planning=plans)
        if not plans:
            return

        def plan() -> Generator[str, None, TableHealth]:
            yield from found.plan_gains()
            return found

        # The figures are already shown, without the gains, because planning these takes longer.
        self.host.run_silently("health", plan, self._show, after_others=True)

    def _show_figures(self, health: TableHealth, *, planning: bool) -> None:
        links: Links = "none" if self.host.tab is None else "all"
        self.health = {"blocks": health_blocks(health, links, self._next(), planning=planning)}

    def _next(self) -> int:
        """Return a number for the buttons' requests that differs from the numbers of all earlier requests."""
        self._count += 1
        return max(int(self.health_asked.get("n", 0)), self._count) + 1

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Show buttons for the gains whose planning was cancelled."""
        self.on_failed()

    def on_failed(self) -> None:
        """Show buttons for the gains that have not been planned, because planning them may have failed."""
        if self.made is not None:
            self._show_figures(self.made, planning=False)


def _is_cheap(size: MetadataSize, *, remote: bool) -> bool:
    return size.size <= _CHEAP_BYTES and size.manifests <= (_CHEAP_REMOTE if remote else _CHEAP_MANIFESTS)
