"""Describe the result of an expiry: which snapshots were removed, which were kept, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iceexplore.render import escape

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Expired", "KeptSnapshot", "age_reason", "duration", "source_of"]

#: The maximum number of kept snapshots that are printed with the reason; `Expired.to_pandas` returns all of them.
_MOST_SHOWN = 20


@dataclass(frozen=True)
class KeptSnapshot:
    """A snapshot that an expiry did not remove.

    Attributes
    ----------
    snapshot_id
        The snapshot's id.
    reason
        Why the snapshot was kept, as text: the first retention rule that applied.
    """

    snapshot_id: int
    reason: str


class Expired(tuple[int, ...]):
    """A tuple of the ids of the snapshots that an expiry removed, with two attributes for its other results.

    Attributes
    ----------
    kept
        The snapshots that were kept, in the order in which the table metadata lists them.
    refs
        Branches and tags that were removed because their snapshot is too old (``max-ref-age-ms``) or missing.
    """

    kept: tuple[KeptSnapshot, ...]
    refs: tuple[str, ...]

    def __new__(cls, ids: Iterable[int] = (), kept: Iterable[KeptSnapshot] = (), refs: Iterable[str] = ()) -> Expired:
        """Create the tuple of removed ids, and set the attributes."""
        made = super().__new__(cls, tuple(ids))
        made.kept, made.refs = tuple(kept), tuple(refs)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments that recreate the object, for pickling."""
        return Expired, (tuple(self), self.kept, self.refs)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per snapshot: ``snapshot_id``, ``expired``, and ``reason`` (why kept; empty if it expired)."""
        import pandas as pd

        rows = [(i, True, "") for i in self] + [(k.snapshot_id, False, k.reason) for k in self.kept]
        frame = pd.DataFrame(rows, columns=["snapshot_id", "expired", "reason"])
        return frame.astype({"snapshot_id": "int64", "expired": "bool"})

    def _lines(self) -> list[str]:
        went = f"{len(self):,} snapshot{'' if len(self) == 1 else 's'} expired"
        lines = [f"{went}, {len(self.kept):,} kept" + (":" if self.kept else "")]
        lines += [f"  {kept.snapshot_id} kept: {kept.reason}" for kept in self.kept[:_MOST_SHOWN]]
        if len(self.kept) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.kept) - _MOST_SHOWN:,} more; use .to_pandas() to list all of them")
        if self.refs:
            names = ", ".join(escape.text(repr(ref)) for ref in self.refs)
            lines.append(f"refs removed because their snapshot is too old (max-ref-age-ms) or missing: {names}")
        return lines

    def __repr__(self) -> str:
        return f"Expired({tuple(self)!r})\n" + "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{escape.html(chr(10).join(self._lines()))}</pre>"


def duration(ms: int) -> str:
    """Return a duration as text, such as ``5 days``, ``1.5 hours`` or ``30 ms``.

    The unit is the largest of day, hour, minute, second and millisecond that is not longer than the duration.
    """
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if ms >= size:
            number = f"{ms / size:,.1f}".removesuffix(".0")
            return f"{number} {unit}{'' if number == '1' else 's'}"
    return f"{max(0, ms)} ms"


def age_reason(limit_ms: int, source: str, where: str) -> str:
    """Return, as text, the reason why a snapshot that is too young to expire is kept.

    For example: ``younger than 5 days, in branch 'main' (default of history.expire.max-snapshot-age-ms)``.

    Parameters
    ----------
    limit_ms
        The age up to which snapshots are kept, in milliseconds.
    source
        What sets this limit, as text: the result of `source_of`, for example.
    where
        The middle part of the text, which names the snapshot's branch: ``, in branch 'main'`` or ``, in no branch``.
    """
    return f"younger than {duration(limit_ms)}{where} ({source})"


def source_of(name: str, properties: Mapping[str, Any], given: str | None) -> str:
    """Return a text that names what sets a retention limit: an argument, a table property, or the default.

    For example: ``older_than=``, ``table property history.expire.max-snapshot-age-ms``, or
    ``default of history.expire.max-snapshot-age-ms``.

    Parameters
    ----------
    name
        The table property for the limit, such as ``history.expire.max-snapshot-age-ms``.
    properties
        The table's properties. The limit has its default if ``name`` is not among them.
    given
        The name of the argument that sets the limit, such as ``"older_than="``; None if the caller gave no argument.
    """
    if given is not None:
        return given
    return f"table property {name}" if name in properties else f"default of {name}"
