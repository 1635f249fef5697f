"""Numbers as CSV, and the report that is made of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from ._experiment import Experiment, Numbers, Row

__all__ = ["CSV", "REPORT", "RESULTS", "compare", "markdown", "merged", "read_csv", "report", "write_csv"]

RESULTS = Path(__file__).resolve().parent.parent / "results"
CSV, REPORT = RESULTS / "evidence.csv", RESULTS / "evidence.md"
_HEAD = ("experiment", "size", "case", "seed", "metric", "unit", "value")
_COMMAND = "python -m benchmarks.evidence --only"
_NOT_MEASURED = (
    "## Not measured",
    "",
    "- An index of keys for turning equality deletes into DVs (#17142), and column files of a part of a file's rows "
    "(#15146), which the draft does not have.",
    "- Buffering in metadata.json and trees of more than two levels, which the proposal discards.",
    "- CPU time: only `benchmarks/flush.py` measures it, for the default flush thresholds.",
)


def write_csv(rows: Iterable[Row], order: Sequence[str] | None = None) -> str:
    """Return the rows as CSV, a number a line, in the order of these experiments."""
    out, rows = io.StringIO(), list(rows)
    order = list(dict.fromkeys(r.experiment for r in rows)) if order is None else list(order)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_HEAD)
    for row in sorted(rows, key=lambda r: (order.index(r.experiment), r.seed)):
        at = "; ".join(f"{name}={value}" for name, value in row.case)
        writer.writerow((row.experiment, row.size, at, row.seed, row.metric, row.unit, row.value))
    return out.getvalue()


def read_csv(text: str) -> Numbers:
    """Return the rows of a CSV.

    Raises
    ------
    ValueError
        It has other columns.
    """
    reader = csv.reader(io.StringIO(text))
    if tuple(next(reader)) != _HEAD:
        raise ValueError(f"expected the columns {', '.join(_HEAD)}")
    rows = []
    for experiment, size, at, seed, metric, unit, value in reader:
        pairs = [part.partition("=") for part in at.split("; ")] if at else []
        number = float(value)
        rows.append(
            Row(
                experiment,
                size,
                tuple((name, text) for name, _, text in pairs),
                int(seed),
                metric,
                unit,
                int(number) if number == int(number) else number,
            )
        )
    return Numbers(tuple(rows))


def merged(new: Numbers, old: Numbers | None) -> Numbers:
    """Return numbers with older ones added: of other experiments, and of other seeds of the same size."""
    seeds, sizes = {(r.experiment, r.seed) for r in new.rows}, {r.experiment: r.size for r in new.rows}
    kept = () if old is None else old.rows
    kept = tuple(r for r in kept if (r.experiment, r.seed) not in seeds and sizes.get(r.experiment, r.size) == r.size)
    return Numbers((*new.rows, *kept))


def compare(ours: Numbers, others: Numbers) -> list[str]:
    """Return the differences between two runs, over the experiments, sizes and seeds that both have."""
    both = {(r.experiment, r.size) for r in ours.rows} & {(r.experiment, r.size) for r in others.rows}
    seeds = set(ours.seeds()) & set(others.seeds())
    sides = [
        {
            (r.experiment, r.case, r.seed, r.metric): r.value
            for r in n.rows
            if (r.experiment, r.size) in both and r.seed in seeds
        }
        for n in (ours, others)
    ]
    return [
        f"{' '.join(map(str, key))}: {sides[0].get(key)} and {sides[1].get(key)}"
        for key in sorted({*sides[0], *sides[1]}, key=str)
        if sides[0].get(key) != sides[1].get(key)
    ]


def report(numbers: Numbers, experiments: Sequence[Experiment], about: str) -> str:
    """Return the report: questions and answers first, then each experiment's tables.

    Raises
    ------
    ConclusionError
        The numbers do not support a sentence.
    """
    first = ["| question | answer | number | command |", "|---|---|--:|---|"]
    sections: list[str] = []
    for experiment in experiments:
        mine = numbers.of(experiment.name)
        answers = list(experiment.answers(numbers))
        small = all(r.size == "quick" for r in mine.rows) and not experiment.derived
        command = f"`{_COMMAND} {experiment.name}{' --quick' * small}`"
        for finding, answer in answers:
            if not finding.first:
                continue
            link = f"[{finding.question}](#{_anchor(experiment.title)})"
            first.append(f"| {link} | {answer.sentence} | {answer.number} | {command} |")
        seeds = mine.seeds()
        sections += [
            f"## {experiment.title}",
            "",
            experiment.method,
            "",
            f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}; {command}",
            "",
            *[f"- {answer.sentence}" for _, answer in answers],
            "",
            *markdown(mine, experiment.metrics),
            "",
        ]
    return "\n".join([about, "", *first, "", *sections, *_NOT_MEASURED]).rstrip() + "\n"


def _anchor(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def markdown(numbers: Numbers, metrics: Sequence[str] = ()) -> list[str]:
    """Return tables: a row per case, a column per metric; cases with the same names share a table."""
    groups: dict[tuple[str, ...], list[tuple[tuple[str, str], ...]]] = {}
    for found in numbers.cases():
        groups.setdefault(tuple(name for name, _ in found), []).append(found)
    values: dict[tuple[object, str], list[float]] = {}
    units: dict[str, str] = {}
    for row in numbers.rows:
        values.setdefault((row.case, row.metric), []).append(row.value)
        units[row.metric] = row.unit
    lines: list[str] = []
    for names, cases in groups.items():
        shown = [m for m in units if (not metrics or m in metrics) and any((c, m) in values for c in cases)]
        if not shown:
            continue
        lines += [f"| {' | '.join([*names, *(_head(m, units[m]) for m in shown)])} |"]
        lines += ["|" + "---|" * len(names) + "--:|" * len(shown)]
        for found in cases:
            cells = [_spread(values.get((found, m), [])) for m in shown]
            lines.append(f"| {' | '.join([*(value for _, value in found), *cells])} |")
        lines.append("")
    return lines[:-1]


def _head(metric: str, unit: str) -> str:
    return metric if unit in ("requests", "files", "commits", "entries", "pairs") else f"{metric}, {unit}"


def _spread(values: list[float]) -> str:
    """Return the mean with the lowest and highest value, where they differ."""
    if not values:
        return ""
    low, high, mean = min(values), max(values), sum(values) / len(values)
    digits = 0 if max(abs(high), abs(low)) >= 1000 or all(float(v).is_integer() for v in (*values, mean)) else 2
    texts = [f"{v:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{v:,.0f}" for v in (mean, low, high)]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"
