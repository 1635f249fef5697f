"""Searches that stop at a time limit and can be resumed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["Search"]

T = TypeVar("T")


class Search(Generic[T]):
    """The items that an iterator has yielded so far.

    Parameters
    ----------
    begin
        A function that returns the iterator, whose steps may take long or hang, such as requests to a catalog.
    own_thread
        Search in a separate thread, so that a step that hangs can be abandoned. False if only the calling thread can
        use the source: the time limit then applies between two steps.

    Attributes
    ----------
    found
        The items so far, in order.
    complete
        Whether the iterator has ended.
    """

    def __init__(self, begin: Callable[[], Iterator[T]], *, own_thread: bool = True) -> None:
        self._begin = begin
        self._items: Iterator[T] | None = None
        self._own_thread = own_thread
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.found: list[T] = []
        self.complete = False

    def run(self, time_limit: float | None = None) -> bool:
        """Search to the end or for ``time_limit`` seconds; return whether the end was reached.

        A step that was running when the time was up still runs in its thread; the next call waits for it and goes on.

        Raises
        ------
        BaseException
            Whatever the iterator raised; the next call starts the search again.
        """
        end = None if time_limit is None else time.monotonic() + time_limit
        self._stop.clear()
        if self._own_thread:
            self._wait(end)
        else:
            self._until(end)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self.complete

    def _wait(self, end: float | None) -> None:
        try:
            while not self._is_over() and (end is None or time.monotonic() < end):
                # An earlier call may have asked its thread to stop: if that is about to end, a new thread goes on.
                if self._thread is None or not self._thread.is_alive():
                    # A daemon thread: a thread that hangs cannot be ended, and Python must not wait for it at exit.
                    self._thread = threading.Thread(target=self._until, args=(None,), name="search", daemon=True)
                    self._thread.start()
                self._thread.join(None if end is None else max(0.0, end - time.monotonic()))
        finally:  # even after a KeyboardInterrupt
            self._stop.set()

    def _until(self, end: float | None) -> None:
        items = self._items
        if items is None:
            items, self.found = self._begin(), []
            self._items = items
        while not (self._is_over() or self._stop.is_set() or (end is not None and time.monotonic() >= end)):
            try:
                self.found.append(next(items))
            except StopIteration:
                self.complete = True
            except BaseException as error:  # it is raised in the caller's thread, whatever it is
                self._items, self._error = None, error

    def _is_over(self) -> bool:
        return self.complete or self._error is not None
