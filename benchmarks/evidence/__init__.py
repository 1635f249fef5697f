"""Experiments on V4's open questions: each with its question, numbers, and sentences that are checked against them.

``make evidence`` runs all of them; ``notebooks/04_v4_evidence.ipynb`` runs them at a smaller size.
"""

from __future__ import annotations

from ._experiment import Answer, ConclusionError, Experiment, Finding, Numbers, Row
from ._registry import EXPERIMENTS
from ._run import run
from ._show import Shown, first_screen

__all__ = [
    "Answer",
    "ConclusionError",
    "EXPERIMENTS",
    "Experiment",
    "Finding",
    "Numbers",
    "Row",
    "Shown",
    "first_screen",
    "run",
]
