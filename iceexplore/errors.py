"""Errors, and the registry of problem codes.

Two kinds of trouble exist. An *error* stops what was asked: every error inherits `IceexploreError`
and the built-in it resembles, and its message says what was wrong, where, and what to do. A
*problem* is damage met while reading: it is data, hangs on its node, and the rest is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = [
    "AccessDeniedError",
    "CatalogError",
    "CommitConflictError",
    "FileMissingError",
    "FormatError",
    "IceexploreError",
    "MetadataNotFoundError",
    "MissingDependencyError",
    "OptionError",
    "OutsideRootsError",
    "PROBLEM_KINDS",
    "Problem",
    "ProblemKind",
    "Problems",
    "RuleError",
    "Severity",
    "SnapshotNotFoundError",
    "StorageError",
    "TableChangedError",
    "UnsupportedError",
    "problem",
]


class IceexploreError(Exception):
    """Base of every error that iceexplore raises."""


class MetadataNotFoundError(IceexploreError, FileNotFoundError):
    """No table metadata file where one was looked for."""


class FileMissingError(IceexploreError, FileNotFoundError):
    """A file that the table names does not exist (404)."""


class AccessDeniedError(IceexploreError, PermissionError):
    """The storage refused access (403): the file may well exist."""


class StorageError(IceexploreError, OSError):
    """The storage failed in another way: network, time-out, bad credentials format."""


class OutsideRootsError(IceexploreError, PermissionError):
    """A location outside the table's own roots was refused; `allow=` admits it."""


class CatalogError(IceexploreError, LookupError):
    """A catalog or a table in it could not be found or loaded."""


class SnapshotNotFoundError(IceexploreError, LookupError):
    """No such snapshot, ref, version or time; the message lists the nearest ones."""


class TableChangedError(IceexploreError, RuntimeError):
    """After a refresh another table (another uuid) stands at the same place."""


class OptionError(IceexploreError, ValueError):
    """An argument that makes no sense; the message lists what is accepted."""


class RuleError(IceexploreError, ValueError):
    """A commit that would break a rule of the format; refused before a byte is written.

    Parameters
    ----------
    rule
        The rule's name, a key of `iceexplore.commits.RULES`.
    message
        What breaks it, and what to do instead.
    """

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        super().__init__(f"{message} [rule {rule}]")


class CommitConflictError(IceexploreError, RuntimeError):
    """Another commit came first, and this one cannot be applied on top of it.

    Parameters
    ----------
    rule
        The validation that failed, a key of `iceexplore.commits.RULES`.
    message
        What the other commit did.
    files
        The locations in conflict.
    """

    def __init__(self, rule: str, message: str, files: Iterable[str] = ()) -> None:
        self.rule = rule
        self.files = tuple(files)
        shown = ", ".join(self.files[:5]) + (f" and {len(self.files) - 5} more" if len(self.files) > 5 else "")
        super().__init__(f"{message}{': ' + shown if shown else ''} [rule {rule}]")


class UnsupportedError(IceexploreError, NotImplementedError):
    """The file is fine, as far as one can tell, but asks for what is not supported."""


class MissingDependencyError(IceexploreError, ImportError):
    """An optional package or program is not installed; the message says how to get it."""


class FormatError(IceexploreError, ValueError):
    """A file does not have the format it should.

    Parameters
    ----------
    message
        What was wrong.
    location
        The file.
    offset
        Byte offset in the file, where known.
    field
        The field or key, in the spec's words, where known.
    code
        The problem code under which tolerant reading reports it.
    """

    def __init__(
        self,
        message: str,
        *,
        location: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        code: str = "file-corrupt",
    ) -> None:
        self.reason = message
        self.location = location
        self.offset = offset
        self.field = field
        self.code = code
        parts = [message]
        if field is not None:
            parts.append(f"field {field}")
        if offset is not None:
            parts.append(f"at byte {offset}")
        if location is not None:
            parts.append(f"in {location}")
        super().__init__(" · ".join(parts))


Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class ProblemKind:
    """One entry of the registry: what a code means, whoever reports it."""

    code: str
    severity: Severity
    title: str
    advice: str


def _kinds(*kinds: ProblemKind) -> dict[str, ProblemKind]:
    return {kind.code: kind for kind in sorted(kinds, key=lambda k: k.code)}


#: Every problem code, sorted. A code never changes its meaning.
PROBLEM_KINDS: dict[str, ProblemKind] = _kinds(
    ProblemKind("access-denied", "error", "The storage refused access", "Check credentials and permissions (403)."),
    ProblemKind("avro-no-field-ids", "warning", "Avro fields carry no field ids", "Read by name; the writer should set field-id."),
    ProblemKind("bounds-untrue", "error", "A bound leaves out values of the column", "Readers that prune lose rows; rewrite the file or its entry."),
    ProblemKind("count-mismatch", "warning", "A count does not match what it counts", "Readers may skip or misjudge the file."),
    ProblemKind("data-no-field-ids", "warning", "A data file carries no field ids", "Set schema.name-mapping.default, or rewrite the file."),
    ProblemKind("delete-dangling", "warning", "A delete is of a data file that is not there", "Rewrite the deletes; if paths changed, the deletes' too."),
    ProblemKind("delete-path", "warning", "A delete spells its data file in another way", "Most engines would not apply it; rewrite the table's paths."),
    ProblemKind("delete-position", "error", "A deleted position is outside its data file", "Readers may fail or delete other rows; rewrite the deletes."),
    ProblemKind("delete-scope", "warning", "A delete cannot apply to the data file it names", "Engines may refuse the table; remove or rewrite the delete."),
    ProblemKind("dv-twice", "error", "A data file has several deletion vectors", "Readers take one of them, or refuse the table; merge them."),
    ProblemKind("equality-ids-invalid", "error", "An equality delete goes by columns that are not there", "Readers refuse the table; restore the column or rewrite the deletes."),
    ProblemKind("field-id-twice", "error", "Columns of a data file share a field id", "Readers take one of them; rewrite the file."),
    ProblemKind("field-id-unknown", "warning", "A data file has columns with ids that the table never gave out", "Look whether the file belongs to this table."),
    ProblemKind("file-corrupt", "error", "A file is damaged or of another format", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-missing", "error", "A file that the table names is missing", "Restore the file or go back to a snapshot without it."),
    ProblemKind("file-truncated", "error", "A file ends too early", "Restore the file from a copy."),
    ProblemKind("file-twice", "error", "A data file is live more than once", "Its rows are read as often; remove one of the entries."),
    ProblemKind("location-invalid", "warning", "A location breaks the rules", "Readers may refuse the file or look elsewhere."),
    ProblemKind("manifest-dv-invalid", "error", "A manifest deletion vector is wrong", "Readers may show entries that are removed, or refuse the table."),
    ProblemKind("manifest-salvaged", "warning", "Only part of a manifest could be read", "Entries past the damage are not shown."),
    ProblemKind("metadata-ambiguous", "warning", "Several metadata files could be the newest", "Pass version= to pick one."),
    ProblemKind("metadata-invalid", "error", "Table metadata breaks the spec", "Compare with an older metadata file: version=."),
    ProblemKind("null-in-required", "error", "A required column has nulls", "Readers may fail; make the column optional, or rewrite the file."),
    ProblemKind("outside-roots", "error", "A location outside the table's roots was refused", "If you trust the table, pass allow=[...]."),
    ProblemKind("partition-untrue", "error", "Rows are not in the partition that their file is in", "Readers that prune lose rows; rewrite the file."),
    ProblemKind("puffin-bare-vector", "warning", "A deletion vector stands outside a Puffin file", "Most engines refuse the file; rewrite the deletes."),
    ProblemKind("puffin-blob-invalid", "warning", "A Puffin footer describes a blob wrongly", "Engines may skip or misread the blob."),
    ProblemKind("row-ids-twice", "error", "Rows of two data files have the same ids", "Who follows rows by _row_id takes them for one; write one of the files anew."),
    ProblemKind("sequence-number", "warning", "A sequence number cannot be", "Readers may apply deletes wrongly; rewrite the manifest."),
    ProblemKind("sort-order-untrue", "warning", "Rows are not in the order that their file claims", "Engines that trust it may merge wrongly; rewrite the file."),
    ProblemKind("split-offsets-invalid", "warning", "Split offsets are not where row groups begin", "Readers that split by them lose rows or fail; rewrite the entry."),
    ProblemKind("storage-failed", "error", "The storage failed", "Try again; check endpoint and network."),
    ProblemKind("stored-type", "error", "A column is stored in a type that is not the table's", "Engines fail or read other values; rewrite the file."),
    ProblemKind("unsupported", "warning", "Something that is not supported was met", "The rest is shown."),
    ProblemKind("value-undecodable", "warning", "A stored value does not fit its type", "Readers may fail or prune wrongly."),
)


@dataclass(frozen=True)
class Problem:
    """One fault met while reading: data, not an exception.

    Attributes
    ----------
    code
        A key of `PROBLEM_KINDS`.
    severity
        ``error`` (something cannot be shown), ``warning`` (shown, but wrong or suspicious), ``info``.
    where
        The node: a file's location, possibly with ``#entry 3`` or ``#snapshot 17`` after it.
    text
        One sentence for people.
    field, found, expected
        Evidence in the spec's words, where there is any.
    """

    code: str
    severity: Severity
    where: str
    text: str
    field: str | None = None
    found: str | None = None
    expected: str | None = None

    @property
    def title(self) -> str:
        """The kind's title."""
        return PROBLEM_KINDS[self.code].title

    @property
    def advice(self) -> str:
        """What to do about it."""
        return PROBLEM_KINDS[self.code].advice

    def __str__(self) -> str:
        evidence = "".join(
            f" ({name} {value})"
            for name, value in (("found", self.found), ("expected", self.expected))
            if value is not None
        )
        return f"{self.severity}: {self.text}{evidence} [{self.code}] {self.where}"


def problem(
    code: str,
    where: str,
    text: str,
    *,
    field: str | None = None,
    found: object = None,
    expected: object = None,
    severity: Severity | None = None,
) -> Problem:
    """Make a `Problem`; the severity is its kind's unless given.

    Raises
    ------
    KeyError
        The code is not in the registry.
    """
    kind = PROBLEM_KINDS[code]
    return Problem(
        code,
        severity or kind.severity,
        where,
        text,
        field,
        None if found is None else str(found),
        None if expected is None else str(expected),
    )


#: Problems that are printed at once.
_SHOWN = 50

_ERRORS_BY_CODE: dict[str, type[IceexploreError]] = {
    "access-denied": AccessDeniedError,
    "file-missing": FileMissingError,
    "outside-roots": OutsideRootsError,
    "storage-failed": StorageError,
    "unsupported": UnsupportedError,
}


class Problems:
    """The problems met so far on one table: ordered, without duplicates, safe across threads.

    With ``strict`` an added problem of severity ``error`` is raised instead (as the error whose code it bears).
    """

    def __init__(self, items: Iterable[Problem] = (), *, strict: bool = False) -> None:
        self.strict = strict
        self._lock = threading.Lock()
        self._items: dict[Problem, None] = {}
        for item in items:
            self.add(item)

    def add(self, item: Problem) -> None:
        """Keep a problem (once)."""
        with self._lock:
            self._items.setdefault(item)
        if self.strict and item.severity == "error":
            kind = _ERRORS_BY_CODE.get(item.code)
            raise kind(str(item)) if kind else FormatError(item.text, location=item.where, field=item.field, code=item.code)

    def add_error(self, error: IceexploreError, where: str) -> Problem:
        """Keep an error of ours as a problem on the node ``where``; return it."""
        code = next((c for c, kind in _ERRORS_BY_CODE.items() if isinstance(error, kind)), "file-corrupt")
        field = None
        text = str(error)
        if isinstance(error, FormatError):
            code, field = error.code, error.field
            text = error.reason if error.offset is None else f"{error.reason} (byte {error.offset})"
        item = problem(code, where, text, field=field)
        self.add(item)
        return item

    def at(self, where: str) -> list[Problem]:
        """The problems on one node (its location, or its location with a ``#`` part)."""
        return [p for p in self if p.where == where or p.where.startswith(where + "#")]

    def to_records(self) -> list[dict[str, Any]]:
        """Plain dictionaries, for tables and widgets."""
        return [asdict(p) for p in self]

    def __iter__(self) -> Iterator[Problem]:
        with self._lock:
            return iter(list(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        return bool(self._items)

    def __repr__(self) -> str:
        found = list(self)
        more = [f"… {len(found) - _SHOWN:,} more of {len(found):,}: list(...) has them all"] if len(found) > _SHOWN else []
        return "\n".join([*map(str, found[:_SHOWN]), *more]) or "no problems"
