"""Project a predicate on a column to a partition field derived from that column (spec, "Scan Planning")."""

from __future__ import annotations

from iceexplore.expressions import Predicate
from iceexplore.metadata import Type, parse_transform

__all__ = ["project"]


def project(p: Predicate, transform: str, source: Type, *, strict: bool) -> Predicate | None:
    """Return the projection of a predicate on the source column: a predicate on the partition value.

    Parameters
    ----------
    transform
        Transform in the spec's notation. An unknown transform and ``void`` have no projection.
    source
        The column type in which the literals are stored.
    strict
        False for the inclusive projection, which is true for the tuple of every matching row. True for the strict one,
        which is true only for tuples whose rows all match.

    Returns
    -------
    Predicate or None
        A predicate with the field id and name of ``p``. Its type is that of its literals: the source type, or ``int``
        for buckets and times. None if nothing can be derived.
    """
    found = parse_transform(transform).project(p.op, p.literals, source, strict=strict)
    return None if found is None else Predicate(p.field_id, found.op, found.literals, p.name, found.type)
