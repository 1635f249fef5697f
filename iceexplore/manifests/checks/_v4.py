"""Checks of V4 content entries for fields that are required or forbidden for their content type.

They use columns that are read anyway. DELETED entries are not checked, as readers ignore them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._content_entry import CONTENT_NAMES, ContentType
from iceexplore.manifests.rules._keys import key_faults
from iceexplore.manifests.rules._leaf_content import misplaced, not_allowed
from iceexplore.manifests.rules._root_rows import loosely_affiliated
from iceexplore.manifests.rules._rows import FILES, Rows
from iceexplore.manifests.rules._single_entries import ENTRY_CHECKS
from iceexplore.metadata import Dialect

__all__ = ["affinity_problems", "key_problems", "leaf_problems", "root_problems"]

_REFERENCED = "143 referenced_file"


def root_problems(location: str, entries: pa.Table, dialect: str) -> list[Problem]:
    """Check the rows of a root, each on its own."""
    r = Rows(entries, dialect)
    return [*_type_problems(r, location, list(ContentType)), *_field_problems(r, location)]


def key_problems(location: str, keys: Mapping[str, str], content: str, dialect: Dialect) -> list[Problem]:
    """Check the key-value metadata of a manifest; ``content`` is the value that its place in the tree requires."""
    out = []
    for key, found, text in key_faults(keys, content, dialect):
        expected = None if found is None else content if key == "content" else "4"
        text = f"{text[:1].upper()}{text[1:]}; the V4 proposal requires {key} of every manifest."
        out.append(problem("header-incomplete", location, text, field=key, found=found, expected=expected))
    return out


def affinity_problems(location: str, entries: pa.Table) -> list[Problem]:
    """Check for delete manifests whose data manifest is not in the root; locations in ``entries`` must be absolute."""
    lost = np.flatnonzero(loosely_affiliated(Rows(entries)))
    if not len(lost):
        return []
    row, at = int(lost[0]), _ordinals(entries, lost)
    what = "A delete manifest is" if len(lost) == 1 else f"{len(lost)} delete manifests are"
    text = f"{what} affiliated with a data manifest that this root lacks: readers that use affinity skip the deletes."
    owner = entries["referenced_file"][row].as_py()
    return [problem("entry-invalid", f"{location}#entry {at[0]}", text, field=_REFERENCED, found=owner, entries=at)]


def leaf_problems(location: str, stated: int, entries: pa.Table, dialect: str) -> list[Problem]:
    """Check the entries of a leaf; ``stated`` is its content type in the root."""
    r = Rows(entries, dialect)
    return [
        *_type_problems(r, location, FILES),
        *_kind_problems(r, location, stated),
        *_field_problems(r, location),
    ]


def _type_problems(r: Rows, location: str, kinds: Collection[int]) -> list[Problem]:
    """Check for content types that are not allowed in this kind of file."""
    rows = np.flatnonzero(not_allowed(r, kinds))
    if not len(rows):
        return []
    have = "An entry has" if len(rows) == 1 else f"{len(rows)} entries have"
    text = f"{have} a content type that is not allowed in this file."
    at, found = _ordinals(r.entries, rows), r.entries["content_type"][int(rows[0])].as_py()
    place = f"{location}#entry {at[0]}"
    return [problem("file-corrupt", place, text, field="134 content_type", found=found, entries=at)]


def _kind_problems(r: Rows, location: str, stated: int) -> list[Problem]:
    """Check for entries that do not fit the leaf's content type in the root, such as deletes among data files."""
    rows = np.flatnonzero(misplaced(r, stated))
    if not len(rows):
        return []
    row = int(rows[0])
    found = CONTENT_NAMES[int(r.kind[row])]
    listed = "delete" if stated == ContentType.DELETE_MANIFEST else "data"
    text = (
        f"In the root this is a {listed} manifest, but {len(rows)} of its entries do not belong in one: readers that "
        "trust the root do not see them."
    )
    at = _ordinals(r.entries, rows)
    place = f"{location}#entry {at[0]}"
    return [problem("entry-invalid", place, text, field="134 content_type", found=found, entries=at)]


def _field_problems(r: Rows, location: str) -> list[Problem]:
    """Check the fields of each entry; return one problem per kind of violation, placed on the first such entry."""
    out = []
    for check in ENTRY_CHECKS:
        if check.problem is None:
            continue
        rows = np.flatnonzero(check.violated(r) & r.live)
        if len(rows):
            have = "An entry has" if len(rows) == 1 else f"{len(rows)} entries have"
            at = _ordinals(r.entries, rows)
            place = f"{location}#entry {at[0]}"
            found = CONTENT_NAMES.get(r.entries["content_type"][int(rows[0])].as_py())
            text = f"{have} {check.problem}"
            out.append(problem(check.code, place, text, field=check.field, found=found, entries=at))
    return out


def _ordinals(entries: pa.Table, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.asarray(entries["ordinal"])[rows]
