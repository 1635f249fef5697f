"""The kinds of metadata documents: how to distinguish them, and how errors name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iceexplore.storage._json import JsonValue

__all__ = ["DocumentKind", "TABLE", "VIEW", "is_table_metadata", "is_view_metadata"]

#: Keys required by all early drafts of the view spec, which have no view-uuid.
_VIEW_KEYS = ("current-version-id", "version-log", "view-version")


@dataclass(frozen=True)
class DocumentKind:
    """Table metadata or view metadata; both have files of the same names, and are found in the same way.

    Attributes
    ----------
    name
        ``table`` or ``view``.
    uuid
        The key of the UUID.
    code
        The problem code for a document that breaks the spec.
    call
        The function of the package that opens such a table or view.
    needs
        What other documents lack, for errors: follows the words "its JSON has no".
    """

    name: str
    uuid: str
    code: str
    call: str
    needs: str

    def fits(self, document: JsonValue) -> bool:
        """Return whether a JSON document looks like metadata of this kind, however damaged."""
        return (is_view_metadata if self == VIEW else is_table_metadata)(document)

    @property
    def other(self) -> DocumentKind:
        """The other kind."""
        return TABLE if self == VIEW else VIEW

    def age(self, document: dict[str, Any]) -> tuple[float, float]:
        """Return two numbers to compare documents by age, as tuples: the newer document has the larger tuple."""
        if self == VIEW:
            times = [*_times(document.get("version-log")), *_times(document.get("versions"))]
            log = document.get("version-log")
            return max(times, default=-1), len(log) if isinstance(log, list) else 0
        return number(document.get("last-updated-ms")), number(document.get("last-sequence-number"))


TABLE = DocumentKind("table", "table-uuid", "metadata-invalid", "ix.open", "format-version with a schema or location")
VIEW = DocumentKind(
    "view", "view-uuid", "view-invalid", "ix.open_view", "view-uuid, and no versions with a version-log"
)


def is_table_metadata(document: JsonValue) -> bool:
    """Return whether a JSON document looks like table metadata, however damaged."""
    return (
        isinstance(document, dict)
        and "format-version" in document
        and not is_view_metadata(document)
        and "function-uuid" not in document
        and any(key in document for key in ("location", "schema", "schemas", "table-uuid", "snapshots"))
    )


def is_view_metadata(document: JsonValue) -> bool:
    """Return whether a JSON document looks like view metadata of the adopted spec or an early draft."""
    if not isinstance(document, dict) or "table-uuid" in document:
        return False
    return "view-uuid" in document or (
        any(key in document for key in _VIEW_KEYS) and any(key in document for key in ("versions", "version-log"))
    )


def number(value: JsonValue) -> float:
    """Return a number, or -1 for anything else."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else -1


def _times(entries: JsonValue) -> Iterator[float]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield number(entry.get("timestamp-ms"))
