"""Problems: damage met while reading, which is data and not an exception."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from iceexplore.errors._exceptions import (
    AccessDeniedError,
    FileMissingError,
    FormatError,
    IceexploreError,
    MemoryLimitError,
    OutsideRootsError,
    StorageError,
    TemporaryFolderError,
    UnsupportedError,
    visible,
)
from iceexplore.errors._kinds import PROBLEM_KINDS, Severity

__all__ = [
    "Problem",
    "Problems",
    "problem",
]

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
