"""Create real views: in an empty folder, in a SQL catalog, or in a REST catalog, which writes the metadata itself."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from typing import Any

from iceexplore.commits import (
    ViewQuery,
    adopted_form,
    encode_metadata,
    new_view_document,
    rollback_view,
    view_codec,
)
from iceexplore.errors import CatalogError, MissingDependencyError, OptionError, UnsupportedError, mapping_of
from iceexplore.labs._catalog import CatalogRow, loaded_catalog
from iceexplore.labs._new_place import (
    A_FOLDER,
    add_to_catalog,
    check_empty,
    check_text,
    local_folder,
    path_text,
    place_in_catalog,
    spelled,
    whole_or_nothing,
    write_first,
)
from iceexplore.labs._pointer import HINT
from iceexplore.metadata import schema_to_json
from iceexplore.storage import CatalogLike, canonical, load_named, replace_file
from iceexplore.views import ViewState

__all__ = ["create_view_files"]

Json = dict[str, Any]


def create_view_files(
    path: str | os.PathLike[str],
    source: ViewQuery | ViewState,
    *,
    properties: Mapping[str, str] | None = None,
    catalog: CatalogLike | None = None,
    location: str | None = None,
) -> tuple[str, Any]:
    """Create a view (see `iceexplore.create_view`), and return how to open it.

    The result is the view's folder and None, or its name and catalog.

    Parameters
    ----------
    source
        The query of the new view's first version, or an existing view, whose whole history is copied.
    """
    given = mapping_of("properties", properties, "{'comment': 'Trips by day'}", values=str)
    if catalog is None:
        if location is not None:
            raise OptionError("location= needs catalog=: without a catalog, path is the view's location")
        given_path = path_text("path", path, A_FOLDER)
        folder = local_folder(given_path)
        _write(_document(source, spelled(given_path, folder), given), folder, None)
        return folder, None
    loaded: Any = load_named(catalog, {}) if isinstance(catalog, str) else catalog
    name = path_text("path", path, "the view's name, such as 'db.daily'")
    if hasattr(loaded, "_session") and hasattr(loaded, "url"):
        _create_in_rest(loaded, name, source, given, location)
        return name, loaded
    row = CatalogRow(loaded_catalog(loaded), name, "view")
    if getattr(row.catalog, "_schema_version", "v0") != "v1":
        raise UnsupportedError(
            f"the database of catalog {row.catalog.name} has the old schema, which cannot hold views: load the catalog "
            "with PyIceberg 0.11 or later and the property schema_version='v1', which adds the column iceberg_type"
        )
    place = place_in_catalog(row, None if location is None else path_text("location", location, A_FOLDER))
    _write(_document(source, place, given), canonical(place), row)
    return row.name, row.catalog


def _document(source: ViewQuery | ViewState, location: str, properties: Mapping[str, str]) -> Json:
    """Return the document of the new view, which has a UUID of its own."""
    check_text("location", location)  # it may include the working directory, whose name may not be valid text
    view_uuid, now = str(uuid.uuid4()), time.time_ns() // 1_000_000
    if isinstance(source, ViewQuery):
        return new_view_document(
            source, location=location, view_uuid=view_uuid, timestamp_ms=now, properties=properties
        )
    document = adopted_form(source.opened.document, view_uuid)
    if source.version is not None and source.version.version_id != source.metadata.current_version_id:
        document = rollback_view(document, source.version.version_id, timestamp_ms=now)
    out = {**document, "view-uuid": view_uuid, "location": location.rstrip("/")}
    if properties:
        out["properties"] = {**source.metadata.properties, **properties}
    return out


def _write(document: Json, folder: str, row: CatalogRow | None) -> None:
    check_empty(folder, "a new view", "ix.open_view(...) opens a view, and .simulate() tries changes to it")
    end = ".gz.metadata.json" if view_codec(document).lower() == "gzip" else ".metadata.json"
    name = f"v1{end}" if row is None else f"00000-{uuid.uuid4()}{end}"
    with whole_or_nothing(folder) as written:
        try:
            write_first(os.path.join(folder, "metadata", name), encode_metadata(document, name), written)
            if row is None:
                hint = os.path.join(folder, "metadata", HINT)
                replace_file(hint, b"1")
                written.append(hint)
        except FileExistsError as e:
            raise OptionError(f"{folder}: another writer created something there at the same time") from e
        except OSError as e:
            raise OptionError(f"{folder}: cannot create a view: {e}") from e
        if row is not None:
            add_to_catalog(row, f"{document['location']}/metadata/{name}", written)


def _create_in_rest(
    catalog: Any,  # noqa: ANN401  (PyIceberg's RestCatalog)
    name: str,
    source: ViewQuery | ViewState,
    properties: Mapping[str, str],
    location: str | None,
) -> None:
    """Ask a REST catalog to create the view; it chooses the location by default, and writes the metadata."""
    if not isinstance(source, ViewQuery):
        raise UnsupportedError(
            "a REST catalog writes the metadata of views itself and takes one version, not a history: give the SQL "
            "instead of a view"
        )
    if not hasattr(catalog, "create_view"):
        raise MissingDependencyError("this PyIceberg cannot create views: pip install 'pyiceberg>=0.11'")
    from pyiceberg.schema import Schema
    from pyiceberg.view.metadata import ViewVersion

    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "summary": dict(source.summary),
        "representations": source.representations(),
        "default-catalog": source.default_catalog,
        "default-namespace": list(source.default_namespace),
    }
    try:
        catalog.create_view(
            name, Schema.model_validate(schema_to_json(source.columns)), ViewVersion.model_validate(version),
            location, dict(properties),
        )  # fmt: skip
    except Exception as e:
        kind = type(e).__name__
        where = f"catalog {getattr(catalog, 'name', '')}"
        if kind in ("ViewAlreadyExistsError", "TableAlreadyExistsError"):
            raise CatalogError(f"{where} already has a table or view {name}; ix.open_view(...) opens a view") from e
        if "NoSuchNamespace" in f"{kind} {e}":
            raise CatalogError(
                f"{where} has no namespace for {name}; create it with catalog.create_namespace(...)"
            ) from e
        raise CatalogError(f"{where} did not create {name} ({kind}: {' '.join(str(e).split())[:300]})") from e
