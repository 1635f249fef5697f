"""The pointer to a table's metadata file in a PyIceberg catalog, moved by check-and-put (spec, "Metastore Tables").

PyIceberg's ``Catalog.commit_table`` writes the metadata file itself, without support for version 4 or for fields that
PyIceberg does not model. A lab needs only the last step of a commit: set a new metadata location if the expected one is
still current. In a SQL catalog, this is a conditional update of one row. The other catalogs of PyIceberg 0.12 do not
offer this step for a metadata file that the caller has written: REST catalogs write metadata themselves, and the
catalogs for Glue, Hive, DynamoDB and BigQuery have the step only inside private methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from iceexplore.commits import Pointer
from iceexplore.errors import CatalogError, MissingDependencyError, OptionError, UnsupportedError
from iceexplore.storage import CatalogLike, FolderStorage, canonical

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["CatalogPointer", "CatalogRow", "loaded_catalog"]


def loaded_catalog(catalog: CatalogLike) -> Catalog:
    """Return the catalog with this name, or the given object, if it supports check-and-put.

    Raises
    ------
    UnsupportedError
        The catalog does not support check-and-put.
    CatalogError, MissingDependencyError
        The catalog cannot be loaded.
    """
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.catalog.sql import SqlCatalog
    except ImportError as e:
        raise MissingDependencyError(
            f"labs in a catalog need PyIceberg with SQLAlchemy ({e}); pip install 'iceexplore[catalog]'"
        ) from e
    if isinstance(catalog, str):
        try:
            catalog = load_catalog(catalog)
        except Exception as e:
            raise CatalogError(f"catalog {catalog!r} cannot be loaded: {e}") from e
    if not isinstance(catalog, SqlCatalog):
        raise UnsupportedError(
            f"catalog={type(catalog).__name__}: the catalog has no check-and-put of a metadata location, without which "
            "another writer's commit could be lost; use a SqlCatalog (InMemoryCatalog is one) or a folder"
        )
    return catalog


class CatalogRow:
    """One table's row in a SQL catalog.

    Parameters
    ----------
    catalog
        A ``SqlCatalog``.
    identifier
        ``"db.table"``, or a sequence of its parts.
    kind
        ``table`` or ``view``.
    """

    def __init__(
        self, catalog: Catalog, identifier: str | Sequence[str], kind: Literal["table", "view"] = "table"
    ) -> None:
        parts = tuple(identifier.split(".")) if isinstance(identifier, str) else tuple(identifier)
        if len(parts) < 2 or not all(parts):
            raise OptionError(f"{identifier!r} is not a {kind} name: give namespace and name, such as 'db.{kind}'")
        self.catalog = catalog
        self.kind = kind
        self.namespace = ".".join(parts[:-1])
        self.table = parts[-1]

    @property
    def name(self) -> str:
        """The namespace and name."""
        return f"{self.namespace}.{self.table}"

    def _mine(self) -> list[Any]:
        from pyiceberg.catalog.sql import IcebergTables as Tables

        return [
            Tables.catalog_name == self.catalog.name,
            Tables.table_namespace == self.namespace,
            Tables.table_name == self.table,
        ]

    def find(self) -> str | None:
        """Return the metadata location in the catalog; None if it has neither a table nor a view of this name."""
        from pyiceberg.catalog.sql import IcebergTables
        from sqlalchemy import select
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self.catalog.engine.connect() as connection:
                found = connection.execute(select(IcebergTables.metadata_location).where(*self._mine())).first()
        except SQLAlchemyError as e:
            raise CatalogError(f"catalog {self.catalog.name} cannot look up {self.name}: {_short(e)}") from e
        return None if found is None else found[0]

    def add(self, location: str) -> None:
        """Add the table or view.

        Raises
        ------
        CatalogError
            There is already a table or view with this name, or the catalog failed.
        """
        from pyiceberg.catalog.sql import IcebergTables
        from sqlalchemy import insert
        from sqlalchemy.exc import IntegrityError, SQLAlchemyError

        row = self.catalog._create_table_row(self.namespace, self.table, location)
        if self.kind == "view":
            row["iceberg_type"] = "VIEW"  # as Java's JDBC catalog writes it (JdbcUtil.VIEW_RECORD_TYPE)
        try:
            with self.catalog.engine.begin() as connection:
                connection.execute(insert(IcebergTables).values(**row))
        except IntegrityError as e:
            raise CatalogError(f"catalog {self.catalog.name} already has a table or view {self.name}") from e
        except SQLAlchemyError as e:
            raise CatalogError(f"{self.name} cannot be added to catalog {self.catalog.name}: {_short(e)}") from e

    def put(self, expected: str, new: str) -> bool:
        """Set the location to ``new`` if it is still ``expected``; return whether it was.

        Raises
        ------
        CatalogError
            The database failed, and it is not known whether the commit was made.
        """
        from pyiceberg.catalog.sql import IcebergTables
        from sqlalchemy import update
        from sqlalchemy.exc import OperationalError, SQLAlchemyError

        change = update(IcebergTables).where(*self._mine(), IcebergTables.metadata_location == expected)
        try:
            with self.catalog.engine.begin() as connection:
                done = connection.execute(change.values(metadata_location=new, previous_metadata_location=expected))
                return bool(done.rowcount == 1)
        except SQLAlchemyError as e:
            if isinstance(e, OperationalError) and "database is locked" in str(e):
                return False  # SQLite: another writer has the lock, and nothing was done
            if self.find() == new:
                return True
            raise CatalogError(
                f"catalog {self.catalog.name} failed while setting {self.name} to {new} ({_short(e)}): it is not known "
                "whether the commit was made; open the table with ix.lab(...) to see its state"
            ) from e


class CatalogPointer(Pointer):
    """The pointer to a table's metadata file in a row of a SQL catalog."""

    def __init__(self, storage: FolderStorage, row: CatalogRow, location: str) -> None:
        super().__init__(location)
        self._storage = storage
        self._row = row

    @property
    def location(self) -> str:
        """The location of the current metadata file, as the table spells it.

        Raises
        ------
        CatalogError
            The table was dropped, or the catalog failed.
        """
        return self._current()[1]

    def swap(self, expected: str, new: str) -> bool:
        """Move the pointer to ``new`` if it is still ``expected`` (check-and-put); return whether it moved."""
        written, location = self._current()
        return location == expected and self._row.put(written, new)

    def _current(self) -> tuple[str, str]:
        written = self._row.find()
        if not written:
            name = self._row.catalog.name
            raise CatalogError(f"catalog {name} no longer has a table {self._row.name}: it was dropped")
        return written, self._storage.unresolve(self._storage.moves.apply(canonical(written)) or canonical(written))

    def __repr__(self) -> str:
        return f"<CatalogPointer {self._row.name}>"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
