"""The same rows from Iceberg's own runtime, where a session has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iceexplore.errors import UnsupportedError
from iceexplore.expressions import ALWAYS, predicates
from iceexplore.graph import TableState
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, schema_at, type_base
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans._literals import condition_column, speaks
from iceexplore.on_spark.scans._lookups import hadoop_path
from iceexplore.planning import ScanPlan
from iceexplore.reading import LAST_UPDATED, ROW_ID, Output, with_ancestors
from iceexplore.storage import OverlayStorage, canonical

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["iceberg_rows", "why_not_iceberg"]

_LINEAGE = frozenset((ROW_ID.field_id, LAST_UPDATED.field_id))
_REFUSED = frozenset(("time", "timestamp_ns", "timestamptz_ns", "geometry", "geography"))


def why_not_iceberg(state: TableState, info: SessionInfo, plan: ScanPlan, outputs: Sequence[Output]) -> str | None:
    """Why Iceberg's runtime would not give these rows; None if it would, in a session that has it."""
    if isinstance(state.storage, OverlayStorage):
        return "it is simulated, and Iceberg does not see the overlay's files"
    if state.metadata.may_have_root_manifests:
        return f"format version {state.metadata.format_version} is not among those that it is used for (1 to 3)"
    if state.storage.moved:
        return "its files have moved, and Iceberg would look where they were"
    real = state.storage.resolve(state.metadata_location)
    if canonical(real) != canonical(state.metadata_location) and not real.startswith("/"):
        return "its metadata file has moved"
    if not state.metadata.has_row_lineage and any(o.field.field_id in _LINEAGE for o in outputs):
        return "it has row ids in tables of version 3 and later alone"
    if plan.filter.partition:
        return "it takes no partition="
    if plan.appends is not None:
        return "the plan is of appends"
    if plan.notes:
        return "its metadata is damaged"
    if any(len(o.path) > 1 for o in outputs) or not speaks(plan.filter.expression):
        return "it is asked for fields inside structs, or for a filter that Spark has no words for"
    if _shown(state) != state.schema.fields:
        return "Iceberg would show it with another schema"
    if "#" in real:
        return "Iceberg takes what follows a # in a path for the name of a metadata table"
    asked = [_names(state.schema, p.field_id) for p in predicates(plan.filter.expression)]
    if any(names is None or len(names) > 1 for names in asked):
        return "it is filtered by a field inside a struct, by whose counts Iceberg leaves out files that have such rows"
    current = [_names(state.metadata.schema(), p.field_id) for p in predicates(plan.filter.expression)]
    if asked != current:  # of Iceberg 1.11
        return "it is filtered by a column that the current schema names otherwise, where Iceberg looks it up"
    if any(_refused(f.type) for f in state.schema.fields):
        return "it has types that Iceberg's runtime for Spark does not read"
    return None


def _version(state: TableState) -> str | None:
    """Which version Iceberg is asked for: with a snapshot's id comes that snapshot's schema, with a branch the current
    one (Java: ``SnapshotUtil.schemaFor``)."""
    if state.snapshot is None or state.travel is None:
        return None
    ref = state.metadata.refs.get(state.ref) if state.ref is not None else None
    if ref is not None and ref.type == "branch" and not ref.name.isdigit():
        return ref.name
    current = state.metadata.current_snapshot_id == state.snapshot.snapshot_id
    if current and state.schema.fields == state.metadata.schema().fields:
        return None
    return str(state.snapshot.snapshot_id)


def _shown(state: TableState) -> Sequence[NestedField]:
    """The columns that Iceberg shows of it."""
    version = _version(state)
    if version is None or state.snapshot is None or version != str(state.snapshot.snapshot_id):
        return state.metadata.schema().fields
    return schema_at(state.metadata, state.snapshot).fields


def _names(schema: Schema, number: int) -> list[str] | None:
    path = with_ancestors(schema.fields, number)
    return None if path is None else [f.name for f in path]


def _refused(kind: Type) -> bool:
    match kind:
        case StructType(fields):
            return any(_refused(f.type) for f in fields)
        case ListType(element):
            return _refused(element.type)
        case MapType(key, value):
            return _refused(key.type) or _refused(value.type)
    return type_base(kind) in _REFUSED


def iceberg_rows(
    session: Any,
    info: SessionInfo,
    state: TableState,
    plan: ScanPlan,
    outputs: Sequence[Output],
    refusal: str | None,
) -> DataFrame:
    """The rows as Iceberg's runtime reads them.

    Raises
    ------
    UnsupportedError
        It cannot, or the session does not have it.
    """
    if refusal is not None:
        raise UnsupportedError(f"{state.name}: engine='iceberg' cannot read this state: {refusal}; use engine='spark'")
    if not info.iceberg:
        raise UnsupportedError(
            "engine='iceberg' needs Iceberg's runtime in the Spark session: ix.spark(iceberg=True) makes one with it; "
            "or use engine='spark'"
        )
    from pyspark.errors import PySparkException

    reader = session.read.format("iceberg")
    version = _version(state)
    if version is not None:
        reader = reader.option("versionAsOf", version)
    try:
        frame: DataFrame = reader.load(hadoop_path(session, state.storage.resolve(state.metadata_location)))
        shown = frame.columns
    except PySparkException as error:
        reason = str(error).strip().split("\n")[0]
        raise UnsupportedError(f"{state.name}: Iceberg's runtime does not load it: {reason}") from error
    names = [f.name for f in state.schema.fields]
    if shown != names:
        raise UnsupportedError(
            f"{state.name}: Iceberg's runtime shows the columns {shown} where this state has {names}: use "
            "engine='spark'"
        )
    if plan.filter.expression != ALWAYS:
        frame = frame.filter(condition_column(plan.filter.expression, _by_id(state), info.version))
    return frame.select(*[_column(o.path) for o in outputs])


def _by_id(state: TableState) -> Any:
    def column(number: int) -> Column:
        path = with_ancestors(state.schema.fields, number)
        assert path is not None
        return _column(path)

    return column


def _column(path: Sequence[NestedField]) -> Column:
    from pyspark.sql import functions as f

    made = f.col("`" + path[0].name.replace("`", "``") + "`")
    for inner in path[1:]:
        made = made.getField(inner.name)
    return made
