"""Errors, and the registries of problem codes and of rules.

There are two kinds of faults. An *error* stops the operation: every error inherits from `IceexploreError` and
from the built-in exception it resembles, and its message says what is wrong, where, and what to do. A
*problem* is damage found while reading: it is data attached to a node, and everything else is still shown.
"""

from iceexplore.errors._arguments import (
    Unchecked,
    items_of,
    known_arguments,
    mapping_of,
    nearest,
    seconds_of,
    text_of,
    texts_of,
    version_of,
    whole_number,
    whole_number_of,
    whole_numbers_of,
)
from iceexplore.errors._concerns import Concern, concern_of
from iceexplore.errors._deprecated import moved_names
from iceexplore.errors._exceptions import (
    AccessDeniedError,
    CatalogError,
    CommitConflictError,
    FileMissingError,
    FormatError,
    IceexploreError,
    MemoryLimitError,
    MetadataNotFoundError,
    MissingDependencyError,
    OptionError,
    OutsideRootsError,
    RuleError,
    SnapshotNotFoundError,
    StorageError,
    TableChangedError,
    TemporaryFolderError,
    UnsupportedError,
    visible,
)
from iceexplore.errors._kinds import PROBLEM_KINDS, Effect, ProblemKind, Severity
from iceexplore.errors._modes import narrowed
from iceexplore.errors._open_points import OPEN_POINTS, OpenPoint
from iceexplore.errors._problems import Problem, Problems, problem
from iceexplore.errors._renamed import renamed_arguments, renamed_method
from iceexplore.errors._rules import RULES, Rule, RuleScope, rule
from iceexplore.errors._warnings import warn_caller

__all__ = [
    "AccessDeniedError",
    "CatalogError",
    "CommitConflictError",
    "Concern",
    "Effect",
    "FileMissingError",
    "FormatError",
    "IceexploreError",
    "MemoryLimitError",
    "MetadataNotFoundError",
    "MissingDependencyError",
    "OPEN_POINTS",
    "OpenPoint",
    "OptionError",
    "OutsideRootsError",
    "PROBLEM_KINDS",
    "Problem",
    "ProblemKind",
    "Problems",
    "RULES",
    "Rule",
    "RuleError",
    "RuleScope",
    "Severity",
    "SnapshotNotFoundError",
    "StorageError",
    "TableChangedError",
    "TemporaryFolderError",
    "Unchecked",
    "UnsupportedError",
    "concern_of",
    "items_of",
    "known_arguments",
    "mapping_of",
    "moved_names",
    "narrowed",
    "nearest",
    "problem",
    "renamed_arguments",
    "renamed_method",
    "rule",
    "seconds_of",
    "text_of",
    "texts_of",
    "version_of",
    "visible",
    "warn_caller",
    "whole_number",
    "whole_number_of",
    "whole_numbers_of",
]

# Tracebacks and pickles (for Spark's workers) name the module that users import from.
for _kind in list(globals().values()):
    if isinstance(_kind, type) and issubclass(_kind, IceexploreError):
        _kind.__module__ = __name__
