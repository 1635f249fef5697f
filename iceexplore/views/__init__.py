"""Views and SQL functions: their metadata, versions, time travel and differences."""

from iceexplore.views._card import view_card
from iceexplore.views._checks import HISTORY_PROPERTY, history_entries
from iceexplore.views._model import Representation, VersionLogEntry, ViewMetadata, ViewVersion
from iceexplore.views._parse import LATEST_VIEW_VERSION, parse_view_metadata
from iceexplore.views._state import ViewState, open_view_state, refreshed_view, view_state_of
from iceexplore.views._travel import resolve_view, view_at, view_clock
from iceexplore.views.dialects._compare import DialectComparison, compare_dialects, dialect_pairs
from iceexplore.views.diff._lines import SideBySide, UnifiedDiff
from iceexplore.views.diff._view_diff import DialectDiff, ViewDiff, view_diff
from iceexplore.views.lineage._lineage import (
    FoundSource,
    LineageSource,
    OpenSource,
    ViewLineage,
    query_lineage,
    view_lineage,
)
from iceexplore.views.lineage._model import ALL_COLUMNS, ColumnSource, OutputColumn, QueryLineage, TableReference
from iceexplore.views.lineage._placed import PlacedQuery, SourceVersion, placed_query
from iceexplore.views.lineage._tree import view_tree
from iceexplore.views.materialized._freshness import Freshness, SourceFreshness, view_freshness
from iceexplore.views.materialized._refresh_state import RefreshState, SourceState, read_refresh_state
from iceexplore.views.sql._changes import SqlChange
from iceexplore.views.sql._datafusion import DATAFUSION
from iceexplore.views.sql._parse import UnparsedQuery
from iceexplore.views.sql._translate import ViewSql, sql_in
from iceexplore.views.udfs._udf import Udf, UdfOverload, UdfParameter, UdfVersion, is_udf_metadata, parse_udf

__all__ = [
    "ALL_COLUMNS",
    "ColumnSource",
    "DATAFUSION",
    "DialectComparison",
    "DialectDiff",
    "FoundSource",
    "Freshness",
    "HISTORY_PROPERTY",
    "LATEST_VIEW_VERSION",
    "LineageSource",
    "OpenSource",
    "OutputColumn",
    "PlacedQuery",
    "QueryLineage",
    "RefreshState",
    "Representation",
    "SideBySide",
    "SourceFreshness",
    "SourceState",
    "SourceVersion",
    "SqlChange",
    "TableReference",
    "Udf",
    "UdfOverload",
    "UdfParameter",
    "UdfVersion",
    "UnifiedDiff",
    "UnparsedQuery",
    "VersionLogEntry",
    "ViewDiff",
    "ViewLineage",
    "ViewMetadata",
    "ViewSql",
    "ViewState",
    "ViewVersion",
    "compare_dialects",
    "dialect_pairs",
    "history_entries",
    "is_udf_metadata",
    "open_view_state",
    "parse_udf",
    "parse_view_metadata",
    "placed_query",
    "query_lineage",
    "read_refresh_state",
    "refreshed_view",
    "resolve_view",
    "sql_in",
    "view_at",
    "view_card",
    "view_clock",
    "view_diff",
    "view_freshness",
    "view_lineage",
    "view_state_of",
    "view_tree",
]
