"""Open the tables and views that a view's query names: from a mapping, a catalog, or the view's warehouse folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from iceexplore.errors import CatalogError, IceexploreError, MetadataNotFoundError, OptionError, UnsupportedError
from iceexplore.graph import TableState, open_state
from iceexplore.storage import is_catalog, is_local
from iceexplore.views import FoundSource, OpenSource, TableReference, ViewState, open_view_state

__all__ = ["source_opener"]


def source_opener(
    state: ViewState, catalog: object, tables: Mapping[str, Any] | None, state_of: Callable[[object], object]
) -> OpenSource:
    """Return a function that opens the sources of a view and of the views inside it.

    Parameters
    ----------
    catalog
        A catalog, or the name of one, for names without a catalog; by default the one that the view was opened from.
    tables
        Tables and views by name: what `iceexplore.open` or `iceexplore.open_view` take or return.
    state_of
        Returns the state of a Table or View, and any other object as it is.

    Raises
    ------
    OptionError
        ``tables`` is not a mapping of names.
    """
    asked_for: Any = {} if tables is None else tables
    if not isinstance(asked_for, Mapping) or not all(isinstance(name, str) for name in asked_for):
        raise OptionError("tables= takes tables and views by name: {'db.trips': 'warehouse/db/trips'}")
    given = {name.lower(): state_of(value) for name, value in asked_for.items()}
    asked = state.opened.source
    wanted: Any = catalog if catalog is not None else asked.catalog
    name = wanted if isinstance(wanted, str) else str(getattr(wanted, "name", "")) if is_catalog(wanted) else None

    def open_one(source: Any, **how: Any) -> FoundSource:  # noqa: ANN401  (what users give)
        if isinstance(source, ViewState):
            return FoundSource("view", _place(source), view=source)
        if isinstance(source, TableState):
            return FoundSource("table", _place(source), source.schema, table=source, table_metadata=source.metadata)
        how = {"allow": asked.allow, "properties": asked.properties, **how}
        try:
            table = open_state(source, **how)
        except (UnsupportedError, CatalogError, OptionError) as not_a_table:
            try:
                view = open_view_state(source, **how)
            except IceexploreError:
                raise not_a_table from None
            return FoundSource("view", _place(view), view=view)
        return FoundSource("table", _place(table), table.schema, table=table, table_metadata=table.metadata)

    def open_source(reference: TableReference, of: ViewState) -> FoundSource:
        for key in (str(reference), ".".join(reference.identifier), reference.written):
            if key.lower() in given:
                return _tried(partial(open_one, given[key.lower()]), "failed")
        if wanted is not None:
            if reference.catalog is not None and name and reference.catalog.lower() != name.lower():
                return FoundSource("not opened", note=f"it is in another catalog, {reference.catalog}")
            return _tried(partial(open_one, reference.identifier, catalog=wanted), "missing")
        for place in _beside(of, reference):
            if os.path.isdir(place):
                return _tried(partial(open_one, place), "failed")
        return FoundSource("not opened", note="not found beside the view; give catalog= or tables=")

    return open_source


def _place(state: TableState | ViewState) -> str:
    return state.storage.place(state.metadata_location)


def _tried(opening: Callable[[], FoundSource], kind: Any) -> FoundSource:  # noqa: ANN401  (a SourceKind)
    try:
        return opening()
    except (CatalogError, MetadataNotFoundError) as error:
        return FoundSource(kind, note=str(error))
    except IceexploreError as error:
        return FoundSource("failed", note=str(error))


def _beside(state: ViewState, reference: TableReference) -> Iterator[str]:
    """Yield the folders in which a table may be if the view is in a warehouse: ``<namespace>/<name>`` in folders above.

    Names come from the query, so only plain ones are joined to a path.
    """
    folder = state.storage.folder
    parts = reference.identifier
    if not is_local(folder) or state.storage.is_extracted:
        return
    if not all(part and part not in (".", "..") and not set(part) & set("/\\\0") for part in parts):
        return
    parent = os.path.dirname(folder)
    version = state.version
    if version is not None and reference.namespace in (None, version.namespace_of()):
        yield os.path.join(parent, parts[-1])
    for _ in range(4):  # the view's namespace may have several levels
        parent = os.path.dirname(parent)
        if parent in ("", os.path.sep):
            return
        yield os.path.join(parent, *parts)
        yield os.path.join(parent, *parts[:-2], f"{parts[-2]}.db" if len(parts) > 1 else "", parts[-1])
