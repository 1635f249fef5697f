"""Work off the kernel's main thread: reading may take seconds, and the notebook must stay alive.

Results are handed over on the thread that owns the widget (the kernel's event loop, or whoever calls `Work.settle`), so
traits are never touched by two threads.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["Work"]

T = TypeVar("T")


class Work:
    """One worker thread. Of several requests in one slot only the newest is answered.

    Parameters
    ----------
    failed
        Called with what a job, or the handing over of its result, raised.
    idle
        Called whenever nothing is left to do.
    """

    def __init__(self, failed: Callable[[Exception], None], idle: Callable[[], None]) -> None:
        self._failed = failed
        self._idle = idle
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="iceexplore-explorer")
        self._newest: dict[str, int] = {}
        self._pending: set[Future[None]] = set()
        self._results: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._count = 0
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None  # no kernel: results wait for `settle`

    def submit(self, slot: str, run: Callable[[], T], done: Callable[[T], None]) -> None:
        """Call ``run`` in the worker and hand its result to ``done``, unless the slot got a newer request meanwhile."""
        self._count += 1
        ticket = self._newest[slot] = self._count

        def job() -> None:
            if self._newest[slot] != ticket:
                return
            try:
                result = run()
            except Exception as error:  # whatever it is, it must be shown, not swallowed
                self._post(slot, ticket, lambda error=error: self._failed(error))  # type: ignore[misc]
            else:
                self._post(slot, ticket, lambda: done(result))

        future = self._executor.submit(job)
        self._pending.add(future)
        future.add_done_callback(lambda _: self._wake())

    def _post(self, slot: str, ticket: int, deliver: Callable[[], None]) -> None:
        def act() -> None:
            if self._newest[slot] == ticket:
                deliver()

        self._results.put(act)

    def _wake(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.deliver)

    def deliver(self) -> None:
        """Hand over what is ready. Only the owner's thread may call this."""
        finished = {f for f in self._pending if f.done()}
        while True:
            try:
                act = self._results.get_nowait()
            except queue.Empty:
                break
            try:
                act()
            except Exception as error:
                self._failed(error)
        self._pending -= finished
        if not self._pending:
            self._idle()

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until nothing is left to do, and hand it over; False if that takes longer than ``timeout`` seconds."""
        while self._pending:
            _, left = wait(set(self._pending), timeout)
            self.deliver()
            if left:
                return False
        self.deliver()
        return True

    def cancel(self) -> None:
        """Drop everything asked for. What is being read goes on to its end, unseen; nothing new waits for it."""
        self._newest = dict.fromkeys(self._newest, -1)
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="iceexplore-explorer")
        self._pending.clear()
        self._idle()

    def close(self) -> None:
        """Stop: nothing waiting is begun, nothing is handed over any more."""
        self._newest = dict.fromkeys(self._newest, -1)
        self._executor.shutdown(wait=False, cancel_futures=True)
