"""The transforms of the spec by name: parse their text, and use transforms that are given as text.

Metadata, manifests and Arrow columns store transforms as text. `parse_transform` is cached, so parsing at each use is
cheap.
"""

from __future__ import annotations

import re
from functools import lru_cache

from iceexplore.arrow import AnyArray, AnyColumn, PlainValue
from iceexplore.metadata.transforms._bucket import BucketTransform
from iceexplore.metadata.transforms._identity import IdentityTransform, VoidTransform
from iceexplore.metadata.transforms._times import DayTransform, HourTransform, MonthTransform, YearTransform
from iceexplore.metadata.transforms._transform import Transform, UnknownTransform, WidthTransform
from iceexplore.metadata.transforms._truncate import TruncateTransform
from iceexplore.metadata.types._types import Type

__all__ = [
    "TRANSFORMS",
    "TRANSFORM_PATTERN",
    "apply_transform",
    "human_value",
    "is_known_transform",
    "parse_transform",
    "result_type",
    "transform_class",
]

#: Every transform of the spec; a new one is added here. Users read the names in this order.
TRANSFORMS: tuple[type[Transform], ...] = (
    IdentityTransform,
    YearTransform,
    MonthTransform,
    DayTransform,
    HourTransform,
    VoidTransform,
    BucketTransform,
    TruncateTransform,
)

_BY_NAME = {cls.name: cls for cls in TRANSFORMS}
_BY_ALIAS = _BY_NAME | {alias: cls for cls in TRANSFORMS for alias in cls.aliases}
_WITH_WIDTH = re.compile(r"(\w+)\s*\[\s*(\d{1,10})\s*\]")
#: The texts of all transforms and the names of Spark's functions; they reveal nothing about a table.
TRANSFORM_PATTERN = re.compile(
    "|".join(
        rf"{cls.name}\[\s*\d{{1,10}}\s*\]" if cls.width_name else "|".join(filter(None, (cls.name, cls.spark_name)))
        for cls in TRANSFORMS
    )
)


@lru_cache(maxsize=512)
def parse_transform(text: str) -> Transform:
    """Return the transform for a text in the spec's notation, ``bucket[16]``, ignoring case and outer spaces.

    Anything else becomes an `UnknownTransform` with the same text.
    """
    lower = text.strip().lower()
    match = _WITH_WIDTH.fullmatch(lower)
    cls = _BY_NAME.get(match[1] if match else lower)
    if cls is not None and match and issubclass(cls, WidthTransform):
        return cls(int(match[2]))
    if cls is not None and not match and not issubclass(cls, WidthTransform):
        return cls()
    return UnknownTransform(text)


def transform_class(name: str) -> type[Transform] | None:
    """Return the transform with a name as users write it (``days``, ``Bucket``); None if there is none."""
    return _BY_ALIAS.get(name.lower())


def is_known_transform(transform: str) -> bool:
    """Return whether the spec (v1 to v3) defines this transform."""
    return parse_transform(transform).is_known


def result_type(transform: str, source: Type | None) -> Type:
    """Return the type of a transform's results; ``source`` is None if no schema has the source column any more."""
    return parse_transform(transform).result_type(source)


def apply_transform(transform: str, source: Type, values: AnyColumn) -> AnyArray:
    """Return the partition values of a column's values (`Transform.apply`); ``transform`` is text: ``bucket[16]``.

    Raises
    ------
    OptionError
        The transform is unknown or does not accept this type, or a result does not fit the result type.
    """
    return parse_transform(transform).apply(source, values)


def human_value(type_: Type, transform: str, value: PlainValue) -> str:
    """Format a partition value as Java's ``toHumanString``.

    Parameters
    ----------
    type_
        The type of the value: of the source column for identity and truncate. Other transforms have a fixed result
        type.
    transform
        ``identity``, ``bucket[16]``, ``month`` ...; an unknown one formats the value by its type.
    value
        A value from Arrow or `decode_value`, or the stored integer; None gives ``null``.

    Returns
    -------
    str
        ``2024-01`` for a month, ``2024-01-01-05`` for an hour, base64 for bytes, ISO 8601 for times. Never raises: a
        value that does not fit is formatted as it is.
    """
    return parse_transform(transform).to_human_string(type_, value)
