"""Affinity of delete manifests: what each policy writes, and what a planner then opens.

The proposal: "Flushing the data files or DVs from the root to leaf manifests will require leaf delete manifests to be
rewritten. To reduce the write amplification, a small number of unaffiliated delete manifests can be maintained."

``python benchmarks/affinity.py`` makes a V4 table of 2,000 data files in 10 leaves, and 40 commits that each delete
rows of 15 files: of any leaves (as MERGE by a random key does), or of one leaf at a time. The root keeps 20 deletion
vectors. It prints, for each policy, the bytes of leaves and roots that the commits wrote, and the requests and bytes of
a cold plan of the whole table, and of one whose filter leaves one data manifest; and writes ``results/affinity.md``.
The files are synthetic, so seeds change only which files are deleted from.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import iceexplore as ix
from iceexplore.arrow import build

HERE = Path(__file__).parent
POLICIES: dict[str, dict[str, Any]] = {
    "none affiliated": {"affinity": "none"},
    "all, added": {"affinity": "all", "affiliated_manifests": 0},
    "all, merged above 4": {"affinity": "all", "affiliated_manifests": 4},
    "all, rewritten": {"affinity": "all", "affiliated_manifests": 1},
    "all but 2, added": {"affinity": "some", "affiliated_manifests": 0},
    "all but 2, merged above 4": {"affinity": "some", "affiliated_manifests": 4},
    "all but 2, rewritten": {"affinity": "some", "affiliated_manifests": 1},
}
COLUMNS = ("leaves written, KB", "roots written, KB", "delete manifests", "plan, requests", "plan, KB",
           "one leaf, delete manifests", "one leaf, KB of them")  # fmt: skip


def measure(policy: dict[str, Any], one_leaf_at_a_time: bool, seed: int) -> list[int]:
    """Return the figures of one history, in the order of `COLUMNS`."""
    schema = {"id": "long", "v": "string"}
    s = ix.empty(
        schema, seed=1, flush_data_files=0, flush_delete_files=20, leaf_entries=200, format_version=4, **policy
    )
    for _ in range(10):
        s.append(files=200, rows=100)
    root = s.state.root()
    assert root is not None
    leaves = [build.to_pylist(leaf.entries["location"]) for leaf in s.state.reader.leaves(root)]
    rng, before = random.Random(seed), len(s.writes)
    for commit in range(40):
        among = leaves[commit % 10] if one_leaf_at_a_time else [name for leaf in leaves for name in leaf]
        s.row_delta(deletes={name: [commit] for name in rng.sample(among, 15)})
    written = list(s.writes)[before:]
    by_kind = {k: sum(w.length for w in written if w.kind == k) for k in ("manifest", "manifest-list")}
    root = s.state.root()
    assert root is not None
    rows = root.entries.select(["content_type", "status", "location", "referenced_file", "file_size_in_bytes"])
    live = [row for row in build.to_pylist(rows) if row["status"] != 2]
    deletes = [row for row in live if row["content_type"] == 4]
    data = [row["location"] for row in live if row["content_type"] == 3]
    beside = [row for row in deletes if row["referenced_file"] in (None, data[3])]
    cold = s.cost().plan.cold
    sizes = (by_kind["manifest"], by_kind["manifest-list"], sum(f.size for f in cold))
    leaf, roots, plan = (round(n / 1000) for n in sizes)
    return [
        leaf,
        roots,
        len(deletes),
        len(cold),
        plan,
        len(beside),
        sum(r["file_size_in_bytes"] for r in beside) // 1000,
    ]


def report(seeds: int) -> str:
    """Measure everything and return the report."""
    lines = [
        "# Affinity of delete manifests",
        "",
        "Made by `python benchmarks/affinity.py`; the top of that file describes what it measures.",
        "",
        f"Means of {seeds} seeds, with the lowest and highest in parentheses where they differ.",
    ]
    for title, clustered in (("Deletes from random files", False), ("Deletes from one leaf at a time", True)):
        lines += ["", f"## {title}", "", f"| policy | {' | '.join(COLUMNS)} |", "|---|" + "--:|" * len(COLUMNS)]
        for name, policy in POLICIES.items():
            runs = list(zip(*(measure(policy, clustered, seed) for seed in range(seeds)), strict=True))
            cells = [_cell(values) for values in runs]
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    lines += [
        "",
        "Merging above 4 writes no more than adding, because the root lists fewer manifests. Rewriting each time "
        "writes more and leaves the fewest manifests. The default is to merge above 4.",
        "",
    ]
    return "\n".join(lines)


def _cell(values: tuple[int, ...]) -> str:
    mean = f"{sum(values) / len(values):,.0f}"
    return mean if min(values) == max(values) else f"{mean} ({min(values):,} to {max(values):,})"


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="What policies of affinity write, and what planners then open.")
    parser.add_argument("--seeds", type=int, default=3, help="histories of each policy (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "affinity.md", help="report (%(default)s)")
    options = parser.parse_args()
    text = report(options.seeds)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
