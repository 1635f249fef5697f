"""Differences between two states of a view: SQL by dialect, columns, defaults, properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from iceexplore.errors import OptionError, whole_number
from iceexplore.metadata import PropertyChange, Schema, SchemaChange, properties_changes, schema_changes
from iceexplore.render import Card, CardTable, CardText, card_html, card_text
from iceexplore.views._model import Representation
from iceexplore.views._state import ViewState
from iceexplore.views.diff._lines import SideBySide, UnifiedDiff, side_by_side, unified
from iceexplore.views.sql._changes import SqlChange, query_changes
from iceexplore.views.sql._parse import UnparsedQuery, format_sql, parse_query

__all__ = ["DialectDiff", "ViewDiff", "view_diff"]

_SHOWN_CHANGES = 60

#: Kinds of differences. ``same``: equal texts; ``formatting``: different texts with equal syntax trees; ``text``:
#: different texts, of which at least one cannot be parsed.
DialectKind = Literal["added", "changed", "formatting", "removed", "same", "text"]


@dataclass(frozen=True)
class DialectDiff:
    """How the SQL of one dialect differs between two states.

    Attributes
    ----------
    kind
        ``same``; ``formatting`` (the syntax trees are equal: only spaces, line breaks, comments or brackets differ);
        ``changed``; ``text`` (the texts differ, and at least one cannot be parsed); ``added``; ``removed``.
    old, new
        The SQL before and after, as stored; None where the dialect is not stored.
    changes
        The changes of the syntax tree, for the kind ``changed``.
    note
        The reason why syntax trees are missing, for the kind ``text``.
    """

    dialect: str
    kind: DialectKind
    old: str | None
    new: str | None
    changes: tuple[SqlChange, ...] = field(default=(), repr=False)
    note: str = ""

    @property
    def text(self) -> str:
        """The difference as a clause of a sentence."""
        return {
            "same": "same",
            "formatting": "same query: only formatting or comments differ",
            "changed": f"changed: {len(self.changes)} change{'' if len(self.changes) == 1 else 's'}",
            "text": f"texts differ; {self.note}",
            "added": "added",
            "removed": "removed",
        }[self.kind]


@dataclass(frozen=True, eq=False)
class ViewDiff:
    """The difference between two states of a view, ``a`` (before) and ``b`` (after), or between two views."""

    a: ViewState
    b: ViewState

    @cached_property
    def sql(self) -> tuple[DialectDiff, ...]:
        """How the SQL differs, for each dialect that at least one of the states stores."""
        old, new = (_by_dialect(state) for state in (self.a, self.b))
        return tuple(_dialect_diff(old.get(key), new.get(key)) for key in dict.fromkeys((*old, *new)))

    @property
    def changes(self) -> tuple[SqlChange, ...]:
        """The changes of the syntax trees of all dialects, without duplicates."""
        return tuple(dict.fromkeys(change for one in self.sql for change in one.changes))

    @property
    def dialects(self) -> dict[str, DialectKind]:
        """How the SQL of each dialect differs, as one of the kinds of `DialectDiff`."""
        return {one.dialect: one.kind for one in self.sql}

    @cached_property
    def schema(self) -> list[SchemaChange]:
        """The changes of the columns, matched by field id, so that renames are recognized."""
        old, new = self.a.schema, self.b.schema
        return schema_changes(old or Schema(-1, ()), new or Schema(-1, ()))

    @cached_property
    def properties(self) -> list[PropertyChange]:
        """The properties set, changed and removed.

        Properties belong to the metadata file, so they are the same in all versions of one file; in early drafts,
        each version may also have properties, and these are compared, too.
        """
        found = properties_changes(self.a.metadata.properties, self.b.metadata.properties)
        own = [{} if s.version is None else dict(s.version.properties or {}) for s in (self.a, self.b)]
        return [*found, *properties_changes(own[0], own[1])]

    @cached_property
    def defaults(self) -> list[str]:
        """The changes of the default catalog and default namespace, which unqualified names in the SQL refer to."""
        found = []
        for what, values in (
            ("default catalog", [_catalog(state) for state in (self.a, self.b)]),
            ("default namespace", [_namespace(state) for state in (self.a, self.b)]),
        ):
            if values[0] != values[1]:
                found.append(f"{what} changed from {values[0]} to {values[1]}")
        return found

    @property
    def is_empty(self) -> bool:
        """True if the SQL is the same text in each dialect, and neither columns, defaults nor properties differ."""
        return all(one.kind == "same" for one in self.sql) and not (self.schema or self.properties or self.defaults)

    @property
    def same_query(self) -> bool | None:
        """True if both states run the same query: equal trees and defaults; None if that is unknown.

        A dialect that only one state stores is not compared. Different syntax trees may still be equivalent queries.
        """
        compared = [one.kind for one in self.sql if one.kind not in ("added", "removed")]
        if "changed" in compared or self.defaults:
            return False
        return None if not compared or "text" in compared else True

    def unified(self, dialect: str | None = None, *, context: int = 3, pretty: bool = False) -> UnifiedDiff:
        """Return the SQL of a dialect as a unified diff.

        Parameters
        ----------
        dialect
            Not needed if the states have exactly one dialect in common, or store one dialect each.
        context
            The number of unchanged lines around a change.
        pretty
            True: compare the queries as sqlglot formats them, one clause a line, instead of the stored texts.

        Raises
        ------
        OptionError
            A state does not store the dialect, or with ``pretty``, its SQL cannot be parsed.
        """
        old, new, titles = self._texts(dialect, pretty)
        return unified(old, new, titles, min(whole_number("context", context), 10_000))

    def side_by_side(self, dialect: str | None = None, *, pretty: bool = False) -> SideBySide:
        """Return the SQL of a dialect before and after, side by side; see `unified` for arguments and errors."""
        return side_by_side(*self._texts(dialect, pretty))

    def title(self) -> str:
        """Return one line that names the two states."""
        return f"{_label(self.a)} → {_label(self.b)}"

    def card(self) -> Card:
        """Return the difference as a card, for text and HTML."""
        facts = [(f"SQL, {one.dialect or 'unknown dialect'}", one.text) for one in self.sql]
        tables = []
        for one in self.sql:
            if one.changes:
                rows = tuple((change.kind, change.clause, change.text) for change in one.changes[:_SHOWN_CHANGES])
                more = len(one.changes) - len(rows)
                note = f"{more:,} more: .changes" if more > 0 else ""
                tables.append(CardTable(f"Query, {one.dialect}", ("", "part", "change"), rows, note))
        parts = (
            ("Columns", [c.text for c in self.schema]),
            ("Defaults", self.defaults),
            ("Properties", [c.text for c in self.properties]),
        )
        for heading, changed in parts:
            if changed:
                shown = tuple((text,) for text in changed[:_SHOWN_CHANGES])
                tables.append(CardTable(heading, ("change",), shown))
            else:
                facts.append((heading, "same"))
        return Card(
            f"Diff {self.title()}", facts=tuple(facts), texts=tuple(self._unified_texts()), tables=tuple(tables)
        )

    def __repr__(self) -> str:
        return card_text(self.card())

    def _repr_html_(self) -> str:
        return card_html(self.card())

    # ------------------------------------------------------------------------------------------------------------------

    def _unified_texts(self) -> list[CardText]:
        found = []
        for one in self.sql:
            if one.kind in ("changed", "text") and one.old is not None and one.new is not None:
                try:
                    lines = unified(one.old, one.new, (_label(self.a), _label(self.b)), 3).lines
                except OptionError:
                    continue  # too many lines to compare; the list of changes is still shown
                found.append(CardText(f"SQL, {one.dialect}", "\n".join(lines[2:]), open=not one.changes))
        if not found and self.dialects and all(one.kind in ("added", "removed") for one in self.sql):
            found += [CardText(f"SQL {one.kind}, {one.dialect}", one.new or one.old or "") for one in self.sql[:8]]
        return found

    def _texts(self, dialect: str | None, pretty: bool) -> tuple[str, str, tuple[str, str]]:
        old, new = (_by_dialect(state) for state in (self.a, self.b))
        if dialect is None:
            keys = self._only_pair(old, new)
        elif not isinstance(dialect, str):
            raise OptionError(f"dialect={dialect!r}: give the name of a dialect")
        else:
            keys = (dialect.lower(), dialect.lower())
            for key, stored, state in zip(keys, (old, new), (self.a, self.b), strict=True):
                if key not in stored:
                    listed = ", ".join(repr(r.dialect) for r in stored.values()) or "none"
                    raise OptionError(f"{_label(state)} does not store the dialect {dialect!r}; it stores {listed}")
        pair = (old[keys[0]], new[keys[1]])
        titles = tuple(f"{_label(s)}, {r.dialect}" for s, r in zip((self.a, self.b), pair, strict=True))
        texts = [r.sql or "" for r in pair]
        if pretty:
            texts = [_formatted(r, title) for r, title in zip(pair, titles, strict=True)]
        return texts[0], texts[1], (titles[0], titles[1])

    def _only_pair(self, old: Mapping[str, Representation], new: Mapping[str, Representation]) -> tuple[str, str]:
        common = [key for key in old if key in new]
        if len(common) == 1:
            return common[0], common[0]
        if not common and len(old) == len(new) == 1:
            return next(iter(old)), next(iter(new))
        if not common:
            lists = [", ".join(repr(r.dialect) for r in stored.values()) or "none" for stored in (old, new)]
            raise OptionError(
                "the versions have no dialect in common, so no two texts can be compared: "
                + "; ".join(f"{_label(s)} stores {names}" for s, names in zip((self.a, self.b), lists, strict=True))
            )
        listed = ", ".join(repr(old[key].dialect) for key in common)
        raise OptionError(f"the versions have {len(common)} dialects in common: give dialect=, one of {listed}")


def view_diff(a: ViewState, b: ViewState) -> ViewDiff:
    """Compare two states of the same view or of different views."""
    return ViewDiff(a, b)


def _by_dialect(state: ViewState) -> dict[str, Representation]:
    """Return the stored SQL by dialect in lower case; if a dialect occurs twice, the first counts."""
    version = state.version
    stored = () if version is None else version.sql
    found: dict[str, Representation] = {}
    for r in stored:
        found.setdefault((r.dialect or "").lower(), r)
    return found


def _dialect_diff(old: Representation | None, new: Representation | None) -> DialectDiff:
    one = new or old
    assert one is not None
    name = one.dialect or ""
    if old is None or new is None:
        return DialectDiff(
            name, "added" if old is None else "removed", old.sql if old else None, new.sql if new else None
        )
    if old.sql == new.sql:
        return DialectDiff(name, "same", old.sql, new.sql)
    before, after = (parse_query(r.sql or "", r.dialect) for r in (old, new))
    for which, parsed in (("before", before), ("after", after)):
        if isinstance(parsed, UnparsedQuery):
            return DialectDiff(name, "text", old.sql, new.sql, note=f"compared as text, because {which}, {parsed.why}")
    assert not isinstance(before, UnparsedQuery)
    assert not isinstance(after, UnparsedQuery)
    try:
        changes = tuple(query_changes(before, after))
    except RecursionError:
        note = "compared as text, because the SQL is nested too deeply"
        return DialectDiff(name, "text", old.sql, new.sql, note=note)
    return DialectDiff(name, "changed" if changes else "formatting", old.sql, new.sql, changes)


def _formatted(r: Representation, title: str) -> str:
    text = format_sql(r.sql or "", r.dialect)
    if text is None:
        parsed = parse_query(r.sql or "", r.dialect)
        why = parsed.why if isinstance(parsed, UnparsedQuery) else "its SQL is nested too deeply"
        raise OptionError(f"pretty=True is impossible for {title}: {why}")
    return text


def _catalog(state: ViewState) -> str:
    found = None if state.version is None else state.version.catalog_of()
    return "the view's own" if found is None else found


def _namespace(state: ViewState) -> str:
    found = None if state.version is None else state.version.namespace_of()
    return "none" if found is None else ".".join(found) or "(empty)"


def _label(state: ViewState) -> str:
    at = "no version" if state.version is None else f"version {state.version.version_id}"
    return f"{state.name} {at}"
