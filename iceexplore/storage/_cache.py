"""A cache of decoded values, limited in bytes; the least recently used value is dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["CACHE", "Cache"]

T = TypeVar("T")


class _Loading:
    def __init__(self) -> None:
        self.owner = threading.get_ident()
        self.done = threading.Event()


class Cache:
    """A mapping with a limit in bytes; each key is loaded by one thread at a time.

    Parameters
    ----------
    max_bytes
        Limit for the sizes of all cached values together. A single value above this limit is returned without being
        cached, and the others stay.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._lowered: list[int] = []
        self._bytes = 0
        self._lock = threading.Lock()
        self._items: OrderedDict[tuple[Any, ...], tuple[Any, int]] = OrderedDict()
        self._loading: dict[tuple[Any, ...], _Loading] = {}

    @property
    def bytes(self) -> int:
        """Total size of the cached values, in bytes."""
        return self._bytes

    @property
    def max_bytes(self) -> int:
        """The limit in bytes; lowering it drops the least recently used values."""
        return self._max

    @max_bytes.setter
    def max_bytes(self, value: int) -> None:
        with self._lock:
            self._max = value
            self._shrink()

    @contextmanager
    def lowered(self, max_bytes: int) -> Iterator[None]:
        """Lower the limit while the block runs, for work that loads more values than the cache can hold.

        If several such blocks run at the same time, the lowest limit applies.
        """
        with self._lock:
            self._lowered.append(max_bytes)
            self._shrink()
        try:
            yield
        finally:
            with self._lock:
                self._lowered.remove(max_bytes)

    def get_or_load(self, key: tuple[Any, ...], load: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value under ``key``; load it if it is not cached.

        ``load`` runs without the lock. Threads wait if they request a key that another thread is loading; if that load
        fails, the next waiting thread tries to load the value itself, so threads never share an error.
        """
        while True:
            with self._lock:
                found = self._items.get(key)
                if found is not None:
                    self._items.move_to_end(key)
                    value: T = found[0]
                    return value
                other = self._loading.get(key)
                if other is None:
                    mine = self._loading[key] = _Loading()
                    break
            if other.owner == threading.get_ident():
                return load()  # a load that requests the key being loaded would wait for itself
            other.done.wait()
        try:
            value = load()
            weight = size(value)
            with self._lock:
                if weight <= self._most:
                    self._items[key] = (value, weight)
                    self._bytes += weight
                    self._shrink()
            return value
        finally:
            with self._lock:
                del self._loading[key]
            mine.done.set()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._items.clear()
            self._bytes = 0

    @property
    def _most(self) -> int:
        return min([self._max, *self._lowered])

    def _shrink(self) -> None:
        most = self._most
        while self._bytes > most and self._items:
            _, (_, weight) = self._items.popitem(last=False)
            self._bytes -= weight

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)


#: The process's cache, shared by all tables; keys include `Storage.key` of a location.
CACHE = Cache(512 * 1024 * 1024)
