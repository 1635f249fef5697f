"""Problems: damage found while reading, recorded as data instead of raised."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Problem",
    "Problems",
    "problem",
]


@dataclass(frozen=True)
class Problem:
    """A fault found while reading, recorded as data instead of raised.

    Attributes
    ----------
    code
        A key of `PROBLEM_KINDS`.
    severity
        ``error`` (something cannot be shown), ``warning`` (it is shown, but may be wrong) or ``info`` (a note).
    where
        Where the fault is: a file's location, for part of the file followed by, for example, ``#entry 3`` or
        ``#snapshot 17``.
    text
        A sentence for the user.
    field, found, expected
        Evidence, with fields named as in the spec; None where there is none.
    entries
        If several entries of one manifest have the fault, the ordinals of all of them; `where` names the first. Ignored
        when problems are compared.
    """

    code: str
    severity: Severity
    where: str
    text: str
    field: str | None = None
    found: str | None = None
    expected: str | None = None
    entries: npt.NDArray[np.int64] | None = dataclass_field(default=None, repr=False, compare=False)

    @property
    def title(self) -> str:
        """The title registered for the problem's code."""
        return PROBLEM_KINDS[self.code].title

    @property
    def advice(self) -> str:
        """The consequence and the remedy, as registered for the problem's code."""
        return PROBLEM_KINDS[self.code].advice

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that identify the problem, by name; `entries` is not among them."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.compare}

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
    entries: npt.NDArray[np.int64] | None = None,
) -> Problem:
    """Create a `Problem`; the severity defaults to its kind's.

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
        entries,
    )


#: The number of problems that `repr` lists.
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
    """The problems found so far in one table: ordered, without duplicates, thread-safe.

    With ``strict``, adding a problem of severity ``error``, or of a kind that strict reading refuses, raises the error
    class of its code.
    """

    def __init__(self, items: Iterable[Problem] = (), *, strict: bool = False) -> None:
        self.strict = strict
        self._lock = threading.Lock()
        self._items: dict[Problem, None] = {}
        self._examined: dict[Problem, frozenset[int]] = {}
        for item in items:
            self.add(item)

    def __getstate__(self) -> dict[str, Any]:
        return {"strict": self.strict, "_items": dict.fromkeys(self.met()), "_examined": self.examined()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def add(self, item: Problem) -> None:
        """Record a problem unless it has been recorded already."""
        with self._lock:
            self._items.setdefault(item)
        if self.strict and (item.severity == "error" or PROBLEM_KINDS[item.code].strict):
            if item.code in _ERRORS_BY_CODE:
                raise _ERRORS_BY_CODE[item.code](str(item))
            raise FormatError(item.text, location=item.where, field=item.field, code=item.code)

    def add_examined(self, item: Problem, snapshots: Iterable[int]) -> None:
        """Record a problem that an examination of the table found. It is not raised, even with ``strict``.

        Parameters
        ----------
        snapshots
            The ids of the affected snapshots; empty for a problem of the table as a whole.
        """
        with self._lock:
            self._examined[item] = self._examined.get(item, frozenset()) | frozenset(snapshots)

    def met(self) -> list[Problem]:
        """Return the problems found while reading, without those that only an examination found."""
        with self._lock:
            return list(self._items)

    def examined(self) -> dict[Problem, frozenset[int]]:
        """Return the problems that examinations found, with the ids of the affected snapshots."""
        with self._lock:
            return dict(self._examined)

    def add_error(self, error: IceexploreError, where: str) -> Problem:
        """Record an error as a problem on the node ``where`` and return it; re-raise a `TemporaryFolderError`."""
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
        """Return the problems on one node (its location, or its location with a ``#`` part)."""
        return [p for p in self if p.where == where or p.where.startswith(where + "#")]

    def to_records(self) -> list[dict[str, Any]]:
        """Return plain dictionaries, for tables and widgets."""
        return [p.to_dict() for p in self]

    def __iter__(self) -> Iterator[Problem]:
        with self._lock:
            return iter(list(self._items | dict.fromkeys(self._examined)))

    def __len__(self) -> int:
        with self._lock:
            return len(self._items | dict.fromkeys(self._examined))

    def __bool__(self) -> bool:
        return bool(self._items or self._examined)

    def __repr__(self) -> str:
        found = list(self)
        lines = list(map(str, found[:_SHOWN]))
        if len(found) > _SHOWN:
            lines.append(f"… {len(found) - _SHOWN:,} more of {len(found):,}: list(...) returns all of them")
        return "\n".join(lines) or "no problems"
