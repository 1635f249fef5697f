"""Errors, and the registry of problem codes.

Two kinds of trouble exist. An *error* stops what was asked: every error inherits `IceexploreError`
and the built-in it resembles, and its message says what was wrong, where, and what to do. A
*problem* is damage met while reading: it is data, hangs on its node, and the rest is shown.
"""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from iceexplore.errors._kinds import PROBLEM_KINDS, ProblemKind, Severity

__all__ = [
    "AccessDeniedError",
    "CatalogError",
    "CommitConflictError",
    "FileMissingError",
    "FormatError",
    "IceexploreError",
    "MemoryLimitError",
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
    "TemporaryFolderError",
    "UnsupportedError",
    "problem",
    "visible",
    "whole_number",
]

#: Characters that act instead of showing. ZWNJ and ZWJ (U+200C, U+200D) stay: scripts and emoji need them.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U0001fffe\U0001ffff\U000e0000-\U000e0fff]"
)


def _show(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\u27e8U+{code:04X}\u27e9"


def visible(value: object) -> str:
    """The text with every character that acts shown as a sign: ``␛`` for escape, ``⟨U+202E⟩`` for a bidi override."""
    return _ACTING.sub(_show, str(value))


class IceexploreError(Exception):
    """Base of every error that iceexplore raises. Names of tables in it cannot drive a terminal."""

    def __str__(self) -> str:
        return "\n".join(map(visible, super().__str__().split("\n")))

    def __reduce__(self) -> Any:  # arguments of `__init__` are not the message that it made: a pool's worker sends this
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[IceexploreError], args: tuple[Any, ...], state: dict[str, Any]) -> IceexploreError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class MetadataNotFoundError(IceexploreError, FileNotFoundError):
    """No table metadata file where one was looked for."""


class FileMissingError(IceexploreError, FileNotFoundError):
    """A file that the table names does not exist (404)."""


class AccessDeniedError(IceexploreError, PermissionError):
    """The storage refused access (403): the file may well exist."""


class StorageError(IceexploreError, OSError):
    """The storage failed in another way: network, time-out, bad credentials format."""


class TemporaryFolderError(StorageError):
    """The temporary folder is full, read-only or not there: no fault of the table, and so never kept as a problem."""


class OutsideRootsError(IceexploreError, PermissionError):
    """A location outside the table's own roots was refused; `allow=` admits it.

    Attributes
    ----------
    allow
        What to pass as ``allow=`` to admit it.
    """

    allow: tuple[str, ...] = ()


class CatalogError(IceexploreError, LookupError):
    """A catalog or a table in it could not be found or loaded."""


class SnapshotNotFoundError(IceexploreError, LookupError):
    """No such snapshot, ref, version or time; the message lists the nearest ones."""


class TableChangedError(IceexploreError, RuntimeError):
    """After a refresh another table (another uuid) stands at the same place."""


class OptionError(IceexploreError, ValueError):
    """An argument that makes no sense; the message lists what is accepted."""


def whole_number(name: str, value: Any, *, least: int = 0) -> int:
    """An argument that counts something; `OptionError` says what it takes."""
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or number < least:
        raise OptionError(f"{name}={repr(value)[:60]}: give a whole number from {least}")
    return number


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


class MemoryLimitError(UnsupportedError, MemoryError):
    """What a file holds would take more memory, once decoded, than it may; `iceexplore.memory_limit` allows more."""


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
        return visible(f"{self.severity}: {self.text}{evidence} [{self.code}] {self.where}")


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
    "memory-limit": MemoryLimitError,
    "outside-roots": OutsideRootsError,
    "storage-failed": StorageError,
    "unsupported": UnsupportedError,
}


class Problems:
    """The problems met so far on one table: ordered, without duplicates, safe across threads.

    With ``strict`` an added problem of severity ``error``, or of a kind that strict reading refuses, is raised instead
    (as the error whose code it bears).
    """

    def __init__(self, items: Iterable[Problem] = (), *, strict: bool = False) -> None:
        self.strict = strict
        self._lock = threading.Lock()
        self._items: dict[Problem, None] = {}
        for item in items:
            self.add(item)

    def __getstate__(self) -> dict[str, Any]:
        return {"strict": self.strict, "_items": dict.fromkeys(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def add(self, item: Problem) -> None:
        """Keep a problem (once)."""
        with self._lock:
            self._items.setdefault(item)
        if self.strict and (item.severity == "error" or PROBLEM_KINDS[item.code].strict):
            if item.code in _ERRORS_BY_CODE:
                raise _ERRORS_BY_CODE[item.code](str(item))
            raise FormatError(item.text, location=item.where, field=item.field, code=item.code)

    def add_error(self, error: IceexploreError, where: str) -> Problem:
        """Keep an error of ours as a problem on the node ``where``; return it. A `TemporaryFolderError` is raised."""
        if isinstance(error, TemporaryFolderError):
            raise error
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
        lines = list(map(str, found[:_SHOWN]))
        if len(found) > _SHOWN:
            lines.append(f"… {len(found) - _SHOWN:,} more of {len(found):,}: list(...) has them all")
        return "\n".join(lines) or "no problems"
