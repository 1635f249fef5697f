"""The log of reads, which shows the cost of an operation to users and in tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Read", "ReadKind", "ReadLog"]

ReadKind = Literal[
    "metadata", "manifest-list", "manifest", "puffin", "delete-file", "data-footer", "list", "stat", "other"
]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Read:
    """A request to the storage.

    Attributes
    ----------
    location, real
        The file's location as the table spells it, and where the file really is.
    kind
        The role of the file in the table, see `ReadKind`.
    offset, length
        Bytes; a ``stat`` has length 0, a ``list`` the number of files found.
    seconds
        Wall time.
    cached
        True if served from memory, without a request.
    """

    location: str
    real: str
    kind: str
    offset: int
    length: int
    seconds: float
    cached: bool = False


class ReadLog:
    """Every read of one table, in order; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: list[Read] = []

    def __reduce__(self) -> tuple[type[ReadLog], tuple[()]]:
        return ReadLog, ()  # another process starts with an empty log

    def add(self, read: Read) -> None:
        """Record a read."""
        with self._lock:
            self._items.append(read)

    def clear(self) -> None:
        """Forget all reads so far."""
        with self._lock:
            self._items.clear()

    def of_kind(self, *kinds: str) -> list[Read]:
        """Return the reads of these kinds, without cached ones."""
        return [r for r in self if r.kind in kinds and not r.cached]

    @property
    def bytes(self) -> int:
        """Bytes that the storage sent; cached reads and listings do not count."""
        return sum(r.length for r in self if not r.cached and r.kind != "list")

    @property
    def seconds(self) -> float:
        """Seconds spent waiting for the storage; parallel reads are added up."""
        return sum(r.seconds for r in self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with one row per read."""
        import pandas as pd

        from iceexplore.render import shown_frame

        columns = list(Read.__dataclass_fields__)
        return shown_frame(pd.DataFrame([asdict(r) for r in self], columns=columns))

    def __iter__(self) -> Iterator[Read]:
        with self._lock:
            return iter(list(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        lines = [self._summary()]
        reads = list(self)
        lines += [
            f"  {r.kind:<13} {r.length:>12,} B {r.seconds * 1000:>9.1f} ms  {r.location}" + " (cached)" * r.cached
            for r in reads[-_SHOWN:]
        ]
        if len(reads) > _SHOWN:
            lines.insert(1, f"  … {len(reads) - _SHOWN:,} earlier ones: to_pandas() returns all of them")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from iceexplore.render import escape, html_table

        reads = list(self)
        shown = [
            (r.kind, r.length, round(r.seconds * 1000, 1), r.location + (" (cached)" if r.cached else ""))
            for r in reads[-_SHOWN:]
        ]
        more = f"<p>The last {_SHOWN} of {len(reads):,}; <code>to_pandas()</code> returns all of them.</p>"
        table = html_table(("kind", "bytes", "ms", "location"), shown)
        return f"<p>{escape.html(self._summary())}</p>{table}{more if len(reads) > _SHOWN else ''}"

    def _summary(self) -> str:
        return f"{len(self):,} reads, {self.bytes:,} bytes, {self.seconds:.3f} s"
