"""The public class of a catalog or warehouse folder: its namespaces, tables and views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from iceexplore.errors import IceexploreError, OptionError, seconds_of
from iceexplore.graph import to_frame
from iceexplore.render import Html, details, escape, html_table

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.doctor import CatalogReport
    from iceexplore.storage import ListedTable, Listing

__all__ = ["Catalog", "catalog_arguments"]

#: The classes of tables and views, which are in modules that import this one.
T = TypeVar("T")
V = TypeVar("V")

#: The maximum number of namespaces that are shown, and of tables in each.
_NAMESPACES = 40
_TABLES = 25
#: With more tables than this, namespaces are folded in HTML.
_UNFOLDED = 60


class Catalog(Generic[T, V]):
    """The namespaces, tables and views of a catalog or warehouse folder.

    Use `iceexplore.open_catalog` to get one. In a notebook it is displayed as a list that unfolds. The catalog is
    listed, within a time limit, when it is first shown or its contents are first accessed; `list_all` continues the
    listing after that. Opening a table lists nothing.

    Parameters
    ----------
    listing
        The listing that is shown.
    open_table, open_view, check_listing
        `iceexplore.open`, `iceexplore.open_view` and `iceexplore.check_catalog`.
    options
        The options ``allow`` and ``properties`` that were given for the catalog; these functions get them, too.
    time_limit
        Seconds for the first listing.
    """

    def __init__(
        self,
        listing: Listing,
        open_table: Callable[..., T],
        open_view: Callable[..., V],
        check_listing: Callable[..., CatalogReport],
        options: Mapping[str, Any],
        time_limit: float | None,
    ) -> None:
        self.listing = listing
        self._open = open_table
        self._open_view = open_view
        self._check = check_listing
        self.options = dict(options)
        self._time_limit = time_limit
        self._listed = False

    @property
    def name(self) -> str:
        """The catalog's name, or the folder."""
        return self.listing.name

    @property
    def complete(self) -> bool:
        """True if everything has been listed; False if a limit ended the listing."""
        self._list_once()
        return self.listing.complete

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The names of the namespaces that were listed; in a folder, the paths that contain tables or views."""
        self._list_once()
        return tuple(map(self._joined, self.listing.namespaces))

    @property
    def tables(self) -> pd.DataFrame:
        """The tables: ``table`` (what `open` takes), ``namespace``, ``name``, and in a folder ``location``."""
        self._list_once()
        return self._frame("table", self.listing.tables)

    @property
    def views(self) -> pd.DataFrame:
        """The views: ``view``, ``namespace``, ``name``, and in a folder ``location``."""
        self._list_once()
        return self._frame("view", self.listing.views)

    @property
    def failed(self) -> dict[str, str]:
        """Namespaces whose tables could not be listed, with the reasons."""
        self._list_once()
        return self.listing.failed

    def list_all(self, time_limit: float | None = None) -> Catalog[T, V]:
        """Continue the listing where a time limit ended it, by default to the end; return this object.

        Parameters
        ----------
        time_limit
            Seconds.

        Raises
        ------
        CatalogError, AccessDeniedError, StorageError
            The catalog or folder cannot be listed.
        """
        limit = None if time_limit is None else seconds_of("time_limit", time_limit)
        self._listed = True
        try:
            self.listing.run(limit)
        except IceexploreError:
            self._listed = False
            raise
        return self

    def open(self, table: str | Sequence[str], **how: Any) -> T:
        """Open a table. Only its metadata file is read; nothing is listed.

        Parameters
        ----------
        table
            Its name as `tables` has it (``"db.trips"``; in a folder ``"db/trips"``), or the parts of its name.
        how
            As for `iceexplore.open`: ``version``, ``moved``, ``strict``.

        Raises
        ------
        CatalogError, MetadataNotFoundError
            There is no such table; the message lists the nearest names, or what the namespace holds.
        """
        source, catalog = self.place_of(table)
        return self._open(source, catalog=catalog, **{**self.options, **how})

    def open_view(self, view: str | Sequence[str], **how: Any) -> V:
        """Open a view. Only its metadata file is read; nothing is listed.

        Parameters
        ----------
        view
            Its name as `views` has it, or the parts of its name.
        how
            As for `iceexplore.open_view`: ``version``, ``moved``, ``strict``.

        Raises
        ------
        CatalogError, MetadataNotFoundError
            There is no such view; the message lists the nearest names, or what the namespace holds.
        """
        source, catalog = self.place_of(view)
        return self._open_view(source, catalog=catalog, **{**self.options, **how})

    def place_of(self, table: object) -> tuple[Any, Any]:
        """Return the arguments ``source`` and ``catalog`` of `iceexplore.open` for a table. Nothing is read.

        Raises
        ------
        OptionError
            The argument is not a table name.
        """
        if not isinstance(table, (str, tuple, list)) or not table:
            raise OptionError(f"{table!r}: give the name of a table, such as 'db.trips'")
        if isinstance(table, str):
            for one in (*self.listing.tables, *self.listing.views):
                if one.name == table:  # the parts of the name may contain dots
                    return one.source, one.catalog
        if self.listing.catalog is not None:
            return table, self.listing.catalog
        return f"{self.name}/{table if isinstance(table, str) else '/'.join(table)}", None

    def __getitem__(self, table: str | Sequence[str]) -> T:
        return self.open(table)

    def __iter__(self) -> Any:  # noqa: ANN401  (never returns)
        # Python would otherwise ask for the tables 0, 1, 2 and so on.
        raise TypeError("a Catalog is not iterable: .tables and .views are data frames")

    def check(self, level: str = "metadata", **how: Any) -> CatalogReport:
        """Check all tables. See `iceexplore.check_catalog`, which takes this object, too."""
        return self._check(self, level, **{**self.options, **how})

    def _ipython_key_completions_(self) -> list[str]:
        return [one.name for one in self.listing.tables]

    # ------------------------------------------------------------------------------------------------------------------

    def _list_once(self) -> None:
        if not self._listed:
            self.list_all(self._time_limit)

    def _joined(self, parts: Sequence[str]) -> str:
        return ("/" if self.listing.catalog is None else ".").join(parts)

    def _frame(self, what: str, listed: Sequence[ListedTable]) -> pd.DataFrame:
        columns = {
            what: [one.name for one in listed],
            "namespace": [self._joined(one.namespace) for one in listed],
            "name": [self._own_name(one) for one in listed],
        }
        if self.listing.catalog is None:
            columns["location"] = [one.source for one in listed]
        return to_frame(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))

    def _own_name(self, one: ListedTable) -> str:
        prefix = self._joined(one.namespace)
        return one.name[len(prefix) + 1 :] if prefix else one.name

    def _title(self) -> str:
        kind = "Warehouse" if self.listing.catalog is None else "Catalog"
        counts = ((self.listing.namespaces, "namespace"), (self.listing.tables, "table"), (self.listing.views, "view"))
        parts = [f"{len(n):,} {what}{'' if len(n) == 1 else 's'}" for n, what in counts if n or what == "table"]
        return f"{kind} {self.name}: {', '.join(parts)}"

    def _notes(self) -> list[str]:
        found = [f"Namespace {name} could not be listed: {why}" for name, why in self.listing.failed.items()]
        if self.listing.no_views is not None:
            found.append(f"Views could not be listed: {self.listing.no_views}.")
        if not self.listing.complete:
            found.append(
                "Not everything is listed, because a limit ended the listing: list_all() continues after a time limit."
            )
        return found

    def _groups(self) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Return the namespaces, with the name of each table and view and whether it is a view."""
        found: dict[tuple[str, ...], list[tuple[str, bool]]] = {name: [] for name in ((), *self.listing.namespaces)}
        for listed, is_view in ((self.listing.tables, False), (self.listing.views, True)):
            for one in listed:
                found.setdefault(one.namespace, []).append((self._own_name(one), is_view))
        return [(self._joined(name), inside) for name, inside in found.items() if name or inside]

    def __repr__(self) -> str:
        try:
            self._list_once()
        except IceexploreError as error:
            return f"{escape.text(self._title())}\nℹ It could not be listed: {error}"
        lines = [self._title()]
        groups = self._groups()
        for namespace, inside in groups[:_NAMESPACES]:
            shown = [f"{name}  (view)" if is_view else name for name, is_view in inside[:_TABLES]]
            if len(inside) > _TABLES:
                shown.append(f"… {len(inside) - _TABLES:,} more")
            lines.append(namespace)
            lines += [f"{'└─' if i == len(shown) else '├─'} {name}" for i, name in enumerate(shown, 1)]
        if len(groups) > _NAMESPACES:
            lines.append(f"… {len(groups) - _NAMESPACES:,} more namespaces: .tables has all tables")
        return "\n".join(escape.text(line) for line in (*lines, *(f"ℹ {note}" for note in self._notes())) if line)

    def _repr_html_(self) -> str:
        try:
            self._list_once()
        except IceexploreError as error:
            notes = [f"It could not be listed: {error}"]
            groups: list[tuple[str, list[tuple[str, bool]]]] = []
        else:
            notes, groups = self._notes(), self._groups()
        e = escape.html
        out = [
            '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;overflow-wrap:anywhere">'
            f'<div style="font-size:16px;font-weight:600">{e(self._title())}</div>'
        ]
        opened = sum(len(inside) for _, inside in groups) <= _UNFOLDED
        for namespace, inside in groups[:_NAMESPACES]:
            rows = [(_code(name), "view" if is_view else "table") for name, is_view in inside]
            table = html_table(("name", "kind"), rows, limit=200) if rows else Html("<p>No tables.</p>")
            out.append(details(f"{namespace or self.name} ({len(inside):,})", table, opened=opened))
        if len(groups) > _NAMESPACES:
            notes.append(f"{len(groups) - _NAMESPACES:,} more namespaces: .tables has all tables.")
        out += [f'<div style="font-size:12px;opacity:.8">ℹ {e(note)}</div>' for note in notes]
        return "".join(out) + "</div>"


def catalog_arguments(source: Any, catalog: Any, allow: Any, properties: Any) -> tuple[Any, Any, Any, Any]:  # noqa: ANN401  (arguments of `open`)
    """Return the arguments of `open` for a source; with a `Catalog`, the options of that catalog are the defaults."""
    if not isinstance(catalog, Catalog):
        return source, catalog, allow, properties
    given = catalog.options
    return (
        *catalog.place_of(source),
        allow or given["allow"],
        given["properties"] if properties is None else properties,
    )


def _code(name: str) -> Html:
    return Html(f'<span style="font-family:ui-monospace,monospace">{escape.html(escape.shorten(name, 200))}</span>')
