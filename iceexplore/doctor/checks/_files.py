"""Open data and delete files and compare them with their metadata: the findings of verification."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.checks._deletes import respelled
from iceexplore.doctor.examination._examination import Examination
from iceexplore.errors import PROBLEM_KINDS, Problem
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState
from iceexplore.verification import verify_steps

__all__ = ["Verify", "check_files", "verify_here"]

#: Verifies a state's snapshot at a level ("footers" or "data"); yields the completed share and returns findings as a
#: table.
Verify = Callable[[TableState, Literal["footers", "data"]], Generator[float, None, pa.Table]]

#: The modes (``docs/doctor.md``) of a missing file, by the content type of its entry.
_GONE = {0: (1,), 1: (1,), 2: (1,), None: (2,)}
#: Codes that, for a Puffin file, mean a wrong deletion vector (mode 48).
_OF_VECTORS = frozenset({"count-mismatch", "file-corrupt", "file-truncated", "memory-limit"})


def verify_here() -> Verify:
    """Return a function that opens files in threads of this process, each file once for all snapshots."""
    known: dict[tuple[str, bytes, int | None], pa.Table] = {}
    return lambda state, level: verify_steps(state, level=level, known=known)


def check_files(examination: Examination, verify: Verify) -> Generator[str, None, None]:
    """Report what opening the files of each examined snapshot finds; files of several snapshots are reported once.

    Yields the progress as text.
    """
    level: Literal["footers", "data"] = "footers" if examination.level == "files" else "data"
    known = {(f.code, f.where) for f in examination.findings}
    entries = examination.files.entries
    data = entries["location"].take(build.array(examination.live_data())).combine_chunks()
    vectors = pc.unique(entries["location"].filter(pc.fill_null(pc.equal(entries["file_format"], PUFFIN.name), False)))
    made: dict[tuple[str, str, str | None], list[int]] = {}
    rows: dict[tuple[str, str, str | None], dict[str, object]] = {}
    state = examination.state
    for number, snapshot in enumerate(examination.snapshots):
        of = f", snapshot {number + 1:,} of {len(examination.snapshots):,}" if len(examination.snapshots) > 1 else ""
        steps = verify(state.showing(snapshot, state.schema, ref=None, travel=None), level)
        found = yield from _in_words(steps, of)
        of_vector = build.to_pylist(pc.is_in(found["location"], vectors))
        moved = build.to_pylist(respelled(found["found"].combine_chunks(), data))
        for row, is_vector, old in zip(found.to_pylist(), of_vector, moved, strict=True):
            if old and row["code"] == "delete-dangling":  # the data file is live under another path
                row["code"], row["text"] = "delete-path", f"{row['text']} A live file has the same name."
            row["of_vector"] = is_vector
            place = row["location"] if row["entry"] is None else f"{row['manifest']}#entry {row['entry']}"
            key = row["code"], place, row["field"]
            if (row["code"], place) in known or row["code"] not in PROBLEM_KINDS:
                continue
            made.setdefault(key, []).append(snapshot.snapshot_id)
            rows.setdefault(key, row)
    for (code, place, field), snapshots in made.items():
        row = rows[code, place, field]
        text = str(row["text"])
        if row["location"] and str(row["location"]) not in text and row["entry"] is not None:
            text = f"{text} File: {row['location']}."
        item = Problem(code, row["severity"], place, text, field, row["found"], row["expected"])  # type: ignore[arg-type]
        modes: tuple[int, ...] | None = None
        if code == "file-missing":
            modes = _GONE.get(row["content"], (1,))  # type: ignore[call-overload]
        elif row["of_vector"] and code in _OF_VECTORS:
            modes = (48,)
        examination.report(item, snapshots=snapshots, modes=modes)


def _in_words(steps: Generator[float, None, pa.Table], of: str) -> Generator[str, None, pa.Table]:
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            found: pa.Table = end.value
            return found
        yield f"Opening files{of}: {share:.0%} …"
