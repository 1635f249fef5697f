"""Return the rows of a table state as a Spark DataFrame: planned by this library, read by plain Spark if possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from iceexplore.errors import (
    FileMissingError,
    FormatError,
    IceexploreError,
    OptionError,
    OutsideRootsError,
    Problems,
    UnsupportedError,
    renamed_arguments,
    warn_caller,
)
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans._footers import footers_by
from iceexplore.on_spark.scans._groups import MOST_LINKS, ScanParts, scan_parts
from iceexplore.on_spark.scans._iceberg_runtime import iceberg_rows, why_not_iceberg
from iceexplore.on_spark.scans._native import group_rows
from iceexplore.on_spark.scans._python_workers import worker_rows
from iceexplore.on_spark.transport._columns import SparkColumns
from iceexplore.on_spark.transport._state import check_reach
from iceexplore.planning import FileTasks, Filter, ScanPlan, SplitOptions, plan_scan, refuse_doubts
from iceexplore.reading import POS, Output, TaskReader, no_ids_problem, outputs_of, outside_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Engine", "scan", "task_rows"]

#: Maximum number of links with Spark Connect, where `few_listings` has no effect: listing them takes quadratic time.
_CONNECT_LINKS = 200

Engine = Literal["auto", "spark", "iceberg"]


@renamed_arguments(filter="where")
def scan(
    state: TableState,
    session: SparkSession,
    where: FilterLike | Filter | None = None,
    columns: str | Iterable[str] | None = None,
    *,
    partition: Mapping[str, Any] | None = None,
    strict: bool = False,
    engine: Engine = "auto",
    plan: ScanPlan | None = None,
) -> DataFrame:
    """Return the rows of a state as a Spark DataFrame; see `iceexplore.Table.scan`.

    Parameters
    ----------
    plan
        An existing plan of the same metadata file, which determines the snapshot, filter and partition.

    Raises
    ------
    OptionError
        The filter, a column or an option is invalid.
    UnsupportedError
        A file is synthetic, added by a simulation; Spark is too old; the workers cannot access the files; or
        ``engine="iceberg"`` cannot read this state.
    FormatError, FileMissingError
        With ``strict``: a file is missing or damaged.
    """
    if engine not in ("auto", "spark", "iceberg"):
        raise OptionError(f"engine={engine!r}: choose 'auto', 'spark' or 'iceberg'")
    info = SessionInfo.of(session)
    check_reach(state, info)
    if plan is None:
        plan = plan_scan(state, where, partition=partition)
    elif where is not None or partition is not None:
        raise OptionError("plan= already has a filter: pass where= and partition= when creating the plan")
    elif _whose(plan.state) != _whose(state):
        raise OptionError(f"plan= is for {plan.state.metadata_location}, not for {state.metadata_location}")
    state = plan.state
    outputs = outputs_of(state, columns)
    if plan.notes or plan.doubts:
        _incomplete(plan, strict)
    reader = TaskReader(state, plan.files, outputs)
    refusal = why_not_iceberg(state, info, plan, outputs) if engine != "spark" else ""
    if engine == "iceberg":
        return iceberg_rows(session, info, state, plan, outputs, refusal)
    parts = _parts(session, info, state, reader, outputs)
    _tell(state, parts, reader, strict)
    # Without field ids, Iceberg matches Parquet columns by position, but nothing guarantees that this is right.
    alike = not parts.lost and not parts.unnamed and refusal is None
    if engine == "auto" and parts.workers and alike and info.iceberg:
        with suppress(UnsupportedError):
            return iceberg_rows(session, info, state, plan, outputs, None)
    made = _united(session, info, state, reader, parts, outputs, plan.options)
    pa.default_memory_pool().release_unused()  # decoding deletes takes tens of megabytes, which Java needs next
    return made


def task_rows(
    session: SparkSession, state: TableState, tasks: FileTasks, columns: str | Iterable[str] | None = None
) -> DataFrame:
    """Return all rows of some of a state's tasks, to be rewritten; unlike `scan`, never leave any out.

    Raises
    ------
    FormatError, FileMissingError
        A file is missing or damaged.
    UnsupportedError
        The workers cannot reach the table's folder.
    """
    info = SessionInfo.of(session)
    check_reach(state, info)
    outputs = outputs_of(state, columns)
    reader = TaskReader(state, tasks, outputs)
    parts = _parts(session, info, state, reader, outputs)
    _tell(state, parts, reader, strict=True)
    return _united(session, info, state, reader, parts, outputs, SplitOptions.of(state.metadata.properties))


def _parts(
    session: SparkSession, info: SessionInfo, state: TableState, reader: TaskReader, outputs: Sequence[Output]
) -> ScanParts:
    footers, links = footers_by(session, info), _CONNECT_LINKS if info.connect else MOST_LINKS
    return scan_parts(state, reader, outputs, info.version, footers=footers, links=links)


def _whose(state: TableState) -> tuple[str, str]:
    return state.storage.identity, state.metadata_location


def _united(
    session: SparkSession,
    info: SessionInfo,
    state: TableState,
    reader: TaskReader,
    parts: ScanParts,
    outputs: Sequence[Output],
    options: SplitOptions,
) -> DataFrame:
    frames = [group_rows(session, info, state, reader, parts, group, outputs) for group in parts.groups]
    if parts.workers or not frames:
        shown = list(outputs) or [Output(POS.name, (POS,))]  # rows without columns cannot be sent
        if parts.workers:
            made = worker_rows(session, info, reader, shown, parts.workers, options)
        else:
            made = session.createDataFrame([], SparkColumns(shown, info.version).schema)
        frames.append(made if outputs else made.select())
    return reduce(lambda a, b: a.union(b), frames)


def _incomplete(plan: ScanPlan, strict: bool) -> None:
    """Report unreadable manifests and contradictory counts: as an error if ``strict``, else as warnings."""
    faults = plan.notes[len(plan.appends.notes) if plan.appends is not None else 0 :]
    if strict and faults:
        state = plan.state
        where = state.metadata_location if state.snapshot is None else state.snapshot.root_location
        raise FormatError("; ".join(faults), location=where)
    if strict:
        refuse_doubts(plan)
    for note in (*plan.notes, *plan.doubts):
        warn_caller(note)


def _tell(state: TableState, parts: ScanParts, reader: TaskReader, strict: bool) -> None:
    """Report what is left out: as an error if ``strict``, else as problems and one warning.

    Files without field ids are added as problems.
    """
    locations = reader.tasks.files.entries["location"]
    for row in parts.unnamed:
        state.problems.add(no_ids_problem(locations[row].as_py()))
    if not parts.lost:
        return
    refused = next((e for _, e in parts.lost if isinstance(e, OutsideRootsError)), None)
    if refused is not None:
        refused = outside_error(refused, state.storage, reader.tasks)
    if strict:
        first = parts.lost[0][1]
        raise refused if refused is not None and isinstance(first, OutsideRootsError) else first
    counts = reader.tasks.files.entries.select(["location", "record_count"]).to_pydict()
    rows = dict(zip(counts["location"], counts["record_count"], strict=True))
    left_out = 0
    for where, error in parts.lost:
        item = Problems().add_error(error, where)
        if where in rows:
            count = max(0, rows[where] or 0)
            left_out += count
            item = replace(item, text=f"{item.text} ({count:,} rows are left out)")
        state.problems.add(item)
    missing = [where for where, e in parts.lost if isinstance(e, FileMissingError)]
    others = [f"{where} ({_reason(e)})" for where, e in parts.lost if not isinstance(e, FileMissingError)]
    parts_of_text = []
    if missing:
        parts_of_text.append(f"missing: {_some(missing)}")
    if others:
        parts_of_text.append(f"not readable: {_some(others)}")
    if refused is not None:
        parts_of_text.append(f"readable if opened with allow={list(refused.allow)!r}")
    warn_caller(
        f"{state.name}: {left_out:,} rows are left out; {'; '.join(parts_of_text)}. The table's .problems lists all; "
        "strict=True raises"
    )


def _reason(error: IceexploreError) -> str:
    return error.reason if isinstance(error, FormatError) else str(error)


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
