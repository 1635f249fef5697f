"""The number of concurrent reads, and parallel work with results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from iceexplore.errors import OptionError
from iceexplore.storage._location import is_local

__all__ = ["READERS", "in_order", "readers_of"]

#: The property that sets the number of concurrent reads.
READERS = "iceexplore.parallel-reads"
#: Remote stores answer many requests in the same time as one; Arrow's S3 client has 25 connections.
_FAR = 24
_MOST = 256
#: Limit, in bytes, for results that are ready but not consumed, and for work in progress.
_AHEAD_BYTES = 256 << 20

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def readers_of(folder: str, properties: Mapping[str, str]) -> int:
    """Return the number of concurrent reads for the store of a folder.

    Local reads take processor time, so a few threads suffice; remote reads mostly wait.

    Raises
    ------
    OptionError
        The property is not a number from 1 to 256.
    """
    given = properties.get(READERS)
    if given is None:
        return min(4, max(2, os.cpu_count() or 2)) if is_local(folder) else _FAR
    try:
        count = int(given)
    except (TypeError, ValueError):
        count = 0
    if not 1 <= count <= _MOST:
        raise OptionError(f"{READERS} must be a number of reads from 1 to {_MOST}, not {given!r}")
    return count


def in_order(
    work: Callable[[_In], _Out],
    items: Iterable[_In],
    *,
    width: int,
    weigh: Callable[[_In], int] | None = None,
    always: int = 4,
    name: str = "iceexplore-ahead",
) -> Generator[_Out, None, None]:
    """Yield the results of ``work`` in the order of the items, computed ahead in threads; the first error is raised.

    Closing the iterator cancels work that has not begun.

    Parameters
    ----------
    width
        Number of threads, and approximate number of results computed ahead.
    weigh
        Returns an item's size in bytes: fewer large items are in progress at a time.
    always
        Number of items that may always be in progress, regardless of size.
    """
    pool = ThreadPoolExecutor(width, thread_name_prefix=name)
    ahead: deque[tuple[Future[_Out], int]] = deque()
    weight = 0
    try:
        for item in items:
            own = 0 if weigh is None else weigh(item)
            while len(ahead) > width or (len(ahead) > always and weight + own > _AHEAD_BYTES):
                future, freed = ahead.popleft()
                weight -= freed
                yield future.result()
            ahead.append((pool.submit(work, item), own))
            weight += own
        while ahead:
            yield ahead.popleft()[0].result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
