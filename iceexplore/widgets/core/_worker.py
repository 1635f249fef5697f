"""Run work outside the kernel's main thread, so that the notebook stays responsive while files are read.

Results are delivered on the thread that owns the widget (the kernel's event loop, or the caller of `Work.settle`), so
no two threads access traits.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import GeneratorType
from typing import Any, TypeVar

from iceexplore.storage import report_progress

__all__ = ["Work"]

#: Work that gives way to other work begins after this many seconds without other work: whoever has just opened a tab
#: may be about to click in it.
_PAUSE = 0.5

T = TypeVar("T")


class Work:
    """A worker thread that ends when no work is left. Only the newest request of each slot is answered.

    Parameters
    ----------
    failed
        Called with an exception from a job or from the delivery of its result.
    idle
        Called whenever no work is left.
    """

    def __init__(self, failed: Callable[[Exception], None], idle: Callable[[], None]) -> None:
        self._failed = failed
        self._idle = idle
        self._executor: ThreadPoolExecutor | None = None
        self._newest: dict[str, int] = {}
        self._pending: set[Future[None]] = set()
        self._waiting: deque[Callable[[], None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._others_ended = -_PAUSE
        self._results: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._count = 0
        self._closed = False
        self._owner = threading.get_ident()
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None  # no kernel: results wait for `settle`

    @property
    def quiet(self) -> bool:
        """Whether no work is running or pending."""
        return not (self._pending or self._waiting)

    def submit(
        self,
        slot: str,
        run: Callable[[], T | Generator[Any, None, T]],
        done: Callable[[T], None],
        step: Callable[[Any], None] | None = None,
        counted: Callable[[int, int, str], None] | None = None,
        *,
        after_others: bool = False,
    ) -> None:
        """Call ``run`` in the worker and pass its result to ``done``, unless the slot gets a newer request meanwhile.

        For long work, ``run`` is a generator function; each value that it yields is passed to ``step``. Between two
        steps other requests run, and `cancel` ends the generator. What `iceexplore.storage.progress` counts meanwhile
        is passed to ``counted``: the steps done, their total, and the things counted.

        With ``after_others``, work and each of its steps wait until there has been no other work for a moment.
        """
        if self._closed:
            return
        self._count += 1
        ticket = self._newest[slot] = self._count

        def finish(result: T) -> None:
            self._post(slot, ticket, lambda: done(result))

        def failed(error: Exception) -> None:
            self._post(slot, ticket, lambda: self._failed(error))

        def count(done: int, total: int, things: str) -> None:
            if counted is not None:
                self._post(slot, ticket, lambda: counted(done, total, things))
                self._wake()

        def job() -> None:
            if self._newest.get(slot) != ticket:
                return
            try:
                with report_progress(count):
                    result = run()
                if isinstance(result, GeneratorType):
                    advance(result)
                    return
            except Exception as error:  # every error must be shown, not swallowed
                failed(error)
            else:
                finish(result)  # type: ignore[arg-type]

        def advance(steps: Generator[Any, None, T]) -> None:
            if self._newest.get(slot) != ticket:
                steps.close()
                return
            try:
                with report_progress(count):
                    progress = next(steps)
            except StopIteration as end:
                finish(end.value)
            except Exception as error:
                failed(error)
            else:
                if step is not None:
                    self._post(slot, ticket, lambda: step(progress))
                # Only the owner's thread uses the pool. There, the next step is queued behind newer requests.
                self._results.put(lambda: start(lambda: advance(steps)))

        start = self._run_after_others if after_others else self._run
        start(job)

    def _run_after_others(self, job: Callable[[], None]) -> None:
        self._waiting.append(job)
        self._run_waiting()

    def _run_waiting(self) -> None:
        """Start the next work that lets other work go first, if there is no other work; in a kernel, after a pause."""
        if self._alarm is not None or not self._waiting or self._pending:
            return
        left = self._others_ended + _PAUSE - time.monotonic()
        if left > 0 and self._loop is not None and self._loop.is_running():
            self._alarm = self._loop.call_later(left, self._end_pause)
        else:
            self._start(self._waiting.popleft())

    def _end_pause(self) -> None:
        self._alarm = None
        self._run_waiting()

    def _run(self, job: Callable[[], None]) -> None:
        def run() -> None:
            job()
            self._others_ended = time.monotonic()

        self._start(run)

    def _start(self, job: Callable[[], None]) -> None:
        if self._closed:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="iceexplore-widget")
        future = self._executor.submit(job)
        self._pending.add(future)
        future.add_done_callback(lambda _: self._wake())

    def _post(self, slot: str, ticket: int, deliver: Callable[[], None]) -> None:
        def act() -> None:
            if self._newest.get(slot) == ticket:
                deliver()

        self._results.put(act)

    def _wake(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.deliver)

    def call(self, act: Callable[[], None]) -> None:
        """Call a function on the owner's thread; at once if the caller is on that thread."""
        if self._loop is None or self._loop.is_closed() or threading.get_ident() == self._owner:
            act()
        else:
            self._loop.call_soon_threadsafe(act)

    def _waited(self, end: float | None) -> bool:
        """Wait, on a thread other than the owner's, until everything is delivered; return False at ``end``."""
        while end is None or time.monotonic() < end:
            came = threading.Event()
            self.call(came.set)  # queued after earlier requests of this thread
            if came.wait(None if end is None else max(0.0, end - time.monotonic())) and self.quiet:
                return True
            time.sleep(0.01)
        return False

    def deliver(self) -> None:
        """Deliver the results that are ready. Only the owner's thread may call this."""
        finished = {f for f in self._pending if f.done()}
        acted = bool(finished)
        while True:
            try:
                act = self._results.get_nowait()
            except queue.Empty:
                break
            acted = True
            try:
                act()
            except Exception as error:
                self._failed(error)
        self._pending -= finished
        self._run_waiting()
        if acted and not self._pending and not self._closed:
            self._rest()

    def _rest(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
        self._idle()

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all work is done and delivered; return False if that takes more than ``timeout`` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        if self._loop is not None and self._loop.is_running() and threading.get_ident() != self._owner:
            return self._waited(end)
        while not self.quiet:
            if not self._pending:  # waiting for a pause whose end the blocked event loop cannot announce
                self._start(self._waiting.popleft())
            wait(set(self._pending), None if end is None else max(0.0, end - time.monotonic()))
            self.deliver()
            if end is not None and time.monotonic() >= end and (self._pending or self._waiting):
                return False
        self.deliver()
        return True

    def cancel(self) -> None:
        """Drop all requests. A running step continues to its end unnoticed; nothing waits for it."""
        self._drop()
        self._idle()

    def close(self) -> None:
        """Stop: start no waiting work and deliver no more results."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        self._newest = dict.fromkeys(self._newest, -1)
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        self._pending.clear()
        self._waiting.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
