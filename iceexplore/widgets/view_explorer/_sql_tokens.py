"""Split SQL into pieces to highlight, in time linear in its length, whatever the text is.

This is not a parser: it also splits a text that is not SQL, or is in an unknown dialect. Joined, the pieces are always
the whole text.
"""

from __future__ import annotations

import re

__all__ = ["MOST_HIGHLIGHTED", "sql_pieces"]

#: The maximum length, in characters, of a text that is highlighted.
MOST_HIGHLIGHTED = 50_000
#: The beginnings of the names of dialects in which double quotes enclose a string, and a backslash escapes a character.
#: In all others, double quotes enclose a name.
_LIKE_HIVE = ("bigquery", "databricks", "google-bigquery", "hive", "mysql", "spark")
_WORDS = (
    "ALL AND ANTI ANY ARRAY AS ASC AT BETWEEN BOTH BY CASE CAST COLLATE CROSS CUBE CURRENT DESC DISTINCT ELSE END "
    "ESCAPE EXCEPT EXISTS EXTRACT FALSE FETCH FILTER FIRST FOLLOWING FOR FROM FULL GROUP GROUPING HAVING ILIKE IN "
    "INNER INTERSECT INTERVAL IS JOIN LAST LATERAL LEADING LEFT LIKE LIMIT MINUS NATURAL NEXT NOT NULL NULLS "
    "OFFSET ON ONLY OR ORDER OUTER OVER PARTITION PIVOT PRECEDING QUALIFY RANGE RECURSIVE RIGHT RLIKE ROLLUP ROW "
    "ROWS SELECT SEMI SETS SOME TABLESAMPLE THEN TRAILING TRUE TRY_CAST UNBOUNDED UNION UNNEST UNPIVOT USING "
    "VALUES VIEW WHEN WHERE WINDOW WITH WITHIN"
)
_KEYWORDS = frozenset(_WORDS.split())


def _pieces(escape: str) -> re.Pattern[str]:
    """Return a pattern of pieces; ``escape`` matches an escaped character in a string.

    Every alternative ends at its first possible end or at the end of the text, so that no text is searched twice.
    """
    return re.compile(
        rf"""
        (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
      | (?P<string> '(?:{escape}|''|[^'])*(?:'|\Z) )
      | (?P<double> "(?:{escape}|""|[^"])*(?:"|\Z) )
      | (?P<name> `[^`]*(?:`|\Z) )
      | (?P<number> \d\w*(?:\.\d\w*)? | \.\d\w* )
      | (?P<word> [^\W\d]\w* )
      | (?P<other> [^\w'"`/.-]+ | . )
        """,
        re.VERBOSE | re.DOTALL,
    )


_PLAIN, _BACKSLASHES = _pieces("(?!)"), _pieces(r"\\.?")


def sql_pieces(text: str, dialect: str | None) -> list[tuple[str, str]]:
    """Return the pieces of a text with their kinds.

    The kinds are ``keyword``, ``function``, ``string``, ``number``, ``name`` (in quotes), ``comment``, and ``""`` for
    everything else. A text that is longer than `MOST_HIGHLIGHTED` is one piece.
    """
    if len(text) > MOST_HIGHLIGHTED:
        return [("", text)]
    like_hive = (dialect or "").strip().lower().startswith(_LIKE_HIVE)
    found: list[tuple[str, str]] = []
    for match in (_BACKSLASHES if like_hive else _PLAIN).finditer(text):
        kind = match.lastgroup or ""
        if kind == "word":
            kind = _kind_of_word(text, match)
        elif kind == "double":
            kind = "string" if like_hive else "name"
        elif kind == "other":
            kind = ""
        if found and found[-1][0] == kind == "":
            found[-1] = ("", found[-1][1] + match.group())
        else:
            found.append((kind, match.group()))
    return found


def _kind_of_word(text: str, match: re.Match[str]) -> str:
    before = text[match.start() - 1 : match.start()] if match.start() else ""
    if before == ".":  # a column may have the name of a keyword
        return ""
    if match.group().upper() in _KEYWORDS:
        return "keyword"
    return "function" if text[match.end() : match.end() + 1] == "(" else ""
