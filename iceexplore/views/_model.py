"""View metadata as immutable records with the spec's fields; ``raw`` keeps all other keys.

Early drafts of the spec keep in a representation what the adopted spec keeps in the version: the schema's id, the
default catalog and the default namespace. The records have the fields of both, and the methods of `ViewVersion` work
for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from iceexplore.metadata import Schema
from iceexplore.render import line_of

__all__ = ["Representation", "VersionLogEntry", "ViewMetadata", "ViewVersion"]

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Representation:
    """One way in which a version's query is stored.

    Attributes
    ----------
    type
        ``sql``; other types are kept, and have neither ``sql`` nor ``dialect`` unless they store such keys.
    schema_id, default_catalog, default_namespace, field_aliases, field_docs
        From early drafts; None where they are not stored. An alias or a doc may be None.
    """

    type: str
    sql: str | None = None
    dialect: str | None = None
    schema_id: int | None = None
    default_catalog: str | None = None
    default_namespace: tuple[str, ...] | None = None
    field_aliases: tuple[str | None, ...] | None = None
    field_docs: tuple[str | None, ...] | None = None
    raw: Raw = field(default_factory=dict, compare=False, repr=False)

    def __repr__(self) -> str:
        return line_of(self)


@dataclass(frozen=True)
class ViewVersion:
    """A version of the view, with its query in one or several dialects. Times are milliseconds since the epoch, UTC.

    Attributes
    ----------
    schema_id, default_catalog, default_namespace
        As stored in the version; None where they are not stored.
    parent_version_id, properties
        From early drafts; None where they are not stored.
    storage_table
        Namespace and name of a materialized view's storage table, as one tuple; None for any other view.
    """

    version_id: int
    timestamp_ms: int
    schema_id: int | None
    summary: Mapping[str, str] = field(hash=False)
    representations: tuple[Representation, ...]
    default_catalog: str | None = None
    default_namespace: tuple[str, ...] | None = None
    storage_table: tuple[str, ...] | None = None
    parent_version_id: int | None = None
    properties: Mapping[str, str] | None = field(default=None, hash=False)
    raw: Raw = field(default_factory=dict, compare=False, repr=False)

    @property
    def operation(self) -> str | None:
        """The operation in the summary of an early draft: ``create`` or ``replace``; None if there is none."""
        return self.summary.get("operation")

    @property
    def engine(self) -> str | None:
        """The name and version of the engine that created this version, as far as the summary records them."""
        parts = (self.summary.get(key) for key in ("engine-name", "engine-version", "engineVersion"))
        return " ".join(part for part in parts if part) or None

    @property
    def sql(self) -> tuple[Representation, ...]:
        """The representations that store SQL."""
        return tuple(r for r in self.representations if r.type == "sql" and r.sql is not None)

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects of the stored SQL, without duplicates, as spelled in the metadata."""
        return tuple({(r.dialect or "").lower(): r.dialect or "" for r in reversed(self.sql)}.values())[::-1]

    def representation(self, dialect: str) -> Representation | None:
        """Return the SQL of a dialect, compared without regard to case; the first if there are several."""
        return next((r for r in self.sql if (r.dialect or "").lower() == dialect.lower()), None)

    def schema_ids(self) -> tuple[int, ...]:
        """Return the version's schema ids: one, or several if the representations of an early draft disagree."""
        if self.schema_id is not None:
            return (self.schema_id,)
        return tuple(dict.fromkeys(r.schema_id for r in self.representations if r.schema_id is not None))

    def catalog_of(self, representation: Representation | None = None) -> str | None:
        """Return the catalog for references that do not name one; None means the view's own catalog."""
        first = representation or next(iter(self.representations), None)
        own = None if first is None else first.default_catalog
        return self.default_catalog if self.default_catalog is not None else own

    def namespace_of(self, representation: Representation | None = None) -> tuple[str, ...] | None:
        """Return the namespace for references that do not name one; None where none is stored."""
        first = representation or next(iter(self.representations), None)
        own = None if first is None else first.default_namespace
        return self.default_namespace if self.default_namespace is not None else own

    def __repr__(self) -> str:
        return line_of(self)


@dataclass(frozen=True)
class VersionLogEntry:
    """An entry of the version log: the time when a version became current."""

    timestamp_ms: int
    version_id: int


@dataclass(frozen=True)
class ViewMetadata:
    """A view's metadata file.

    Attributes
    ----------
    view_uuid
        None in early drafts.
    current_schema_id
        From early drafts; None where it is not stored.
    early_draft
        True if the document follows an early draft of the spec, in which each representation has its own
        default-catalog and default-namespace.
    """

    format_version: int
    view_uuid: str | None
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int | None
    versions: tuple[ViewVersion, ...]
    version_log: tuple[VersionLogEntry, ...]
    properties: Mapping[str, str] = field(hash=False)
    current_schema_id: int | None = None
    early_draft: bool = False
    raw: Raw = field(default_factory=dict, compare=False, repr=False)

    def version(self, version_id: int | None = None) -> ViewVersion | None:
        """Return a version, by default the current one; None if there is none. Of duplicate ids, the first counts."""
        wanted = self.current_version_id if version_id is None else version_id
        return next((v for v in self.versions if v.version_id == wanted), None)

    def stored_schema(self, version: ViewVersion | None) -> Schema | None:
        """Return the schema of a version as stored; None if the metadata does not have it."""
        wanted: int | None = None
        if version is not None:
            wanted = next(iter(version.schema_ids()), None)
        if wanted is None and (version is None or version.version_id == self.current_version_id):
            wanted = self.current_schema_id
        if wanted is None:
            return self.schemas[0] if len(self.schemas) == 1 else None
        return next((s for s in self.schemas if s.schema_id == wanted), None)

    def schema(self, version: ViewVersion | None) -> Schema | None:
        """Return the schema of a version, with an early draft's aliases and docs if there is one for each column."""
        stored = self.stored_schema(version)
        if stored is None or version is None:
            return stored
        fields = list(stored.fields)
        for r in version.representations[:1]:
            if r.field_aliases is not None and len(r.field_aliases) == len(fields):
                fields = [replace(f, name=alias or f.name) for f, alias in zip(fields, r.field_aliases, strict=True)]
            if r.field_docs is not None and len(r.field_docs) == len(fields):
                fields = [replace(f, doc=doc or f.doc) for f, doc in zip(fields, r.field_docs, strict=True)]
        return replace(stored, fields=tuple(fields))

    def __repr__(self) -> str:
        return line_of(self)
