"""Simulated commits: operations, layouts (v1-v3 manifest list, V4 root manifest), conflicts, the sandbox."""

from __future__ import annotations

from iceexplore.commits._applied_deletes import scoped_to
from iceexplore.commits._bent import BENT_RULES, BentLeaf, bent_commit, bent_dv, root_rows
from iceexplore.commits._change import Applied, Change, Isolation, NothingToDo, Operation
from iceexplore.commits._check_rules import check_rules, checked_rules
from iceexplore.commits._check_rules_rows import RuleBreak
from iceexplore.commits._committer import Committer
from iceexplore.commits._compact import RewriteGroups, compact, compacted_files
from iceexplore.commits._cost import Cost, PlanCost, Retained, cost_of, plan_cost, retained
from iceexplore.commits._detect import Changes, MetadataRead, changes_between, changes_of
from iceexplore.commits._document import next_document
from iceexplore.commits._empty import empty_state, new_table
from iceexplore.commits._expire import expire_snapshots
from iceexplore.commits._expired import Expired, KeptSnapshot
from iceexplore.commits._files import new_files
from iceexplore.commits._foreign_frames import foreign_frame
from iceexplore.commits._frames import arrow_frame, files_of_frame, fit_columns, partition_tuples, target_bytes
from iceexplore.commits._layout_list import apply_to_list
from iceexplore.commits._layout_root import apply_to_root, bent_rules
from iceexplore.commits._locate import LOCATED_SCHEMA, locate
from iceexplore.commits._new_document import new_table_document
from iceexplore.commits._operations import append, delete_files, delete_where, overwrite
from iceexplore.commits._option_docs import OptionDoc, option_docs
from iceexplore.commits._options import Affinity, DvEncoding, LayoutOptions, PartitionStorage
from iceexplore.commits._partition_path import partition_path
from iceexplore.commits._pointer import FolderFiles, MetadataNames, Pointer, publish_by_rename, publish_by_swap
from iceexplore.commits._properties import set_properties
from iceexplore.commits._python_values import plain_values
from iceexplore.commits._reachable import snapshot_files
from iceexplore.commits._refs import (
    cherry_pick_summary,
    fast_forward,
    remove_ref,
    rollback,
    set_current_snapshot,
    set_ref,
)
from iceexplore.commits._replay import replay
from iceexplore.commits._replay_result import Replay, ReplayedSnapshot, Side
from iceexplore.commits._reserved_names import refuse_reserved_columns
from iceexplore.commits._rewrites import cherry_pick, rewrite_manifests, rewrite_position_deletes
from iceexplore.commits._row_delta import row_delta
from iceexplore.commits._rules import RULES, Rule, rule
from iceexplore.commits._sandbox import Sandbox, options_for, start_sandbox
from iceexplore.commits._save import Saved, save
from iceexplore.commits._scenarios import ChangeScenarios, change_scenarios
from iceexplore.commits._schema_evolution import evolve_schema
from iceexplore.commits._selection import Selection, select
from iceexplore.commits._snapshots import add_snapshot, snapshot_json
from iceexplore.commits._spec_evolution import evolve_spec, set_sort_order
from iceexplore.commits._summary import summary_of
from iceexplore.commits._transforms import apply_transform
from iceexplore.commits._trial import CommitRecord, DocumentChange, MakeChange
from iceexplore.commits._upgrade_document import upgrade
from iceexplore.commits._writer import CommitWriter, WritableStorage
from iceexplore.reading import is_made_up

__all__ = [
    "Affinity",
    "Applied",
    "BENT_RULES",
    "BentLeaf",
    "Change",
    "ChangeScenarios",
    "Changes",
    "CommitRecord",
    "CommitWriter",
    "Committer",
    "Cost",
    "DocumentChange",
    "DvEncoding",
    "Expired",
    "FolderFiles",
    "Isolation",
    "KeptSnapshot",
    "LOCATED_SCHEMA",
    "LayoutOptions",
    "MakeChange",
    "MetadataNames",
    "MetadataRead",
    "NothingToDo",
    "Operation",
    "OptionDoc",
    "PartitionStorage",
    "PlanCost",
    "Pointer",
    "RULES",
    "Replay",
    "ReplayedSnapshot",
    "Retained",
    "RewriteGroups",
    "Rule",
    "RuleBreak",
    "Sandbox",
    "Saved",
    "Selection",
    "Side",
    "WritableStorage",
    "add_snapshot",
    "append",
    "apply_to_list",
    "apply_to_root",
    "apply_transform",
    "arrow_frame",
    "bent_commit",
    "bent_dv",
    "bent_rules",
    "change_scenarios",
    "changes_between",
    "changes_of",
    "check_rules",
    "checked_rules",
    "cherry_pick",
    "cherry_pick_summary",
    "compact",
    "compacted_files",
    "cost_of",
    "delete_files",
    "delete_where",
    "empty_state",
    "evolve_schema",
    "evolve_spec",
    "expire_snapshots",
    "fast_forward",
    "files_of_frame",
    "fit_columns",
    "foreign_frame",
    "is_made_up",
    "locate",
    "new_files",
    "new_table",
    "new_table_document",
    "next_document",
    "option_docs",
    "options_for",
    "overwrite",
    "partition_path",
    "partition_tuples",
    "plain_values",
    "plan_cost",
    "publish_by_rename",
    "publish_by_swap",
    "refuse_reserved_columns",
    "remove_ref",
    "replay",
    "retained",
    "rewrite_manifests",
    "rewrite_position_deletes",
    "rollback",
    "root_rows",
    "row_delta",
    "rule",
    "save",
    "scoped_to",
    "select",
    "set_current_snapshot",
    "set_properties",
    "set_ref",
    "set_sort_order",
    "snapshot_files",
    "snapshot_json",
    "start_sandbox",
    "summary_of",
    "target_bytes",
    "upgrade",
]
