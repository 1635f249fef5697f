"""The rule on the bounds of geometries and geographies: they are corners of a box (spec, "Bounds for Geometry")."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from iceexplore.commits.rules._entries import RuleBreak, flagged
from iceexplore.manifests import Manifest, bool_array, live
from iceexplore.manifests.rules import Mask
from iceexplore.metadata import TableMetadata, type_base

__all__ = ["geo_breaks"]

_WIDTHS = (16, 24, 32)
_LONGITUDE, _LATITUDE = 180.0, 90.0
_Points = npt.NDArray[np.float64]


def geo_breaks(manifest: Manifest, metadata: TableMetadata) -> list[RuleBreak]:
    """Return violations of ``geo-bounds`` by the live entries of a manifest.

    In a column of geometries or geographies, the lower and the upper bound of an entry are two corners of a box around
    all values. An entry must have both corners or none, and each must be a point with x and y. No coordinate of the
    lower corner may be above that of the upper one; only the x of geographies may, because the box may cross the
    antimeridian. For geographies, x and y must be a valid longitude and latitude.
    """
    kinds = {i: type_base(f.type) for i, (_, f) in metadata.all_fields().items()}
    ids = [i for i in manifest.stat_field_ids() if kinds.get(i) in ("geometry", "geography")]
    if not ids:
        return []
    out: list[RuleBreak] = []
    alive = bool_array(live(manifest.entries))
    names = metadata.all_fields()
    for stats in manifest.stats_of(ids):
        corners = (stats.lower_raw.to_pylist(), stats.upper_raw.to_pylist())
        there = [np.array([v is not None for v in side], np.bool_) for side in corners]
        low, high = (_points(side) for side in corners)
        sound = [~np.isnan(p[:, :2]).any(axis=1) for p in (low, high)]
        both, name = there[0] & there[1], names[stats.field_id][0]
        wraps = kinds[stats.field_id] == "geography"
        for mask, text in (
            (there[0] != there[1], "has only one corner"),
            ((there[0] & ~sound[0]) | (there[1] & ~sound[1]), "has a corner that is not a point with x and y"),
            (both & sound[0] & sound[1] & _falls(low, high, wraps), "has a lower corner above the upper one"),
            (
                both & sound[0] & sound[1] & _outside(low, high) & wraps,
                "has a corner with an invalid longitude or latitude",
            ),
        ):
            what = f"its bounding box for column {name!r} {text}"
            out += flagged("geo-bounds", manifest.location, mask & alive, what, manifest.entries)
    return out


def _points(values: list[bytes | None]) -> _Points:
    """Parse points in single-value form, and return x, y, z and m; NaN for a missing coordinate or an invalid point."""
    out = np.full((len(values), 4), np.nan)
    for row, data in enumerate(values):
        if data is not None and len(data) in _WIDTHS:
            out[row, : len(data) // 8] = np.frombuffer(data, "<f8")
    return out


def _falls(low: _Points, high: _Points, wraps: bool) -> Mask:
    """Return a mask of boxes whose lower corner is above the upper one in a coordinate.

    If ``wraps`` is true, x is not compared, because a box of a geography may cross the antimeridian.
    """
    falls: npt.NDArray[np.bool_] = low > high  # false for a coordinate that is NaN (missing)
    return np.asarray((falls[:, 1:] if wraps else falls).any(axis=1))


def _outside(low: _Points, high: _Points) -> Mask:
    x, y = np.abs(np.stack([low[:, 0], high[:, 0]])), np.abs(np.stack([low[:, 1], high[:, 1]]))
    return np.asarray((x > _LONGITUDE).any(axis=0) | (y > _LATITUDE).any(axis=0))
