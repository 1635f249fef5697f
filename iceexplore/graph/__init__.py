"""Table states, the table tree, and the differences between states."""

from iceexplore.errors import moved_names
from iceexplore.graph._bundle import REDACTIONS, Bundle, blank_secrets, is_secret_name, write_bundle
from iceexplore.graph._card import human_bytes, percent, table_card, totals
from iceexplore.graph._diff import Diff, diff, entry_changes, file_changes, files_change, rows_changed
from iceexplore.graph._frame import to_frame
from iceexplore.graph._records import Records, RefRecords, history, ref_records, snapshot_records
from iceexplore.graph._root import (
    Removals,
    direct_places,
    live_manifests,
    removed_counts,
    row_keys,
    vector_rows,
)
from iceexplore.graph._snapshot_change import SnapshotChange, snapshot_change
from iceexplore.graph._state import TableState, open_state, refreshed, state_of
from iceexplore.graph._travel import SnapshotLike, clock, format_ms, resolve_state, snapshot_of, to_ms, travel
from iceexplore.graph.file_map._cells import FileCells, file_cells
from iceexplore.graph.file_map._file_map import CellColor, FileMap, cell_legend, cell_shades, file_map, group_note
from iceexplore.graph.file_map._live_files import FILE_KINDS, DeletedRows, LiveFiles, deleted_rows, live_files
from iceexplore.graph.proposal._diagram import ProposalDiagram, build_proposal_diagram, seed_diagram, snapshot_numbers
from iceexplore.graph.redaction._nameless import nameless
from iceexplore.graph.redaction._redactor import Redaction, redactions
from iceexplore.graph.tree._applies import MOST_TARGETS, applies_edges
from iceexplore.graph.tree._labels import amount
from iceexplore.graph.tree._nodes import TreeNode, json_safe
from iceexplore.graph.tree._ranges import partition_ranges
from iceexplore.graph.tree._source import FoldedRows
from iceexplore.graph.tree._tree import Tree, build_tree
from iceexplore.render import card_html, card_text

__all__ = [
    "Bundle",
    "CellColor",
    "DeletedRows",
    "Diff",
    "FILE_KINDS",
    "FileCells",
    "FileMap",
    "FoldedRows",
    "LiveFiles",
    "MOST_TARGETS",
    "ProposalDiagram",
    "REDACTIONS",
    "Records",
    "Redaction",
    "RefRecords",
    "Removals",
    "SnapshotChange",
    "SnapshotLike",
    "TableState",
    "Tree",
    "TreeNode",
    "amount",
    "applies_edges",
    "blank_secrets",
    "build_proposal_diagram",
    "build_tree",
    "card_html",
    "card_text",
    "cell_legend",
    "cell_shades",
    "clock",
    "deleted_rows",
    "diff",
    "direct_places",
    "entry_changes",
    "file_cells",
    "file_changes",
    "file_map",
    "files_change",
    "format_ms",
    "group_note",
    "history",
    "human_bytes",
    "is_secret_name",
    "json_safe",
    "live_files",
    "live_manifests",
    "nameless",
    "open_state",
    "partition_ranges",
    "percent",
    "redactions",
    "ref_records",
    "refreshed",
    "removed_counts",
    "resolve_state",
    "row_keys",
    "rows_changed",
    "seed_diagram",
    "snapshot_change",
    "snapshot_numbers",
    "snapshot_of",
    "snapshot_records",
    "state_of",
    "table_card",
    "to_frame",
    "to_ms",
    "totals",
    "travel",
    "vector_rows",
    "write_bundle",
]

__getattr__ = moved_names(
    __name__,
    {
        "SeedTree": "iceexplore.graph:ProposalDiagram",
        "build_seed_tree": "iceexplore.graph:build_proposal_diagram",
    },
)
