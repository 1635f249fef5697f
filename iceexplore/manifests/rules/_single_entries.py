"""Rules that each V4 entry must follow by itself: the fields that its content type requires or forbids.

An item of `ENTRY_CHECKS` has everything about one kind of violation: its mask, and its texts for commits and for
readers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iceexplore.manifests.model._content_entry import ContentType, Status
from iceexplore.manifests.rules._rows import MANIFESTS, Mask, Rows
from iceexplore.manifests.rules._values import falling, no_items

__all__ = ["ENTRY_CHECKS", "EntryCheck"]

_VECTOR = "147 deletion_vector"
_STATS = "521 manifest_stats"
_REFERENCED = "143 referenced_file"


@dataclass(frozen=True)
class EntryCheck:
    """One way for an entry to violate a rule.

    Attributes
    ----------
    rule
        A key of `iceexplore.errors.RULES`.
    violated
        Returns a mask of the violating rows, whatever their status.
    text
        The text that a commit reports after an entry's content type and location, such as "it has no referenced_file".
    problem
        The text that reading reports about live entries, after "An entry has"; None if reading does not report the
        violation, because readers accept it, or because it is reported when the field is used.
    field
        The field's id and name, as evidence of the problem.
    code
        The problem's code.
    """

    rule: str
    violated: Callable[[Rows], Mask]
    text: str
    problem: str | None = None
    field: str | None = None
    code: str = "entry-invalid"


def _data_dv(r: Rows) -> Mask:
    return r.is_kind(ContentType.POSITION_DELETE)


def _manifest_dv(r: Rows) -> Mask:
    return r.is_kind(ContentType.MANIFEST_DV)


def _either_dv(r: Rows) -> Mask:
    return r.is_kind(ContentType.POSITION_DELETE, ContentType.MANIFEST_DV)


def _equality(r: Rows) -> Mask:
    return r.is_kind(ContentType.EQUALITY_DELETE)


def _with_equality(r: Rows) -> Mask:
    return r.is_kind(ContentType.DATA, ContentType.EQUALITY_DELETE)


def _none(r: Rows) -> Mask:
    return np.zeros(len(r), np.bool_)


def _data_dv_without_vector(r: Rows) -> Mask:
    # Position delete files of v2 stay in their leaves when a table is upgraded.
    return _none(r) if r.before_v4 else _data_dv(r) & ~r.has_vector


def _vector_of_other_file(r: Rows) -> Mask:
    out: Mask = r.has_vector & _with_equality(r)
    if r.dialect.deletion_vectors_on_entries:
        # In these dialects, a vector is part of its data file's row; decoding makes it an entry of its own, after the
        # file's.
        out |= r.carried & _data_dv(r) & ~np.roll(r.is_kind(ContentType.DATA), 1)
        out |= r.carried & _manifest_dv(r) & ~np.roll(r.is_kind(*MANIFESTS), 1)
    return out


def _vector_of_manifest(r: Rows) -> Mask:
    return r.has_vector & ~_either_dv(r) & ~_with_equality(r)


def _vector_twice(r: Rows) -> Mask:
    return r.inline & (r.vector_has("offset") | r.vector_has("size_in_bytes"))


def _vector_nowhere(r: Rows) -> Mask:
    placed = r.vector_has("offset") & r.vector_has("size_in_bytes")
    return r.has_vector & _either_dv(r) & ~r.inline & ~placed


def _references_nothing(r: Rows) -> Mask:
    return _none(r) if r.before_v4 else _either_dv(r) & ~r.referenced


def _references_something(r: Rows) -> Mask:
    if r.before_v4:
        return _none(r)
    return r.referenced & r.is_kind(ContentType.DATA, ContentType.EQUALITY_DELETE, ContentType.DATA_MANIFEST)


def _sorted(r: Rows) -> Mask:
    return _none(r) if r.before_v4 else ~r.null("sort_order_id") & ~r.is_kind(ContentType.DATA)


def _has_row_ids(r: Rows) -> Mask:
    return ~r.null("first_row_id") & ~r.is_kind(ContentType.DATA, ContentType.DATA_MANIFEST)


def _inline_manifest_dv(r: Rows) -> Mask:
    return _manifest_dv(r) & r.inline


def _unknown_status(r: Rows) -> Mask:
    last = Status.MODIFIED if r.dialect.deletion_vectors_on_entries else Status.DELETED
    out: Mask = (r.status < Status.EXISTING) | (r.status > last)
    return out


#: Every violation of a single entry, in the order in which reading reports them.
ENTRY_CHECKS: tuple[EntryCheck, ...] = (
    EntryCheck(
        "dv-struct",
        _data_dv_without_vector,
        "it has no deletion_vector",
        "no deletion_vector, which a position delete must have in V4.",
        _VECTOR,
    ),
    EntryCheck("dv-struct", lambda r: _manifest_dv(r) & ~r.has_vector, "it has no deletion_vector"),
    EntryCheck(
        "dv-struct",
        _vector_of_other_file,
        "it has a deletion_vector",
        "a deletion_vector that is not applied: only position deletes and manifest DVs may have one.",
        _VECTOR,
    ),
    EntryCheck("dv-struct", _vector_of_manifest, "it has a deletion_vector"),
    EntryCheck(
        "no-inline-data-dv",
        lambda r: _data_dv(r) & r.inline,
        "its deletion vector is inline",
        "an inline deletion vector of a data file, which only manifest DVs may have.",
        _VECTOR,
    ),
    EntryCheck(
        "dv-struct",
        _vector_twice,
        "its deletion_vector is both inline and in a file",
        "a deletion_vector that is both inline and in a file: readers may use either.",
        _VECTOR,
    ),
    EntryCheck("dv-struct", _vector_nowhere, "its deletion_vector references no content"),
    EntryCheck(
        "referenced-file",
        _references_nothing,
        "it has no referenced_file",
        "no referenced_file: it is unknown what to delete from.",
        _REFERENCED,
    ),
    EntryCheck(
        "referenced-file",
        _references_something,
        "it has a referenced_file",
        "a referenced_file, which only vectors and delete manifests may have: affinity is one-way.",
        _REFERENCED,
    ),
    EntryCheck(
        "manifest-stats",
        lambda r: r.is_kind(*MANIFESTS) & ~r.counted,
        "it has no manifest_stats",
        "no manifest_stats, which manifests must have: their counts are unknown.",
        _STATS,
    ),
    EntryCheck(
        "manifest-stats",
        lambda r: r.counted & ~r.is_kind(*MANIFESTS),
        "it has manifest_stats",
        "manifest_stats, which only manifests have.",
        _STATS,
    ),
    EntryCheck(
        "size-with-location",
        lambda r: r.null("file_size_in_bytes") & ~_inline_manifest_dv(r),
        "file_size_in_bytes is null",
    ),
    EntryCheck(
        "size-with-location",
        lambda r: ~r.null("file_size_in_bytes") & _inline_manifest_dv(r),
        "file_size_in_bytes is set, but it has no separate file",
    ),
    EntryCheck("content-fields", _sorted, "it has a sort_order_id"),
    EntryCheck(
        "content-fields",
        lambda r: _equality(r) & np.asarray(no_items(r.entries["equality_ids"])),
        "it has no equality_ids",
    ),
    EntryCheck("content-fields", lambda r: ~_equality(r) & ~r.null("equality_ids"), "it has equality_ids"),
    EntryCheck("content-fields", _has_row_ids, "it has a first_row_id"),
    EntryCheck("known-status", _unknown_status, "its status does not exist in this format"),
    EntryCheck(
        "split-offsets",
        lambda r: falling(r.entries["split_offsets"]),
        "its split_offsets are not in ascending order",
        "split offsets that are not in ascending order: readers that split files by them lose rows.",
        "132 split_offsets order",
        code="split-offsets-invalid",
    ),
)
