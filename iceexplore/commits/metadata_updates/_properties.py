"""Table properties of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iceexplore.commits.metadata_updates._document import Json, read_properties, with_values
from iceexplore.errors import RuleError, mapping_of, texts_of

__all__ = ["set_properties"]

#: Names that control a commit and are never stored (Java: ``TableProperties.RESERVED_PROPERTIES``).
_RESERVED = frozenset(
    (
        "format-version", "uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary",
        "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order",
    )
)  # fmt: skip


def set_properties(
    document: Mapping[str, Any],
    *,
    set: Mapping[str, str] | None = None,  # noqa: A002 (the word of ALTER TABLE)
    remove: Iterable[str] = (),
) -> Json:
    """A document with table properties set and removed. Removing what is not there does nothing, as in Java.

    Raises
    ------
    OptionError
        ``set`` is no dictionary, or ``remove`` no names.
    RuleError
        ``reserved-property``: a reserved name, a value that is no string, or a name both set and removed.
    """
    given: dict[Any, Any] = mapping_of("properties", set, "{'owner': 'me'}", keys=object)
    gone = texts_of("remove", remove, "['owner']")
    for name, value in given.items():
        if name in _RESERVED:
            hint = ": upgrade() raises the format version" if name == "format-version" else ""
            raise RuleError("reserved-property", f"{name!r} is reserved, and cannot be set as a table property{hint}")
        if not isinstance(name, str) or not isinstance(value, str):
            raise RuleError("reserved-property", f"properties are strings; {name!r} was given as {value!r}")
        if name in gone:
            raise RuleError("reserved-property", f"{name!r} cannot be set and removed at once")
    properties = {name: value for name, value in read_properties(document).items() if name not in gone}
    return with_values(document, properties={**properties, **given})
