"""Get the query of a version in a dialect: as stored, or translated by sqlglot and labelled as such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iceexplore.errors import OptionError
from iceexplore.render import escape, html_lines
from iceexplore.views._state import ViewState
from iceexplore.views.sql._datafusion import DATAFUSION, datafusion_notes
from iceexplore.views.sql._parse import ParsedQuery, UnparsedQuery, known_dialect, parse_query, quiet

__all__ = ["ViewSql", "generated", "sql_in"]

#: The maximum number of function names to list in a note.
_MOST = 8
#: The errors that sqlglot raises on trees that it parsed from malformed texts.
GENERATOR_ERRORS = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, NotImplementedError)
#: The maximum number of lines that are displayed.
_LINES = 400


class ViewSql(str):
    """The text of a query; displayed with its dialect, and escaped.

    Attributes
    ----------
    dialect
        The dialect of the text.
    translated_from
        The stored dialect that sqlglot translated it from; None for a stored text.
    notes
        Possible differences of a translation.
    """

    dialect: str
    translated_from: str | None
    notes: tuple[str, ...]

    def __new__(
        cls, text: str, dialect: str, translated_from: str | None = None, notes: tuple[str, ...] = ()
    ) -> ViewSql:
        """Create a text with its dialect."""
        made = super().__new__(cls, text)
        made.dialect, made.translated_from, made.notes = dialect, translated_from, notes
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.dialect, self.translated_from, self.notes

    def _label(self) -> str:
        if self.translated_from is None:
            return f"{self.dialect}, as stored"
        return f"{self.dialect}, translated from {self.translated_from} by sqlglot"

    def _lines(self) -> Iterator[str]:
        lines = self.expandtabs(4).split("\n")
        yield from (escape.shorten(line, 2_000) for line in lines[:_LINES])
        if len(lines) > _LINES:
            yield f"… {len(lines) - _LINES:,} more lines"

    def __repr__(self) -> str:
        head = [f"-- {escape.text(self._label())}", *(f"-- {escape.text(note)}" for note in self.notes)]
        return "\n".join([*head, *map(escape.text, self._lines())])

    def _repr_html_(self) -> str:
        notes = "".join(f'<div style="font-size:12px;opacity:.8">ℹ {escape.html(n)}</div>' for n in self.notes)
        head = f'<div style="font-size:12px;opacity:.8">{escape.html(self._label())}</div>'
        body = html_lines("\n".join(self._lines()))
        return f'<div style="font-family:system-ui,sans-serif">{head}{body}{notes}</div>'


def sql_in(state: ViewState, dialect: str | None, *, translate: bool = True) -> ViewSql:
    """Return the query of the selected version in a dialect, by default in the only one that is stored.

    Raises
    ------
    OptionError
        The query is not stored in the dialect and cannot be translated, or several are stored and none is given.
    """
    version = state.version
    stored = () if version is None else version.dialects
    listed = ", ".join(map(repr, stored)) or "none"
    if dialect is None and len(stored) != 1:
        raise OptionError(f"{state.name} stores its query in {len(stored)} dialects: give one of {listed}")
    wanted = stored[0] if dialect is None else dialect
    if not isinstance(wanted, str):
        raise OptionError(f"dialect={dialect!r}: give the name of a dialect, one of {listed}")
    found = None if version is None else version.representation(wanted)
    if found is not None and found.sql is not None:
        return ViewSql(found.sql, found.dialect or "")
    missing = f"{state.name} does not store its query in the dialect {wanted!r}; it stores {listed}"
    if not translate or version is None or not version.sql:
        raise OptionError(missing)
    try:
        target = known_dialect(wanted)
    except ImportError:
        raise OptionError(f"{missing}. To translate it, pip install sqlglot") from None
    if target is None:
        raise OptionError(f"{missing}, and sqlglot does not know the dialect")
    reasons = []
    for r in version.sql:
        parsed = parse_query(r.sql or "", r.dialect)
        if isinstance(parsed, UnparsedQuery):
            reasons.append(f"{r.dialect}: {parsed.why}")
            continue
        try:
            text, notes = generated(parsed, target)
        except RecursionError:
            reasons.append(f"{r.dialect}: its SQL is nested too deeply")
            continue
        except GENERATOR_ERRORS as error:
            reasons.append(f"{r.dialect}: sqlglot cannot write its SQL in {target} ({type(error).__name__})")
            continue
        return ViewSql(text, target, r.dialect or "", notes)
    raise OptionError(f"{missing}, and cannot be translated ({'; '.join(reasons)})")


def generated(query: ParsedQuery, target: str) -> tuple[str, tuple[str, ...]]:
    """Return the SQL in another dialect, and notes on possible differences."""
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel, UnsupportedError

    notes = ["sqlglot translates syntax and functions; check results before you rely on them."]
    # Comments could end early in another dialect's syntax, so they are left out.
    how: dict[str, Any] = {"dialect": target, "pretty": True, "comments": False}
    with quiet():
        try:
            text = query.tree.sql(**how, unsupported_level=ErrorLevel.RAISE, max_unsupported=_MOST)
        except UnsupportedError as error:
            text = query.tree.sql(**how, unsupported_level=ErrorLevel.IGNORE)
            lines = [line for line in str(error).splitlines() if line.strip()][:_MOST]
            notes += [f"Not supported in {target}: {escape.shorten(line, 200)}" for line in lines]
    unknown = dict.fromkeys(str(node.this) for node in query.tree.find_all(exp.Anonymous))
    if unknown:
        names = ", ".join(escape.shorten(name, 40) for name in list(unknown)[:_MOST]) + (
            " …" if len(unknown) > _MOST else ""
        )
        notes.append(f"Functions that sqlglot does not know were not translated: {names}.")
    if target == DATAFUSION:
        notes += datafusion_notes(query.tree)
    if isinstance(again := parse_query(text, target), UnparsedQuery):
        notes.append(f"The translation cannot be parsed again: {again.why}.")
    return text, tuple(notes)
