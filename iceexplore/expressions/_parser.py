"""Parse the text of a filter into conditions: the part of SQL's ``WHERE`` that metadata can evaluate.

This is a recursive descent parser with limited depth, whose time is linear in the length of the text. A general SQL
parser takes exponential time for some nested calls, and does not keep the positions of operators in the text.
"""

from __future__ import annotations

from difflib import get_close_matches

from iceexplore.errors import OptionError
from iceexplore.expressions._literal_parser import cast_value, like, number_value, prefix_of, text_value, typed_value
from iceexplore.expressions._tokens import Place, Token, tokens_of
from iceexplore.expressions._unbound import (
    Both,
    Call,
    Compare,
    Condition,
    Either,
    Member,
    Name,
    Negation,
    Operand,
    Test,
    Value,
)
from iceexplore.metadata import SQL_FUNCTIONS, TRANSFORMS

__all__ = [
    "MAX_DEPTH",
    "parse_filter",
]

#: Hints for characters that are not allowed in a filter.
HELP = {
    "&&": "write `and`", "&": "write `and`", "||": "write `or` (strings cannot be concatenated)", "|": "write `or`",
    "?": "parameters are not supported: write the value itself",
    ":": "parameters are not supported: write the value itself",
    "[": "filters on elements of lists and maps are not supported", "{": "only columns and literals can be compared",
    ";": "only one condition is allowed",
    **dict.fromkeys("+-*/%^~", "arithmetic is not supported: compare the column itself with a literal"),
}  # fmt: skip


class Cursor:
    """Reads tokens one after another."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def here(self) -> Token:
        """Return the next token without consuming it."""
        return self._tokens[self._next]

    def last(self) -> Place:
        """Return the place of the previous token."""
        return self._tokens[max(self._next - 1, 0)].at

    def peek(self, ahead: int = 1) -> Token:
        """Return a later token without consuming it."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the next token and advance."""
        token = self.here()
        self._next += token.kind != "end"
        return token

    def word(self, *words: str) -> bool:
        """Consume these words if they are next; return whether they were."""
        if all((t := self.peek(i)).kind == "word" and t.text == word for i, word in enumerate(words)):
            self._next += len(words)
            return True
        return False

    def sign(self, sign: str) -> bool:
        """Consume this sign if it is next; return whether it was."""
        if self.here().kind == "sign" and self.here().text == sign:
            self._next += 1
            return True
        return False

    def expect(self, sign: str, where: str) -> None:
        """Consume this sign. Raises `OptionError` if it is not next."""
        if not self.sign(sign):
            raise self.unexpected(f"'{sign}' {where}")

    def unexpected(self, wanted: str) -> OptionError:
        """Return the error that says which token was expected."""
        token = self.here()
        if token.kind == "end":
            return token.at.unparsable(f"expected {wanted}, but the text ends")
        if token.kind == "sign" and token.text in HELP:
            return token.at.unparsable(HELP[token.text])
        return token.at.unparsable(f"expected {wanted}, not {token.at.quoted}")


#: Maximum depth of nested parentheses.
MAX_DEPTH = 64
_COMPARISONS = {"=": "=", "==": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_SUBQUERY = "subqueries are not supported: only columns and literals can be compared"
#: Words that cannot begin an operand unless they are quoted.
_RESERVED = frozenset(["and", "or", "not", "in", "is", "like", "between", "escape", "ilike", "rlike"])
_CALLS = {
    "isnan": "nan", "is_nan": "nan", "isnull": "null", "is_null": "null", "isnotnull": "null", "is_not_null": "null",
    "startswith": "starts", "starts_with": "starts", "cast": "cast", "try_cast": "cast", "date": "typed",
    "timestamp": "typed", "double": "typed", "float": "typed", "uuid": "typed",
}  # fmt: skip
#: Partition transforms by the names of Iceberg's functions in Spark (``days``). The names of the transforms (``day``)
#: would be ambiguous: in SQL, ``day(x)`` is the day of the month, and ``year(x)`` does not count from 1970.
_TRANSFORMS = {cls.spark_name or cls.name: cls for cls in TRANSFORMS if not cls.is_identity and not cls.is_void}
_PARTS_OF_TIMES = {cls.name: cls.spark_name for cls in TRANSFORMS if cls.is_time and cls.spark_name}
#: Functions of one column.
_FUNCTIONS = (*(name for name in SQL_FUNCTIONS if name != "coalesce"), *_TRANSFORMS)
_WIDTH_MAX = 2**31 - 1
_TYPED = frozenset(["date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz", "timestamptz", "uuid"])


def parse_filter(text: str) -> Condition:
    """Parse the text of a filter.

    Supported are ``and``, ``or``, ``not``, parentheses; ``= == != <> < <= > >=``, ``<=>`` and ``is [not] distinct
    from`` (both treat null as a value); ``[not] between``; ``[not] in (...)``; ``[not] like 'prefix%'`` with ``escape``
    (a backslash by default); ``is [not] null``, ``is [not] nan``, ``is [not] true``, ``isnan(x)``, ``isnull(x)``;
    ``startswith(x, 'a')``; ``true``, ``false``, and a boolean column alone.

    Instead of a column, a function of one column may be compared: ``lower``, ``upper``, ``trim``, ``char_length``,
    ``character_length`` and ``octet_length``; ``bucket(16, x)``, ``truncate(10, x)``; ``years(x)``, ``months(x)``,
    ``days(x)``, ``hours(x)``: years, months, dates and hours as Iceberg's transforms return them. Virtual columns and
    partition fields are used to prune by such comparisons.

    Columns are ``a``, ``a.b.c``, ``"with space"`` or in backticks. Literals are ``5``, ``-1.5``, ``1e3``, ``'text'``,
    ``true``, ``null``, ``x'00ff'``, ``date '2024-05-17'``, ``timestamp '2024-05-17 14:30:00+02:00'``, ``cast('...' as
    type)``, ``'...'::type``. `bind_filter` checks whether they fit their columns.

    Raises
    ------
    OptionError
        The text is not a filter, or is longer than a million characters or nested deeper than 64 parentheses. The
        message shows the line with carets under the wrong part.
    """
    try:
        return _Parser(tokens_of(text)).whole()
    except RecursionError:
        raise OptionError("the filter is nested too deeply for the remaining stack: simplify it") from None


class _Parser(Cursor):
    _depth = 0

    def whole(self) -> Condition:
        if self.here().kind == "end":
            raise self.here().at.unparsable("the filter is empty; write a condition like id > 5")
        out = self._either()
        if self.sign(";") and self.here().kind == "end":
            return out
        if self.here().kind != "end":
            raise self.unexpected("'and', 'or' or the end")
        return out

    def _either(self) -> Condition:
        first = self._both()
        children = [first]
        while self.word("or"):
            children.append(self._both())
        return first if len(children) == 1 else Either(tuple(children), first.at.to(self.last()))

    def _both(self) -> Condition:
        first = self._negation()
        children = [first]
        while self.word("and"):
            children.append(self._negation())
        return first if len(children) == 1 else Both(tuple(children), first.at.to(self.last()))

    def _negation(self) -> Condition:
        begin = self.here().at
        odd = False
        while self.word("not") or self.sign("!"):
            odd = not odd
        child = self._condition()
        return Negation(child, begin.to(self.last())) if odd else child

    def _condition(self) -> Condition:
        """Parse a comparison, a condition in parentheses, or a single operand."""
        begin = self.here().at
        left: Condition
        if self.sign("("):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise begin.unparsable(f"parentheses are nested deeper than {MAX_DEPTH}")
            if self.here().text in ("select", "with") and self.peek().kind in ("word", "name", "number", "string"):
                raise self.here().at.unparsable(_SUBQUERY)
            left = self._either()
            self.expect(")", "after the condition")
            self._depth -= 1
        else:
            left = self._operand()
        if isinstance(left, Name | Value | Call):
            return self._comparison(left, begin)
        token = self.here()
        if token.text in _COMPARISONS or (token.kind == "word" and token.text in ("is", "in", "like", "between")):
            raise token.at.unparsable("a condition cannot be compared: compare a column with a literal")
        return left

    def _comparison(self, left: Operand, begin: Place) -> Condition:
        token = self.here()
        if token.kind == "sign" and token.text in _COMPARISONS:
            self.take()
            right = self._value_operand(f"a value after {token.at.quoted}")
            return Compare(_COMPARISONS[token.text], left, right, begin.to(self.last()))
        if self.word("is"):
            return self._is(left, begin)
        negated = self.word("not")
        out: Condition
        if self.word("in"):
            items = self._list()
            out = Member(left, items, negated, begin.to(self.last()))
        elif self.word("between"):
            low = self._value_operand("a value after 'between'")
            if not self.word("and"):
                raise self.unexpected("'and' between the two values")
            high = self._value_operand("a value after 'and'")
            at = begin.to(self.last())
            out = Both((Compare(">=", left, low, at), Compare("<=", left, high, at)), at)
            out = Negation(out, at) if negated else out
        elif self.word("like"):
            pattern = self._literal("a pattern like 'abc%'")
            escape = self._literal("a character like '!'") if self.word("escape") else None
            out = like(left, pattern, escape, negated, begin.to(self.last()))
        elif negated:
            raise self.unexpected("'in', 'between' or 'like' after 'not'")
        elif token.kind == "word" and token.text in ("ilike", "rlike", "regexp", "similar"):
            raise token.at.unparsable(f"{token.text} is not supported: use like 'abc%' or startswith(x, 'abc')")
        else:
            out = left
        return out

    def _is(self, left: Operand, begin: Place) -> Condition:
        negated = self.word("not")
        if self.word("distinct", "from"):
            right = self._value_operand("a value after 'from'")
            out = Compare("<=>", left, right, begin.to(self.last()))
            return out if negated else Negation(out, out.at)
        token = self.here()
        if token.kind != "word" or token.text not in ("null", "nan", "true", "false", "unknown"):
            raise self.unexpected("null, nan, true, false or distinct from after 'is'")
        self.take()
        what = "null" if token.text == "unknown" else token.text
        return Test(left, what, negated, begin.to(token.at))  # type: ignore[arg-type]

    def _list(self) -> tuple[Value, ...]:
        self.expect("(", "after 'in'")
        if self.here().text == "select":
            raise self.here().at.unparsable("subqueries are not supported: list the values")
        items = [self._literal("a value")]
        while self.sign(","):
            items.append(self._literal("a value after ,"))
        self.expect(")", "after the list")
        return tuple(items)

    def _literal(self, wanted: str) -> Value:
        found = self._value_operand(wanted)
        if isinstance(found, Name | Call):
            raise found.at.unparsable(f"expected {wanted}, not a column: write strings in single quotes, 'abc'")
        return found

    def _value_operand(self, wanted: str) -> Operand:
        """Parse a column or a literal, which may be in parentheses."""
        begin = self.here().at
        opened = 0
        while self.sign("("):
            opened += 1
        if self.here().kind == "word" and self.here().text == "select":
            raise self.here().at.unparsable(_SUBQUERY)
        found = self._operand(wanted)
        for _ in range(opened):
            self.expect(")", "after the value")
        if not isinstance(found, Name | Value | Call):
            raise begin.to(self.last()).unparsable(f"expected {wanted}, not a condition")
        return found

    def _operand(self, wanted: str = "a column or a value") -> Condition:
        token = self.here()
        match token.kind:
            case "number":
                found: Condition = number_value(self.take(), 1)
            case "string" | "bytes":
                found = text_value(self.take())
            case "sign" if token.text in ("-", "+"):
                found = self._signed(wanted)
            case "name":
                found = self._name()
            case "word" if token.text not in _RESERVED:
                found = self._worded()
            case _:
                raise self.unexpected(wanted)
        while self.sign("::"):
            found = self._cast(found)
        if self.here().kind == "sign" and self.here().text in HELP and self.here().text != ";":
            raise self.unexpected("")
        return found

    def _signed(self, wanted: str) -> Value:
        begin, sign = self.here().at, 1
        while (minus := self.sign("-")) or self.sign("+"):
            sign = -sign if minus else sign
        if self.here().kind != "number":
            raise self.unexpected("a number" if wanted.startswith("a column") else wanted)
        found = number_value(self.take(), sign)
        return Value(found.kind, found.value, begin.to(found.at))

    def _worded(self) -> Condition:
        """Parse an operand that begins with a plain word: a literal, a call, a typed literal or a column."""
        token, after = self.here(), self.peek()
        if after.kind == "sign" and after.text == "(":
            return self._call()
        if after.text != "." and token.text in ("true", "false", "null"):
            self.take()
            value = {"true": True, "false": False, "null": None}[token.text]
            return Value("null" if value is None else "boolean", value, token.at)
        if after.kind == "string" and token.text in _TYPED:
            self.take()
            return typed_value(token.text, text_value(self.take()), token.at.to(self.last()))
        if token.text == "case" and after.text == "when":
            raise token.at.unparsable("case is not supported: write conditions with and, or, not")
        if token.text == "interval" and after.kind in ("string", "number"):
            raise token.at.unparsable("intervals are not supported: write the timestamp itself")
        return self._name()

    def _name(self) -> Name:
        tokens: list[Token] = []
        while not tokens or self.sign("."):
            if self.here().kind not in ("word", "name"):
                raise self.unexpected("a column's name")
            tokens.append(self.take())
        at = tokens[0].at.to(tokens[-1].at)
        parts = tuple(t.text if t.kind == "name" else at.text[t.at.start : t.at.end] for t in tokens)
        return Name(parts, tuple(t.kind == "name" for t in tokens), at)

    def _call(self) -> Condition:
        word = self.take()
        kind = _CALLS.get(word.text)
        if word.text == "exists":
            raise word.at.unparsable(_SUBQUERY)
        if word.text in _FUNCTIONS:
            return self._function(word)
        if kind is None:
            close = get_close_matches(word.text, [*_CALLS, *_FUNCTIONS, "in", "like"], 2, 0.7)
            near = f"; did you mean {' or '.join(close)}?" if close else ""
            known = (
                "use isnan(x), isnull(x), startswith(x, 'a'), cast('...' as type), a function of a column "
                f"({', '.join(_FUNCTIONS)}), or the JSON of an expression, which also has if_else and coalesce"
            )
            if word.text in _PARTS_OF_TIMES:
                near = ""
                known = (
                    "in SQL it extracts a part of a date or time. Iceberg's transform, which filters support, is "
                    f"{_PARTS_OF_TIMES[word.text]}(x): a date, or a number that counts from 1970. Or compare the "
                    "column itself with the limits of a range"
                )
            raise word.at.unparsable(f"function {word.at.quoted} is not supported; {known}{near}")
        self.expect("(", "")
        if kind == "cast":
            inner: Condition = self._value_operand("a literal")
            if not self.word("as"):
                raise self.unexpected("'as' and a type")
            out = self._cast(inner, word.at)
            self.expect(")", "after the type")
            return Value(out.kind, out.value, word.at.to(self.last()))
        operand = self._value_operand("a column")
        prefix = None
        if kind == "starts":
            self.expect(",", "and a prefix")
            prefix = self._literal("a prefix like 'abc'")
        self.expect(")", "after the " + ("prefix" if prefix else "literal" if kind == "typed" else "column"))
        at = word.at.to(self.last())
        if prefix is not None:
            return prefix_of(operand, prefix, at)
        if kind == "typed":
            if isinstance(operand, Name | Call):
                raise at.unparsable(
                    f"{word.text}(x) of a column is not supported: compare the column itself with a literal"
                )
            return typed_value(word.text, operand, at)
        return Test(operand, kind, "not" in word.text, at)  # type: ignore[arg-type]

    def _function(self, word: Token) -> Call:
        """Parse the arguments of a function: first the parameter of a transform (if it has one), then the column."""
        self.expect("(", "")
        transform = _TRANSFORMS.get(word.text)
        function = word.text if transform is None else transform.name
        if transform is not None and transform.width_name is not None:
            width = self.here()
            if width.kind != "number" or not width.text.isdecimal() or not 0 < int(width.text[:11]) <= _WIDTH_MAX:
                raise self.unexpected(f"a whole number above 0, as in {word.text}(16, x),")
            self.take()
            self.expect(",", f"and the column, as in {word.text}(16, x)")
            function = f"{function}[{int(width.text)}]"
        argument = self._value_operand("a column")
        if not isinstance(argument, Name):
            raise argument.at.unparsable(
                f"{word.text} takes a column here. Instead of calling it on a literal, write its result; write nested "
                "functions as the JSON of an expression"
            )
        self.expect(")", "after the column")
        return Call(function, argument, word.at.to(self.last()))

    def _cast(self, inner: Condition, begin: Place | None = None) -> Value:
        begin = begin or inner.at
        if not isinstance(inner, Value):
            raise begin.to(self.last()).unparsable("columns cannot be cast: compare the column itself with a literal")
        if self.here().kind != "word":
            raise self.unexpected("a type")
        word = self.take()
        name = word.text
        if name == "timestamp" and self.word("with", "time", "zone"):
            name = "timestamptz"
        elif name in ("timestamp", "time") and self.word("without", "time", "zone"):
            name = "timestamp_ntz" if name == "timestamp" else name
        numbers = []
        if self.sign("("):
            while self.here().kind == "number":
                numbers.append(self.take().text)
                self.sign(",")
            self.expect(")", "after the type's parameters")
        return cast_value(name, numbers, inner, word.at, begin.to(self.last()))
