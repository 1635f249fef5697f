"""Read the same rows with Iceberg's own runtime, if a session has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["iceberg_rows", "why_not_iceberg"]

_LINEAGE = frozenset((ROW_ID.field_id, LAST_UPDATED.field_id))
_REFUSED = frozenset(("time", "timestamp_ns", "timestamptz_ns", "geometry", "geography"))


def why_not_iceberg(state: TableState, info: SessionInfo, plan: ScanPlan, outputs: Sequence[Output]) -> str | None:
    """Return the reason why Iceberg's runtime would not return these rows; None if it would."""
    if isinstance(state.storage, OverlayStorage):
        return "it is simulated, and Iceberg cannot access the overlay's files"
    if state.metadata.may_have_root_manifests:
        return f"format version {state.metadata.format_version} is not supported by Iceberg's runtime (1 to 3 are)"
    if state.storage.moved:
        return "its files have moved, and Iceberg would use their old locations"
    real = state.storage.resolve(state.metadata_location)
    if canonical(real) != canonical(state.metadata_location) and not real.startswith("/"):
        return "its metadata file has moved"
    if not state.metadata.has_row_lineage and any(o.field.field_id in _LINEAGE for o in outputs):
        return "Iceberg's runtime has row ids only for tables of version 3 and later"
    if plan.filter.partition:
        return "Iceberg's runtime does not support partition="
    if plan.appends is not None:
        return "the plan is an incremental scan of appends"
    if plan.notes:
        return "its metadata is damaged"
    if any(len(o.path) > 1 for o in outputs) or not speaks(plan.filter.expression):
        return "the scan selects fields inside structs, or has a filter that Spark cannot express"
    if _shown(state) != state.schema.fields:
        return "Iceberg would use another schema"
    if "#" in real:
        return "Iceberg treats the part of a path after # as the name of a metadata table"
    asked = [_names(state.schema, p.field_id) for p in predicates(plan.filter.expression)]
    if any(names is None or len(names) > 1 for names in asked):
        return "the filter uses a field inside a struct, whose metrics make Iceberg skip files with matching rows"
    current = [_names(state.metadata.schema(), p.field_id) for p in predicates(plan.filter.expression)]
    if asked != current:  # Iceberg 1.11 resolves filters in the current schema
        return "the filter uses a column that was renamed, and Iceberg resolves it in the current schema"
    if any(_refused(f.type) for f in state.schema.fields):
        return "it has types that Iceberg's runtime for Spark does not read"
    return None


def _version(state: TableState) -> str | None:
    """Return the version to request from Iceberg: a branch, a snapshot id, or None for the current state.

    With a snapshot id Iceberg uses that snapshot's schema, with a branch the current one (Java:
    ``SnapshotUtil.schemaFor``).
    """
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
    """Return the columns that Iceberg shows for a state."""
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
    session: SparkSession,
    info: SessionInfo,
    state: TableState,
    plan: ScanPlan,
    outputs: Sequence[Output],
    refusal: str | None,
) -> DataFrame:
    """Return the rows, read by Iceberg's runtime.

    Raises
    ------
    UnsupportedError
        The runtime cannot read these rows, or the session does not have it.
    """
    if refusal is not None:
        raise UnsupportedError(f"{state.name}: engine='iceberg' cannot read this state: {refusal}; use engine='spark'")
    if not info.iceberg:
        raise UnsupportedError(
            "engine='iceberg' needs Iceberg's runtime in the Spark session: start one with ix.spark(iceberg=True), or "
            "use engine='spark'"
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
        raise UnsupportedError(f"{state.name}: Iceberg's runtime cannot load the table: {reason}") from error
    names = [f.name for f in state.schema.fields]
    if shown != names:
        raise UnsupportedError(
            f"{state.name}: Iceberg's runtime shows the columns {shown} instead of this state's {names}: use "
            "engine='spark'"
        )
    if plan.filter.expression != ALWAYS:
        frame = frame.filter(condition_column(plan.filter.expression, _by_id(state), info.version))
    return frame.select(*[_column(o.path) for o in outputs])


def _by_id(state: TableState) -> Callable[[int], Column]:
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
