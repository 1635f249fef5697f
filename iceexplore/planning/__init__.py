"""Scan planning: filters, what they prune, which deletes apply, and why."""

from iceexplore.planning._evidence import Evidence, Predicate, comparable, may_match, must_match, satisfied
from iceexplore.planning._filter import Filter, make_filter
from iceexplore.planning._partition_values import (
    PartitionColumn,
    nearest,
    partition_columns,
    partition_keys,
    tuples_of,
    typed_values,
)
from iceexplore.planning._prune import may_hold

__all__ = [
    "Evidence",
    "Filter",
    "PartitionColumn",
    "Predicate",
    "comparable",
    "make_filter",
    "may_hold",
    "may_match",
    "must_match",
    "nearest",
    "partition_columns",
    "partition_keys",
    "satisfied",
    "tuples_of",
    "typed_values",
]
