"""Explain why files and manifests are pruned: name the term of the filter that excludes them, and show the metrics.

A term is one predicate of the filter: ``id > 30`` in ``id > 30 and region = 'eu'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, Strings, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Always, And, Computed, Expression, Or, Predicate
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, Manifest
from iceexplore.metadata import TableMetadata, Type, human_value, parse_transform, type_base
from iceexplore.planning.evaluators._column_metrics import Mask
from iceexplore.planning.evaluators._file_evaluator import FileMetricsSources, MetricsSource, MetricsSources
from iceexplore.planning.evaluators._filter import Filter, same_partition
from iceexplore.planning.evaluators._manifest_evaluator import ManifestMetricsSources
from iceexplore.planning.evaluators._metrics_evaluator import bounds_deny, counts_deny
from iceexplore.planning.evaluators._value_text import human_texts, shown

__all__ = [
    "WHY_SCHEMA",
    "explain_files",
    "explain_manifests",
    "reasons_of_files",
    "term_text",
]

_WORDS = {
    "not-in": "not in", "is-null": "is null", "not-null": "is not null", "is-nan": "is NaN", "not-nan": "is not NaN",
    "starts-with": "begins with", "not-starts-with": "does not begin with",
}  # fmt: skip
#: An explanation shows at most this many literals of a predicate, for example of the list in ``id in (1, 2, 3)``.
_NAMED = 5


def term_text(p: Predicate) -> str:
    """Return a predicate as text: the text that the user wrote if known, otherwise one such as ``id in 1, 2``."""
    return p.text or _question(p, p.name or f"column {p.field_id}", "identity", p.type)


def metrics_as_text(
    p: Predicate, source: MetricsSource, by: str, rows: npt.ArrayLike, thing: str
) -> tuple[Strings, Strings, AnyArray, Strings]:
    """Explain why a term of a filter matches no row of the given files or manifests.

    Parameters
    ----------
    p
        The term, which is one predicate of the filter.
    source
        The metrics which prove that the term matches no row.
    by
        The part of these metrics that proves it: ``counts`` (of nulls and NaN) or ``bounds``.
    rows
        The files or manifests, as row numbers of ``source.evidence``.
    thing
        The word that explanations use for a file or manifest: ``file`` or ``manifest``.

    Returns
    -------
    tuple
        Four arrays with one item per row: the lower bound and the upper bound as texts, the null count, and the
        explanation, such as ``id is 10 to 20: no row has id > 30``. Unknown bounds and counts are null.
    """
    e = source.evidence.take(rows)
    lower, upper = (human_texts(b, source.type, source.transform) for b in (e.lower, e.upper))
    nulls = pa.nulls(len(e), pa.int64()) if e.null_count is None else e.null_count
    partition = source.by == "partition"
    subject = f"{source.name} of the {thing}'s partition{'s' if thing == 'manifest' else ''}" if partition else ""
    # The explanation starts with what the metrics prove about the column. There are three cases. If the metrics are
    # partition values (`e.exact`), it starts with the value, as in "id is 10". Otherwise, if `by` is ``counts``, it
    # starts with what the null and NaN counts prove, as in "id is never null". If `by` is ``bounds``, it starts with
    # the bounds, as in "id is 10 to 20".
    if by == "counts" and not e.exact:
        known = _counted(p, e.all_null, source.name, subject)
    else:
        quoted = source.type is not None and type_base(source.type) == "string"
        known = _ranged(subject or source.name, shown(lower, quoted), shown(upper, quoted))
    text = term_text(p)
    if partition and source.inclusive is not None and not parse_transform(source.transform).is_identity:
        want = _question(source.inclusive, source.name, source.transform, source.type)
        text = f"rows with {text} can only be in partitions with {want}"
    else:
        text = f"no row has {text}"
    return lower, upper, nulls, pc.binary_join_element_wise(known, text, ": ")


def _counted(p: Predicate, all_null: Mask, name: str, subject: str) -> Strings:
    """Describe, for each file or manifest, what its null and NaN counts prove, as in ``id is always null``.

    Parameters
    ----------
    p
        A predicate. The counts of every given file or manifest prove that none of its rows satisfies the predicate.
    all_null
        One boolean per file or manifest: True where the column or partition field is null in every row.
    name
        The name of the column or partition field.
    subject
        A phrase to write instead of the name, such as ``ts_day of the file's partition``; if it is empty, the name is
        written.
    """
    who = subject or name
    if p.op == "is-null":
        return pa.array([f"{who} is never null"] * len(all_null))
    if p.op == "not-nan":
        return pa.array([f"{who} is always NaN"] * len(all_null))
    if p.op == "is-nan":
        return pc.if_else(pa.array(all_null), f"{who} is always null", f"{who} is never NaN")
    return pc.if_else(pa.array(all_null), f"{who} is always null", f"{who} is always null or NaN")


def _ranged(who: str, lower: Strings, upper: Strings) -> Strings:
    """Describe each pair of bounds, as in ``id is 10 to 20``, ``id is 10``, ``id is at least 10`` or ``id is null``.

    Parameters
    ----------
    who
        The first words of each text: ``id`` in these examples.
    lower, upper
        The bounds as texts, one per file or manifest; null where unknown. Both are null only for a partition value that
        is null: then the text is ``id is null``.
    """
    low, high = lower.is_valid(), upper.is_valid()
    one = pc.fill_null(pc.equal(lower, upper), False)
    exact = pc.binary_join_element_wise(f"{who} is ", lower, "")
    between = pc.binary_join_element_wise(f"{who} is ", lower, " to ", upper, "")
    least = pc.binary_join_element_wise(f"{who} is at least ", lower, "")
    most = pc.binary_join_element_wise(f"{who} is at most ", upper, "")
    cases = pc.make_struct(one, pc.and_(low, high), low, high)
    return pc.case_when(cases, exact, between, least, most, f"{who} is null")


def _question(p: Predicate, name: str, transform: str, kind: Type | None) -> str:
    """Return a predicate on a column or partition field as text, such as ``id in 1, 2``.

    At most `_NAMED` of its literals are shown, followed by the number of the others, as in ``and 3 more``.

    Parameters
    ----------
    name
        The name of the column or partition field.
    transform
        The transform of the partition field; ``identity`` for a column.
    kind
        The Iceberg type of the literals, which determines how they are written; None if unknown. If the transform is
        ``identity``, this parameter is ignored, and the type of the literals is ``p.type``.
    """
    word = _WORDS.get(p.op, p.op)
    if not p.literals:
        return f"{name} {word}"
    texts = _literals(p.literals[:_NAMED], transform, p.type if parse_transform(transform).is_identity else kind)
    more = f" and {len(p.literals) - _NAMED:,} more" if len(p.literals) > _NAMED else ""
    return f"{name} {word} {', '.join(texts)}{more}"


def _literals(values: Sequence[Any], transform: str, kind: Type | None) -> list[str]:
    if kind is None:
        return [str(v) for v in values]
    texts = [human_value(kind, transform, v) for v in values]
    return [f"'{t}'" for t in texts] if type_base(kind) == "string" else texts


#: The columns of a table that explains why files or manifests are pruned. ``by`` is the kind of metadata which proves
#: that no row matches: ``partition`` (partition values or their bounds), ``counts`` (null and NaN counts) or
#: ``bounds``. If the filter is false for every row of any table, no metadata is needed, and ``by`` is ``filter``.
WHY_SCHEMA = build.schema(
    [
        ("term", pa.string()), ("by", pa.string()), ("column", pa.string()), ("lower", pa.string()),
        ("upper", pa.string()), ("null_count", pa.int64()), ("why", pa.string()),
    ]
)  # fmt: skip
#: The values of ``by`` (see `WHY_SCHEMA`), from the most general to the most detailed. If the branches of an ``or``
#: exclude a file or manifest for different reasons, the most detailed of their values is kept.
_DEPTH = ("filter", "partition", "counts", "bounds")
_Cases: TypeAlias = npt.NDArray[np.int64]
_Reason: TypeAlias = tuple[str | None, str | None]


def explain_files(wanted: Filter, batch: EntryBatch, metadata: TableMetadata, rows: npt.ArrayLike) -> pa.Table:
    """Explain why data files are pruned.

    Parameters
    ----------
    batch
        Data files with their partition tuples and the column metrics of the filter's columns.
    rows
        The row numbers, in the batch, of the files to explain.

    Returns
    -------
    pyarrow.Table
        A table of `WHY_SCHEMA` with one row per item of ``rows``. ``term`` is the predicate of the filter that excludes
        the file, such as ``id > 30``. ``by`` is the kind of metadata that proves this: ``bounds``, ``counts`` or
        ``partition`` (or ``filter``, if the filter is false for every row). ``why`` is the explanation for users. For a
        file that is not pruned, all columns are null.

        If the filter has an ``or``, each of its branches may exclude a file for a different reason. The table still has
        one row for this file: ``term`` has the predicates of all branches, joined with ``or``, and ``why`` has all
        their explanations, joined with semicolons. ``by`` is ``bounds`` if this is its value for any branch, otherwise
        ``counts`` if this is its value for any branch, otherwise ``partition``. The bounds and the null count are given
        only if ``column`` and ``by`` are the same for all branches.
    """
    found, cases = _explained(wanted, batch.take(np.asarray(rows, np.int64)), metadata)
    return found.table(cases)


def reasons_of_files(wanted: Filter, batch: EntryBatch, metadata: TableMetadata) -> tuple[_Cases, list[_Reason]]:
    """Return the reason why each file is pruned.

    Use this function to count files by reason. It is faster than `explain_files`, because it does not explain each
    file.

    Returns
    -------
    tuple
        An int64 array and a list of reasons. The array has one item per file: the index of its reason in the list. A
        reason is a pair of ``term`` (the predicate that excludes the file) and ``by`` (the kind of metadata that proves
        this), as in `WHY_SCHEMA`, such as ``("id > 30", "bounds")``. For files that are not pruned, the pair is
        ``(None, None)``. The list may contain the same pair more than once.
    """
    found, cases = _explained(wanted, batch, metadata)
    numbers, codes = np.unique(cases, return_inverse=True)
    shown = [found.table(np.array([n]), rows=[int(np.flatnonzero(cases == n)[0])]) for n in numbers.tolist()]
    return codes.reshape(-1).astype(np.int64), [(t["term"][0].as_py(), t["by"][0].as_py()) for t in shown]


def _explained(wanted: Filter, picked: EntryBatch, metadata: TableMetadata) -> tuple[_Explanation, _Cases]:
    """Find out why the files in a batch are pruned.

    Parameters
    ----------
    picked
        The files, with their partition tuples and the column metrics of the filter's columns.

    Returns
    -------
    tuple
        The reasons that were found, and, for each file, the index of its reason in `_Explanation.reasons`; -1 for a
        file that is not pruned.
    """
    sources = FileMetricsSources(picked, metadata)
    found = _Explanation(len(picked), sources, "file")
    cases = found.visit(wanted.expression)
    if wanted.partition:
        same, is_known = same_partition(wanted.partition, picked, metadata, sources)
        cases = found.first(found.constant(_other_partition(wanted, "file"), is_known & ~same), cases)
    return found, cases


def explain_manifests(state: TableState, root: Manifest, rows: npt.ArrayLike, wanted: Filter) -> pa.Table:
    """Explain why data manifests are pruned.

    Parameters
    ----------
    root
        The manifest list or, in V4, the root manifest.
    rows
        The row numbers, in the root, of the manifests to explain.

    Returns
    -------
    pyarrow.Table
        A table of `WHY_SCHEMA` with one row per item of ``rows``. All values are null for a manifest that is not
        pruned.
    """
    picked = np.asarray(rows, np.int64)
    sources = ManifestMetricsSources(state, root, picked)
    found = _Explanation(len(picked), sources, "manifest")
    cases = found.visit(wanted.expression)
    gone = ~sources.may_have(wanted)
    return found.table(found.first(found.constant(_other_partition(wanted, "manifest"), gone), cases))


@dataclass(frozen=True)
class _Constant:
    """A reason for pruning that is explained in the same words for every file or manifest.

    For example, a filter that is never true prunes all files, and no bounds of a file have to be shown.

    Attributes
    ----------
    term, by, why
        The values in the columns of `WHY_SCHEMA` that have these names.
    """

    term: str
    by: str
    why: str


@dataclass(frozen=True, eq=False)
class _Said:
    """A reason for pruning files or manifests: counts or bounds prove that no row in them matches a certain predicate.

    Attributes
    ----------
    term
        The predicate, which is one of those in the filter.
    source
        The metrics that have the counts or bounds.
    by
        The part of the metrics that is the proof: ``counts`` or ``bounds``.
    """

    term: Predicate
    source: MetricsSource
    by: str


@dataclass(frozen=True)
class _Joined:
    """The reason for pruning files or manifests that every branch of an ``or`` excludes.

    `parts` has the reason of each branch, as an index in `_Explanation.reasons`.
    """

    parts: tuple[int, ...]


_NEVER = _Constant("false", "filter", "the filter matches no row")


def _other_partition(wanted: Filter, thing: str) -> _Constant:
    """Return the reason for pruning files or manifests without rows that have the required partition values.

    A filter may require partition values (`Filter.partition`) besides its condition on columns. ``thing`` is the word
    that the explanation uses: ``file`` or ``manifest``.
    """
    text = f"partition {dict(wanted.partition)}"
    return _Constant(text, "partition", f"the {thing} has no row with the partition values {dict(wanted.partition)}")


@dataclass
class _Explanation:
    """The reasons why files or manifests are pruned.

    Each file or manifest is a row. `visit`, `constant` and `first` return an array with one item per row: the index in
    `reasons` of the reason why the row is pruned; -1 if it is not pruned.

    Attributes
    ----------
    rows
        The number of files or manifests.
    sources
        A function that takes a comparison in the filter. It returns the metrics that can prove, for some of the files
        or manifests, that no row satisfies the comparison.
    thing
        The word that explanations use for a file or manifest: ``file`` or ``manifest``.
    reasons
        The reasons found so far.
    """

    rows: int
    sources: MetricsSources
    thing: str
    reasons: list[_Constant | _Said | _Joined] = field(default_factory=list)

    def visit(self, node: Expression) -> _Cases:
        """Find out which files or manifests an expression excludes, and why.

        Return an array with one item per file or manifest: the index of its reason in `reasons`; -1 if it is not
        excluded. If several children of an ``and`` exclude it, the reason is that of the first of these children. An
        ``or`` excludes it only if all children do; the reason is then a `_Joined` with the reasons of all children.
        """
        match node:
            case Always(value):
                return self.constant(_NEVER, np.full(self.rows, not value))
            case And(children):
                return self.first(*(self.visit(c) for c in children))
            case Or(children):
                return self._joined([self.visit(c) for c in children])
        out = np.full(self.rows, -1, np.int64)
        term = node.predicate if isinstance(node, Computed) else node
        for w in self.sources(node):
            if w.inclusive is None:
                continue
            for by, deny in (("counts", counts_deny), ("bounds", bounds_deny)):
                mask = deny(w.inclusive, w.evidence) & (out < 0)
                mask = mask if w.where is None else mask & w.where
                if mask.any():
                    out[mask] = self._number(_Said(term, w, by))
        return out

    def constant(self, reason: _Constant, mask: Mask) -> _Cases:
        """Append to `reasons` the one reason why all files or manifests for which ``mask`` is true are pruned.

        Return an array with one item per file or manifest: the index of the reason in `reasons` where the mask is true,
        and -1 elsewhere. If the mask is false everywhere, the reason is not appended.
        """
        return np.where(mask, self._number(reason), -1) if mask.any() else np.full(self.rows, -1, np.int64)

    def first(self, *cases: _Cases) -> _Cases:
        """Merge several arrays of reasons: for each file or manifest, take the first item that is not -1.

        Each array in ``cases`` has one item per file or manifest: the index of the reason in `reasons`, or -1 for no
        reason. For ``[3, -1, -1]`` and ``[4, 4, -1]``, the result is ``[3, 4, -1]``.
        """
        out = np.full(self.rows, -1, np.int64)
        for each in cases:
            out = np.where(out < 0, each, out)
        return out

    def table(self, cases: _Cases, rows: Sequence[int] | None = None) -> pa.Table:
        """Return the explanations as a table of `WHY_SCHEMA`, one row per item of ``cases``.

        Parameters
        ----------
        cases
            For each item, the index of the reason in `reasons`; -1 for a file or manifest that is not pruned.
        rows
            The row number of the file or manifest to which each item of ``cases`` belongs. If ``rows`` is None,
            ``cases[i]`` belongs to the file or manifest ``i``.
        """
        parts, order = [], []
        for number in np.unique(cases).tolist():
            at = np.flatnonzero(cases == number)
            order.append(at)
            parts.append(self._rendered(number, at if rows is None else np.asarray(rows)[at]))
        if not parts:
            return WHY_SCHEMA.empty_table()
        made = pa.concat_tables(parts)
        if len(parts) == 1:
            return made
        return made.take(build.array(np.argsort(np.concatenate(order), kind="stable"))).combine_chunks()

    def _number(self, reason: _Constant | _Said | _Joined) -> int:
        """Append a reason to `reasons`, and return its index."""
        self.reasons.append(reason)
        return len(self.reasons) - 1

    def _joined(self, children: Sequence[_Cases]) -> _Cases:
        """Combine the reasons of an ``or``'s branches: it excludes a file or manifest only if every branch does.

        The reasons why all branches exclude a file or manifest make one `_Joined`, which is appended to `reasons`.
        Files or manifests that are excluded for the same reasons share one `_Joined`. Return an array with one item per
        file or manifest: the index of its `_Joined` in `reasons`; -1 if some branch does not exclude it.

        Parameters
        ----------
        children
            One array per branch, with one item per file or manifest: the index of the branch's reason in `reasons`; -1
            if the branch does not exclude it.
        """
        out = np.full(self.rows, -1, np.int64)
        denied = np.logical_and.reduce([c >= 0 for c in children])
        if not denied.any():
            return out
        kinds, at = np.unique(np.stack(children, axis=1)[denied], axis=0, return_inverse=True)
        numbers = np.array([self._number(_Joined(tuple(k))) for k in kinds.tolist()], np.int64)
        out[denied] = numbers[at.reshape(-1)]
        return out

    def _rendered(self, number: int, at: npt.NDArray[Any]) -> pa.Table:
        """Return a table of `WHY_SCHEMA` that explains why some files or manifests are pruned, one row each.

        All of them are pruned for the same reason, or none of them is pruned.

        Parameters
        ----------
        number
            Index of the reason in `reasons`; negative if the files or manifests are not pruned. Then all values in the
            table are null.
        at
            Indices of the files or manifests.
        """
        n = len(at)
        if number < 0:
            return pa.table({f.name: pa.nulls(n, f.type) for f in WHY_SCHEMA}, schema=WHY_SCHEMA)
        reason = self.reasons[number]
        match reason:
            case _Constant(term, by, why):
                return _table(n, term=term, by=by, why=why)
            case _Said(p, w, by):
                lower, upper, nulls, texts = metrics_as_text(p, w, by, at, self.thing)
                named = "partition" if w.by == "partition" else by
                return _table(n, term=term_text(p), by=named, column=w.name, lower=lower, upper=upper,
                              null_count=nulls, why=texts)  # fmt: skip
        parts = [self._rendered(i, at) for i in reason.parts]
        return _one_of(parts, n)


def _one_of(parts: Sequence[pa.Table], n: int) -> pa.Table:
    """Combine the explanations of why each branch of an ``or`` excludes the same files or manifests.

    The result has one row per file or manifest. In it, the values of all branches are joined: ``term`` with ``or``, as
    in ``id = 1 or id = 5``; ``column`` with commas; and ``why`` with semicolons. If several branches have the same
    ``term`` or ``column``, it is named once. ``by``, the kind of metadata that excludes the file or manifest, is
    ``bounds`` if any branch has this value, else ``counts``, else ``partition``, else ``filter``. ``lower``, ``upper``
    and ``null_count`` are those of the first branch if ``column`` and ``by`` are the same in all branches; otherwise
    they are null.

    Parameters
    ----------
    parts
        One table of `WHY_SCHEMA` for each branch. Row ``i`` of each table explains the same file or manifest.
    n
        The number of rows of each table.
    """
    terms, bys, columns = ([t[name][0].as_py() for t in parts] for name in ("term", "by", "column"))
    named = list(dict.fromkeys(c for c in columns if c is not None))
    alone = (
        {name: parts[0][name] for name in ("lower", "upper", "null_count")} if len(named) == 1 == len(set(bys)) else {}
    )
    return _table(
        n,
        term=" or ".join(dict.fromkeys(terms)),
        by=max(bys, key=_DEPTH.index),
        column=", ".join(named) or None,
        why=pc.binary_join_element_wise(*(t["why"] for t in parts), "; "),
        **alone,
    )


def _table(n: int, **columns: Any) -> pa.Table:
    """Make a table that explains why ``n`` files or manifests are pruned (`WHY_SCHEMA`) from the given columns.

    A column that is given as a single value has this value in all rows. Columns that are not given are null.
    """
    arrays: list[AnyColumn] = []
    for f in WHY_SCHEMA:
        value = columns.get(f.name)
        if not isinstance(value, (pa.Array, pa.ChunkedArray)):
            value = build.repeat(build.scalar(value, f.type), n)
        arrays.append(value)
    return pa.Table.from_arrays(arrays, schema=WHY_SCHEMA)
