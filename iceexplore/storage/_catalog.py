"""Tables from PyIceberg catalogs, and PyIceberg's own Table objects."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from iceexplore.errors import CatalogError, OptionError
from iceexplore.storage._catalog_contents import (
    CatalogLike,
    catalog_name,
    error_text,
    inside_text,
    is_view,
    load_named,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as PyIcebergTable

__all__ = [
    "CatalogTable",
    "SourceLike",
    "from_catalog",
    "from_table",
    "is_table",
    "located",
    "refuse_namespace",
    "rest_answer",
    "sql_location",
    "version_notes",
    "warehouse_of",
]

#: What `iceexplore.open` opens: a path or URI, an identifier in a catalog, or a PyIceberg Table.
SourceLike: TypeAlias = "str | PathLike[str] | tuple[str, ...] | list[str] | PyIcebergTable"

#: Prefixes of table properties that configure PyIceberg's FileIO.
_OF_FILE_IO = ("py-io-impl", "client.", "s3.", "gcs.", "adls.", "hdfs.", "oss.", "hf.")


@dataclass(frozen=True)
class CatalogTable:
    """A table as its catalog describes it: name, metadata location, FileIO and warehouse.

    ``table`` is PyIceberg's object, or None if PyIceberg cannot parse the metadata. If only the SQL catalog's row was
    read (so that the metadata file is not read twice), ``table`` is None until `read` is called, and ``unread`` is the
    catalog and the table's identifier. For a view, ``sent`` is the metadata as the catalog sent it. If a view has no
    metadata file, ``no_file`` says why, and ``metadata_location`` is the view's folder.
    """

    name: str
    metadata_location: str
    file_io: Any
    warehouse: str | None
    table: Any | None
    unread: tuple[Any, tuple[str, ...]] | None = None
    sent: dict[str, Any] | None = None
    no_file: str = ""

    def read(self, document: Mapping[str, Any]) -> CatalogTable:
        """Return a copy with PyIceberg's object, built from the parsed metadata file as PyIceberg's loading does.

        PyIceberg configures a table's FileIO with the catalog's properties; the table's properties override them.
        """
        if self.unread is None:
            return self
        catalog, name = self.unread
        properties = document.get("properties")
        file_io = self.file_io
        if isinstance(properties, Mapping) and any(str(key).startswith(_OF_FILE_IO) for key in properties):
            file_io = catalog._load_file_io(dict(properties), self.metadata_location)
        try:
            from pyiceberg.table import Table
            from pyiceberg.table.metadata import TableMetadataUtil

            metadata = TableMetadataUtil.parse_obj(dict(document))
            table = Table(name, metadata, self.metadata_location, file_io, catalog)
        except Exception:
            table = None  # metadata that PyIceberg does not know or finds damaged is still shown
        return replace(self, file_io=file_io, table=table, unread=None)

    @classmethod
    def of(cls, table: PyIcebergTable) -> CatalogTable:
        """Return the catalog table of a PyIceberg Table."""
        if not isinstance(table.metadata_location, str) or not table.metadata_location:
            raise CatalogError(
                f"the catalog returned no metadata-location for {'.'.join(table.name())}. "
                "The table may only be staged; if it has files, open it by its folder"
            )
        warehouse = warehouse_of(getattr(table, "catalog", None))
        return cls(".".join(table.name()), table.metadata_location, table.io, warehouse, table)

    def document(self) -> dict[str, Any] | None:
        """Return a table's metadata as PyIceberg parsed it, without keys unknown to PyIceberg; a view's as sent."""
        if self.table is None:
            return self.sent
        document: dict[str, Any] = json.loads(self.table.metadata.model_dump_json(by_alias=True, exclude_none=True))
        return document


def is_table(source: object) -> bool:
    """Return whether an object is a PyIceberg Table (or acts like one)."""
    return all(hasattr(source, name) for name in ("metadata_location", "io", "metadata", "name"))


def from_catalog(identifier: object, catalog: CatalogLike, properties: Mapping[str, str]) -> CatalogTable:
    """Load a table from a catalog, given as an object or by its name in PyIceberg's configuration.

    Raises
    ------
    CatalogError
        The catalog or table does not exist (the message lists the nearest names), or PyIceberg failed.
    """
    if not isinstance(identifier, (str, tuple, list)):
        raise OptionError(f"with catalog= the source is a table's name ('db.table'), not {type(identifier).__name__}")
    loaded = load_named(catalog, properties) if isinstance(catalog, str) else catalog
    if not hasattr(loaded, "load_table"):
        raise OptionError(f"catalog= takes a name or a PyIceberg catalog, not {type(catalog).__name__}")
    key: Any = identifier if isinstance(identifier, str) else tuple(identifier)
    shown = key if isinstance(key, str) else ".".join(key)
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    unread = _unread(loaded, key, shown)
    if unread is not None:
        return unread
    try:
        return CatalogTable.of(loaded.load_table(key))
    except CatalogError:
        raise
    except (NoSuchTableError, NoSuchNamespaceError) as e:
        if is_view(loaded, key):
            raise CatalogError(
                f"{shown} in catalog {catalog_name(loaded)} is a view, not a table: ix.open_view(name, catalog=...) "
                "opens it, and its query names the tables it reads"
            ) from e
        refuse_namespace(loaded, key, e)
        raise CatalogError(f"no table {shown} in catalog {catalog_name(loaded)}{_nearest(loaded, key)}") from e
    except Exception as e:
        if "." not in shown:  # PyIceberg raises a ValueError for a name without a namespace
            refuse_namespace(loaded, key, e)
        # PyIceberg loads and validates in one step, and version 0.12 refuses damaged metadata and unknown types
        # (variant). The metadata location can be requested alone.
        found = _without_parsing(loaded, key, shown)
        if found is not None:
            return found
        raise CatalogError(
            f"PyIceberg could not load {shown} from catalog {catalog_name(loaded)} ({error_text(e)}); "
            "a table can also be opened by its folder or metadata file"
        ) from e


def from_table(table: PyIcebergTable, *, fresh: bool = False) -> CatalogTable:
    """Return a PyIceberg Table as a catalog table; with ``fresh``, load it again from its catalog first."""
    catalog = getattr(table, "catalog", None)
    if fresh and catalog is not None:
        unread = _unread(catalog, table.name(), ".".join(table.name()))
        if unread is not None:
            return unread
        try:
            return CatalogTable.of(catalog.load_table(table.name()))
        except NotImplementedError:
            pass  # a StaticTable's catalog: there is nothing newer
        except Exception as e:
            raise CatalogError(f"{'.'.join(table.name())} could not be loaded again: {error_text(e)}") from e
    return CatalogTable.of(table)


@cache
def version_notes() -> tuple[str, ...]:
    """Return a warning for the table's card if the versions of datafusion and pyiceberg-core do not fit; else nothing.

    pyiceberg-core passes datafusion a table provider as pointers into memory whose layout differs between datafusion
    versions: ``SessionContext.register_table`` of a PyIceberg Table, or the first query, then ends the process in a
    segmentation fault. iceexplore never makes these calls, but its users may.
    """
    try:
        core, found = version("pyiceberg-core"), version("datafusion")
        asked = requires("pyiceberg") or []
    except PackageNotFoundError:
        return ()
    wanted = next((r for r in asked if re.match(r"datafusion\b", r) and "extra" in r), None)
    if wanted is None:
        return ()
    limits = re.findall(r"(>=|<)\s*([0-9]+)", wanted.partition(";")[0])
    major = int(found.partition(".")[0])
    if all(major >= int(n) if sign == ">=" else major < int(n) for sign, n in limits):
        return ()
    span = ",".join(f"{sign}{n}" for sign, n in sorted(limits, reverse=True))
    return (
        f"datafusion {found} does not fit pyiceberg-core {core}: registering a PyIceberg table in a datafusion "
        f"SessionContext ends this process (segmentation fault). To register tables, pip install 'datafusion{span}' "
        "(iceexplore then reads large manifests more slowly); iceexplore itself is not affected.",
    )


def refuse_namespace(catalog: Catalog, key: str | tuple[str, ...], cause: Exception, wanted: str = "table") -> None:
    """Raise an error if a name belongs to a namespace; the error says what the namespace contains."""
    parts = tuple(key.split(".")) if isinstance(key, str) else key
    try:
        if not catalog.namespace_exists(parts):
            return
    except Exception:
        return  # the catalog cannot tell
    raise CatalogError(
        f"{'.'.join(parts)} is a namespace of catalog {catalog_name(catalog)}, not a {wanted}; "
        f"{inside_text(catalog, parts)}. Give the name of a {wanted}; ix.open_catalog(catalog) shows the whole catalog"
    ) from cause


def _nearest(catalog: Catalog, key: str | tuple[str, ...]) -> str:
    try:
        parts = tuple(key.split(".")) if isinstance(key, str) else key
        namespaces = [parts[:-1]] if len(parts) > 1 else []
        try:
            names = [".".join(t) for n in namespaces for t in catalog.list_tables(n)]
        except Exception:
            names = []
        if not names:
            spaces = [".".join(n) for n in catalog.list_namespaces()]
            return f"; its namespaces: {', '.join(spaces[:10])}" if spaces else ""
        near = difflib.get_close_matches(".".join(parts), names, 5, 0.4) or sorted(names)[:10]
        return f"; the nearest: {', '.join(near)}"
    except Exception:
        return ""  # this is only a hint, and the catalog may refuse to list


def _unread(catalog: Catalog, key: str | tuple[str, ...], shown: str) -> CatalogTable | None:
    """Return an SQL catalog's table from its row, without reading the metadata file, which PyIceberg would read.

    None for other catalogs, for subclasses that override loading, and where there is no such table.
    """
    sql = sys.modules.get("pyiceberg.catalog.sql")  # if it is not imported, no SQL catalog exists
    if sql is None or not isinstance(catalog, sql.SqlCatalog):
        return None
    own = ("load_table", "_convert_orm_to_iceberg")
    if any(getattr(getattr(catalog, n, None), "__func__", None) is not getattr(sql.SqlCatalog, n, None) for n in own):
        return None
    found = _without_parsing(catalog, key, shown)
    name = tuple(key.split(".")) if isinstance(key, str) else tuple(key)
    return None if found is None else replace(found, unread=(catalog, name))


def _without_parsing(catalog: Catalog, key: str | tuple[str, ...], shown: str) -> CatalogTable | None:
    try:
        config: dict[str, str] = {}
        if hasattr(catalog, "engine"):
            location = sql_location(catalog, key)
        elif hasattr(catalog, "_session") and hasattr(catalog, "url"):
            location, config = _from_rest(catalog, key)
        else:
            return None
        if not location:
            return None
        return CatalogTable(shown, location, catalog._load_file_io(config, location), warehouse_of(catalog), None)
    except Exception:
        return None  # PyIceberg's own loading raises an error that says more than this one


def sql_location(catalog: Catalog, key: str | tuple[str, ...], kind: str | None = None) -> str | None:
    """Return a table's (or with the ``kind`` ``VIEW``, a view's) metadata location from its row in an SQL catalog."""
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import select
    from sqlalchemy.orm import Session

    parts = tuple(key.split(".")) if isinstance(key, str) else key
    wanted = select(IcebergTables).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(parts[:-1]),
        IcebergTables.table_name == parts[-1],
    )
    if kind is not None:
        which = IcebergTables.iceberg_type == kind
    else:  # newer PyIceberg keeps views in the same SQL table
        which = getattr(catalog, "_iceberg_type_filter", lambda: None)()
    with Session(catalog.engine) as session:
        row = session.scalar(wanted if which is None else wanted.where(which))
    return None if row is None else row.metadata_location


def _from_rest(catalog: Catalog, key: str | tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    from pyiceberg.catalog.rest import Endpoints

    return located(rest_answer(catalog, Endpoints.load_table, catalog._split_identifier_for_path(key)))


def rest_answer(catalog: Catalog, endpoint: str, path: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a REST catalog's answer to "load table" or "load view", unparsed."""
    response = catalog._session.get(catalog.url(endpoint, prefixed=True, **path))
    response.raise_for_status()
    answer: Mapping[str, Any] = response.json()
    return answer


def located(answer: Mapping[str, Any]) -> tuple[str | None, dict[str, str]]:
    """Return the metadata location in a REST catalog's answer, and the options for reading the file there."""
    location = answer.get("metadata-location")
    config = {k: v for k, v in (answer.get("config") or {}).items() if isinstance(v, str)}
    # The credential with the longest fitting prefix wins, and wins over config (REST spec, StorageCredential).
    for credential in sorted(answer.get("storage-credentials") or [], key=lambda c: len(c.get("prefix", ""))):
        if location and location.startswith(credential.get("prefix", "")):
            config.update(credential.get("config") or {})
    return location, config


def warehouse_of(catalog: Catalog) -> str | None:
    warehouse = (getattr(catalog, "properties", None) or {}).get("warehouse")
    return warehouse if isinstance(warehouse, str) and "/" in warehouse else None
