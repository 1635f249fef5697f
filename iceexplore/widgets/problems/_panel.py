"""The problems in everything read so far, as a list grouped by code; each problem is linked to its node."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import traitlets
from traitlets import Bunch

from iceexplore.errors import Problem
from iceexplore.graph import amount, format_ms, json_safe
from iceexplore.manifests import ContentType
from iceexplore.render import escape
from iceexplore.widgets.core._bundle import sent_script
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.core._static_html import problems_html
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.problems._doctor_panel import DoctorPanel
from iceexplore.widgets.problems._health_panel import HealthPanel
from iceexplore.widgets.problems._nodes_of_problems import Coverage, Place, coverage, places_of

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.doctor import Report, TableHealth

__all__ = ["Problems", "ProblemsPanel"]

_ORDER = ("error", "warning", "info")
#: Maximum number of items per code, and in total; others are only counted. `ProblemsPanel.found_problems` has all.
_MAX_ITEMS = 50
_MAX_ALL = 600
_MAX_TEXT = 600


class ProblemsPanel(Panel):
    """The problems found so far; the list grows as more is read.

    Attributes
    ----------
    problems
        ``counts``, the numbers of problems by severity; ``sums``, the same as text, in which "none" differs from "not
        checked"; ``groups`` by code, the most severe first, each with ``code``, ``severity``, ``title``, ``advice``,
        ``count``, ``items`` and ``more``, a text about items that are not listed; ``read``, the number of the selected
        snapshot's manifests that have been read; and ``manifests``, their total, None if the manifest list or root
        manifest cannot be read. An item has a stable ``id``, ``severity``, ``text``, ``evidence``, ``where``, ``since``
        (which snapshot first referenced the damaged file, and whether the selected one has it) and ``actions``, each
        with a ``title`` and what it selects. There are also three texts: ``covered``, how much has been read; ``left``,
        the label of the button that reads the rest; and ``nothing``, shown if there are no groups.
    severities
        The severities shown.
    read_all
        The browser increments this to read every manifest of the selected snapshot; `cancelled` stops it.
    """

    problems = SyncedTrait(traitlets.Dict())
    severities = SyncedTrait(traitlets.List(traitlets.Unicode(), list(_ORDER)))
    read_all = SyncedTrait(traitlets.Int())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._doctor = host.panel(DoctorPanel)
        self._listed = (-1, -1)
        self._listing = False

    def begin(self) -> None:
        """List the problems found so far."""
        self.host.observe(self._on_read_all, "read_all")
        self._list_problems()

    @property
    def found_problems(self) -> pd.DataFrame:
        """All problems found so far: severity, code, where, text, field, found, expected, node."""
        import pandas as pd

        met = list(self.host.state.problems)
        places = places_of(self.host.state, self.host.snapshot, [p.where for p in met])
        columns = ["severity", "code", "where", "text", "field", "found", "expected"]
        rows = [[json_safe(getattr(p, c)) for c in columns] for p in met]
        frame = pd.DataFrame(rows, columns=columns, dtype="string")
        return frame.assign(node=pd.Series([places.get(p.where, Place("")).node for p in met], dtype="string"))

    def no_kernel_html(self) -> str:
        """Return the problems as HTML; empty after a check, because its report says more."""
        return "" if self._doctor.report is not None else problems_html(self.problems)

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """List the problems as seen from another snapshot."""
        if old["snapshot"] != new["snapshot"]:
            self._list_problems()

    def on_read(self) -> None:
        """List the problems again if more has been read."""
        if self._listed != self._now():
            self._list_problems()

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Start the listing again if it was cancelled."""
        if self._listing:  # the user cancelled other work, so the list must still appear
            self._list_problems()

    def _now(self) -> tuple[int, int]:
        return len(self.host.state.problems), len(self.host.state.reader.seen)

    def _list_problems(self) -> None:
        def read() -> dict[str, Any]:
            try:
                return self._found()
            finally:
                self._listed = self._now()  # what the listing itself reads must not trigger another listing

        def show(found: dict[str, Any]) -> None:
            self._listing = False
            self.problems = found

        self._listed = self._now()
        self._listing = True
        self.host.run_silently("problems", read, show)

    def _found(self) -> dict[str, Any]:
        state, snapshot = self.host.state, self.host.snapshot
        root = None if snapshot is None else state.root(snapshot)  # reading the root may add a problem
        met = list(state.problems)
        groups: dict[str, list[Problem]] = {}
        for item in met:
            groups.setdefault(item.code, []).append(item)
        order = sorted(groups.values(), key=lambda g: (min(_rank(p) for p in g), -len(g), g[0].code))
        sent: list[list[Problem]] = []
        for group in order:
            room = max(0, _MAX_ALL - sum(map(len, sent)))
            sent.append(sorted(group, key=_rank)[: min(_MAX_ITEMS, room)])
        places = places_of(state, snapshot, [p.where for part in sent for p in part])
        covered = coverage(state, root)
        return {
            "counts": (counts := {name: sum(p.severity == name for p in met) for name in _ORDER}),
            "sums": {name: _sum(name, n, covered) for name, n in counts.items()},
            "groups": [self._group(g, part, places) for g, part in zip(order, sent, strict=True)],
            "read": covered.read,
            "manifests": covered.manifests,
            **_words(covered, snapshot is not None, bool(met)),
        }

    def _group(self, group: list[Problem], sent: list[Problem], places: Mapping[str, Place]) -> dict[str, Any]:
        worst = min(group, key=_rank)
        more = len(group) - len(sent)
        return {
            "code": worst.code,
            "severity": worst.severity,
            "title": worst.title,
            "advice": worst.advice,
            "count": len(group),
            "items": [self._item(p, places.get(p.where)) for p in sent],
            "more": f"and {more:,} more: see found_problems in Python" if more else "",
        }

    def _item(self, problem: Problem, place: Place | None) -> dict[str, Any]:
        evidence = [("field", problem.field), ("found", problem.found), ("expected", problem.expected)]
        since = "" if place is None else self._snapshots(place)
        identity = "\x1f".join((problem.code, problem.where, problem.text, problem.field or ""))
        actions = []
        if place is not None:
            snapshot = {"snapshot": place.snapshot} if place.snapshot else {}
            actions = [{"title": "Show", "selection": {"node": place.node, **snapshot}}]
        return {
            "id": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:16],
            "severity": problem.severity,
            "text": _text(problem.text),
            "evidence": " · ".join(f"{name} {_text(value)}" for name, value in evidence if value is not None),
            "where": _text(escape.shorten(problem.where, _MAX_TEXT)),
            "since": since,
            "actions": actions,
        }

    def _snapshots(self, place: Place) -> str:
        """Return which snapshot first referenced a damaged file, and whether the selected snapshot has the file."""
        metadata, shown_now = self.host.state.metadata, self.host.selection["snapshot"]
        first = None if place.since is None else metadata.snapshot(place.since)
        parts = []
        if first is not None:
            when = format_ms(first.timestamp_ms).replace(".000 UTC", " UTC")
            parts.append(
                f"first referenced by snapshot {first.snapshot_id} ({first.operation or 'no operation'}, {when})"
            )
        elif place.since is not None:
            parts.append(f"first referenced by snapshot {place.since}, which has expired")
        if place.snapshot not in ("", shown_now):
            parts.append("not in the selected snapshot")
        text = "; ".join(parts)
        return _text(text[:1].upper() + text[1:])

    @shown
    def _on_read_all(self, change: Bunch) -> None:
        state, snapshot = self.host.state, self.host.snapshot
        if snapshot is None:
            self.host.finish()
            return

        def read() -> Generator[str, None, None]:
            root = state.root(snapshot)
            if root is None:
                return
            kinds = root.entries["content_type"].to_pylist()
            manifests = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
            rows = [row for row, kind in enumerate(kinds) if kind in manifests]
            parts = frozenset({"entries", "partition"})
            for done, _ in enumerate(state.reader.leaves(root, rows, parts), 1):
                yield f"Reading manifests: {done:,} of {len(rows):,} …"

        self.host.run("read-all", "Reading manifests", read, lambda _: None)


class Problems(TableWidget):
    """A widget that checks a table, shows figures about its health, and lists the problems found so far.

    ``Problems(t, selection=explorer)`` shows a clicked problem's node in the explorer.
    """

    panels = (HealthPanel, DoctorPanel, ProblemsPanel)

    view_script = sent_script("problems.problemsView")

    @property
    def report(self) -> Report | None:
        """The doctor's last report; None before a check."""
        return self._panel(DoctorPanel).report

    @property
    def table_health(self) -> TableHealth | None:
        """The figures about the table's health; None before they are shown."""
        return self._panel(HealthPanel).made

    @property
    def found_problems(self) -> pd.DataFrame:
        """All problems found so far: severity, code, where, text, field, found, expected, node."""
        return self._panel(ProblemsPanel).found_problems

    @property
    def selected(self) -> pd.DataFrame:
        """The problems of the selected node."""
        frame = self.found_problems
        here: pd.DataFrame = frame.loc[frame["node"] == self.selection["node"]]
        return here


def _words(covered: Coverage, snapshot: bool, wrong: bool) -> dict[str, str]:
    """Return the texts about how much has been read, about what is left to read, and for an empty list."""
    read, known = covered.read, covered.manifests
    rest = (known or 0) - read
    clean = (
        "No problems in this snapshot's metadata, which has been read completely. Data files were not opened; "
        "t.verify() checks them."
    )
    text, left = "this snapshot has no manifests", ""
    if not snapshot:
        text = "there is no snapshot"
        clean = "No problems in the table's metadata file; it has no snapshot to check."
    elif known is None:
        text = "this snapshot's list of manifests cannot be read"
    elif known:
        text = f"{read:,} of {amount(known, 'manifest')} of this snapshot read"
    if rest:
        left = f"the other {'one' if rest == 1 else f'{rest:,}'}" if read else "it" if known == 1 else "all"
        unchecked = f"Not checked yet: 0 of {amount(known or 0, 'manifest')} read."
        clean = "No problems in what has been read." if read else unchecked
    return {
        "covered": text,
        "left": left and f"Read {left}",
        "nothing": "No problems of these severities." if wrong else clean,
    }


def _sum(severity: str, count: int, covered: Coverage) -> str:
    """Return the number of problems of a severity as text; "0" only if every manifest has been read."""
    word = {"info": "note"}.get(severity, severity)
    if count:
        return amount(count, word)
    if covered.manifests is not None and covered.read >= covered.manifests:
        return f"0 {word}s"
    return f"{word}s: not checked" if not covered.read else f"no {word}s so far"


def _rank(problem: Problem) -> int:
    return _ORDER.index(problem.severity)


def _text(value: str) -> str:
    return str(json_safe(escape.visible(value[:_MAX_TEXT])))
