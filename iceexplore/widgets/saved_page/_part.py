"""Saving what the explorer shows as a page of its own."""

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
from iceexplore.widgets.detail._part import DetailPart
from iceexplore.widgets.grid._page import page_of
from iceexplore.widgets.saved_page._content import SavedPage, collect
from iceexplore.widgets.saved_page._html import plain_html, saved_html
from iceexplore.widgets.saved_page._redact import PageRedactor
from iceexplore.widgets.timeline._part import TimelinePart

__all__ = ["SavedPart"]

_BYTES = 10_000_000
_ROWS = 1_000
#: Traits by which the tree asks Python to search and to write files: a page without them does what it can alone.
_ASKING = frozenset({"search", "found", "wanted", "written"})


class SavedPart(TimelinePart, DetailPart):
    """A widget with a tree, tables and a timeline, that can be saved as a page."""

    def save_html(
        self,
        path: str | PathLike[str],
        *,
        redact: bool | str | Iterable[str] = ("credentials",),
        max_bytes: int = _BYTES,
        rows: int = _ROWS,
        overwrite: bool = False,
    ) -> SavedPage:
        """Write the tree, the tables and the timeline into one HTML file, which works by mail and offline.

        The page asks nobody for anything (a Content-Security-Policy forbids it) and needs no Python. It begins with
        what is selected. What does not fit is named at the end of the page.

        Parameters
        ----------
        path
            The file to write.
        redact
            Any of ``credentials`` (the default; values whose key or form is that of a secret, queries and users in
            URLs), ``values`` (bounds, partition values, defaults, whatever else may hold data: facts and columns stay
            where their name is that of a count, a size, an id, a time or a kind, and of summaries numbers), ``paths``
            (files of one name stay equal) and ``names`` (of the table, columns, partition fields, branches and tags,
            unknown keys; documentation). True is all of them, False none. With ``values`` or ``names`` go paths.
        max_bytes
            What the data in the page may take; trees and tables past that are left out, those of older snapshots and
            of files first.
        rows
            Of each table so many rows go in, at least one.
        overwrite
            Replace a file that is there.

        Raises
        ------
        OptionError
            An unknown redaction, a number that is none, or no file can be there, as its folder is missing, say.
        ExistsError
            The file is there, and ``overwrite`` is false. It is a FileExistsError, too.
        StorageError, AccessDeniedError
            The disk refuses it: a file that was there is untouched.
        """
        kinds = redactions(redact)
        limits: tuple[tuple[str, Any, int], ...] = (("max_bytes", max_bytes, 0), ("rows", rows, 1))
        for name, number, least in limits:
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise OptionError(f"{name}={number!r}: give a whole number, {least} or more")
        place = place_to_write(path, overwrite=overwrite)
        if not kinds & {"names", "values"}:
            return self._written(place, kinds, max_bytes, rows, overwrite=overwrite)
        other = type(self)(nameless(self._state, kinds))  # the same table, of whose metadata no more is known
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
        traits["selection"] = {**self.selection, "against": ""}  # comparing takes Python
        traits["parts"] = [["tree", "Tree"]]  # the others do
        saved = {
            "traits": {**traits, **tree},
            "trees": made.trees,
            "details": made.details,
            "tables": made.tables,
        }
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        said = ", ".join(k for k in REDACTIONS if k in kinds)
        notes = [f"Made by iceexplore on {now}. Left out on purpose: {said or 'nothing'}.", *left_out]
        text = saved_html(redactor.text(json_safe(state.name)), saved, plain=plain_html(saved), notes=notes).encode()
        with whole_file(place, overwrite=overwrite) as out:
            out.write(text)
        return SavedPage(place, len(text), tuple(sorted(kinds)), left_out)

    def _saved_table(self, of: str, key: str, rows: int) -> dict[str, Any]:
        """A table or text of a node as a page has it."""
        if key == "columns" and of.startswith("file:"):  # of one entry it is the same in all snapshots that have it
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
    """The traits of the timeline and of every widget; those of parts that ask Python, as they are before they have."""
    kept = {"title", "badges", "styles", "selection", *TimelinePart.class_own_traits(sync=True)}
    everybody = anywidget.AnyWidget.class_traits(sync=True)
    left = {*everybody, *_ASKING}
    own = {name: trait for name, trait in widget.traits(sync=True).items() if name not in left and name[0] != "_"}
    return {name: getattr(widget, name) if name in kept else trait.default(widget) for name, trait in own.items()}
