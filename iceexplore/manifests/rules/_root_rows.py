"""Rules about the rows of a V4 root that refer to each other: manifests, and the rows that reference them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.manifests.model._content_entry import ContentType
from iceexplore.manifests.rules._rows import MANIFESTS, Mask, Rows
from iceexplore.storage import canonical

__all__ = ["loosely_affiliated", "stray_manifest_dvs"]


def loosely_affiliated(r: Rows) -> Mask:
    """Return a mask of the delete manifests whose data manifest is not live in the root (``affinity``)."""
    affiliated = r.is_kind(ContentType.DELETE_MANIFEST) & r.live & r.referenced
    return _without(r, affiliated, r.is_kind(ContentType.DATA_MANIFEST))


def stray_manifest_dvs(r: Rows) -> Mask:
    """Return a mask of the live manifest DVs whose manifest is not live in the root (``orphan-dv``)."""
    return _without(r, r.is_kind(ContentType.MANIFEST_DV) & r.live, r.is_kind(*MANIFESTS))


def _without(r: Rows, referring: Mask, targets: Mask) -> Mask:
    """Return a mask of the referring rows whose ``referenced_file`` is not a live target in the same root."""
    out: Mask = np.zeros(len(r), np.bool_)
    rows = np.flatnonzero(referring)
    if not len(rows):
        return out
    listed = r.entries["location"].filter(pa.array(targets & r.live)).to_pylist()
    known = {canonical(location) for location in listed if location}
    names = r.entries["referenced_file"].take(build.array(rows)).to_pylist()
    out[rows] = [name is None or canonical(name) not in known for name in names]
    return out
