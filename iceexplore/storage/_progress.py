"""A progress bar on long work: reads wait for the storage, and people want to know for how long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

#: Fewer files than this are read without a bar, however slow the storage.
MIN_FILES = 16
#: Seconds until a bar appears: most work is done by then.
DELAY = 1.5


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[], object]]:
    """Count steps of long work: call what is yielded once a step; a bar appears if the work takes long.

    It appears for a person only, in a terminal or a notebook, and not for work in a thread of its own (the explorer
    shows its own). It is gone when the work is done.

    Parameters
    ----------
    total
        How many steps there are.
    what
        What is counted, in the plural.
    """
    if total < MIN_FILES or not _somebody_looks():
        yield lambda: None
        return
    from tqdm.std import tqdm

    with tqdm(total=total, desc=what, unit="", delay=DELAY, leave=False, dynamic_ncols=True) as bar:
        yield bar.update


def _somebody_looks() -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
