"""A report on a snapshot: which rules it keeps and breaks, each with the sentence of the spec that states the rule."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.commits.rules._check import check_rules, checked_rules
from iceexplore.commits.rules._entries import RuleBreak
from iceexplore.errors import Rule
from iceexplore.graph import TableState, to_frame
from iceexplore.metadata import Snapshot
from iceexplore.render import Card, CardTable, card_html, card_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RuleReport", "rule_report"]

_SCHEMA = build.schema(
    [
        ("rule", pa.string()),
        ("kept", pa.bool_()),
        ("violations", pa.int64()),
        ("where", pa.string()),
        ("found", pa.string()),
        ("text", pa.string()),
        ("quote", pa.string()),
        ("source", pa.string()),
    ]
)


@dataclass(frozen=True, eq=False)
class RuleReport:
    """The rules that a snapshot keeps and breaks.

    Attributes
    ----------
    title
        The table and the snapshot.
    rules
        The checked rules, sorted by id.
    breaks
        The violations, at most one of each kind per manifest.
    """

    title: str
    rules: tuple[Rule, ...]
    breaks: tuple[RuleBreak, ...]

    @property
    def ok(self) -> bool:
        """Whether every checked rule is kept."""
        return not self.breaks

    @property
    def broken(self) -> tuple[Rule, ...]:
        """The rules that are broken."""
        found = {b.rule for b in self.breaks}
        return tuple(r for r in self.rules if r.id in found)

    @property
    def arrow(self) -> pa.Table:
        """A table with one row for each checked rule.

        ``rule`` is the rule's id, ``kept`` is whether the snapshot has no violation, and ``violations`` is the number
        of violations. ``where`` and ``found`` are the location and the description of the first one, or null. ``text``
        is the rule in one sentence. ``quote`` is the sentence of a specification from which the rule follows, or null,
        and ``source`` is where the rule comes from.
        """
        rows = []
        for rule in self.rules:
            mine = [b for b in self.breaks if b.rule == rule.id]
            first = mine[0] if mine else None
            rows.append(
                {
                    "rule": rule.id,
                    "kept": not mine,
                    "violations": sum(b.count for b in mine),
                    "where": None if first is None else first.where,
                    "found": None if first is None else first.text,
                    "text": rule.text,
                    "quote": rule.quote or None,
                    "source": rule.source,
                }
            )
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def to_pandas(self) -> pd.DataFrame:
        """Return `arrow` as a data frame."""
        return to_frame(self.arrow)

    def card(self) -> Card:
        """Return the report as a card, for text and HTML."""
        rows = build.to_pylist(self.arrow)
        broken = tuple((r["rule"], r["found"], f"{r['violations']:,}", r["where"]) for r in rows if not r["kept"])
        kept = tuple((r["rule"], r["text"], f"“{r['quote']}”" if r["quote"] else "", r["source"]) for r in rows)
        tables = []
        if broken:
            columns = ("rule", "violation", "entries", "where")
            tables.append(CardTable("Broken", columns, broken, code=frozenset((3,)), right=frozenset((2,))))
        tables.append(CardTable("Rules", ("rule", "what must hold", "quoted sentence", "source"), kept, open=False))
        facts = (("Kept", f"{len(rows) - len(broken)} of {len(rows)} rules"),)
        return Card(f"Rules of {self.title}", facts=facts, tables=tuple(tables))

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())


def rule_report(state: TableState, snapshot: Snapshot | None = None, *, relaxed: Collection[str] = ()) -> RuleReport:
    """Check a snapshot, and return every checked rule with its violations.

    The same files are read as by `check_rules`. Which rules are checked depends on the form of the snapshot's root: a
    manifest list, a root manifest of the V4 proposal, or one of the V4 draft.

    Parameters
    ----------
    snapshot
        By default the state's snapshot.
    relaxed
        Ids of rules to leave out of the report, together with their violations.

    Raises
    ------
    OptionError
        ``relaxed`` names an unknown rule.
    IceexploreError
        A manifest or a manifest DV cannot be read, so no rule can be checked.
    """
    wanted = snapshot or state.snapshot
    if wanted is None:
        return RuleReport(f"{state.name}, which has no snapshot", (), ())
    breaks = check_rules(state, wanted, relaxed=relaxed)
    rules = [r for r in checked_rules(state, wanted) if r.id not in relaxed]
    return RuleReport(f"{state.name} in snapshot {wanted.snapshot_id}", tuple(rules), tuple(breaks))
