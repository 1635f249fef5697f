"""Which snapshots an expiry removed, which it kept, and by which rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iceexplore.render import escape

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Expired", "KeptSnapshot", "age_reason", "duration", "source_of"]

#: Rows of the explanation that are printed; `Expired.to_pandas` has all.
_MOST_SHOWN = 20


@dataclass(frozen=True)
class KeptSnapshot:
    """A snapshot that stayed.

    Attributes
    ----------
    snapshot_id
        Which one.
    reason
        The first rule that keeps it, as a sentence.
    """

    snapshot_id: int
    reason: str


class Expired(tuple[int, ...]):
    """The ids of the snapshots that an expiry removed, with what it kept and why.

    Attributes
    ----------
    kept
        The snapshots that stayed, in the metadata's order.
    refs
        Branches and tags that were removed because they were too old (``max-ref-age-ms``).
    """

    kept: tuple[KeptSnapshot, ...]
    refs: tuple[str, ...]

    def __new__(
        cls, ids: Iterable[int] = (), kept: Iterable[KeptSnapshot] = (), refs: Iterable[str] = ()
    ) -> Expired:
        """Return the ids, with the explanation."""
        made = super().__new__(cls, tuple(ids))
        made.kept, made.refs = tuple(kept), tuple(refs)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make an equal one, for pickling."""
        return Expired, (tuple(self), self.kept, self.refs)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per snapshot: ``snapshot_id``, ``expired``, ``reason``."""
        import pandas as pd

        rows = [(i, True, "") for i in self] + [(k.snapshot_id, False, k.reason) for k in self.kept]
        frame = pd.DataFrame(rows, columns=["snapshot_id", "expired", "reason"])
        return frame.astype({"snapshot_id": "int64", "expired": "bool"})

    def _lines(self) -> list[str]:
        went = f"{len(self):,} snapshot{'' if len(self) == 1 else 's'} expired"
        lines = [f"{went}, {len(self.kept):,} kept" + (":" if self.kept else "")]
        lines += [f"  {kept.snapshot_id} kept: {kept.reason}" for kept in self.kept[:_MOST_SHOWN]]
        if len(self.kept) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.kept) - _MOST_SHOWN:,} more: .to_pandas()")
        if self.refs:
            names = ", ".join(escape.text(repr(ref)) for ref in self.refs)
            lines.append(f"removed because of their age (max-ref-age-ms): {names}")
        return lines

    def __repr__(self) -> str:
        return f"Expired({tuple(self)!r})\n" + "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{escape.html(chr(10).join(self._lines()))}</pre>"


def duration(ms: int) -> str:
    """Return a length of time in its largest unit that is at least one: ``5 days``, ``2 hours``, ``30 ms``."""
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if ms >= size:
            number = f"{ms / size:,.1f}".removesuffix(".0")
            return f"{number} {unit}{'' if number == '1' else 's'}"
    return f"{max(0, ms)} ms"


def age_reason(limit_ms: int, source: str, where: str) -> str:
    """Return why a snapshot's age keeps it."""
    return f"younger than {duration(limit_ms)}{where} ({source})"


def source_of(name: str, properties: Mapping[str, Any], given: str | None) -> str:
    """Return where a limit comes from: an argument, the table's property, or its default."""
    if given is not None:
        return given
    return f"table property {name}" if name in properties else f"default of {name}"
