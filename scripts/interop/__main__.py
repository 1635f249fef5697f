"""Make the tables, let every reader read them, and write ``docs/interop.md``.

``python -m scripts.interop [--readers spark,polars] [--only <part of a name>] [--readers-python <python>]``

A difference that `faults.FAULTS` does not explain ends with status 1: it is a fault of ours, or one of a reader that
is not in the list yet.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from .cases import Case, build
from .faults import FAULTS, Fault
from .report import write_report

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parent.parent.parent
#: Readers that run in this environment; the others have one of their own.
_OURS = ("iceexplore", "spark")
_OTHERS = ("pyiceberg", "polars", "duckdb", "daft", "chdb")
#: Seconds without a line after which a reader counts as hanging.
_PATIENCE = 120


def _made(root: Path) -> list[Case]:
    """Return the tables of a folder, making them where there are none yet."""
    made = root / "cases.pickle"
    if not made.exists():
        cases = list(build(root / "tables"))
        made.write_bytes(pickle.dumps(cases))
    found: list[Case] = pickle.loads(made.read_bytes())
    return found


def _read_all(reader: str, python: str, cases: list[Case], folder: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Run a reader over all cases, starting it again behind a case that ended its process."""
    found: dict[str, dict[str, Any]] = {}
    version = ""
    left = list(cases)
    while left:
        path = folder / f"{reader}.json"
        path.write_text(json.dumps([case.to_json() for case in left]), encoding="utf-8")
        command = [python, "-m", "scripts.interop.readers", reader, str(path.resolve())]
        with (folder / f"{reader}.log").open("ab") as log:
            try:
                done = subprocess.run(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    timeout=_PATIENCE + 20 * len(left),
                    cwd=_ROOT,
                    check=False,
                )
                out, how = done.stdout, f"the process ended with status {done.returncode}"
            except subprocess.TimeoutExpired as late:
                out, how = late.stdout or b"", "no answer"
        lines = [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]
        if not lines:
            raise SystemExit(f"{reader} does not start: see {folder / f'{reader}.log'}")
        version = lines[0]["versions"]
        found |= {line["name"]: line for line in lines[1:]}
        left = [case for case in left if case.name not in found]
        if left:
            crashed = left.pop(0)
            nothing = {"error": how}
            found[crashed.name] = {"rows": nothing, "filtered": [nothing] * len(crashed.filters)}
    return version, found


def _answers(reader: str, python: str, cases: list[Case], folder: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return a reader's version and answers, from an earlier run on the same tables where it gave them all."""
    kept = folder / f"{reader}-answers.json"
    if kept.exists():
        version, read = json.loads(kept.read_text(encoding="utf-8"))
        if all(case.name in read for case in cases):
            return version, read
    version, read = _read_all(reader, python, cases, folder)
    kept.write_text(json.dumps([version, read]), encoding="utf-8")
    return version, read


def _differences(case: Case, read: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a reader got wrong of a case: the kind (``error`` or ``rows``), and a line."""
    asked = [("all rows", case.rows), *((f"{c} {op} {value!r}", rows) for c, op, value, rows in case.filters)]
    found = []
    for (what, wanted), got in zip(asked, [read["rows"], *read["filtered"]], strict=True):
        if isinstance(got, dict):
            found.append(("error", f"{what}: {got['error']}"))
        elif got != wanted:
            lost = [row for row in wanted if row not in got][:2]
            more = [row for row in got if row not in wanted][:2]
            found.append(("rows", f"{what}: {len(got)} rows, expected {len(wanted)}; lost {lost}, found {more}"))
    return found


def main() -> int:
    """Return 0 if every difference is a known fault of a reader, else 1."""
    parser = argparse.ArgumentParser(prog="python -m scripts.interop", description=__doc__)
    parser.add_argument("--readers", default=",".join((*_OURS, *_OTHERS)))
    parser.add_argument("--readers-python", default=str(_ROOT / ".cache/interop/bin/python"))
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument(
        "--keep",
        type=Path,
        help="a folder for the tables and answers, which are then made once; by default a temporary one",
    )
    chosen = parser.parse_args()
    readers = chosen.readers.split(",")
    with tempfile.TemporaryDirectory(prefix="iceexplore-interop-") as temporary:
        root = chosen.keep or Path(temporary)
        cases = [case for case in _made(root) if chosen.only in case.name]
        print(f"{len(cases)} tables, {sum(1 + len(case.filters) for case in cases)} questions", flush=True)
        versions: dict[str, str] = {}
        results: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for reader in readers:
            python = sys.executable if reader in _OURS else chosen.readers_python
            versions[reader], read = _answers(reader, python, cases, root)
            results[reader] = {case.name: _differences(case, read[case.name]) for case in cases}
            wrong = sum(bool(one) for one in results[reader].values())
            print(f"{versions[reader]}: {len(cases) - wrong} of {len(cases)} tables right", flush=True)
        explained: dict[Fault, list[Case]] = defaultdict(list)
        unknown: list[str] = []
        for reader in readers:
            for case in cases:
                for kind, line in results[reader][case.name]:
                    fault = next((one for one in FAULTS if one.explains(reader, case.features, kind, line)), None)
                    if fault is None:
                        unknown.append(f"{reader} | {case.name} | {sorted(case.features)} | {kind}: {line}")
                    elif not explained[fault] or explained[fault][-1] is not case:
                        explained[fault].append(case)
        for line in unknown:
            print(line)
        gone = [fault for fault in FAULTS if fault.reader in readers and fault not in explained and not chosen.only]
        for fault in gone:
            print(f"not met any more: {fault.reader}: {fault.text}")
        if not chosen.only and len(readers) == len(_OURS + _OTHERS):
            write_report(_ROOT / "docs" / "interop.md", cases, versions, results, explained)
        print(f"{len(unknown)} differences without an explanation")
        return 1 if unknown or gone else 0


if __name__ == "__main__":
    sys.exit(main())
