"""Explain why one manifest or data file of a plan is read or skipped.

The explanation states, for each term of the filter, such as ``id > 9``, whether the metadata proves that all rows of
the manifest or file match the term, or that none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Computed, Predicate, computed, predicates
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import parse_transform, type_base
from iceexplore.planning.evaluators._explain import explain_files, explain_manifests, term_text
from iceexplore.planning.evaluators._file_evaluator import FileMetricsSources, MetricsSource, MetricsSources
from iceexplore.planning.evaluators._manifest_evaluator import ManifestMetricsSources
from iceexplore.planning.evaluators._value_text import human_texts, shown
from iceexplore.planning.report._nodes import PlanNodes
from iceexplore.planning.report._tables import task_records
from iceexplore.planning.report._tree_labels import amount
from iceexplore.planning.scan._manifests import candidates

if TYPE_CHECKING:
    from iceexplore.planning.scan._manifests import RootScan

__all__ = ["DeleteOf", "NodeEvidence", "Term", "node_evidence"]

Verdict: TypeAlias = Literal["no row", "some rows may", "every row"]
_NOTHING = "no metadata about the column"
_SHOWN_DELETES = 50
#: To explain why a manifest or file is read or skipped, each comparison in the filter, such as ``id > 9``, is evaluated
#: by itself. A filter can have thousands of comparisons, so at most this number of them is explained.
_SHOWN_TERMS = 60


@dataclass(frozen=True)
class Term:
    """A term of the filter, such as ``id > 9``, and what metadata proves about it for one manifest or data file.

    Attributes
    ----------
    term
        The term as the user wrote it; if that is not known, a text composed from its column, operator and values.
    by
        The kind of metadata: ``partition`` (partition values, or their summary for a manifest) or ``statistics``
        (column metrics); empty if there is none for the columns of the term.
    known
        What the metadata states about the values, such as ``id is 10 to 20; 3 nulls``, or ``no metadata about the
        column``.
    verdict
        Which rows match the term: ``no row``, ``every row``, or ``some rows may`` if the metadata does not prove
        either.
    """

    term: str
    by: str
    known: str
    verdict: Verdict


@dataclass(frozen=True)
class DeleteOf:
    """A delete that applies to a data file.

    Attributes
    ----------
    kind
        ``vector``, ``position`` or ``equality``.
    location
        The location of the delete file, or of the file that contains the deletion vector.
    rows
        The number of rows in the delete file, or of rows that the deletion vector removes; None if unknown.
    """

    kind: str
    location: str
    rows: int | None


@dataclass(frozen=True)
class NodeEvidence:
    """The reason why a manifest or a file is read or skipped.

    Attributes
    ----------
    read
        Whether the plan reads the manifest or file.
    why
        The reason, in a sentence or two.
    terms
        What the metadata of the manifest or file proves about each term (comparison) of the filter, such as ``id > 9``.
        Only the first sixty terms are explained, because a filter can have thousands. The tuple can contain several
        items for one term: one for each partition field on which the term can be evaluated, and one for the metrics of
        the term's column, such as bounds and null counts. A V4 root manifest can also have metrics of transforms of the
        column, such as ``bucket[16](id)``; there is one more item for each of these transforms. The attribute ``by`` of
        an item is ``partition`` for a partition field and ``statistics`` for metrics. If the metadata contains nothing
        about a term, there is a single item for it, whose ``by`` is empty.
    residual
        For a file that is read, the part of the filter that must still be evaluated on its rows, as SQL. None for a
        manifest, for a skipped file, and if metadata proves that every row of the file matches.
    deletes, delete_count
        The first fifty deletes that apply to the data file, and the number of all deletes that apply to it.
    """

    read: bool
    why: str
    terms: tuple[Term, ...] = ()
    residual: str | None = None
    deletes: tuple[DeleteOf, ...] = ()
    delete_count: int = 0


def node_evidence(nodes: PlanNodes, node_id: str) -> NodeEvidence | None:
    """Explain why a manifest or data file of a plan is read or skipped.

    The result is None if ``node_id`` is not the id of a manifest or data file that the plan reads or skips.

    To explain a data file, the manifest that lists it is read (unless it is cached), even if the plan pruned it.
    """
    plan = nodes.plan
    kind, _, rest = node_id.partition(":")
    # Compare the snapshot id as text: it may be negative, and the check of the other numbers below accepts only digits.
    snapshot, *numbers = rest.split(":")
    if not plan.roots or snapshot != str(plan.roots[0].snapshot.snapshot_id):
        return None
    if not all(n.isascii() and n.isdecimal() for n in numbers):
        return None
    scan, rows = plan.roots[0], [int(n) for n in numbers]
    if kind == "manifest":
        return _of_manifest(nodes, scan, rows[0]) if len(rows) == 1 else None
    if kind != "file" or len(rows) not in (1, 2):
        return None
    return _of_file(nodes, scan, rows[0] if len(rows) == 2 else None, rows[-1])


def _of_manifest(nodes: PlanNodes, scan: RootScan, row: int) -> NodeEvidence | None:
    if row not in set(scan.rows.tolist()):
        return None
    plan = nodes.plan
    rows = np.array([row])
    terms = _terms(nodes, ManifestMetricsSources(plan.state, scan.root, rows))
    leaf = nodes.leaf_scan(row)
    if leaf is None:
        if not scan.filled[scan.rows == row].all():
            return NodeEvidence(False, "It has no live files.", terms)
        why = explain_manifests(plan.state, scan.root, rows, plan.filter)["why"][0].as_py()
        return NodeEvidence(False, _because("It is not opened", why), terms)
    why = "It was read: its entry in the manifest list (V4: root manifest) does not exclude matching rows. "
    why += f"{leaf.kept_files:,} of its "
    why += f"{amount(leaf.files, 'data file')} {'is' if leaf.kept_files == 1 else 'are'} read."
    return NodeEvidence(True, why, terms)


def _of_file(nodes: PlanNodes, scan: RootScan, row: int | None, at: int) -> NodeEvidence | None:
    plan = nodes.plan
    if row is not None and row not in set(scan.rows.tolist()):
        return None
    manifest = nodes.manifest(row)
    if manifest is None:
        return None
    batch = EntryBatch.of(manifest, plan.filter.stats_ids)
    live = np.asarray(candidates(scan, manifest))
    mine = live & np.asarray(pc.equal(whole(batch.entries["ordinal"]), nodes.ordinal(row, at)))
    places = np.flatnonzero(mine)
    if not len(places):
        return None
    one = batch.take(places[:1])
    terms = _terms(nodes, FileMetricsSources(one, plan.state.metadata))
    task = nodes.task(row, one.entries["ordinal"][0].as_py())
    if task is None:
        return NodeEvidence(False, _not_read(nodes, scan, row, one), terms)
    record = task_records(plan, [task])[0]
    if record["whole"]:
        why = "Metadata proves that every row matches." if plan.filter.stats_ids else "There is no filter."
    else:
        why = "Its metadata does not exclude matching rows, so it must be read."
    groups = record.get("row_groups")
    if groups:
        why += f" {record['row_groups_read']:,} of {amount(groups, 'row group')} may hold matching rows."
    deletes, count = _deletes(nodes, task)
    residual = None if record["whole"] else record["residual"]
    return NodeEvidence(True, why, terms, residual, deletes, count)


def _not_read(nodes: PlanNodes, scan: RootScan, row: int | None, one: EntryBatch) -> str:
    plan = nodes.plan
    if row is not None and nodes.leaf_scan(row) is None:
        found = explain_manifests(plan.state, scan.root, np.array([row]), plan.filter)["why"][0].as_py()
        return _because("Its manifest is not opened", found)
    found = explain_files(plan.filter, one, plan.state.metadata, [0])["why"][0].as_py()
    return _because("It is not read", found)


def _terms(nodes: PlanNodes, sources: MetricsSources) -> tuple[Term, ...]:
    out = []
    expression = nodes.plan.filter.expression
    asked: list[Predicate | Computed] = [*predicates(expression), *computed(expression)]
    for one in list(dict.fromkeys(asked))[:_SHOWN_TERMS]:
        found = [w for w in sources(one) if w.where is None or bool(w.where[0])]
        p = one.predicate if isinstance(one, Computed) else one
        terms = [Term(term_text(p), w.by, _known(w), _verdict(w)) for w in found]
        out += [t for t in terms if t.known != _NOTHING] or [Term(term_text(p), "", _NOTHING, "some rows may")]
    return tuple(out)


def _verdict(w: MetricsSource) -> Verdict:
    return "no row" if not w.may()[0] else "every row" if w.must()[0] else "some rows may"


def _known(w: MetricsSource) -> str:
    """Describe what is known about the values of a column or partition field, such as ``id is 10 to 20; no nulls``.

    Parameters
    ----------
    w
        The metrics of the column or partition field in a single manifest or file.
    """
    e = w.evidence.take([0])
    quoted = w.type is not None and type_base(w.type) == "string" and parse_transform(w.transform).is_identity
    low, high = (build.to_pylist(shown(human_texts(b, w.type, w.transform), quoted))[0] for b in (e.lower, e.upper))
    if bool(e.all_null[0]):
        return f"{w.name} is {'null' if e.exact else 'always null'}"
    if low is None and high is None:
        text = f"{w.name} is NaN" if bool(e.all_nan[0]) else ""
    elif low is None or high is None:
        text = f"{w.name} is at most {high}" if low is None else f"{w.name} is at least {low}"
    else:
        text = f"{w.name} is {low}" if low == high else f"{w.name} is {low} to {high}"
    nulls = None if e.null_count is None else e.null_count[0].as_py()
    if nulls is not None:
        text += f"{'; ' if text else w.name + ' has '}{amount(nulls, 'null') if nulls else 'no nulls'}"
    return text or _NOTHING


def _deletes(nodes: PlanNodes, task: int) -> tuple[tuple[DeleteOf, ...], int]:
    matched = nodes.plan.files.matched
    one = matched.take(pa.array([task], pa.int64()))
    found: list[tuple[str, Sequence[int]]] = [
        ("vector", build.to_pylist(one.vector.drop_null())),
        ("position", build.to_pylist(cast(AnyListArray, one.positions).flatten())),
        ("equality", build.to_pylist(cast(AnyListArray, one.equality).flatten())),
    ]
    pairs = [(kind, number) for kind, numbers in found for number in numbers]
    names = matched.deletes.entries.select(["location", "record_count"])
    records = names.take(pa.array([n for _, n in pairs[:_SHOWN_DELETES]], pa.int64())).to_pylist()
    out = tuple(
        DeleteOf(kind, r["location"] or "", r["record_count"])
        for (kind, _), r in zip(pairs[:_SHOWN_DELETES], records, strict=True)
    )
    return out, len(pairs)


def _because(text: str, why: object) -> str:
    return f"{text}: {why}." if why else f"{text}."
