"""A limit of processor time far above what sound code takes on any machine.

It finds growth with the square of the input, and a hang. How fast something is, ``benchmarks/`` measures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends(seconds: float = 60) -> Iterator[None]:
    """Fail if the block takes `seconds` of processor time or more."""
    begin = time.process_time()
    yield
    taken = time.process_time() - begin
    assert taken < seconds, f"took {taken:.1f} s of processor time, at most {seconds} s are sound"
