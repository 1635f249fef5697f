"""Simulated commits: operations, layouts (v1-v3 manifest list, V4 root manifest), conflicts, the sandbox."""

from __future__ import annotations

from iceexplore.commits._change import Applied, Change, Isolation, Operation
from iceexplore.commits._options import Affinity, DvEncoding, LayoutOptions, PartitionStorage
from iceexplore.commits._rules import RULES, Rule, rule
from iceexplore.commits._summary import partition_path, summary_of
from iceexplore.commits._writer import CommitWriter, WritableStorage

__all__ = [
    "Affinity",
    "Applied",
    "Change",
    "CommitWriter",
    "DvEncoding",
    "Isolation",
    "LayoutOptions",
    "Operation",
    "PartitionStorage",
    "RULES",
    "Rule",
    "WritableStorage",
    "partition_path",
    "rule",
    "summary_of",
]
