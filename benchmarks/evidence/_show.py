"""Experiments shown in a notebook: answers, a bar chart, and all numbers."""

from __future__ import annotations

from collections.abc import Sequence

from iceexplore.render import Bar, BarChart, BarRow, Html, bars_svg, bars_text, escape, svg_image

from ._experiment import Experiment, Numbers
from ._registry import EXPERIMENTS

__all__ = ["Shown", "first_screen"]

_BY_NAME = {e.name: e for e in EXPERIMENTS}


class Shown:
    """An experiment's answers, a chart of its most important numbers, and the command that repeats it."""

    def __init__(self, numbers: Numbers, name: str) -> None:
        self._numbers, self._experiment = numbers, _BY_NAME[name]

    def chart(self) -> BarChart | None:
        """Return the bars, or None if the experiment has no chart."""
        return _chart(self._experiment, self._numbers.of(self._experiment.name))

    def _lines(self) -> list[tuple[str, str]]:
        return [(finding.question, answer.sentence) for finding, answer in self._experiment.answers(self._numbers)]

    def _command(self) -> str:
        return f"python -m benchmarks.evidence --only {self._experiment.name}"

    def __repr__(self) -> str:
        chart = self.chart()
        lines = [f"{question} {sentence}" for question, sentence in self._lines()]
        return "\n".join([*lines, *([bars_text(chart)] if chart else []), self._command()])

    def _repr_html_(self) -> str:
        chart = self.chart()
        items = "".join(f"<p><b>{escape.html(q)}</b> {escape.html(s)}</p>" for q, s in self._lines())
        picture = svg_image(bars_svg(chart, width=860), chart.title) if chart else ""
        return f"{items}{picture}<p>At full size: <code>{escape.html(self._command())}</code></p>"


def _chart(experiment: Experiment, numbers: Numbers) -> BarChart | None:
    metrics = experiment.bars
    rows, units = [], {r.metric: r.unit for r in numbers.rows}
    for found in numbers.cases():
        values = [[r.value for r in numbers.rows if r.case == found and r.metric == m] for m in metrics]
        if not metrics or not all(values):
            continue
        means = [sum(v) / len(v) for v in values]
        *others, last = found
        note = ", ".join(f"{name} {value}" for name, value in others)
        bars = tuple(Bar(v, f"{v:,.0f}" if v >= 10 or v == int(v) else f"{v:.1f}") for v in means)
        rows.append(BarRow(last[1], note, bars))
    if not rows:
        return None
    heads = tuple(f"{m} [{units[m]}]" for m in metrics)
    return BarChart(experiment.title, "", heads, tuple(rows))


def first_screen(numbers: Numbers, experiments: Sequence[Experiment] = EXPERIMENTS) -> Html:
    """Return the table of questions, answers and commands."""
    rows = [
        f"<tr><td>{escape.html(finding.question)}</td><td>{escape.html(answer.number)}</td>"
        f"<td><code>--only {escape.html(e.name)}</code></td></tr>"
        for e in experiments
        if numbers.of(e.name).rows
        for finding, answer in e.answers(numbers)
    ]
    head = "<tr><th>question</th><th>answer</th><th>python -m benchmarks.evidence</th></tr>"
    return Html(f"<table>{head}{''.join(rows)}</table>")
