"""Save the content of the explorer as an HTML page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import anywidget

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import REDACTIONS, json_safe, nameless, redactions
from iceexplore.storage import place_to_write, whole_file
from iceexplore.widgets.detail._panel import DetailPart
from iceexplore.widgets.grid._page import page_of
from iceexplore.widgets.saved_page._content import SavedPage, collect
from iceexplore.widgets.saved_page._html import plain_html, saved_html
from iceexplore.widgets.saved_page._redact import PageRedactor
from iceexplore.widgets.timeline._panel import TimelinePart

__all__ = ["SavedPart"]

_BYTES = 10_000_000
_ROWS = 1_000
#: Traits for requests of the tree to Python (search, export); without them, a page does what it can alone.
_ASKING = frozenset({"search", "found", "wanted", "written"})


class SavedPart(TimelinePart, DetailPart):
    """A part with a tree, tables and a timeline that can be saved as a page."""

    def save_html(
        self,
        path: str | PathLike[str],
        *,
        redact: bool | str | Iterable[str] = ("credentials",),
        max_bytes: int = _BYTES,
        rows: int = _ROWS,
        overwrite: bool = False,
    ) -> SavedPage:
        """Write the tree, the tables and the timeline into one HTML file that works offline and can be mailed.

        The page makes no requests (a Content-Security-Policy forbids them) and needs no Python. It opens with the
        current selection. Content that does not fit is listed at the end of the page.

        Parameters
        ----------
        path
            The file to write.
        redact
            Any of ``credentials`` (the default: values whose key or form is that of a secret, and queries and users in
            URLs), ``values`` (bounds, partition values, defaults and everything else that may hold data; facts and
            columns stay if they are named like a count, size, id, time or kind, and summaries keep numbers), ``paths``
            (equal file names get equal replacements) and ``names`` (of the table, columns, partition fields, branches
            and tags, unknown keys; documentation). True means all, False none. ``values`` and ``names`` include paths.
        max_bytes
            The most bytes of data in the page; trees and tables beyond are left out, those of older snapshots and of
            files first.
        rows
            The most rows of each table, at least one.
        overwrite
            Whether to replace an existing file.

        Raises
        ------
        OptionError
            A redaction or a number is invalid, or no file can be written to the path, for example as its folder is
            missing.
        ExistsError
            The file exists and ``overwrite`` is false. This is also a FileExistsError.
        StorageError, AccessDeniedError
            Writing failed; an existing file is unchanged.
        """
        kinds = redactions(redact)
        limits: tuple[tuple[str, Any, int], ...] = (("max_bytes", max_bytes, 0), ("rows", rows, 1))
        for name, number, least in limits:
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise OptionError(f"{name}={number!r}: give an integer, {least} or more")
        place = place_to_write(path, overwrite=overwrite)
        if not kinds & {"names", "values"}:
            return self._written(place, kinds, max_bytes, rows, overwrite=overwrite)
        other = type(self)(nameless(self._state, kinds))  # the same table with redacted metadata
        try:
            with contextlib.suppress(IceexploreError):
                other.select(snapshot=self.selection["snapshot"] or None)
            other.settle()
            return other._written(place, kinds, max_bytes, rows, overwrite=overwrite)
        finally:
            other.close()

    def _written(self, place: Path, kinds: frozenset[str], max_bytes: int, rows: int, *, overwrite: bool) -> SavedPage:
        state = self._state
        metadata = state.metadata
        names = {name.split(".")[-1] for name, _ in metadata.all_fields().values()}
        names |= {name for name, _ in metadata.all_fields().values()}
        names |= {f.name for spec in metadata.partition_specs for f in spec.fields}
        redactor = PageRedactor(kinds, names)
        self._columns_made: dict[tuple[str, int, int], dict[str, Any]] = {}
        made = collect(
            self._forest,
            self.selection["snapshot"],
            self._detail_of,
            self._saved_table,
            redactor,
            size=max_bytes,
            rows=rows,
        )
        self._columns_made = {}
        left_out = tuple(made.left_out())
        tree = made.trees[next(iter(made.trees))]
        traits = redactor.traits(_traits(self))
        traits["detail"] = made.details.get(self.selection["node"], {})
        traits["selection"] = {**self.selection, "against": ""}  # comparing needs Python
        traits["parts"] = [["tree", "Tree"]]  # the other parts need Python too
        saved = {
            "traits": {**traits, **tree},
            "trees": made.trees,
            "details": made.details,
            "tables": made.tables,
        }
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        redacted = ", ".join(k for k in REDACTIONS if k in kinds)
        notes = [f"Created by iceexplore on {now}. Redacted: {redacted or 'nothing'}.", *left_out]
        text = saved_html(redactor.text(json_safe(state.name)), saved, plain=plain_html(saved), notes=notes).encode()
        with whole_file(place, overwrite=overwrite) as out:
            out.write(text)
        return SavedPage(place, len(text), tuple(sorted(kinds)), left_out)

    def _saved_table(self, of: str, key: str, rows: int) -> dict[str, Any]:
        """Return a table or text of a node for the page."""
        if key == "columns" and of.startswith("file:"):  # the same for an entry in all snapshots that contain it
            from iceexplore.widgets.detail._manifest_tables import entry_of

            manifest, row = entry_of(self._state, self._forest.node(of))
            at = (manifest.location, row, rows)
            if at not in self._columns_made:
                self._columns_made[at] = self._made_table(of, key, rows)
            return self._columns_made[at]
        return self._made_table(of, key, rows)

    def _made_table(self, of: str, key: str, rows: int) -> dict[str, Any]:
        text = self._grid_text("detail", of, key)
        if text is not None:
            return text
        page = page_of(self._grid_table("detail", of, key), 0, rows)
        nodes = list(self._grid_nodes("detail", of, key, range(len(page["rows"]))))
        self._forget("detail")
        columns = [{"name": c["name"], "right": c["right"]} for c in (page["columns"][i] for i in page["shown"])]
        made = {"columns": columns, "rows": page["rows"], "total": page["total"]}
        if missed := self._grid_unread("detail", of, key):
            made |= {"lacks": f"Rows may be missing: {missed}."} if page["total"] else {"none": f"No rows: {missed}."}
        return {**made, "nodes": nodes} if any(nodes) else made


def _traits(widget: TimelinePart) -> dict[str, Any]:
    """Return the values of the base and timeline traits, and the defaults of other traits, which need Python."""
    kept = {"title", "badges", "styles", "selection", *TimelinePart.class_own_traits(sync=True)}
    everybody = anywidget.AnyWidget.class_traits(sync=True)
    left = {*everybody, *_ASKING}
    own = {name: trait for name, trait in widget.traits(sync=True).items() if name not in left and name[0] != "_"}
    return {name: getattr(widget, name) if name in kept else trait.default(widget) for name, trait in own.items()}
