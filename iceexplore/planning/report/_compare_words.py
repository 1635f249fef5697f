"""What two plans were asked, and what came of it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from iceexplore.graph import TableState, format_ms, human_bytes
from iceexplore.metadata import format_spec
from iceexplore.planning.advice._suggestion import amount

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["asked", "snapshot_words", "told"]


def asked(a: PlannedScan, b: PlannedScan) -> list[tuple[str, str, str]]:
    """What is not the same of two plans before a file is looked at: what, and how it is in each."""
    both = [_facts(plan) for plan in (a, b)]
    return [(what, both[0][what], both[1][what]) for what in both[0] if both[0][what] != both[1][what]]


def _facts(plan: PlannedScan) -> dict[str, str]:
    state = plan.state
    metadata = state.metadata
    spec = metadata.spec()
    return {
        "filter": plan.filter.text,
        "columns": "all" if plan.columns is None else ", ".join(plan.columns),
        "table": metadata.location or state.name,
        "snapshot": snapshot_words(state),
        "from snapshot": _after(plan),
        "format version": str(metadata.format_version),
        "schema": str(state.schema.schema_id),
        "partition spec": "not known" if spec is None else format_spec(spec, metadata),
        "row groups": "looked at" if plan.row_groups is not None else "not looked at",
        "split size": human_bytes(plan.options.size),
    }


def _after(plan: PlannedScan) -> str:
    """Where an incremental plan begins."""
    if plan.appends is None:
        return "not incremental"
    return "the oldest one" if plan.appends.after is None else str(plan.appends.after)


def snapshot_words(state: TableState) -> str:
    """A state's snapshot, and its time."""
    found = state.snapshot
    return "none" if found is None else f"{found.snapshot_id} of {format_ms(found.timestamp_ms).partition('.')[0]}"


def told(differing: list[tuple[str, str, str]], counts: Mapping[str, int], numbers: Mapping[str, int | None]) -> str:
    """What came of it.

    Parameters
    ----------
    differing
        Of `asked`.
    counts
        How many data files ``both``, ``a`` alone and ``b`` alone read.
    numbers
        By how much ``b`` reads more: ``files``, ``rows``, ``bytes``, ``metadata_bytes``.
    """
    names = ", ".join(what for what, _, _ in differing)
    first = f"The plans differ in {names}." if differing else "Both plans were asked the same of the same state."
    if not counts["a"] and not counts["b"]:
        files = f"They read the same {amount(counts['both'], 'data file')}."
    elif not counts["both"]:
        files = f"They have no data file in common: a reads {counts['a']:,}, b {counts['b']:,}."
    else:
        files = (
            f"Both read {amount(counts['both'], 'data file')}; a reads {counts['a']:,} more, b {counts['b']:,} more."
        )
    size = numbers.get("bytes") or 0
    changed = [_more(numbers.get("files") or 0, "data file"), _more(numbers.get("rows") or 0, "row")]
    if size:
        changed.append(f"{human_bytes(abs(size))} {'more' if size > 0 else 'less'}")
    said = ", ".join(text for text in changed if text)
    looked = numbers.get("metadata_bytes") or 0
    out = [first, files]
    if said:
        out.append(f"Than a, b reads {said}.")
    if looked:
        out.append(f"To plan it looks at {human_bytes(abs(looked))} {'more' if looked > 0 else 'less'} of metadata.")
    return " ".join(out)


def _more(by: int, one: str) -> str:
    return f"{amount(abs(by), one)} {'more' if by > 0 else 'fewer'}" if by else ""
