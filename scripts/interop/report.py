"""The page: a matrix of features and readers, and what each reader gets wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cases import Case
    from .faults import Fault

__all__ = ["write_report"]

_TITLES = {
    "iceexplore": "iceexplore", "spark": "Iceberg's runtime on Spark", "pyiceberg": "PyIceberg",
    "polars": "polars (native)", "duckdb": "DuckDB", "daft": "daft", "chdb": "chDB",
}  # fmt: skip

_INTRODUCTION = """# Which readers read a lab

Labs (`ix.create`) and saved simulations (`s.save(path, data="copy")`) are ordinary Iceberg tables. This page tells you
which readers return their rows. It is written by `make interop`, which makes {tables} tables of every type, partition
transform, format version and write mode, computes the expected rows in plain Python, and has every reader read them
whole and by filters: {questions} questions for each reader.

Every difference is traced to the reader (below); none is left unexplained, and none is iceexplore's. Version 4 is a
proposal that no reader supports, so it is not part of the matrix.

A cell says for how many tables with a feature the reader returned the expected rows for every question.
"""


def write_report(
    path: Path,
    cases: list[Case],
    versions: dict[str, str],
    results: dict[str, dict[str, list[tuple[str, str]]]],
    explained: dict[Fault, list[Case]],
) -> None:
    """Write the page."""
    readers = list(versions)
    questions = sum(1 + len(case.filters) for case in cases)
    lines = [_INTRODUCTION.format(tables=len(cases), questions=f"{questions:,}")]
    lines.append("| tables with | " + " | ".join(_TITLES[reader] for reader in readers) + " |")
    lines.append("|---|" + "--:|" * len(readers))
    features = sorted({one for case in cases for one in case.features}, key=_rank)
    for feature in ["all", *features]:
        those = [case for case in cases if feature == "all" or feature in case.features]
        cells = []
        for reader in readers:
            right = sum(not results[reader][case.name] for case in those)
            cells.append(f"{right} of {len(those)}" if right < len(those) else f"all {len(those)}")
        lines.append(f"| {feature} | " + " | ".join(cells) + " |")
    lines.append("\nVersions: " + "; ".join(versions[reader] for reader in readers) + ".")
    lines.append("\n## Known faults and limits of readers\n")
    lines.append("“Other rows” means that the reader returns wrong rows without an error.\n")
    for reader in readers:
        by_text: dict[tuple[bool, str], list[Case]] = {}
        for fault, of in explained.items():
            if fault.reader == reader:
                by_text.setdefault((fault.kind != "rows", fault.text), []).extend(of)
        if not by_text:
            continue
        lines.append(f"### {_TITLES[reader]}\n")
        for (refused, text), cases_of in sorted(by_text.items(), key=lambda one: one[0]):
            kind = "" if refused else "**Other rows.** "
            lines.append(f"- {kind}{text} ({len(cases_of)} of the tables, such as `{cases_of[0].name}`)")
        lines.append("")
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _rank(feature: str) -> tuple[int, str]:
    """Versions first, then modes, types, transforms, and the rest."""
    if feature in ("v1", "v2", "v3"):
        return 0, feature
    if feature in ("copy-on-write", "merge-on-read", "position deletes", "deletion vectors"):
        return 1, feature
    return (2 if feature.startswith("type") else 3 if feature.startswith("transform") else 4), feature
