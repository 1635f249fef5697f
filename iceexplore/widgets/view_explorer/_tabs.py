"""The content of the tabs of the explorer of views, as blocks."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iceexplore.errors import IceexploreError, OptionError
from iceexplore.graph import json_safe
from iceexplore.render import escape
from iceexplore.views import (
    DialectDiff,
    OpenSource,
    ViewDiff,
    ViewState,
    sql_in,
    view_card,
    view_diff,
    view_lineage,
    view_tree,
)
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.view_explorer._blocks import (
    MOST_SENT,
    card_blocks,
    note_block,
    picture_block,
    sql_block,
    table_block,
)

if TYPE_CHECKING:
    from iceexplore.doctor import Report

__all__ = ["compared_blocks", "details_blocks", "lineage_blocks", "problems_blocks", "sql_blocks"]

_MOST_DIALECTS = 8
_MOST_ROWS = 400
_MOST_LINE = 1_000
#: Queries on one line with more characters than this are formatted by sqlglot before they are compared.
_LONG_LINE = 60


def sql_blocks(state: ViewState, dialect: str) -> list[Block]:
    """Return the query in each stored dialect, and a translation into ``dialect`` if that is not empty."""
    version = state.version
    stored = () if version is None else version.sql
    found: list[Block] = []
    if dialect:
        try:
            made = sql_in(state, dialect)
        except OptionError as error:
            found += [_head(dialect, "no translation"), note_block(str(error))]
        else:
            origin = made.translated_from
            if origin is not None:
                found.append(_head(made.dialect, f"translated from {origin} by sqlglot, not stored"))
                found += [*map(note_block, made.notes), *sql_block(str(made), made.dialect)]
    for one in stored[:_MOST_DIALECTS]:
        found += [_head(one.dialect or "unknown dialect", "as stored"), *sql_block(one.sql or "", one.dialect)]
    if len(stored) > _MOST_DIALECTS:
        found.append(note_block(f"and {len(stored) - _MOST_DIALECTS:,} more: v.inspect.representations()"))
    others = () if version is None else tuple(r for r in version.representations if r not in stored)
    if others:
        kinds = ", ".join(dict.fromkeys(escape.shorten(r.type, 40) for r in others))
        found.append(note_block(f"Also stored, of a type that is not SQL: {kinds}"))
    return found or [note_block("This version stores no SQL.")]


def _head(dialect: str, note: str) -> Block:
    return ["h", [signs(escape.shorten(dialect, 60)), ["badge", signs(escape.shorten(note, 120))]]]


def compared_blocks(old: ViewState, new: ViewState) -> list[Block]:
    """Return what changed from one version to another: in words, and the SQL side by side."""
    diff = view_diff(old, new)
    labels = [f"version {s.version.version_id}" if s.version else "no version" for s in (old, new)]
    head: Block = ["h", [" → ".join(labels).capitalize()]]
    if diff.is_empty:
        return [head, ["p", ["No differences: SQL, columns, defaults and properties are the same."]]]
    card = diff.card()
    found = [head, *card_blocks(replace(card, tables=()), facts="What changed")]
    for one in diff.sql[:_MOST_DIALECTS]:
        if one.kind != "same":
            found += _sides(diff, one, labels)
    return [*found, *card_blocks(replace(card, facts=()))]


def _sides(diff: ViewDiff, one: DialectDiff, labels: list[str]) -> list[Block]:
    """Return a dialect's SQL before and after, line by line."""
    found: list[Block] = [_head(one.dialect or "unknown dialect", one.text.partition(";")[0])]
    if one.old is None or one.new is None:
        return [*found, *sql_block(one.new or one.old or "", one.dialect)]
    pretty = any("\n" not in text.strip() and len(text) > _LONG_LINE for text in (one.old, one.new))
    try:
        rows = _rows(diff, one.dialect, pretty)
        if rows is None:  # the SQL cannot be formatted
            pretty, rows = False, diff.side_by_side(one.dialect).rows
    except OptionError as error:
        return [*found, note_block(str(error))]
    if pretty:
        found.append(note_block("Formatted by sqlglot, as the stored text is one long line."))
    sent = [[sign, *(None if text is None else _line(text) for text in sides)] for sign, *sides in rows[:_MOST_ROWS]]
    found.append(["diff", labels, sent])
    if len(rows) > _MOST_ROWS:
        found.append(note_block(f"… {len(rows) - _MOST_ROWS:,} more lines: v.diff(…).side_by_side()"))
    return found


def _rows(diff: ViewDiff, dialect: str, pretty: bool) -> Sequence[tuple[str, str | None, str | None]] | None:
    try:
        return diff.side_by_side(dialect, pretty=pretty).rows
    except OptionError:
        if pretty:
            return None
        raise


def _line(text: str) -> str:
    return signs(escape.shorten(text.expandtabs(4), _MOST_LINE))


def lineage_blocks(state: ViewState, opener: OpenSource | None) -> Generator[str, None, list[Block]]:
    """Return blocks with the tree of what the query reads, and the columns that it reads. Opens the sources."""
    yield "Opening what the query reads …"
    try:
        found = picture_block(view_tree(state, None, opener, 120))
        yield "Following columns …"
        lineage = view_lineage(state, None, opener)
    except IceexploreError as error:
        return [["p", ["The lineage is unknown."]], note_block(str(error))]
    problems = lineage.problems
    if problems:
        found += [["h", ["Mismatches"]], ["list", [[signs(escape.shorten(text, 500))] for text in problems[:50]]]]
    return [*found, *card_blocks(lineage.card())]


def problems_blocks(report: Report) -> list[Block]:
    """Return the findings of a check as blocks."""
    from iceexplore.doctor import WORDS, finding_lines, report_scope

    found: list[Block] = [["p", [["note", signs(f"Checked: {report_scope(report)}.")]]]]
    for one in report.findings[:100]:
        lines = [(label, text) for label, text in finding_lines(one) if text]
        head = [["b", signs(one.title)], " ", ["badge", WORDS[one.severity]], " ", ["badge", one.code]]
        found += [["h", head], table_block(one.title, (), lines)]
    if not report.findings:
        found.append(["p", ["No problems found."]])
    if len(report.findings) > 100:
        found.append(note_block(f"and {len(report.findings) - 100:,} more: v.check() lists all"))
    return [
        *found,
        *(note_block(f"Not checked: {name}. {why[:1].upper()}{why[1:]}") for name, why in report.unknown.items()),
    ]


def details_blocks(state: ViewState) -> list[Block]:
    """Return the version's and the view's facts, columns, properties, and the JSON as stored."""
    metadata, version = state.metadata, state.version
    card = view_card(state)
    files = ("Location", metadata.location), ("Metadata file", state.metadata_location)
    notes = tuple(note for note in card.notes if state.metadata_location not in note)
    card = replace(card, facts=(*card.facts, *files), notes=notes)
    found = card_blocks(card, facts="Version", leave_out={"Versions"})
    pairs = [("Summary of the version", () if version is None else version.summary.items())]
    pairs.append(("Properties of the view", metadata.properties.items()))
    for heading, items in pairs:
        rows = [(str(key), str(value)) for key, value in items]
        found += [["h", [heading]], table_block(heading, ("key", "value"), rows[:200]) if rows else note_block("none")]
        if len(rows) > 200:
            found.append(note_block(f"and {len(rows) - 200:,} more"))
    documents = [("JSON of the version", None if version is None else version.raw), ("JSON of the view", metadata.raw)]
    for heading, raw in documents:
        if raw is not None:
            found.append(["fold", [heading], _json(raw)])
    return found


def _json(raw: object) -> list[Block]:
    text = json.dumps(raw, indent=2, ensure_ascii=False, default=str)
    found: list[Block] = [["code", signs_of_lines(str(json_safe(text[:MOST_SENT])))]]
    if len(text) > MOST_SENT:
        found.append(note_block(f"… {len(text) - MOST_SENT:,} more characters: v.metadata.raw has all"))
    return found
