"""Read the refresh state in the summary of a storage table's snapshot: JSON, written by strangers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

__all__ = ["REFRESH_STATE", "RefreshState", "SourceState", "read_refresh_state"]

#: The key in the snapshot's summary.
REFRESH_STATE = "refresh-state"
#: The maximum length of the JSON, and the maximum number of sources that are compared.
_MOST_CHARACTERS = 4 << 20
_MOST_SOURCES = 500
_LONG = 1 << 63


@dataclass(frozen=True)
class SourceState:
    """The state of a table or view when a materialized view was refreshed.

    Attributes
    ----------
    type
        ``table`` or ``view``.
    catalog
        None: the catalog of the materialized view.
    state_id
        The snapshot id of a table, or the version id of a view.
    ref
        The branch of a table that the query reads; ``main`` if none is recorded.
    """

    type: Literal["table", "view"]
    namespace: tuple[str, ...]
    name: str
    uuid: str
    state_id: int
    catalog: str | None = None
    ref: str = "main"

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace and name."""
        return (*self.namespace, self.name)

    def __str__(self) -> str:
        return ".".join((*((self.catalog,) if self.catalog is not None else ()), *self.identifier))


@dataclass(frozen=True)
class RefreshState:
    """What a refresh recorded.

    Attributes
    ----------
    started_ms
        The time at which the refresh started, in milliseconds since the epoch.
    """

    view_version_id: int
    started_ms: int
    sources: tuple[SourceState, ...]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def read_refresh_state(text: str) -> RefreshState | str:
    """Return the refresh state in a text or, if it is invalid, the reason as a clause."""
    if len(text) > _MOST_CHARACTERS:
        return f"it has more than {_MOST_CHARACTERS:,} characters"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(found, dict):
        return "it is not a JSON object"
    version, started, items = (found.get(k) for k in ("view-version-id", "refresh-start-timestamp-ms", "source-states"))
    if not _is_whole(version):
        return "view-version-id is not an integer"
    if not _is_whole(started):
        return "refresh-start-timestamp-ms is not an integer"
    if not isinstance(items, list):
        return "source-states is not a list"
    if len(items) > _MOST_SOURCES:
        return f"it has {len(items):,} source states; at most {_MOST_SOURCES} are compared"
    sources = []
    for number, item in enumerate(items):
        source = _source(item)
        if isinstance(source, str):
            return f"source state {number} {source}"
        sources.append(source)
    return RefreshState(version, started, tuple(sources), found)


def _is_whole(value: Any) -> TypeGuard[int]:  # noqa: ANN401  (a JSON value)
    return type(value) is int and -_LONG <= value < _LONG


def _source(item: Any) -> SourceState | str:  # noqa: ANN401  (a JSON value)
    if not isinstance(item, dict):
        return "is not a JSON object"
    kind = item.get("type")
    if kind not in ("table", "view"):
        return "has an unknown type"
    key = "snapshot-id" if kind == "table" else "version-id"
    if not _is_whole(item.get(key)):
        return f"has no {key}"
    namespace = item.get("namespace")
    if not isinstance(namespace, list) or not all(isinstance(part, str) for part in namespace):
        return "has no namespace"
    for name in ("name", "uuid"):
        if not isinstance(item.get(name), str) or not item[name]:
            return f"has no {name}"
    for name in ("catalog", "ref"):
        if not isinstance(item.get(name), (str, type(None))):
            return f"has a {name} that is not text"
    ref = item.get("ref") if kind == "table" else None
    return SourceState(
        kind, tuple(namespace), item["name"], item["uuid"], item[key], item.get("catalog"), ref or "main"
    )  # fmt: skip
