"""One thing that would help a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from iceexplore.planning.advice._spread import Reading

__all__ = ["Kind", "Suggestion", "amount"]

Kind: TypeAlias = Literal["bounds", "deletes", "manifests", "metrics", "old-spec", "partition", "small-files", "sort"]

#: What writes all data anew, and the share of the cost that must be left at most.
_REWRITES = frozenset(("bounds", "metrics", "old-spec", "partition", "sort"))
_WORTH = 0.9


@dataclass(frozen=True)
class Suggestion:
    """One thing that would help.

    Attributes
    ----------
    kind
        ``sort``, ``partition``, ``old-spec``, ``metrics``, ``bounds``, ``small-files``, ``deletes`` or ``manifests``.
    title, why
        A phrase; and sentences with the numbers behind it.
    unit
        What is counted: ``data files``, ``delete files`` or ``manifests``.
    before, after
        What the plan reads now, and would read; None where nothing can be said.
    basis
        ``estimate``, ``at most`` (a limit that the gain does not pass), or ``exact``.
    statements
        SQL for Spark, to be read before it is run.
    assumes
        What the estimate takes for granted.
    column
        The filter's column that it is about.
    """

    kind: Kind
    title: str
    why: str
    before: Reading | None = None
    after: Reading | None = None
    unit: str = "data files"
    basis: Literal["estimate", "at most", "exact"] = "estimate"
    statements: tuple[str, ...] = ()
    assumes: str = ""
    column: str | None = None

    @property
    def files_saved(self) -> int:
        """Fewer files to open; 0 where nothing can be said."""
        return 0 if self.before is None or self.after is None else self.before.files - self.after.files

    @property
    def bytes_saved(self) -> int:
        """Fewer bytes to read; 0 where nothing can be said."""
        return 0 if self.before is None or self.after is None else self.before.bytes - self.after.bytes

    @property
    def helps(self) -> bool:
        """Whether it is worth the work; true where nothing can be said.

        Bytes are weighed with the files to open (`Reading.cost`). To write the table anew for one filter must save a
        tenth of that.
        """
        if self.before is None or self.after is None:
            return True
        return self.after.cost < self.before.cost * (_WORTH if self.kind in _REWRITES else 1.0)


def amount(count: int, one: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"
