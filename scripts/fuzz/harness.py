"""Run cases in processes of their own, with limits, and gather what goes wrong."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scripts.fuzz.doctor import DoctorCases
from scripts.fuzz.tables import TableCases, make

__all__ = ["RESIDENT", "child", "repeat", "run"]

_ROOT = Path(__file__).resolve().parent.parent.parent
#: Bytes that a child may address, and may really use at once.
ADDRESSED = 3 << 30
RESIDENT = 1536 << 20
#: Cases that one child looks at, before another one takes over.
A_CHILD = 500
#: A case may take this many times longer than its limit of processor time: others may need the machine, too.
_WAITS = 10


def _peak() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) << 10


def child(folder: Path, seed: int, first: int, cases: int, *, everything: bool = False, doctor: bool = False) -> None:
    """Run cases, one line of JSON each (after one with what is changed)."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSED, ADDRESSED))
    warnings.simplefilter("ignore")
    source: TableCases | DoctorCases = (DoctorCases if doctor else TableCases)(folder, everything=everything)
    for number in range(first, first + cases):
        with source.case(random.Random(f"{seed}:{number}")) as case:
            print(json.dumps({"case": number, "file": case.file, "change": case.change[:300]}), flush=True)
            if number % 20 == 0:
                gc.collect()
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
            result = case.look()
        print(json.dumps({"case": number, "peak": _peak(), **result}), flush=True)


def repeat(seed: int, case: int, *, everything: bool = False, doctor: bool = False) -> str:
    """Return the command that repeats a case."""
    options = f"{' --doctor' if doctor else ''}{' --all' if everything else ''}"
    return f"python -m scripts.fuzz{options} --seed {seed} --first {case} --cases 1"


def run(
    folder: Path,
    seed: int,
    first: int,
    cases: int,
    seconds: float,
    *,
    until: float | None = None,
    everything: bool = False,
    doctor: bool = False,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run cases in children and gather what goes wrong.

    Parameters
    ----------
    seconds
        The processor time that one case may take; a child that takes longer is killed, and the case counts as a hang.
    until
        `time.monotonic` after which no further case begins.
    everything
        Go every way in each case.
    doctor
        The cases of `scripts.fuzz.doctor`.
    say
        Takes a line for each hundred cases, and the first example of each kind of failure.

    Returns
    -------
    dict
        The cases done, the failures (``bad``), how many of each kind (``kinds``), the largest resident memory and the
        slowest way.
    """
    pristine, tables = folder / "pristine", folder / "tables"
    if not doctor and not tables.exists():
        tables.mkdir(parents=True)
        make(tables)
        shutil.copytree(tables, pristine)
    total: dict[str, Any] = {"done": 0, "bad": [], "kinds": Counter(), "peak": 0, "slow": ("", 0.0)}

    def failed(begun: dict[str, Any], kind: str, what: str) -> None:
        total["bad"].append({**begun, "kind": kind, "what": what})
        total["kinds"][kind] += 1
        if say and total["kinds"][kind] == 1:
            say(f"--- {kind}: seed {seed} case {begun['case']}: {begun['file']}: {begun['change']}\n{what}")

    def is_over() -> bool:
        return until is not None and time.monotonic() >= until

    at, end = first, first + cases
    options = [*(["--all"] if everything else []), *(["--doctor"] if doctor else [])]
    while at < end and not is_over():
        begun: dict[str, Any] = {"case": at, "file": "", "change": "before the first"}
        finished = False
        for found in _child_lines(folder, seed, at, min(A_CHILD, end - at), seconds, options):
            if "file" in found:
                begun = found
            elif "ended" in found:
                finished = not found["ended"]
                if found["ended"]:
                    failed(begun, found["ended"], found["text"])
                if not begun["file"]:
                    return total
            else:
                at = found["case"] + 1
                total["done"] += 1
                total["peak"] = max(total["peak"], found["peak"])
                total["slow"] = max(total["slow"], (*found["slow"], found["case"]), key=lambda one: one[1])
                for kind, text in found["faults"]:
                    failed(begun, kind, text)
                if found["silent"]:
                    kind = f"silent: {_format_of(begun['file'])}"
                    failed(begun, kind, "{} rows became {}, and there is no problem".format(*found["silent"]))
                if found["peak"] > RESIDENT:
                    failed(begun, "memory", f"{found['peak'] >> 20} MB")
                if say and total["done"] % 100 == 0:
                    kinds = ", ".join(f"{times} {kind}" for kind, times in total["kinds"].items()) or "no failure"
                    say(f"{total['done']} cases: {kinds}; peak {total['peak'] >> 20} MB, slowest {total['slow']}")
                if is_over():
                    return total
        if not finished:
            at = begun["case"] + 1
        if not finished and not doctor:
            shutil.rmtree(tables)
            shutil.copytree(pristine, tables)
    return total


def _format_of(file: str) -> str:
    name = Path(file).name
    end = next((e for e in (".metadata.json", ".avro", ".puffin") if name.endswith(e)), Path(file).suffix)
    return f"{Path(file).parts[-2] if 'metadata' in file else 'data'} {end}"


def _child_lines(
    folder: Path, seed: int, at: int, cases: int, seconds: float, options: list[str]
) -> Iterator[dict[str, Any]]:
    """Run a child and give what it writes; at last how it ended: ``{"ended": "", "text": ""}`` if well."""
    command = [sys.executable, "-m", "scripts.fuzz", "--child", str(folder), "--seed", str(seed)]
    command += ["--first", str(at), "--cases", str(cases), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT,
                               env=_environment(folder))  # fmt: skip
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []
    threading.Thread(target=_lines, args=(process.stdout, lines), daemon=True).start()
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    limit, began, used = 60.0, time.monotonic(), 0.0
    try:
        while True:
            try:
                line = lines.get(timeout=min(1.0, limit))
            except queue.Empty:
                if _processor_time(process.pid) - used > limit:
                    yield {"ended": "hang", "text": f"over {limit:.0f} s of processor time"}
                    return
                if time.monotonic() - began > _WAITS * limit:
                    yield {"ended": "hang", "text": f"over {_WAITS * limit:.0f} s"}
                    return
                continue
            if line is None:
                code = process.wait()
                reader.join(10)
                yield {"ended": f"the process ended: {code}" if code else "", "text": "".join(errors)[-4000:]}
                return
            limit, began, used = seconds, time.monotonic(), _processor_time(process.pid)
            yield json.loads(line)
    finally:
        process.kill()
        process.wait()
        reader.join(10)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _environment(folder: Path) -> dict[str, str]:
    """Return a child's environment.

    What is temporary goes where the tables are, and away with them. Hashes are the same in each run, because fastavro
    writes the keys of a schema in the order of a set.
    """
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(temporary), "PYTHONHASHSEED": "0"}


def _processor_time(process: int) -> float:
    """Return the seconds that a process has used of all processors; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _lines(stream: Any, into: queue.Queue[str | None]) -> None:
    with stream:
        for line in stream:
            into.put(line)
    into.put(None)
