"""The log of files written by commits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Write", "WriteLog"]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Write:
    """A written file.

    Attributes
    ----------
    location, real
        The file's location as the table spells it, and where the file really is.
    kind
        The file's role, as for reads: ``metadata``, ``manifest-list``, ``manifest``, ``puffin``, ``delete-file``,
        ``data-file``.
    length
        Bytes.
    seconds
        Wall time.
    commit, attempt
        The commit and its attempt, both counted from 1; None for a file written outside commits.
    """

    location: str
    real: str
    kind: str
    length: int
    seconds: float
    commit: int | None = None
    attempt: int | None = None


class WriteLog:
    """Every write of one storage and its views, in order; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: list[Write] = []

    def __reduce__(self) -> tuple[type[WriteLog], tuple[()]]:
        return WriteLog, ()  # another process starts with an empty log

    def add(self, write: Write) -> None:
        """Record a write."""
        with self._lock:
            self._items.append(write)

    @property
    def bytes(self) -> int:
        """Total bytes written."""
        return sum(w.length for w in self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with one row per file."""
        import pandas as pd

        from iceexplore.render import shown_frame

        frame = pd.DataFrame([asdict(w) for w in self], columns=list(Write.__dataclass_fields__))
        return shown_frame(frame.astype({"commit": "Int64", "attempt": "Int64"}))

    def __iter__(self) -> Iterator[Write]:
        with self._lock:
            return iter(list(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        from iceexplore.render import escape

        lines = [self._summary()]
        writes = list(self)
        if len(writes) > _SHOWN:
            lines.append(f"  … {len(writes) - _SHOWN:,} earlier ones: to_pandas() returns all of them")
        lines += [f"  {w.kind:<13} {w.length:>12,} B  {escape.text(w.location)}{_which(w)}" for w in writes[-_SHOWN:]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from iceexplore.render import escape, html_table

        shown = [(w.kind, w.length, w.commit, w.attempt, w.location) for w in list(self)[-_SHOWN:]]
        more = f"<p>The last {_SHOWN} of {len(self):,}; <code>to_pandas()</code> returns all of them.</p>"
        table = html_table(("kind", "bytes", "commit", "attempt", "location"), shown)
        return f"<p>{escape.html(self._summary())}</p>{table}{more if len(self) > _SHOWN else ''}"

    def _summary(self) -> str:
        return f"{len(self):,} files written, {self.bytes:,} bytes"


def _which(write: Write) -> str:
    if write.commit is None:
        return ""
    return f" (commit {write.commit}" + (f", attempt {write.attempt})" if (write.attempt or 1) > 1 else ")")
