"""Project a predicate on a column to a partition field of this column (Iceberg spec, "Scan Planning")."""

from __future__ import annotations

from iceexplore.expressions import Predicate
from iceexplore.metadata import Type, parse_transform

__all__ = ["project"]


def project(p: Predicate, transform: str, source: Type, *, strict: bool) -> Predicate | None:
    """Project a predicate on a column to a partition field of this column: return a predicate on the field's values.

    For example, for the transform ``truncate[10]``, the inclusive projection of ``id > 25`` is ``id >= 20``, where
    ``id`` now means the truncated value.

    Parameters
    ----------
    transform
        The field's transform as text, as in the partition spec. An unknown transform and ``void`` have no projection.
    source
        The type of the column and of the predicate's literals.
    strict
        False for the inclusive projection: where it is false for a partition value, no row with this value matches
        ``p``. True for the strict projection: where it is true for a partition value, all rows with this value match.

    Returns
    -------
    Predicate or None
        A predicate with the field id and name of ``p``, whose literals are partition values. Its type is the type of
        these literals. None if ``p`` has no projection to this transform.
    """
    found = parse_transform(transform).project(p.op, p.literals, source, strict=strict)
    return None if found is None else Predicate(p.field_id, found.op, found.literals, p.name, found.type)
