"""What all experiments have in common: rows of numbers, and sentences that are checked against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Answer",
    "ConclusionError",
    "Experiment",
    "Finding",
    "Measure",
    "Numbers",
    "Row",
    "case",
    "ratio",
    "require",
]

#: Values of a case, in the order in which tables show them.
Case = tuple[tuple[str, str], ...]


class ConclusionError(Exception):
    """A sentence that its numbers do not support."""


def require(condition: bool, text: str) -> None:
    """Raise `ConclusionError` unless a condition that a sentence depends on holds."""
    if not condition:
        raise ConclusionError(text)


def ratio(a: float, b: float) -> str:
    """Return a ratio as text, with the digits that a reader needs."""
    value = a / b if b else float("inf")
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def case(**values: object) -> Case:
    """Return a case: names with values as text.

    Raises
    ------
    ValueError
        A value has the CSV's separator of values: read back, the case would be another one.
    """
    texts = {name.replace("_", " "): _text(value) for name, value in values.items()}
    for name, text in texts.items():
        if "; " in text:
            raise ValueError(f"the value of {name!r} must not contain '; ': {text!r}")
    return tuple(texts.items())


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Row:
    """A number: of one case, seed and metric; the size of its experiment is ``full``, ``quick``, or ``derived``."""

    experiment: str
    size: str
    case: Case
    seed: int
    metric: str
    unit: str
    value: float


@dataclass(frozen=True)
class Numbers:
    """The rows of an experiment (or of several), looked up by case and metric."""

    rows: tuple[Row, ...]

    def of(self, experiment: str) -> Numbers:
        """Return the rows of one experiment."""
        return Numbers(tuple(r for r in self.rows if r.experiment == experiment))

    def values(self, metric: str, **given: object) -> list[float]:
        """Return a metric's values in one case, one for each seed; further names of the case must be given, too.

        Raises
        ------
        ConclusionError
            No row has this case and metric.
        """
        wanted = case(**given)
        found = [r.value for r in self.rows if r.metric == metric and r.case == wanted]
        require(bool(found), f"no {metric!r} for {wanted}")
        return found

    def mean(self, metric: str, **given: object) -> float:
        """Return the mean over all seeds."""
        found = self.values(metric, **given)
        return sum(found) / len(found)

    def cases(self) -> list[Case]:
        """Return the cases in the order of their rows."""
        return list(dict.fromkeys(r.case for r in self.rows))

    def choices(self, name: str) -> list[str]:
        """Return the values of a name in all cases, in the order of their rows."""
        return list(dict.fromkeys(value for r in self.rows for n, value in r.case if n == name))

    def seeds(self) -> list[int]:
        """Return the seeds."""
        return sorted({r.seed for r in self.rows})


@dataclass(frozen=True)
class Answer:
    """What an experiment answers to a question: a sentence, and its most important number."""

    number: str
    sentence: str


@dataclass(frozen=True)
class Finding:
    """A question, and the function that answers it from the numbers or raises `ConclusionError`.

    Attributes
    ----------
    first
        Whether it is in the report's first table; the others are only with their experiment.
    """

    question: str
    answer: Callable[[Numbers], Answer]
    first: bool = True


#: Yield metric, unit and value of each case for a seed and the experiment's parameters.
Measure = Callable[..., Iterator[tuple[Case, str, str, float]]]


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    Attributes
    ----------
    name
        For ``--only``.
    title, method
        Its heading, and what is measured and how.
    measure
        Called with a seed and the parameters.
    quick, full
        Parameters of the notebook, and of ``make evidence``.
    findings
        Questions and answers.
    seeds
        How many seeds at most; 1 if nothing in it is random.
    metrics
        The metrics that the report's table shows; all others are in the CSV alone. Empty for all of them.
    bars
        The metrics that the notebook's chart shows, of the cases that have all of them.
    derived
        Whether it is computed from the numbers of the other experiments (the argument ``numbers``) instead of measured.
    """

    name: str
    title: str
    method: str
    measure: Measure
    findings: tuple[Finding, ...]
    quick: Mapping[str, Any] = field(default_factory=dict)
    full: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 3
    metrics: tuple[str, ...] = ()
    bars: tuple[str, ...] = ()
    derived: bool = False

    def run(self, seed: int, *, quick: bool = False, **given: Any) -> list[Row]:
        """Return the rows of one seed."""
        parameters = {**(self.quick if quick else self.full), **given}
        found = self.measure(seed, **parameters)
        size = "derived" if self.derived else "quick" if quick else "full"
        return [Row(self.name, size, c, seed, metric, unit, _plain(value)) for c, metric, unit, value in found]

    def answers(self, numbers: Numbers) -> Iterable[tuple[Finding, Answer]]:
        """Return each question with its answer. Raises `ConclusionError`."""
        mine = numbers if self.derived else numbers.of(self.name)
        return [(finding, finding.answer(mine)) for finding in self.findings]


def _plain(value: float) -> float:
    """Return a number that its text in the CSV gives back."""
    number = float(value)
    return int(number) if number == int(number) else round(number, 4)
