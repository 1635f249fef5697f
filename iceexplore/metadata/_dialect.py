"""The dialects of manifests and manifest lists, and what differs between them.

Code that uses manifests depends on the properties of a dialect, never on its name. So a new dialect needs only a member
here, and a decoder and an encoder in `iceexplore.manifests`.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Dialect"]


class Dialect(StrEnum):
    """The form of a manifest, manifest list or root manifest. Each member is also a string, such as ``v4-java``."""

    UNKNOWN = ""
    """Nothing in the file could be read."""
    INLINE = "inline"
    """The manifest locations that v1 metadata may name in the snapshot itself, without a manifest list."""
    V1 = "v1"
    V2 = "v2"
    V3 = "v3"
    V4_JAVA = "v4-java"
    """Manifest lists and manifests as Iceberg's Java library writes them under version 4 today."""
    V4_PROPOSAL = "v4-proposal"
    """Root manifests as the V4 proposal (the adaptive metadata tree) describes them."""
    V4_DRAFT = "v4-draft"
    """Root manifests as the draft of the V4 spec and Delta Lake's writer have them."""

    @property
    def has_root_manifest(self) -> bool:
        """True if a snapshot names a root manifest, which may hold entries of files, instead of a manifest list."""
        return self in (Dialect.V4_PROPOSAL, Dialect.V4_DRAFT)

    @property
    def typed_stats(self) -> bool:
        """True if column statistics are typed structs (``content_stats``) instead of maps of binary values."""
        return self.has_root_manifest

    @property
    def deletion_vectors_on_entries(self) -> bool:
        """True if a deletion vector is part of its data file's entry, so that data manifests contain deletes too."""
        return self is Dialect.V4_DRAFT

    @property
    def is_draft(self) -> bool:
        """True if trees follow the rules of the V4 draft instead of the proposal's."""
        return self is Dialect.V4_DRAFT

    @property
    def is_published(self) -> bool:
        """True if a released version of the spec defines the dialect: its lists have manifests only, with counts."""
        return self in (Dialect.V1, Dialect.V2, Dialect.V3)
