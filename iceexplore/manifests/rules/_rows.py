"""The columns of a manifest's entries as numpy arrays, from which rules compute masks."""

from __future__ import annotations

from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._arrow import bool_array, whole
from iceexplore.manifests.model._content_entry import ContentType, Status, live
from iceexplore.metadata import Dialect

__all__ = ["FILES", "MANIFESTS", "Mask", "Rows"]

Mask = npt.NDArray[np.bool_]

FILES = (ContentType.DATA, ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
MANIFESTS = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)


class Rows:
    """Columns of a manifest's entries; each is converted when a rule first needs it.

    Parameters
    ----------
    dialect
        The manifest's dialect: leaves written before V4 may have position deletes without a vector, and in the draft a
        row may hold a file and its vector.
    """

    def __init__(self, entries: pa.Table, dialect: str = Dialect.V4_PROPOSAL) -> None:
        self.entries = entries
        self.dialect = Dialect(dialect)

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    @cached_property
    def kind(self) -> npt.NDArray[np.int64]:
        """The content types; -1 where unknown."""
        return self.ints("content_type", -1)

    @cached_property
    def status(self) -> npt.NDArray[np.int64]:
        """The statuses; null is EXISTING."""
        return self.ints("status", int(Status.EXISTING))

    @cached_property
    def live(self) -> Mask:
        """A mask of the live rows."""
        return bool_array(live(self.entries))

    @cached_property
    def vector(self) -> pa.StructArray:
        """The column ``deletion_vector``."""
        return cast(pa.StructArray, whole(self.entries["deletion_vector"]))

    @cached_property
    def has_vector(self) -> Mask:
        """A mask of the rows with a deletion vector."""
        return np.asarray(self.vector.is_valid())

    @cached_property
    def inline(self) -> Mask:
        """A mask of the rows whose deletion vector is stored inline."""
        return self.vector_has("inline_content")

    @cached_property
    def referenced(self) -> Mask:
        """A mask of the rows with a ``referenced_file``."""
        return ~self.null("referenced_file")

    @cached_property
    def counted(self) -> Mask:
        """A mask of the rows with ``manifest_stats``."""
        return ~self.null("manifest_stats")

    @cached_property
    def before_v4(self) -> bool:
        """Whether the manifest was written before V4."""
        return not self.dialect.has_root_manifest

    @cached_property
    def carried(self) -> Mask:
        """A mask of the vectors that are stored in the same row as the entry before them, which the draft allows."""
        out: Mask = np.zeros(len(self), np.bool_)
        if self.dialect.deletion_vectors_on_entries:
            ordinals = self.ints("ordinal", -1)
            out[1:] = ordinals[1:] == ordinals[:-1]
        return out

    def is_kind(self, *kinds: int) -> Mask:
        """Return a mask of the rows of these content types."""
        out: Mask = self.kind == int(kinds[0])
        for kind in kinds[1:]:
            out |= self.kind == int(kind)
        return out

    def vector_has(self, name: str) -> Mask:
        """Return a mask of the rows whose deletion vector has a value in this field."""
        return np.asarray(pc.struct_field(self.vector, name).is_valid())

    def null(self, column: str) -> Mask:
        """Return a mask of the rows in which this column is null."""
        return np.asarray(whole(self.entries[column]).is_null())

    def ints(self, column: str, missing: int = 0) -> npt.NDArray[np.int64]:
        """Return a column of integers; ``missing`` replaces null."""
        return np.asarray(whole(pc.fill_null(self.entries[column], missing)), dtype=np.int64)
