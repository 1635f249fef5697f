"""Simulated commits: operations, layouts (v1-v3 manifest list, V4 root manifest), conflicts, the sandbox."""

from __future__ import annotations

from iceexplore.commits._change import Applied, Change, Isolation, Operation
from iceexplore.commits._document import next_document
from iceexplore.commits._expire import expire_snapshots
from iceexplore.commits._layout_list import apply_to_list
from iceexplore.commits._new_document import new_table_document
from iceexplore.commits._options import Affinity, DvEncoding, LayoutOptions, PartitionStorage
from iceexplore.commits._pointer import FolderFiles, MetadataNames, Pointer, publish_by_rename, publish_by_swap
from iceexplore.commits._properties import set_properties
from iceexplore.commits._refs import (
    cherry_pick_summary,
    fast_forward,
    remove_ref,
    rollback,
    set_current_snapshot,
    set_ref,
)
from iceexplore.commits._rules import RULES, Rule, rule
from iceexplore.commits._sandbox import Sandbox
from iceexplore.commits._schema_evolution import evolve_schema
from iceexplore.commits._snapshots import add_snapshot, snapshot_json
from iceexplore.commits._spec_evolution import evolve_spec, set_sort_order
from iceexplore.commits._summary import partition_path, summary_of
from iceexplore.commits._trial import CommitRecord
from iceexplore.commits._upgrade_document import upgrade
from iceexplore.commits._writer import CommitWriter, WritableStorage

__all__ = [
    "Affinity",
    "Applied",
    "Change",
    "CommitRecord",
    "CommitWriter",
    "DvEncoding",
    "FolderFiles",
    "Isolation",
    "LayoutOptions",
    "MetadataNames",
    "Operation",
    "PartitionStorage",
    "Pointer",
    "RULES",
    "Rule",
    "Sandbox",
    "WritableStorage",
    "add_snapshot",
    "apply_to_list",
    "cherry_pick_summary",
    "evolve_schema",
    "evolve_spec",
    "expire_snapshots",
    "fast_forward",
    "new_table_document",
    "next_document",
    "partition_path",
    "publish_by_rename",
    "publish_by_swap",
    "remove_ref",
    "rollback",
    "rule",
    "set_current_snapshot",
    "set_properties",
    "set_ref",
    "set_sort_order",
    "snapshot_json",
    "summary_of",
    "upgrade",
]
