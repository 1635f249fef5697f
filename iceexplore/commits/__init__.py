"""Simulated and real commits: operations, layouts (v1-v3 manifest list, V4 root manifest), conflicts, the sandbox."""

from __future__ import annotations

from iceexplore.commits._cost import Cost, PlanCost, Retained, cost_of, plan_cost, plan_files, retained
from iceexplore.commits.added_files._from_paths import entry_of_file, files_of_paths
from iceexplore.commits.added_files._new_files import FilesLike, new_files
from iceexplore.commits.added_files._synthetic_merge import merged_groups
from iceexplore.commits.change_detection._changes import Changes, MetadataRead, changes_between, changes_of
from iceexplore.commits.experiments._change_scenarios import ChangeScenarios, change_scenarios
from iceexplore.commits.experiments._rule_violations import (
    VIOLATED_RULES,
    ViolatingLeaf,
    commit_violating_rules,
    manifest_dv_entry,
    root_rows,
)
from iceexplore.commits.layouts._manifest_list import apply_to_list
from iceexplore.commits.layouts._root_manifest import apply_to_root, rules_violated_by
from iceexplore.commits.layouts._summary import summary_of
from iceexplore.commits.live_files._find import LocationsLike, find_files, scoped_to
from iceexplore.commits.live_files._locate import LOCATED_SCHEMA, locate
from iceexplore.commits.live_files._selection import Selection, select
from iceexplore.commits.metadata_updates._document import next_document, set_properties
from iceexplore.commits.metadata_updates._empty_state import empty_state, new_table
from iceexplore.commits.metadata_updates._expire import expire_snapshots, remove_schemas_and_specs
from iceexplore.commits.metadata_updates._expired import Expired, KeptSnapshot, duration
from iceexplore.commits.metadata_updates._new_table import new_table_document
from iceexplore.commits.metadata_updates._refs import (
    cherry_pick_summary,
    fast_forward,
    remove_ref,
    rollback,
    set_current_snapshot,
    set_ref,
)
from iceexplore.commits.metadata_updates._schema import evolve_schema
from iceexplore.commits.metadata_updates._schema_checks import refuse_reserved_columns
from iceexplore.commits.metadata_updates._snapshots import add_snapshot, snapshot_json
from iceexplore.commits.metadata_updates._spec_and_sort_order import evolve_spec, set_sort_order
from iceexplore.commits.metadata_updates._upgrade import upgrade
from iceexplore.commits.metadata_updates._virtual_columns import evolve_virtual_columns
from iceexplore.commits.model._change import Applied, Change, Isolation, NothingToDo, Operation
from iceexplore.commits.model._options import (
    Affinity,
    DvEncoding,
    LayoutOptions,
    OptionDoc,
    PartitionStorage,
    option_docs,
)
from iceexplore.commits.model._writer import CommitWriter, WritableStorage, metadata_folder
from iceexplore.commits.operations._metadata import Expiration
from iceexplore.commits.operations._operation import CommitOperation, Parameter, TableKind
from iceexplore.commits.operations._planned import manifests_of, planned
from iceexplore.commits.operations._registry import OPERATIONS, operation, operations
from iceexplore.commits.operations._rewrite_data_files import RewriteGroups, compact, compacted_files
from iceexplore.commits.operations._rewrite_metadata import cherry_pick, rewrite_manifests, rewrite_position_deletes
from iceexplore.commits.operations._row_delta import row_delta
from iceexplore.commits.operations._update_columns import update_columns
from iceexplore.commits.operations._whole_files import append, delete_files, delete_where, overwrite
from iceexplore.commits.replaying._replay import replay
from iceexplore.commits.replaying._result import Replay, ReplayedSnapshot, Side
from iceexplore.commits.rules._check import check_rules, checked_rules
from iceexplore.commits.rules._entries import RuleBreak
from iceexplore.commits.rules._report import RuleReport, rule_report
from iceexplore.commits.rules._statistics import unknown_partitions
from iceexplore.commits.rules._view import keys_of
from iceexplore.commits.saving._reachable import (
    REFERENCED_SCHEMA,
    metadata_files,
    referenced_files,
    snapshot_files,
    statistics_files,
)
from iceexplore.commits.saving._relocate import relocated_deletes
from iceexplore.commits.saving._save import Saved, save
from iceexplore.commits.saving._unreferenced import file_kind, is_referenced, path_keys
from iceexplore.commits.transaction._committer import CommitRecord, Committer, DocumentChange, MakeChange
from iceexplore.commits.transaction._pointer import (
    FolderFiles,
    MetadataNames,
    Pointer,
    publish_by_rename,
    publish_by_swap,
)
from iceexplore.commits.transaction._sandbox import Sandbox, options_for, start_sandbox
from iceexplore.commits.view_commits._columns import view_columns
from iceexplore.commits.view_commits._document import (
    add_view_dialects,
    new_view_document,
    replace_view_version,
    rollback_view,
    set_view_location,
    set_view_properties,
)
from iceexplore.commits.view_commits._early_draft import adopted_form
from iceexplore.commits.view_commits._query import Keep, NamespaceLike, SqlLike, ViewQuery, given_sql, view_query
from iceexplore.commits.view_commits._sandbox import (
    ViewChange,
    ViewCommit,
    ViewSandbox,
    encode_metadata,
    new_view_state,
    start_view_sandbox,
    view_codec,
)
from iceexplore.commits.view_commits._save import save_view
from iceexplore.errors import RULES, Rule, moved_names, rule
from iceexplore.reading import is_synthetic

__all__ = [
    "Affinity",
    "Applied",
    "Change",
    "ChangeScenarios",
    "Changes",
    "CommitOperation",
    "CommitRecord",
    "CommitWriter",
    "Committer",
    "Cost",
    "DocumentChange",
    "DvEncoding",
    "Expiration",
    "Expired",
    "FilesLike",
    "FolderFiles",
    "Isolation",
    "Keep",
    "KeptSnapshot",
    "LOCATED_SCHEMA",
    "LayoutOptions",
    "LocationsLike",
    "MakeChange",
    "MetadataNames",
    "MetadataRead",
    "NamespaceLike",
    "NothingToDo",
    "OPERATIONS",
    "Operation",
    "OptionDoc",
    "Parameter",
    "PartitionStorage",
    "PlanCost",
    "Pointer",
    "REFERENCED_SCHEMA",
    "RULES",
    "Replay",
    "ReplayedSnapshot",
    "Retained",
    "RewriteGroups",
    "Rule",
    "RuleBreak",
    "RuleReport",
    "Sandbox",
    "Saved",
    "Selection",
    "Side",
    "SqlLike",
    "TableKind",
    "VIOLATED_RULES",
    "ViewChange",
    "ViewCommit",
    "ViewQuery",
    "ViewSandbox",
    "ViolatingLeaf",
    "WritableStorage",
    "add_snapshot",
    "add_view_dialects",
    "adopted_form",
    "append",
    "apply_to_list",
    "apply_to_root",
    "change_scenarios",
    "changes_between",
    "changes_of",
    "check_rules",
    "checked_rules",
    "cherry_pick",
    "cherry_pick_summary",
    "commit_violating_rules",
    "compact",
    "compacted_files",
    "cost_of",
    "delete_files",
    "delete_where",
    "duration",
    "empty_state",
    "encode_metadata",
    "entry_of_file",
    "evolve_schema",
    "evolve_spec",
    "evolve_virtual_columns",
    "expire_snapshots",
    "fast_forward",
    "file_kind",
    "files_of_paths",
    "find_files",
    "given_sql",
    "is_referenced",
    "is_synthetic",
    "keys_of",
    "locate",
    "manifest_dv_entry",
    "manifests_of",
    "merged_groups",
    "metadata_files",
    "metadata_folder",
    "new_files",
    "new_table",
    "new_table_document",
    "new_view_document",
    "new_view_state",
    "next_document",
    "operation",
    "operations",
    "option_docs",
    "options_for",
    "overwrite",
    "path_keys",
    "plan_cost",
    "plan_files",
    "planned",
    "publish_by_rename",
    "publish_by_swap",
    "referenced_files",
    "refuse_reserved_columns",
    "relocated_deletes",
    "remove_ref",
    "remove_schemas_and_specs",
    "replace_view_version",
    "replay",
    "retained",
    "rewrite_manifests",
    "rewrite_position_deletes",
    "rollback",
    "rollback_view",
    "root_rows",
    "row_delta",
    "rule",
    "rule_report",
    "rules_violated_by",
    "save",
    "save_view",
    "scoped_to",
    "select",
    "set_current_snapshot",
    "set_properties",
    "set_ref",
    "set_sort_order",
    "set_view_location",
    "set_view_properties",
    "snapshot_files",
    "snapshot_json",
    "start_sandbox",
    "start_view_sandbox",
    "statistics_files",
    "summary_of",
    "unknown_partitions",
    "update_columns",
    "upgrade",
    "view_codec",
    "view_columns",
    "view_query",
]

__getattr__ = moved_names(
    __name__,
    {
        "apply_transform": "iceexplore.metadata",
        "arrow_frame": "iceexplore.writing",
        "BENT_RULES": "iceexplore.commits:VIOLATED_RULES",
        "BentLeaf": "iceexplore.commits:ViolatingLeaf",
        "bent_commit": "iceexplore.commits:commit_violating_rules",
        "bent_dv": "iceexplore.commits:manifest_dv_entry",
        "bent_rules": "iceexplore.commits:rules_violated_by",
        "files_of_frame": "iceexplore.writing",
        "fit_columns": "iceexplore.writing",
        "foreign_frame": "iceexplore.writing",
        "is_made_up": "iceexplore.commits:is_synthetic",
        "partition_path": "iceexplore.writing",
        "partition_tuples": "iceexplore.writing",
        "plain_values": "iceexplore.writing",
        "target_bytes": "iceexplore.writing",
    },
)
