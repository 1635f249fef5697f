"""How many reads wait for a store at once, and work that is done ahead of whoever asks for its results."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from iceexplore.errors import OptionError
from iceexplore.storage._location import is_local

__all__ = ["READERS", "in_order", "readers_of"]

#: The property that says how many reads may wait for a store at once.
READERS = "iceexplore.parallel-reads"
#: A far store answers many requests as soon as one; Arrow's S3 client has 25 connections.
_FAR = 24
_MOST = 256
#: Results that are ready but not taken, and work under way, may weigh so much together (bytes).
_AHEAD_BYTES = 256 << 20

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def readers_of(folder: str, properties: Mapping[str, str]) -> int:
    """How many reads may wait for the store of a folder at once.

    On a local disk reading costs the processor's time, so a few threads are enough; a far store is waited for.

    Raises
    ------
    OptionError
        The property is no number from 1 to 256.
    """
    given = properties.get(READERS)
    if given is None:
        return min(4, max(2, os.cpu_count() or 2)) if is_local(folder) else _FAR
    try:
        count = int(given)
    except (TypeError, ValueError):
        count = 0
    if not 1 <= count <= _MOST:
        raise OptionError(f"{READERS} is a number of reads from 1 to {_MOST}, not {given!r}")
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
    """The results of ``work`` in the order of the items, done ahead in threads; the first error ends the rest.

    Closing the iterator cancels what has not begun.

    Parameters
    ----------
    width
        Threads, and about how many results wait to be taken.
    weigh
        What an item weighs, in bytes: of items that weigh much fewer are under way.
    always
        So many are under way whatever they weigh.
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
