"""Scan planning: filters, what they prune, which deletes apply, and why."""

from iceexplore.planning._advice import Advice
from iceexplore.planning._advice_suggestion import Suggestion
from iceexplore.planning._bind import bind_filter
from iceexplore.planning._chunk_values import stands_for
from iceexplore.planning._complete import Choice, Completion, complete_filter
from iceexplore.planning._delete_match import equality_columns, match_deletes
from iceexplore.planning._delete_paths import live_places
from iceexplore.planning._delete_unmatched import UNMATCHED_SCHEMA, unmatched_deletes
from iceexplore.planning._evaluate import evaluate
from iceexplore.planning._evidence import Evidence, comparable
from iceexplore.planning._examples import Examples, examples_of
from iceexplore.planning._explain import WHY_SCHEMA, explain_files, explain_manifests
from iceexplore.planning._export import expression_pyiceberg, expression_sql
from iceexplore.planning._expression import (
    ALWAYS,
    NEVER,
    Always,
    And,
    Expression,
    Op,
    Or,
    Predicate,
    all_of,
    any_of,
    negated,
    predicates,
)
from iceexplore.planning._filter import Filter, make_filter
from iceexplore.planning._judge import may_match, must_match, satisfied
from iceexplore.planning._parse import parse_filter
from iceexplore.planning._partition_values import (
    PartitionColumn,
    partition_columns,
    partition_keys,
    tuples_of,
    typed_values,
)
from iceexplore.planning._plan import manifests_read, plan_scan
from iceexplore.planning._plan_evidence import DeleteOf, NodeEvidence, Term, node_evidence
from iceexplore.planning._plan_nodes import Group, PlanNodes
from iceexplore.planning._plan_skipped import skipped_table
from iceexplore.planning._plan_tree import PlanTree
from iceexplore.planning._planned import PlannedScan
from iceexplore.planning._prune import may_hold
from iceexplore.planning._residual import residuals
from iceexplore.planning._row_groups import ROW_GROUP_SCHEMA, row_groups_of
from iceexplore.planning._scan_plan import ScanPlan
from iceexplore.planning._splits import SplitOptions, split_table
from iceexplore.planning._table_layout import TableLayout
from iceexplore.planning._tasks import FileTasks, MatchedDeletes
from iceexplore.planning._waterfall import Waterfall

__all__ = [
    "ALWAYS",
    "Advice",
    "Always",
    "And",
    "Choice",
    "Completion",
    "DeleteOf",
    "Evidence",
    "Examples",
    "Expression",
    "FileTasks",
    "Filter",
    "Group",
    "MatchedDeletes",
    "NEVER",
    "NodeEvidence",
    "Op",
    "Or",
    "PartitionColumn",
    "PlanNodes",
    "PlanTree",
    "PlannedScan",
    "Predicate",
    "ROW_GROUP_SCHEMA",
    "ScanPlan",
    "SplitOptions",
    "Suggestion",
    "TableLayout",
    "Term",
    "UNMATCHED_SCHEMA",
    "WHY_SCHEMA",
    "Waterfall",
    "all_of",
    "any_of",
    "bind_filter",
    "comparable",
    "complete_filter",
    "equality_columns",
    "evaluate",
    "examples_of",
    "explain_files",
    "explain_manifests",
    "expression_pyiceberg",
    "expression_sql",
    "live_places",
    "make_filter",
    "manifests_read",
    "match_deletes",
    "may_hold",
    "may_match",
    "must_match",
    "negated",
    "node_evidence",
    "parse_filter",
    "partition_columns",
    "partition_keys",
    "plan_scan",
    "predicates",
    "residuals",
    "row_groups_of",
    "satisfied",
    "skipped_table",
    "split_table",
    "stands_for",
    "tuples_of",
    "typed_values",
    "unmatched_deletes",
]
