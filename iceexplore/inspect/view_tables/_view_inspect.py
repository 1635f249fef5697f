"""``v.inspect``: the metadata tables of a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from iceexplore.errors import OptionError
from iceexplore.inspect._metadata_table import FrameTable
from iceexplore.inspect.view_tables import _build
from iceexplore.render import escape, html_table
from iceexplore.views import ViewState

__all__ = ["ViewInspect"]

_Build = Callable[[ViewState, pa.Schema], Iterable[pa.Table]]

#: Every metadata table of a view: description, columns and the function that builds it.
_TABLES: dict[str, tuple[str, pa.Schema, _Build]] = {
    "versions": ("Every version in the metadata.", _build.VERSIONS, _build.build_versions),
    "version_log": ("When each version became current.", _build.VERSION_LOG, _build.build_version_log),
    "representations": (
        "The query of every version, in each of its dialects.",
        _build.REPRESENTATIONS,
        _build.build_representations,
    ),
    "schemas": ("Every field of every schema.", _build.SCHEMAS, _build.build_schemas),
    "properties": ("The view's properties.", _build.PROPERTIES, _build.build_properties),
    "metadata_log": (
        "The metadata files in the view's folder; lists the folder.",
        _build.METADATA_LOG,
        _build.build_metadata_log,
    ),
}

_DOCS = {
    "created_at": "time at which the version was created, UTC",
    "default_catalog": "catalog for references that name no catalog; null means the view's own catalog",
    "default_namespace": "namespace for references that name no namespace",
    "dialect": "dialect of the SQL",
    "dialects": "dialects of the version's SQL",
    "doc": "comment on the field",
    "engine": "name and version of the engine that made the version",
    "field_aliases": "aliases of the columns (early drafts only)",
    "field_docs": "comments on the columns (early drafts only)",
    "field_id": "id of the field",
    "file": "location of the metadata file",
    "is_current": "whether the version is current",
    "is_expired": "whether the metadata no longer has the version",
    "is_open": "whether it is the metadata file that is shown",
    "is_rollback": "whether the version was current before: the view was rolled back to it",
    "key": "name of the property",
    "made_current_at": "time at which the version became current, UTC",
    "modified_at": "time at which the file was last modified, UTC",
    "name": "full name of the field",
    "number": "number in the file's name",
    "operation": "create or replace (early drafts only)",
    "parent_id": "version that this version replaced (early drafts only)",
    "required": "whether the field has no nulls",
    "schema_id": "id of the schema",
    "schemas.is_current": "whether it is the schema of the version that is shown",
    "size_in_bytes": "length of the file, in bytes",
    "sql": "the query, as written",
    "storage_table": "table with the results of a materialized view (a proposal)",
    "summary": "the version's summary, as written",
    "type": "type of the representation",
    "schemas.type": "type of the field",
    "value": "value of the property",
    "version_id": "id of the version",
}


class ViewInspect:
    """The metadata tables of a view, with the columns that the spec names.

    ``v.inspect.versions()`` returns a pandas data frame, ``v.inspect.versions.arrow()`` an Arrow table;
    ``v.inspect["versions"]`` is the same as ``v.inspect.versions``. The tables cover the whole metadata file, whichever
    version `iceexplore.View.at` has selected.
    """

    # Declared for editors and type checkers; `__getattr__` creates them.
    versions: FrameTable
    version_log: FrameTable
    representations: FrameTable
    schemas: FrameTable
    properties: FrameTable
    metadata_log: FrameTable

    def __init__(self, state: ViewState) -> None:
        self._state = state

    def __getattr__(self, name: str) -> FrameTable:
        if name in _TABLES:
            return self._table(name)
        raise AttributeError(f"no metadata table {name!r}; choose from {', '.join(_TABLES)}")

    def __getitem__(self, name: str) -> FrameTable:
        if name not in _TABLES:
            raise OptionError(f"no metadata table {name!r}; choose from {', '.join(_TABLES)}")
        return self._table(name)

    def _table(self, name: str) -> FrameTable:
        doc, schema, build = _TABLES[name]
        return FrameTable(name, doc, lambda: schema, partial(build, self._state), _DOCS)

    def __iter__(self) -> Iterator[str]:
        return iter(_TABLES)

    def __len__(self) -> int:
        return len(_TABLES)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_TABLES]

    def __repr__(self) -> str:
        width = max(map(len, _TABLES)) + 3
        lines = [f"  {f'.{name}()':{width}}  {doc}" for name, (doc, *_) in _TABLES.items()]
        head = f"Metadata tables of the view {escape.text(self._state.name)}; .arrow() returns Arrow:"
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        caption = (
            f"Metadata tables of the view {self._state.name}: .inspect.versions() is pandas, "
            ".inspect.versions.arrow() is Arrow"
        )
        rows = [(name, doc) for name, (doc, *_) in _TABLES.items()]
        return str(html_table(("table", "description"), rows, caption))
