"""Redact the content of a saved page: secrets, data values, paths.

For values, an allowlist decides: facts and columns stay only if they are named like counts, sizes, ids, times or kinds,
and not like a column of the table. Summaries of snapshots are free text, so only their numbers stay. Everything not on
the list is redacted.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from base64 import b64decode
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from iceexplore.graph import blank_secrets, is_secret_name
from iceexplore.render import style
from iceexplore.storage import JsonValue
from iceexplore.widgets.core._escape_text import signs
from iceexplore.widgets.detail._node_tables import JSON

__all__ = ["BLANK", "PageRedactor"]

BLANK = "REDACTED"
#: Kinds of parts (`iceexplore.widgets.core._blocks`), each with the kind of redaction that removes it.
_MARKED = {"value": "values", "secret": "credentials"}
_NO_VALUE = re.compile(
    r"(^|[-_ .])(ids?|counts?|sizes?|numbers?|ms|at|bytes|version|status|content|types?|format|operation|name|kind"
    r"|ordinal|offsets?|length|records|files|deletes|manifests?|schemas|snapshots|refs|specs|columns?|committed|field|transform"
    r"|key|change|direction|null-order|required|ancestor|encoding|cardinality|rows|severity|code|location|path|file)$"
)
#: Names of fields that hold the keys of encrypted files, whether the keys are wrapped or not.
_KEYS = frozenset({"key-metadata", "encrypted-key-metadata"})
#: Values that a summary may keep under any key.
_MEASURE = re.compile(r"-?[\d,.]+(?: [KMGTPE]?i?B)?|[\d-]+ [\d:.]+ UTC|true|false")
_KEPT_KEYS = frozenset({"operation", "engine-name", "engine-version", "iceberg-version", "manifest-list"})
#: A path extends to the end of its line or of the quotes around it, as folder names may contain spaces and apostrophes.
_NO_PATH = re.compile(
    r"""(?i) (?: [a-z][a-z0-9+.-]{0,30}:/ | (?<![\w.])/(?=[^\s/][^"\n]*/) | \b[a-z]:\\ ) (?: [^"\\\n] | \\. )* """, re.X
)
#: A file name. The pattern is anchored at the start of a word; otherwise, a long word would take quadratic time.
_FILE_NAME = re.compile(r"(?<![^\s\"'<>/])[^\s\"'<>/]+\.(?:parquet|avro|orc|puffin|stats|json|gz|bin|crc)\b")
_PLACES = re.compile(r"(^|[-_ .])(location|path|file|manifest|manifest-list|metadata-file|statistics-path)$")
#: Words that may be encoded texts.
_WORD = re.compile(r"[^\s\"']+")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?([0-9a-fA-F]{16,})(?![0-9A-Za-z])")
_BASE64 = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/]{16,}={0,2}(?![\w+/=])")
#: Maximum number of cached texts, and the length of the longest.
_MOST_KEPT, _LONGEST_KEPT = 50_000, 500
_EXTENSION = re.compile(r"\.[a-z0-9]{2,8}$")


class PageRedactor:
    """Redacts the content of widgets for a saved page.

    Parameters
    ----------
    kinds
        Kinds in `iceexplore.graph.REDACTIONS`. The table's names have already been removed from the input.
    columns
        The names of the table's columns and partition fields; facts with these names are values.
    """

    def __init__(self, kinds: frozenset[str], columns: Collection[str]) -> None:
        self.kinds = kinds
        self._columns = {_plain(shown) for name in columns for shown in (name, signs(name))}
        self._salt = secrets.token_bytes(16)
        #: A cache of redacted texts, as most texts recur in each snapshot.
        self._made: dict[str, str] = {}

    def node(self, node: dict[str, Any], location: str | None) -> dict[str, Any]:
        """Return a redacted node of the tree; ``location`` is the location of its file."""
        if "paths" not in self.kinds:
            return self._dict(node)
        out = {**node, "tooltip": None}
        if node["kind"] not in _NAMED_KINDS:
            out["label"] = self._label(node["kind"], node["label"], location)
        if "values" in self.kinds and node["kind"] not in _NAMED_KINDS:
            out["note"] = ""
        return self._dict(out)

    def detail(self, detail: dict[str, Any]) -> dict[str, Any]:
        """Return the redacted details of a node."""
        out = dict(detail)
        if "paths" in self.kinds:
            out["tables"] = [tab for tab in detail["tables"] if tab["key"] != JSON]
            if detail.get("kind") not in _NAMED_KINDS:
                out["title"] = self._label(detail["kind"], detail["title"], detail.get("path"))
            out["problems"] = [{**p, "text": BLANK, "evidence": ""} for p in detail.get("problems", [])]
        if "paths" in self.kinds and out.get("path"):
            out["path"] = self._place(out.pop("copy", out["path"]))
        free = detail.get("kind") == "snapshot"
        for part in ("facts", "more"):
            out[part] = [self._fact(fact, free=free) for fact in detail.get(part, [])]
        # The help texts, quotations and links are this library's own, so they are not redacted.
        own = {"open": out.pop("open")} if "open" in out else {}
        return {**self._dict(out), **own, "help": {self._name(k): v for k, v in detail.get("help", {}).items()}}

    def page(self, page: dict[str, Any]) -> dict[str, Any]:
        """Return a redacted page of a grid: ``columns`` (with ``name``) and ``rows`` of text, or a JSON ``text``."""
        if "text" in page:
            return {"text": self._json(page["text"])}
        names = [column["name"] for column in page["columns"]]
        keyed = "credentials" in self.kinds and names[:2] == ["key", "value"]  # the rows are properties
        rows = []
        for row in page["rows"]:
            hidden = keyed and _is_secret(row[0] or "")
            cells = [self._cell(name, value) for name, value in zip(names, row, strict=True)]
            if names[:2] == ["key", "value"]:
                cells = [self._name(row[0] or ""), *(self._placed(row[0] or "", cell) for cell in cells[1:])]
            rows.append([cells[0], *(BLANK for _ in cells[1:])] if hidden else cells)
        out = {**page, "rows": self._all(rows)}
        if "above" in page:
            out["above"] = self.blocks(page["above"])
        # Texts shown in place of exact values, and bars, reveal as much as the values.
        changed = [
            [was != now for was, now in zip(*both, strict=True)] for both in zip(page["rows"], out["rows"], strict=True)
        ]
        for number, texts in page.get("texts", {}).items():
            of_rows = zip(texts, out["rows"], changed, strict=True)
            out["texts"] = out["texts"] | {
                number: [row[int(number)] if hidden[int(number)] else text for text, row, hidden in of_rows]
            }
        if "bars" in page:
            hidden_columns = {str(i) for row in changed for i, hidden in enumerate(row) if hidden}
            out["bars"] = {number: bars for number, bars in page["bars"].items() if number not in hidden_columns}
        return out

    def blocks(self, content: JsonValue) -> JsonValue:
        """Return redacted blocks, whose parts mark values and secrets by their kind."""
        if not isinstance(content, list):
            return self._all(content)
        kind = content[0] if len(content) == 2 and isinstance(content[0], str) else ""
        if _MARKED.get(kind) in self.kinds:
            return [kind, BLANK]
        return [self.blocks(part) for part in content]

    def _json(self, text: str) -> str:
        """Return a redacted JSON text. Truncated JSON is replaced as a whole, as its secrets cannot be identified."""
        if not self.kinds:
            return text
        try:
            return json.dumps(self._all(json.loads(text)), ensure_ascii=False, indent=2)
        except ValueError:
            return BLANK

    def traits(self, traits: dict[str, Any]) -> dict[str, Any]:
        """Return the redacted traits of the widgets."""
        return self._dict(traits)

    def text(self, value: str) -> str:
        """Return any other text, which contains no data values, with secrets and paths redacted."""
        return str(self._all(value))

    def failure(self, text: str) -> str:
        """Return the redacted text of an error."""
        return "cannot be read" if "paths" in self.kinds else self.text(text)

    def _fact(self, fact: list[Any], *, free: bool) -> list[Any]:
        name, *texts = fact
        if "credentials" in self.kinds and _is_secret(name):
            return [name, BLANK]
        if free and "values" in self.kinds and name not in _KEPT_KEYS and not _MEASURE.fullmatch(texts[0]):
            return [self._name(name), BLANK]
        return [self._name(name), *(self._cell(name, text) for text in texts)]

    def _name(self, name: str) -> str:
        """Return a field name, redacted if it contains values, as the names of counts per partition do."""
        return f"partitions.{BLANK}" if "values" in self.kinds and name.startswith("partitions.") else name

    def _cell(self, name: str, value: str | None) -> str | None:
        if value is None or value == "":
            return value
        plain = _plain(name)
        if "credentials" in self.kinds and plain in _KEYS:
            return BLANK
        if "values" in self.kinds and (not _NO_VALUE.search(plain) or plain in self._columns):
            return BLANK
        return self._placed(name, value)

    def _placed(self, name: str, value: str | None) -> str | None:
        """Return a value, replaced if its name marks it as a path."""
        is_path = value and value != BLANK and "paths" in self.kinds and _PLACES.search(_plain(name))
        return self._place(value) if is_path and value else value

    def _label(self, kind: str, label: str, location: str | None) -> str:
        """Return a node's label, replaced unless it is the title of the node's kind."""
        return label if label == style(kind).title else self._place(location or label)

    def _place(self, location: str) -> str:
        """Return a replacement for a path: equal for equal file names, and with the file's extension."""
        name = location.rstrip("/").rsplit("/", 1)[-1]
        kind = _EXTENSION.search(name)
        return hashlib.blake2b(name.encode(), digest_size=5, key=self._salt).hexdigest() + (kind[0] if kind else "")

    def _text(self, text: str) -> str:
        text = _NO_PATH.sub(lambda found: self._place(found[0]), text)
        return _FILE_NAME.sub(lambda found: self._place(found[0]), text)

    def _dict(self, value: dict[str, Any]) -> dict[str, Any]:
        return {k: BLANK if v and self._is_secret(k, value) else self._all(v) for k, v in value.items()}

    def _is_secret(self, key: str, value: dict[str, Any]) -> bool:
        """Return whether a key names a secret. The key "key" of a tab or of a map type does not."""
        if "credentials" not in self.kinds or isinstance(value[key], bool) or not _is_secret(key):
            return False
        return key != "key" or not ("title" in value or value.get("type") == "map")

    def _all(self, value: JsonValue) -> JsonValue:
        """Return a value with the secrets and paths in its texts redacted."""
        if type(value) is not str:  # an exact check first, because most values are text
            if isinstance(value, dict):
                return self._dict(value)
            if isinstance(value, list):
                return [self._all(v) for v in value]
            if not isinstance(value, str):
                return value
        made = self._made.get(value)
        if made is None:
            made = _unveiled(blank_secrets(value)) if "credentials" in self.kinds else value
            made = self._text(made) if "paths" in self.kinds else made
            if len(value) <= _LONGEST_KEPT and len(self._made) < _MOST_KEPT:
                self._made[value] = made
        return made


def _unveiled(text: str) -> str:
    """Replace words that contain a secret when decoded, such as raw bounds and partition folders."""
    if "%" in text:
        text = _WORD.sub(lambda found: _unless_secret(found[0], unquote(found[0])), text)
    text = _HEX.sub(lambda found: _unless_secret(found[0], _decoded(bytes.fromhex, found[1])), text)
    return _BASE64.sub(lambda found: _unless_secret(found[0], _decoded(b64decode, found[0])), text)


def _unless_secret(word: str, meant: str) -> str:
    return word if meant == word or blank_secrets(meant) == meant else BLANK


def _decoded(decode: Callable[[str], bytes], word: str) -> str:
    try:
        return decode(word).decode("utf-8", "replace")
    except ValueError:
        return ""


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    return is_secret_name(name) or _plain(name) in _KEYS


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


#: Kinds of nodes whose labels are names of the table, refs or snapshots.
_NAMED_KINDS = frozenset({"table", "snapshot", "branch", "tag", "more"})
