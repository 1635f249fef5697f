"""Import what requests will need while nobody waits: a first request otherwise takes some tenths of a second longer."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
from collections.abc import Iterable

__all__ = ["preload"]

#: Seconds after which imports begin: what the widget itself reads and sends comes first.
_AFTER = 0.3
_begun: set[str] = set()


def preload(modules: Iterable[str]) -> None:
    """Import modules in a thread of a kernel, each once in the process; do nothing where no event loop runs.

    A request that needs a module before waits for its import, as it would without.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a script imports what it uses
        return
    wanted = [name for name in modules if name not in _begun]
    _begun.update(wanted)
    if wanted:
        loop.call_later(_AFTER, threading.Thread(target=_import, args=(wanted,), daemon=True).start)


def _import(modules: Iterable[str]) -> None:
    for name in modules:
        with contextlib.suppress(Exception):  # it comes again, and is shown, when the module is needed
            importlib.import_module(name)
