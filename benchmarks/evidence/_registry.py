"""All experiments, in the order of the report."""

from __future__ import annotations

from ._experiment import Experiment
from .experiments.affinity import AFFINITY
from .experiments.changes import CHANGES
from .experiments.commits import COMMITS
from .experiments.conversion import CONVERSION
from .experiments.formats import FORMATS
from .experiments.helps import HELPS
from .experiments.histories import HISTORIES
from .experiments.latency import LATENCY
from .experiments.leaves import LEAVES
from .experiments.paths import PATHS
from .experiments.planning import PLANNING
from .experiments.positions import POSITIONS
from .experiments.replays import REPLAYS
from .experiments.thresholds import THRESHOLDS
from .experiments.updates import UPDATES
from .experiments.vectors import VECTORS

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    COMMITS,
    HISTORIES,
    VECTORS,
    PLANNING,
    CHANGES,
    THRESHOLDS,
    LEAVES,
    AFFINITY,
    FORMATS,
    PATHS,
    POSITIONS,
    UPDATES,
    CONVERSION,
    REPLAYS,
    LATENCY,
    HELPS,
)
