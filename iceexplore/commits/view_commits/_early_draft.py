"""The early draft of the view spec: write versions in its form, and convert its documents to the adopted form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from iceexplore.commits.view_commits._columns import same_columns
from iceexplore.commits.view_commits._query import ViewQuery
from iceexplore.errors import Problems, UnsupportedError
from iceexplore.metadata import Schema, schema_to_json
from iceexplore.views import ViewMetadata, ViewVersion, parse_view_metadata

__all__ = ["adopted_form", "draft_version"]

Json = dict[str, Any]
#: The ``parent-version-id`` of a view's first version, as in the example of the early draft.
_NO_PARENT = -1
#: Keys that the early draft of the view spec stores in each representation, and the adopted spec in each version.
_MOVED = ("schema-id", "default-catalog", "default-namespace")


def draft_version(
    query: ViewQuery, version_id: int, schema_id: int, timestamp_ms: int, parent: ViewVersion | None
) -> Json:
    """Return the JSON of a new version, in the form of the early draft of the view spec.

    Parameters
    ----------
    schema_id
        The id of the view's schema that has the query's columns.
    timestamp_ms
        The time of the version, in milliseconds since the epoch.
    parent
        The version that is current before the commit; None for the first version of a view.
    """
    defaults: Json = {"schema-id": schema_id}
    if query.default_catalog is not None:
        defaults["default-catalog"] = query.default_catalog
    defaults["default-namespace"] = list(query.default_namespace)
    return {
        "version-id": version_id,
        "parent-version-id": _NO_PARENT if parent is None else parent.version_id,
        "timestamp-ms": timestamp_ms,
        "summary": {**query.summary, "operation": "create" if parent is None else "replace"},
        "representations": [{**r, **defaults} for r in query.representations()],
    }


def adopted_form(document: Mapping[str, Any], view_uuid: str) -> Json:
    """Convert a document of the early draft to the form of the adopted spec; return any other document as it is.

    Schema id, default catalog and default namespace move from the representations to their version. Aliases and
    comments of columns move from the representations to the version's schema. ``parent-version-id``, the properties of
    versions and ``current-schema-id`` are left out, because the adopted spec does not have them.

    Parameters
    ----------
    document
        A view's metadata document.
    view_uuid
        The ``view-uuid`` for a document that has none; the early draft does not have this key.

    Raises
    ------
    UnsupportedError
        A version cannot be stored in the adopted form, because it has no schema, or because its representations have
        different schemas, defaults, aliases or comments.
    """
    metadata = parse_view_metadata(document, str(document.get("location")), Problems())
    if not metadata.early_draft:
        return dict(document)
    out = {"view-uuid": view_uuid, **{k: v for k, v in document.items() if k != "current-schema-id"}}
    schemas = list(metadata.schemas)
    out["versions"] = [_adopted_version(v, metadata, schemas) for v in metadata.versions]
    known = len(metadata.schemas)
    out["schemas"] = [*(document.get("schemas") or ())[:known], *map(schema_to_json, schemas[known:])]
    return out


def _adopted_version(version: ViewVersion, metadata: ViewMetadata, schemas: list[Schema]) -> Json:
    stored = version.representations
    defaults = {(version.catalog_of(r), version.namespace_of(r)) for r in stored}
    aliases = {(r.field_aliases, r.field_docs) for r in stored}
    schema = metadata.schema(version)
    if schema is None or len(version.schema_ids()) > 1 or len(defaults) > 1 or len(aliases) > 1:
        what = (
            "has no schema" if schema is None else "has dialects with different schemas, defaults, aliases or comments"
        )
        raise UnsupportedError(
            f"version {version.version_id} {what}, so it cannot be stored in the form of the adopted spec: "
            "v.simulate(early_draft=True) keeps the form of the early draft"
        )
    found = next((s for s in schemas if same_columns(s, schema)), None)
    if found is None:
        found = replace(schema, schema_id=max(s.schema_id for s in schemas) + 1)
        schemas.append(found)
    dropped = ("parent-version-id", "properties", "representations", *_MOVED)
    out: Json = {k: v for k, v in version.raw.items() if k not in dropped}
    out["schema-id"] = found.schema_id
    catalog, namespace = next(iter(defaults), (None, None))
    if catalog is not None:
        out["default-catalog"] = catalog
    out["default-namespace"] = list(namespace or ())
    inner = (*_MOVED, "field-aliases", "field-docs")
    out["representations"] = [{k: v for k, v in r.raw.items() if k not in inner} for r in stored]
    return out
