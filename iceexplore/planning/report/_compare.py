"""Compare two plans: the files that both or only one of them read, their settings, and their totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, card_html, card_text, format_ms, human_bytes, to_frame
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import format_spec
from iceexplore.planning.advice._suggestion import amount
from iceexplore.planning.evaluators._explain import WHY_SCHEMA, explain_files
from iceexplore.planning.report._card import plan_totals
from iceexplore.planning.report._tables import reads_table, tasks_table
from iceexplore.planning.scan._files import leaves_of, parts_of
from iceexplore.planning.scan._manifests import candidates
from iceexplore.planning.scan._result import PlannedScan
from iceexplore.render import Card, CardTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PlanComparison",
    "compare_plans",
]


def describe_differences(a: PlannedScan, b: PlannedScan) -> list[tuple[str, str, str]]:
    """Return the settings in which two plans differ, each as a tuple: its name, its value in ``a``, its value in ``b``.

    The names are those of `PlanComparison.differences`; the values are texts for display.
    """
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
        "snapshot": snapshot_text(state),
        "from snapshot": _after(plan),
        "format version": str(metadata.format_version),
        "schema": str(state.schema.schema_id),
        "partition spec": "not known" if spec is None else format_spec(spec, metadata),
        "row groups": "checked" if plan.row_groups is not None else "not checked",
        "split size": human_bytes(plan.options.size),
    }


def _after(plan: PlannedScan) -> str:
    """Return, as text, the id of the snapshot after which an incremental plan starts.

    The plan covers only files that later snapshots added. The text is ``the oldest`` if the plan has no such limit and
    also covers the files that the oldest snapshot added. For a plan that is not incremental, the text is ``not
    incremental``.
    """
    if plan.appends is None:
        return "not incremental"
    return "the oldest" if plan.appends.after is None else str(plan.appends.after)


def snapshot_text(state: TableState) -> str:
    """Return the id and the time of a state's snapshot as text; ``none`` if there is no snapshot."""
    found = state.snapshot
    return "none" if found is None else f"{found.snapshot_id} of {format_ms(found.timestamp_ms).partition('.')[0]}"


def summarize(
    differing: list[tuple[str, str, str]], counts: Mapping[str, int], numbers: Mapping[str, int | None]
) -> str:
    """Summarize the differences between the plans ``a`` and ``b`` in a few sentences.

    Parameters
    ----------
    differing
        The result of `describe_differences`.
    counts
        Three numbers of data files, by key: ``both`` (files that both plans read), ``a`` (files that only plan ``a``
        reads) and ``b`` (files that only plan ``b`` reads).
    numbers
        The totals of the plan ``b`` minus those of the plan ``a``, by name. Only ``files``, ``rows``, ``bytes`` and
        ``metadata_bytes`` are used; None and missing totals count as 0.
    """
    names = ", ".join(what for what, _, _ in differing)
    first = f"The plans differ in {names}." if differing else "Both plans have the same settings and table state."
    if not counts["a"] and not counts["b"]:
        files = f"They read the same files: {amount(counts['both'], 'data file')}."
    elif not counts["both"]:
        files = f"They have no data file in common: plan a reads {counts['a']:,}, plan b {counts['b']:,}."
    else:
        files = (
            f"{amount(counts['both'], 'data file')} in both plans, {counts['a']:,} only in plan a, "
            f"{counts['b']:,} only in plan b."
        )
    size = numbers.get("bytes") or 0
    changed = [_more(numbers.get("files") or 0, "data file"), _more(numbers.get("rows") or 0, "row")]
    if size:
        changed.append(f"{human_bytes(abs(size))} {'more' if size > 0 else 'less'}")
    changes = ", ".join(text for text in changed if text)
    looked = numbers.get("metadata_bytes") or 0
    out = [first, files]
    if changes:
        out.append(f"Compared with plan a, plan b reads {changes}.")
    if looked:
        out.append(
            f"For plan b, planning reads {human_bytes(abs(looked))} {'more' if looked > 0 else 'less'} metadata."
        )
    return " ".join(out)


def _more(by: int, one: str) -> str:
    return f"{amount(abs(by), one)} {'more' if by > 0 else 'fewer'}" if by else ""


_REASON = ("term", "by", "lower", "upper", "why")
ABSENT_SCHEMA = build.schema([("absent", pa.string()), *(WHY_SCHEMA.field(name) for name in _REASON)])
_GONE = "not in the other plan's snapshot"


def absent_from(plan: PlannedScan, locations: AnyArray) -> pa.Table:
    """Explain why a plan does not read certain data files.

    The plan's data manifests, including pruned ones, are read until all these files are found.

    Parameters
    ----------
    plan
        The plan that does not read the files. The result calls it "the other plan", in contrast to the plan that reads
        them.
    locations
        The locations of the files.

    Returns
    -------
    pyarrow.Table
        One row per location, of `ABSENT_SCHEMA`. Its column ``absent`` has one of two values:

        - ``skipped``: the plan's filter excludes the file. The other columns explain why; see `PlanComparison.alone`.
        - ``not in the other plan's snapshot``: the file is not live in the snapshot of ``plan`` or, if ``plan`` is
          incremental, none of the snapshots that it covers added the file. The other columns are null.
    """
    rows: list[pa.Table] = []
    places: list[np.ndarray] = []
    left = len(locations)
    for scan in plan.roots if left else ():
        for leaf in leaves_of(plan.state, scan, parts_of(plan.filter.stats_ids), scan.rows.tolist()):
            at = pc.index_in(whole(leaf.entries["location"]), value_set=locations)
            mask = pc.and_(at.is_valid(), candidates(scan, leaf))
            if not mask.true_count:
                continue
            batch = EntryBatch.of(leaf, plan.filter.stats_ids).filter(mask)
            rows.append(explain_files(plan.filter, batch, plan.state.metadata, np.arange(len(batch))).select(_REASON))
            places.append(np.asarray(at.filter(mask)).astype(np.int64))
            left -= len(places[-1])
            if left <= 0:
                break
    found = pa.concat_tables([pa.schema([ABSENT_SCHEMA.field(n) for n in _REASON]).empty_table(), *rows])
    back = np.full(len(locations), -1, dtype=np.int64)
    if places:
        back[np.concatenate(places)] = np.arange(len(found))
    there = build.array(back, mask=back < 0)
    absent = pc.if_else(there.is_valid(), "skipped", _GONE)
    return pa.table([absent, *found.take(there).columns], schema=ABSENT_SCHEMA)


#: The totals that a comparison of two plans shows, in the order in which it shows them. Each key is the name of a
#: total, and its value is what the total counts.
_WORDS = {
    "files": "data files read",
    "rows": "rows in the data files read",
    "bytes": "bytes of the data files read",
    "whole_files": "files in which every row matches",
    "splits": "splits",
    "skipped_files": "data files skipped",
    "files_in_table": "data files before any are skipped",
    "manifests": "data manifests read",
    "manifests_in_table": "data manifests before any are skipped",
    "delete_manifests": "delete manifests read",
    "deletes": "deletes that apply",
    "files_with_deletes": "files with deletes",
    "delete_bytes": "bytes of deletes",
    "rows_deleted_by_vectors": "rows deleted by deletion vectors",
    "row_groups": "row groups read",
    "row_groups_in_files": "row groups in the data files read",
    "metadata_files": "metadata files read for planning",
    "metadata_bytes": "bytes of metadata read for planning",
}
#: Even for a file that two plans both read, the values of these columns may differ, for example because the plans have
#: different filters. So a comparison shows each of these columns twice, once for each plan.
_ASKED = ("residual", "whole", "deletes", "delete_bytes")
_SHOWN = 8
_NAMES = ("read_by", "file_path", "partition", "rows", "bytes")
_DIFFERENCES = pa.schema([(name, pa.string()) for name in ("what", "a", "b")])


@dataclass(frozen=True, eq=False)
class PlanComparison:
    """A comparison of two plans, which notebooks show as a card: settings, totals and the files that the plans read.

    Attributes
    ----------
    a, b
        The plans.
    """

    a: PlannedScan
    b: PlannedScan

    @cached_property
    def files_arrow(self) -> pa.Table:
        """Return `files` as an Arrow table."""
        mine, other = tasks_table(self.a), tasks_table(self.b)
        of_b = pc.index_in(whole(mine["file_path"]), value_set=whole(other["file_path"]))
        alone = np.asarray(pc.invert(pc.is_in(whole(other["file_path"]), value_set=whole(mine["file_path"]))))
        rest = pa.array(np.flatnonzero(alone), pa.int64())
        both = pc.if_else(of_b.is_valid(), "both", "a")
        columns: dict[str, Any] = {"read_by": pa.concat_arrays([both, pa.repeat(pa.scalar("b"), len(rest))])}
        for name in ("file_path", "spec_id", "partition", "rows", "bytes"):
            columns[name] = pa.concat_arrays([whole(mine[name]), whole(other[name]).take(rest)])
        for name in _ASKED:
            kind = mine.schema.field(name).type
            columns[f"{name}_a"] = pa.concat_arrays([whole(mine[name]), pa.nulls(len(rest), kind)])
            here = whole(other[name])
            columns[f"{name}_b"] = pa.concat_arrays([here.take(of_b), here.take(rest)])
        return pa.table(columns)

    @cached_property
    def files(self) -> pd.DataFrame:
        """One row per data file that either plan reads.

        The first columns are ``read_by`` ("both", "a" or "b"), ``file_path``, ``spec_id``, ``partition``, ``rows`` and
        ``bytes``. Each of the following is in two columns, one per plan, such as ``whole_a`` and ``whole_b``. If a plan
        does not read the file, the columns of this plan are null.

        - ``residual``: the part of the filter that must still be evaluated on the file's rows, as SQL.
        - ``whole``: whether metadata proves that every row matches the filter.
        - ``deletes`` and ``delete_bytes``: the number of deletes that apply to the file, and their size in bytes.
        """
        return to_frame(self.files_arrow)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """One row per setting in which the plans differ: ``what`` (its name), and its values in plans ``a`` and ``b``.

        The names are ``filter``, ``columns``, ``table``, ``snapshot``, ``from snapshot`` (where an incremental plan
        starts), ``format version``, ``schema``, ``partition spec``, ``row groups`` (whether the plan has checked row
        groups) and ``split size``. All values are texts for display.
        """
        rows = [{"what": what, "a": x, "b": y} for what, x, y in self._asked]
        return to_frame(pa.Table.from_pylist(rows, schema=_DIFFERENCES))

    @cached_property
    def alone_arrow(self) -> pa.Table:
        """Return `alone`, the data files that only one of the plans reads, as an Arrow table."""
        parts = []
        for who, other in (("a", self.b), ("b", self.a)):
            mine = self.files_arrow.filter(pc.equal(self.files_arrow["read_by"], who)).select(_NAMES)
            reasons = absent_from(other, whole(mine["file_path"]))
            for name in reasons.column_names:
                mine = mine.append_column(name, reasons[name])
            parts.append(mine)
        return pa.concat_tables(parts)

    @cached_property
    def alone(self) -> pd.DataFrame:
        """One row per data file that only one plan reads, with the reason why the other plan does not read it.

        To find the reasons, manifests are read, even those that the other plan has pruned.

        The first columns, ``read_by``, ``file_path``, ``partition``, ``rows`` and ``bytes``, are those of `files`. Then
        comes ``absent``, which is "skipped" (the filter of the other plan excludes the file) or "not in the other
        plan's snapshot". The remaining columns have values only for skipped files:

        - ``term``: the condition of the other plan's filter that excludes the file.
        - ``by``: the kind of metadata that proves that no row matches, such as ``partition`` or ``bounds``.
        - ``lower``, ``upper``: the bounds with which the condition was compared. For a partition value, both are equal.
        - ``why``: a sentence that explains the reason.
        """
        return to_frame(self.alone_arrow)

    @cached_property
    def summary(self) -> str:
        """Summarize in a few sentences how the settings, the files and the totals of the plans differ."""
        more = dict(zip(*(self.numbers_arrow[n].to_pylist() for n in ("number", "difference")), strict=True))
        return summarize(self._asked, self._counts, more)

    @cached_property
    def _asked(self) -> list[tuple[str, str, str]]:
        return describe_differences(self.a, self.b)

    @cached_property
    def _counts(self) -> dict[str, int]:
        found = {r["values"]: r["counts"] for r in build.to_pylist(pc.value_counts(self.files_arrow["read_by"]))}
        return {who: found.get(who, 0) for who in ("both", "a", "b")}

    @cached_property
    def numbers_arrow(self) -> pa.Table:
        """Return `numbers` as an Arrow table."""
        found = [_numbers(plan) for plan in (self.a, self.b)]
        names = [n for n in _WORDS if any(n in f for f in found)]
        a, b = ([f.get(n) for n in names] for f in found)
        more = [None if x is None or y is None else y - x for x, y in zip(a, b, strict=True)]
        integers = {n: pa.array(v, pa.int64()) for n, v in (("a", a), ("b", b), ("difference", more))}
        return pa.table({"number": names, "means": [_WORDS[n] for n in names], **integers})

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """One row per total of the plans, such as the number of files that they read.

        The columns are ``number`` (the total's name), ``means`` (what it counts), ``a`` and ``b`` (its values in the
        two plans) and ``difference`` (``b`` minus ``a``). The values are null where unknown.
        """
        return to_frame(self.numbers_arrow)

    def __repr__(self) -> str:
        return card_text(_card(self))

    def _repr_html_(self) -> str:
        return card_html(_card(self))


def compare_plans(a: PlannedScan, b: object) -> PlanComparison:
    """Compare two plans; see `ScanPlan.compare`.

    Raises
    ------
    OptionError
        ``b`` is not a plan.
    """
    if not isinstance(b, PlannedScan):
        raise OptionError(f"compare() takes another plan from t.plan(...), not {type(b).__name__}")
    return PlanComparison(a, b)


def _numbers(plan: PlannedScan) -> dict[str, int | None]:
    looked = reads_table(plan)
    held = pc.sum(looked["bytes"]).as_py() or 0
    return {**plan_totals(plan), "metadata_files": len(looked), "metadata_bytes": int(held)}


def _card(comparison: PlanComparison) -> Card:
    a, b = comparison.a, comparison.b
    counts = comparison.files_arrow.group_by("read_by", use_threads=False).aggregate(
        [([], "count_all"), ("rows", "sum"), ("bytes", "sum")]
    )
    by = {r["read_by"]: r for r in counts.to_pylist()}
    lines = tuple(
        (
            words,
            f"{by[key]['count_all']:,}" if key in by else "0",
            f"{by[key]['rows_sum'] or 0:,}" if key in by else "0",
            human_bytes(by[key]["bytes_sum"] or 0) if key in by else human_bytes(0),
        )
        for key, words in (("both", "both"), ("a", "only a"), ("b", "only b"))
    )
    numbers = tuple(
        (r["means"], _text(r["number"], r["a"]), _text(r["number"], r["b"]), _signed(r["number"], r["difference"]))
        for r in comparison.numbers_arrow.to_pylist()
        if r["a"] or r["b"] or r["number"] in ("files", "rows", "bytes")
    )
    tables = [
        CardTable("Data files read", ("by", "files", "rows", "bytes"), lines, right=frozenset({1, 2, 3})),
        CardTable("In numbers", ("", "a", "b", "b − a"), numbers, right=frozenset({1, 2, 3})),
    ]
    if comparison._asked:
        shown = tuple((what, x, y) for what, x, y in comparison._asked)
        tables.insert(0, CardTable("What differs", ("", "a", "b"), shown))
    alone = comparison.files_arrow.filter(pc.not_equal(comparison.files_arrow["read_by"], "both"))
    if len(alone):
        shown = tuple(
            (r["read_by"], r["file_path"], r["partition"] or "")
            for r in alone.select(["read_by", "file_path", "partition"]).slice(0, _SHOWN).to_pylist()
        )
        left = len(alone) - len(shown)
        note = f"for {left:,} more, and the reasons, see .alone" if left > 0 else "for the reasons, see .alone"
        tables.append(
            CardTable(
                "Read by only one plan", ("by", "file", "partition"), shown, note, open=False, code=frozenset({1})
            )
        )
    return Card(
        title="Two plans",
        subtitle=comparison.summary,
        facts=(("a", _label(a)), ("b", _label(b))),
        tables=tuple(tables),
        notes=tuple(dict.fromkeys((*a.notes, *b.notes))),
    )


def _label(plan: PlannedScan) -> str:
    state = plan.state
    snapshot = state.travel or f"snapshot {snapshot_text(state)}"
    return f"{plan.filter.text} · {state.name}, format v{state.metadata.format_version}, {snapshot}"


def _text(name: str, value: int | None) -> str:
    if value is None:
        return "?"
    return human_bytes(value) if name.endswith("bytes") else f"{value:,}"


def _signed(name: str, value: int | None) -> str:
    if not value:
        return "" if value is None else "="
    return ("+" if value > 0 else "−") + _text(name, abs(value))
