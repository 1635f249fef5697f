"""Import modules and read manifests before a request needs them, so that the first request does not wait for them.

This happens only where an event loop runs, as in a notebook's kernel. In a script, modules are imported and manifests
read when they are used.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
from collections.abc import Callable, Iterable, Iterator

from iceexplore.graph import TableState
from iceexplore.metadata import Snapshot
from iceexplore.storage import is_local

__all__ = ["manifests_ahead", "preload"]

#: Seconds after which imports begin: what the widget itself reads and sends comes first.
_AFTER = 0.3
#: Maximum bytes of manifests to read ahead. They list about 100,000 files; a core decodes 25 MB in a second.
_MOST_AHEAD = 16 << 20
_begun: set[str] = set()
#: Held by a thread that reads ahead, so that only one does in a notebook with many widgets.
_one_at_a_time = threading.Lock()


def preload(modules: Iterable[str], ahead: Callable[[], Iterable[object]]) -> None:
    """Import modules in a thread of a kernel, each once in the process, and then iterate over what ``ahead`` returns.

    A request that needs a module or a file earlier waits for it, as it would without preloading. Do nothing where no
    event loop runs.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    wanted = [name for name in modules if name not in _begun]
    _begun.update(wanted)
    loop.call_later(_AFTER, threading.Thread(target=_prepare, args=(wanted, ahead), daemon=True).start)


def _prepare(modules: Iterable[str], ahead: Callable[[], Iterable[object]]) -> None:
    for name in modules:
        with contextlib.suppress(Exception):  # the error recurs, and is shown, when the module is needed
            importlib.import_module(name)
    with _one_at_a_time, contextlib.suppress(Exception):  # as above: a later request shows the error
        for _ in ahead():
            pass


def manifests_ahead(state: TableState, snapshot: Snapshot | None) -> Iterator[None]:
    """Decode the manifests of a snapshot into the cache, one per step, if they are local and small enough."""
    if snapshot is None or not is_local(state.storage.folder):
        return
    root = state.root(snapshot)
    if root is not None:
        yield from state.reader.warm(root, _MOST_AHEAD)
