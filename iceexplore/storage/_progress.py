"""A progress bar for long reads from the storage."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

__all__ = ["Listener", "progress", "report_progress", "result_of"]

T = TypeVar("T")
#: A function that is called with the number of steps done, the total number, and what is counted.
Listener: TypeAlias = Callable[[int, int, str], object]

#: Fewer files than this are read without a bar, even from slow storage.
MIN_FILES = 16
#: Seconds until a bar appears: most operations take less.
DELAY = 1.5
#: Seconds between two reports to a listener.
INTERVAL = 0.1

_of_thread = threading.local()


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[], object]]:
    """Show a progress bar if work takes long; call the yielded function once per step.

    The bar appears only in a terminal or a notebook, and not for work in a background thread, whose owner may listen
    instead (`report_progress`). It disappears when the work is done.

    Parameters
    ----------
    total
        The number of steps.
    what
        What is counted, in the plural, such as ``files``.
    """
    listener: Listener | None = getattr(_of_thread, "listener", None)
    if listener is not None and total >= MIN_FILES:
        yield _Reporter(listener, total, what).step
        return
    if total < MIN_FILES or not _somebody_looks():
        yield lambda: None
        return
    from tqdm.std import tqdm

    file: Any = _Cell() if _has_cells() else None
    with tqdm(total=total, desc=what, unit="", delay=DELAY, leave=False, dynamic_ncols=True, file=file) as bar:
        yield bar.update


@contextmanager
def report_progress(listener: Listener) -> Iterator[None]:
    """Pass the progress of this thread's work to a listener, at most ten times a second, instead of showing a bar."""
    before = getattr(_of_thread, "listener", None)
    _of_thread.listener = listener
    try:
        yield
    finally:
        _of_thread.listener = before


class _Reporter:
    """Counts steps for a listener."""

    def __init__(self, listener: Listener, total: int, what: str) -> None:
        self._listener, self._total, self._what = listener, total, what
        self._done = 0
        self._last = time.monotonic()

    def step(self) -> None:
        """Count one step."""
        self._done += 1
        now = time.monotonic()
        if now - self._last >= INTERVAL:
            self._last = now
            self._listener(self._done, self._total, self._what)


def result_of(steps: Generator[object, None, T]) -> T:
    """Run a generator to its end and return its result; the progress that it yields is dropped."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class _Cell:
    """A stream that shows the bar in a notebook cell and can remove it; on stderr, the bar would stay, in red."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._shown: Any = None

    def write(self, text: str) -> None:
        """Show a line in place of the last one; an empty line removes it."""
        from IPython.display import display

        line = text.strip()
        data = {"text/plain": line} if line else {}
        if self._shown is not None:
            self._shown.update(data, raw=True)
        elif line:
            self._shown = display(data, raw=True, display_id=True)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""


def _has_cells() -> bool:
    if "ipykernel" not in sys.modules:
        return False
    import IPython

    return hasattr(IPython.get_ipython(), "kernel")


def _somebody_looks() -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
