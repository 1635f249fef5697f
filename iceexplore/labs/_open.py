"""Create labs in an empty folder or a catalog, and open them again."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from iceexplore.commits import LayoutOptions, MetadataNames, new_table
from iceexplore.errors import OptionError, mapping_of
from iceexplore.graph import open_state
from iceexplore.labs._catalog import CatalogPointer, CatalogRow, loaded_catalog
from iceexplore.labs._committer import LAB_PROPERTY, LabCommitter, check_lab, layout_text, options_of
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
from iceexplore.labs._pointer import HINT, FolderPointer
from iceexplore.storage import (
    CatalogLike,
    FolderStorage,
    SourceLike,
    canonical,
    replace_file,
)
from iceexplore.writing import SchemaLike

__all__ = ["create_lab", "open_lab"]


def create_lab(
    path: str | os.PathLike[str],
    schema: SchemaLike,
    *,
    partition_by: str | Iterable[str] | None = (),
    sort_by: str | Iterable[str] | None = (),
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
    virtual_columns: str | Iterable[str | tuple[str, str]] | None = (),
    catalog: CatalogLike | None = None,
    location: str | None = None,
    layout: Mapping[str, Any] | None = None,
) -> LabCommitter:
    """Create a table and return its writer; see `iceexplore.create`."""
    options = LayoutOptions.of(format_version, **(layout or {}))
    given = mapping_of("properties", properties, "{'write.delete.mode': 'merge-on-read'}", keys=object)
    if LAB_PROPERTY in given:
        raise OptionError(f"properties: {LAB_PROPERTY} is set by ix.create; leave it out")
    row = None
    if catalog is None:
        if location is not None:
            raise OptionError("location= needs catalog=: without a catalog, path is the table's location")
        given_path = path_text("path", path, A_FOLDER)
        location = spelled(given_path, local_folder(given_path))
    else:
        row = CatalogRow(loaded_catalog(catalog), path_text("path", path, "the table's name, such as 'db.trips'"))
        location = place_in_catalog(row, None if location is None else path_text("location", location, A_FOLDER))
    check_text("location", location)  # it may include the working directory, whose name may not be valid text
    real = canonical(location)
    check_empty(real)
    document = new_table(
        schema,
        partition_by=partition_by,
        sort_by=sort_by,
        format_version=options.format_version,
        location=location,
        properties={**given, LAB_PROPERTY: layout_text(options)},
        table_uuid=str(uuid.uuid4()),
        virtual_columns=virtual_columns,
        expressions=options.uses_expressions,
    )
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if row is None:
        name = "v1.metadata.json"
    else:
        name = f"00000-{uuid.uuid4()}.metadata.json"
    with whole_or_nothing(real) as written:
        try:
            write_first(os.path.join(real, "metadata", name), data, written)
            if row is None:
                hint = os.path.join(real, "metadata", HINT)
                replace_file(hint, b"1")
                written.append(hint)
        except FileExistsError as e:
            raise OptionError(f"{location}: another writer created a table there at the same time") from e
        except OSError as e:
            raise OptionError(f"{location}: cannot create a table: {e}") from e
        if row is None:
            return open_lab(real)
        add_to_catalog(row, f"{location.rstrip('/')}/metadata/{name}", written)
    return open_lab(row.name, catalog=row.catalog)


def open_lab(source: SourceLike, *, catalog: CatalogLike | None = None, allow: object = ()) -> LabCommitter:
    """Return the writer of a table that `create_lab` created; see `iceexplore.lab`."""
    row = None
    if catalog is not None:
        catalog = loaded_catalog(catalog)
        row = CatalogRow(catalog, cast("str | Sequence[str]", source))
    state = open_state(source, catalog=catalog, allow=allow)
    check_lab(state)
    storage = FolderStorage(state.storage)
    if row is not None:
        pointer: Any = CatalogPointer(storage, row, state.metadata_location)
    elif MetadataNames.of(state.metadata_location).by_version:
        pointer = FolderPointer(storage, state.metadata_location)
    else:
        raise OptionError(
            f"{state.metadata_location} belongs to a lab in a catalog; open it with its catalog: "
            "ix.lab('db.table', catalog=...)"
        )
    lab = LabCommitter(state, options_of(state), pointer, storage)
    lab.refresh()
    return lab
