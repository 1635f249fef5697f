"""Scan planning: evaluate filters on metadata, match deletes, and explain plans."""

from iceexplore.errors import moved_names
from iceexplore.planning._plan_scan import manifests_read, plan_scan
from iceexplore.planning._scan_plan import ScanPlan
from iceexplore.planning.advice._advise import Advice
from iceexplore.planning.advice._suggestion import Suggestion
from iceexplore.planning.delete_index._codes import paired_partition_codes
from iceexplore.planning.delete_index._delete_files import DeleteFiles, live_deletes
from iceexplore.planning.delete_index._lists import Stretches
from iceexplore.planning.delete_index._match import equality_columns, match_deletes
from iceexplore.planning.delete_index._paths import live_places
from iceexplore.planning.delete_index._unmatched import UNMATCHED_SCHEMA, unmatched_deletes
from iceexplore.planning.distribution._clustering import Clustering
from iceexplore.planning.distribution._table_distribution import (
    TableDistribution,
    deleted_rows,
    known_deleted_rows,
    small_limit,
    target_size,
)
from iceexplore.planning.evaluators._column_metrics import ColumnMetrics, comparable
from iceexplore.planning.evaluators._explain import WHY_SCHEMA, explain_files, explain_manifests
from iceexplore.planning.evaluators._filter import Filter, make_filter, residuals
from iceexplore.planning.evaluators._manifest_evaluator import may_hold
from iceexplore.planning.evaluators._metrics_evaluator import may_match, must_match, satisfied
from iceexplore.planning.evaluators._partition_values import (
    PartitionColumn,
    partition_columns,
    partition_keys,
    tuples_of,
    typed_values,
)
from iceexplore.planning.evaluators._rows import evaluate
from iceexplore.planning.model._groups import counted, partition_codes, partition_texts
from iceexplore.planning.model._tasks import FileTasks, MatchedDeletes
from iceexplore.planning.range_map._build import default_column, range_columns, range_map_of, range_map_steps
from iceexplore.planning.range_map._live_files import LiveFiles
from iceexplore.planning.range_map._range_map import VERDICTS, RangeBy, RangeMap, cells_of, exact_cells
from iceexplore.planning.report._examples import Examples, examples_of
from iceexplore.planning.report._node_explanation import DeleteOf, NodeEvidence, Term, node_evidence
from iceexplore.planning.report._nodes import Group, PlannedDelete, PlanNodes
from iceexplore.planning.report._reasons import skip_reasons
from iceexplore.planning.report._skipped import skipped_table
from iceexplore.planning.report._tree import PlanTree
from iceexplore.planning.report._waterfall import Waterfall
from iceexplore.planning.row_groups._scan import ROW_GROUP_SCHEMA, row_groups_of
from iceexplore.planning.row_groups._stored_values import stands_for
from iceexplore.planning.scan._doubts import doubts_of, refuse_doubts
from iceexplore.planning.scan._result import PlannedScan
from iceexplore.planning.scan._splits import (
    SplitOptions,
    combined_by_group,
    content_sizes,
    delete_counts,
    split_table,
)

__all__ = [
    "Advice",
    "Clustering",
    "ColumnMetrics",
    "DeleteFiles",
    "DeleteOf",
    "Examples",
    "FileTasks",
    "Filter",
    "Group",
    "LiveFiles",
    "MatchedDeletes",
    "NodeEvidence",
    "PartitionColumn",
    "PlanNodes",
    "PlanTree",
    "PlannedDelete",
    "PlannedScan",
    "ROW_GROUP_SCHEMA",
    "RangeBy",
    "RangeMap",
    "ScanPlan",
    "SplitOptions",
    "Stretches",
    "Suggestion",
    "TableDistribution",
    "Term",
    "UNMATCHED_SCHEMA",
    "VERDICTS",
    "WHY_SCHEMA",
    "Waterfall",
    "cells_of",
    "combined_by_group",
    "comparable",
    "content_sizes",
    "counted",
    "default_column",
    "delete_counts",
    "deleted_rows",
    "doubts_of",
    "equality_columns",
    "evaluate",
    "exact_cells",
    "examples_of",
    "explain_files",
    "explain_manifests",
    "known_deleted_rows",
    "live_deletes",
    "live_places",
    "make_filter",
    "manifests_read",
    "match_deletes",
    "may_hold",
    "may_match",
    "must_match",
    "node_evidence",
    "paired_partition_codes",
    "partition_codes",
    "partition_columns",
    "partition_keys",
    "partition_texts",
    "plan_scan",
    "range_columns",
    "range_map_of",
    "range_map_steps",
    "refuse_doubts",
    "residuals",
    "row_groups_of",
    "satisfied",
    "skip_reasons",
    "skipped_table",
    "small_limit",
    "split_table",
    "stands_for",
    "target_size",
    "tuples_of",
    "typed_values",
    "unmatched_deletes",
]

__getattr__ = moved_names(
    __name__,
    {
        "ALWAYS": "iceexplore.expressions",
        "Always": "iceexplore.expressions",
        "And": "iceexplore.expressions",
        "Choice": "iceexplore.expressions",
        "Completion": "iceexplore.expressions",
        "Evidence": "iceexplore.planning:ColumnMetrics",
        "Expression": "iceexplore.expressions",
        "NEVER": "iceexplore.expressions",
        "Op": "iceexplore.expressions",
        "Or": "iceexplore.expressions",
        "Predicate": "iceexplore.expressions",
        "TableLayout": "iceexplore.planning:TableDistribution",
        "all_of": "iceexplore.expressions",
        "any_of": "iceexplore.expressions",
        "bind_filter": "iceexplore.expressions",
        "complete_filter": "iceexplore.expressions",
        "expression_pyiceberg": "iceexplore.expressions",
        "expression_sql": "iceexplore.expressions",
        "negated": "iceexplore.expressions",
        "parse_filter": "iceexplore.expressions",
        "predicates": "iceexplore.expressions",
    },
)
