"""Run from the command line: see `scripts.fuzz`."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from scripts import fuzz
from scripts.fuzz.harness import child, repeat, run


@contextlib.contextmanager
def _folder(where: Path | None) -> Iterator[Path]:
    """Make the folder of a run: of the same name in each, as it is in the files, unless another run has it."""
    path = Path(where or tempfile.gettempdir()) / "iceexplore-fuzz"
    try:
        path.mkdir()
    except FileExistsError:
        path = Path(tempfile.mkdtemp(prefix="iceexplore-fuzz-", dir=where))
        print(f"{path.parent}/iceexplore-fuzz is there already: cases differ a little from those of its run")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=fuzz.__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="processor time that a case may take")
    parser.add_argument("--stop-after", type=float, help="begin no further case after these seconds")
    parser.add_argument("--doctor", action="store_true", help="check and repair tables with known damages")
    parser.add_argument("--all", action="store_true", help="go every way in each case")
    parser.add_argument("--list", action="store_true", help="list all failures at the end, not one of each kind")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.seed, given.first, given.cases, everything=given.all, doctor=given.doctor)
        return 0
    # what ends the run also ends its child, and removes its folder
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    until = None if given.stop_after is None else time.monotonic() + given.stop_after
    # In memory where there is such a place: a case writes a file twice and reads some twenty.
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    print(f"seed {given.seed}", flush=True)
    began = time.monotonic()
    with _folder(where) as folder:
        found = run(folder, given.seed, given.first, given.cases, given.seconds, until=until,
                    everything=given.all, doctor=given.doctor, say=partial(print, flush=True))  # fmt: skip
    took = time.monotonic() - began
    if given.list:
        for one in found["bad"]:
            print(f"{one['kind']}: case {one['case']}: {one['file']}: {one['change']}: {one['what'].splitlines()[-1]}")
    print(f"{found['done']} cases in {took:.0f} s, {len(found['bad'])} failures, peak {found['peak'] >> 20} MB, "
          f"slowest {found['slow']}")  # fmt: skip
    again = {one["kind"]: one["case"] for one in reversed(found["bad"])}
    for kind, times in found["kinds"].most_common():
        command = repeat(given.seed, again[kind], everything=given.all, doctor=given.doctor)
        print(f"{times:6} {kind}: {command}")
    return 1 if found["bad"] or not found["done"] else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    sys.exit(main())
