"""One escape function per target: every path, partition value, name and property is untrusted text.

Each function first applies `visible`, which replaces control characters, terminal escapes, bidi overrides, invisible
characters and lone surrogates by visible signs. Then it escapes the target's own syntax.
"""

from __future__ import annotations

import re

from iceexplore.errors import visible

__all__ = ["attribute", "dot", "html", "mermaid", "shorten", "svg", "text", "visible"]

#: Characters that Mermaid takes literally inside a quoted label. It does not take these literally: `#` (entities),
#: backtick (Markdown), `%{}` (directives), `\` and `$` (KaTeX).
_MERMAID_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .,:+/=_-")

#: Sequences that Mermaid acts on after it has decoded entities: a line break, KaTeX, its placeholders, icons. A word
#: joiner (U+2060, invisible) is inserted into each; word joiners in the text itself have already become visible signs.
_MERMAID_LATE = re.compile("\\\\(?=n)|\\$(?=\\$)|\ufb02(?=\u00b0)|\u00b6(?=\u00df)|:(?=fa-)")

#: The characters that Mermaid uses internally as placeholders for entities: U+FB02, degree, pilcrow, sharp s.
_MERMAID_MARKERS = frozenset("\ufb02\u00b0\u00b6\u00df")


def shorten(value: object, limit: int) -> str:
    """Return at most ``limit`` characters of a value, without its middle, because both ends of a path are informative.

    Callers shorten before they escape, so that no escape sequence is cut in two.
    """
    s = str(value)
    if len(s) <= limit:
        return s
    head = (limit - 1) // 2
    tail = limit - 1 - head
    return s[:head] + "\u2026" + s[len(s) - tail :]


def html(value: object) -> str:
    r"""Escape for HTML text, and put each ``$`` and ``\`` into a separate element.

    JupyterLab typesets ``$...$`` and ``\(...\)`` in HTML output, and MathJax looks for its delimiters within one
    run of text only.
    """
    s = attribute(value)
    return s.replace("\\", "<span>\\</span>").replace("$", "<span>$</span>")


def attribute(value: object) -> str:
    """Escape for a double-quoted HTML attribute."""
    return svg(value).replace("`", "&#96;")


def svg(value: object) -> str:
    """Escape for text and attributes of SVG (any XML 1.0)."""
    s = visible(value)
    return (
        s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;").replace("'", "&#39;")
    )


def mermaid(value: object) -> str:
    """Escape for a double-quoted Mermaid label, accTitle and accDescr: all but plain characters become entities.

    Mermaid reads ``<b>`` as HTML in labels even in strict mode, ``#...;`` as an entity, a backtick as Markdown and
    ``%%{`` as a directive anywhere.
    """
    out = []
    for c in _MERMAID_LATE.sub(lambda found: f"{found[0]}\u2060", visible(value)):
        if c in _MERMAID_PLAIN or (ord(c) > 127 and c.isalnum() and c not in _MERMAID_MARKERS):
            out.append(c)
        else:
            out.append(f"#{ord(c)};")
    return "".join(out)


def dot(value: object) -> str:
    r"""Escape for a Graphviz label that the ``graphviz`` package will quote: no ``\N`` or ``\l``, no HTML.

    Graphviz would read a label that begins with ``<`` and ends with ``>`` as HTML. It decodes character entities in any
    label, so both characters are written as entities.
    """
    return visible(value).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text(value: object) -> str:
    """Escape for a terminal or a log: one line, with control characters made visible."""
    return visible(value)
