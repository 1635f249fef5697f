"""Define the operations that change only the metadata document.

Each operation returns a change: a function that gets a document and a time, and returns the changed document. The
commit calls this function once per attempt, with the document that the attempt builds on. Some arguments are checked by
the operation itself; those that can only be checked against a document are checked by the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from iceexplore.commits.metadata_updates import (
    _document,
    _expire,
    _refs,
    _schema,
    _spec_and_sort_order,
    _virtual_columns,
)
from iceexplore.commits.metadata_updates._expired import Expired
from iceexplore.commits.transaction._committer import DocumentChange
from iceexplore.errors import OptionError, texts_of, whole_numbers_of
from iceexplore.graph import to_ms

__all__ = [
    "Expiration",
    "evolve_schema",
    "evolve_spec",
    "evolve_virtual_columns",
    "fast_forward",
    "remove_ref",
    "rollback",
    "set_properties",
    "set_ref",
    "set_sort_order",
]


class Expiration:
    """A change of the metadata document that expires snapshots.

    `iceexplore.commits.expire_snapshots` describes the rules. The retention settings of a branch take precedence over
    ``older_than`` and ``retain_last``.

    Parameters
    ----------
    ids
        The ids of snapshots to expire whatever their age. With ids and without ``older_than``, no other snapshot
        expires, except in branches that have their own ``max-snapshot-age-ms``.
    older_than
        A time: a datetime, a date, ISO text or milliseconds since the epoch. Snapshots from before this time expire. If
        both this and ``ids`` are None, snapshots expire that are older than the table property
        ``history.expire.max-snapshot-age-ms``.
    retain_last
        The minimum number of snapshots to keep in each branch that has no such setting of its own. None means the table
        property ``history.expire.min-snapshots-to-keep``.

    Attributes
    ----------
    expired
        The snapshots that the last call of this object removed. A commit calls the object once per attempt, so after a
        successful commit these are the snapshots that the commit removed.
    """

    def __init__(
        self, ids: Iterable[int] | None = None, *, older_than: object = None, retain_last: int | None = None
    ) -> None:
        self._ids = None if ids is None else whole_numbers_of("ids", ids)
        before = None if older_than is None else to_ms(older_than)
        self._before = 0 if before is None and self._ids is not None else before
        self._retain_last = retain_last
        self.expired = Expired()

    def __call__(self, document: Mapping[str, Any], ms: int) -> Mapping[str, Any]:
        """Return a copy of the document from which expired snapshots are removed; store their ids in `expired`.

        ``ms`` is the current time, in milliseconds since the epoch, from which the snapshots' ages are computed.
        """
        document, self.expired = _expire.expire_snapshots(
            document, ids=self._ids, older_than_ms=self._before, retain_last=self._retain_last, now_ms=ms
        )
        return document


def rollback(snapshot: int | None = None, *, timestamp: object = None) -> DocumentChange:
    """Return the change that makes an ancestor of the current snapshot current again.

    Parameters
    ----------
    snapshot
        The id of the ancestor.
    timestamp
        A time: a datetime, a date, ISO text or milliseconds since the epoch. The newest ancestor from before this time
        becomes current.

    Raises
    ------
    OptionError
        Both or neither of the arguments are given, or ``timestamp`` is not a time.
    """
    if (snapshot is None) == (timestamp is None):
        raise OptionError("rollback() takes either snapshot or timestamp")
    before = None if timestamp is None else to_ms(timestamp)
    return lambda d, ms: _refs.rollback(d, snapshot_id=snapshot, older_than_ms=before, timestamp_ms=ms)


def set_ref(kind: Literal["branch", "tag"]) -> Callable[..., DocumentChange]:
    """Return the operation that creates or moves refs of one kind, branches or tags.

    The operation is a function that takes a ref's name, a snapshot id and retention settings (`set_ref` in
    `iceexplore.commits`), and returns the change.
    """

    def change(name: str, at: int, **retention: Any) -> DocumentChange:
        return lambda d, ms: _refs.set_ref(d, name=name, snapshot_id=at, type=kind, timestamp_ms=ms, **retention)

    return change


def remove_ref(name: str) -> DocumentChange:
    """Return the change that removes a branch or tag."""
    return lambda d, _: _refs.remove_ref(d, name=name)


def fast_forward(name: str, to: str) -> DocumentChange:
    """Return the change that moves the branch ``name`` forward to the snapshot of the branch or tag ``to``."""
    return lambda d, ms: _refs.fast_forward(d, name=name, to=to, timestamp_ms=ms)


def set_properties(properties: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()) -> DocumentChange:
    """Return the change that sets ``properties`` and removes the properties whose names are in ``remove``."""
    gone = texts_of("remove", remove, "['owner']")
    return lambda d, _: _document.set_properties(d, set=properties, remove=gone)


def evolve_schema(**changes: Any) -> DocumentChange:
    """Return the change that evolves the schema, with the arguments of `iceexplore.commits.evolve_schema`."""
    return lambda d, _: _schema.evolve_schema(d, **changes)


def evolve_spec(**changes: Any) -> DocumentChange:
    """Return the change that evolves the partition spec, with the arguments of `iceexplore.commits.evolve_spec`."""
    return lambda d, _: _spec_and_sort_order.evolve_spec(d, **changes)


def evolve_virtual_columns(**changes: Any) -> DocumentChange:
    """Return the change that adds and removes virtual columns.

    The arguments are those of `iceexplore.commits.evolve_virtual_columns`, without the document.
    """
    return lambda d, _: _virtual_columns.evolve_virtual_columns(d, **changes)


def set_sort_order(*fields: str) -> DocumentChange:
    """Return the change that sets the default sort order; without fields, the table becomes unsorted.

    A field is a column or a transform of a column, with an optional direction and order of nulls, such as ``"ts desc"``
    or ``"bucket(16, id) asc nulls last"`` (see `iceexplore.commits.set_sort_order`).
    """
    return lambda d, _: _spec_and_sort_order.set_sort_order(d, fields=fields)
