"""Decide without a table whether a manifest is a root or a leaf, and name the evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.manifests.model._content_entry import ContentType
from iceexplore.metadata import Dialect

__all__ = ["Role", "role_of"]

_LISTED = frozenset(map(int, (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST, ContentType.MANIFEST_DV)))
#: Usual file names, which no spec prescribes: ``root-<uuid>.parquet`` and ``leaf-<uuid>.parquet`` (Delta Lake, labs),
#: ``<uuid>-m0.avro`` (Iceberg).
_ROOT_NAME = re.compile(r"root(?![a-z])", re.IGNORECASE)
_LEAF_NAME = re.compile(r"leaf(?![a-z])|.*-m\d+\.[a-z]+$", re.IGNORECASE)


@dataclass(frozen=True)
class Role:
    """Role of a V4 manifest in its tree.

    Attributes
    ----------
    is_root
        None if there is no evidence.
    known_by
        The evidence, as text.
    """

    is_root: bool | None
    known_by: str


def role_of(entries: pa.Table, dialect: str, content: str | None, location: str) -> Role:
    """Decide whether a V4 manifest is a root: by its entries, else its key-value metadata, else its name.

    Roots and leaves have the same schema, and a root may hold only data files, as a leaf does. Then the key ``content``
    decides, but some writers (Delta Lake) leave it out.

    Parameters
    ----------
    entries
        The manifest's content entries.
    content
        The value of ``content`` in the manifest's key-value metadata.
    """
    kinds = set(np.unique(entries["content_type"].drop_null().to_numpy()).tolist())
    if kinds & _LISTED:
        return Role(True, "its entries list manifests (134 content_type)")
    stated = (content or "").strip().lower()
    if stated:
        return Role(stated == "root", f"its key-value metadata (content = {stated})")
    # In the draft, a deletion vector is part of its data file's entry, even in leaves.
    own = kinds - ({int(ContentType.POSITION_DELETE)} if Dialect(dialect).deletion_vectors_on_entries else set())
    if int(ContentType.DATA) in own and len(own) > 1:
        return Role(True, "it holds data files and deletes, and a leaf holds only one kind")
    name = location.rstrip("/").rpartition("/")[2]
    if _ROOT_NAME.match(name):
        return Role(True, "its name only: nothing in the file distinguishes a root from a leaf")
    if _LEAF_NAME.match(name):
        return Role(False, "its name only: nothing in the file distinguishes a root from a leaf")
    return Role(None, "nothing in the file or its name distinguishes a root from a leaf")
