"""The V4 draft beside the proposal: bytes that the same history writes, and what planning reads after it.

``python benchmarks/draft.py`` plays one history, with the same seed, as version 3, in the proposal and in the draft:
appends of 20 synthetic files, each followed by deletion vectors for files of any age; every fourth step removes files.
It prints a table and writes ``results/draft.md``, which docs/v4.md includes. ``far``: a root takes many files before it
flushes; ``near``: it flushes early, so that most files are in leaves. Bytes do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import iceexplore as ix

HERE = Path(__file__).parent
SCHEMA = {"id": "long", "at": "timestamp", "station": "string", "km": "double", "fare": "decimal(8,2)"}
STEPS, FILES, TOUCHED = 8, 20, 10
LAYOUTS: Mapping[str, tuple[int, dict[str, Any]]] = {
    "version 3": (3, {}),
    "proposal, far": (4, {"dialect": "v4-proposal"}),
    "draft, far": (4, {"dialect": "v4-draft"}),
    "proposal, near": (4, {"dialect": "v4-proposal", "flush_data_files": 40, "flush_delete_files": 40}),
    "draft, near": (4, {"dialect": "v4-draft", "flush_data_files": 40}),
}


def play(version: int, layout: Mapping[str, Any]) -> ix.Simulation:
    """The history: always the same files and rows."""
    random = Random(7)
    s = ix.empty(SCHEMA, partition_by=["month(at)"], format_version=version, seed=7, **layout)
    deleted: dict[str, set[int]] = {}
    for step in range(STEPS):
        s.append(files=FILES, rows=2_000)
        names = sorted(s.inspect.data_files()["file_path"].tolist())
        rows: dict[str, list[int]] = {}
        for name in random.sample(names, TOUCHED):
            fresh = set(random.sample(range(50), 3)) - deleted.get(name, set())
            deleted.setdefault(name, set()).update(fresh)
            if fresh:
                rows[name] = sorted(fresh)
        s.row_delta(deletes=rows)
        if step % 4 == 3:
            s.delete_files(random.sample(names, 5))
    return s


def measured(name: str) -> str:
    """A row of the table."""
    s = play(*LAYOUTS[name])
    cost = s.cost()
    sums = [int(cost.commits[key].sum()) for key in ("root_bytes", "manifest_bytes")]
    read = cost.plan.cold
    cells = [name, *(f"{value / 1024:,.0f}" for value in (*sums, sum(sums)))]
    cells += [f"{len(read):,}", f"{sum(f.size for f in read) / 1024:,.0f}", f"{s.count():,}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Play, print, write."""
    head = "| layout | roots or lists, KB | manifests, KB | both, KB | a plan reads, files | KB | rows |"
    lines = [head, "|---|--:|--:|--:|--:|--:|--:|", *map(measured, LAYOUTS)]
    text = "\n".join(lines)
    print(text)
    (HERE / "results" / "draft.md").write_text(
        f"# The V4 draft beside the proposal\n\nMade by `python benchmarks/draft.py`; the top of that file describes "
        f"what it measures.\n\n{text}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
