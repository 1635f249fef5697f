"""Redaction of a table before others see it, and the placeholders that replace what is removed.

What to redact depends on the kind of thing: a location, a name, a value, or free text. Words and numbers of the
formats themselves are kept. One object redacts a whole bundle, so equal things get equal placeholders throughout, and
references between files still match. Placeholders are keyed hashes; the key is not stored.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Generator, Hashable, Iterable
from typing import Any
from urllib.parse import unquote

from iceexplore.errors import OptionError, warn_caller
from iceexplore.graph.redaction._secrets import BLANK, blank_secrets, is_secret_name
from iceexplore.storage import JsonValue

__all__ = ["REDACTIONS", "Redaction", "Walk", "redactions", "walked"]

#: The kinds of redaction.
REDACTIONS = ("credentials", "values", "paths", "names")
#: Former kinds that are now part of ``values``: accepted for one release.
_FORMER = frozenset(("bounds", "partitions"))

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCHEMES = frozenset(
    [
        "s3",
        "s3a",
        "s3n",
        "gs",
        "gcs",
        "abfs",
        "abfss",
        "wasb",
        "wasbs",
        "adl",
        "hdfs",
        "viewfs",
        "file",
        "http",
        "https",
        "oss",
        "cos",
        "cosn",
        "obs",
        "memory",
    ]
)
_AZURE = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
#: Only locations that match may have a query, user, encoded character or token prefix; the others, which are most, are
#: not examined further.
_ODD = re.compile(r"[^A-Za-z0-9/_.=:-]|AKIA|ASIA|eyJ|ya29|AIza|xox|gh[oprsu]_|github_pat|glpat|dapi|sk_live|hooks")
_USER = re.compile(r"(?:[^/@]*|[^/:@]+:(?!\d+/)[^@]{1,200})@")
_METADATA_FILE = re.compile(r"(?:(v\d{1,18})|(\d{1,18})-.*?)((?:\.gz)?\.metadata\.json(?:\.gz)?)", re.S)
_EXTENSION = re.compile(
    r"(?:\.(?:parquet|avro|orc|puffin|stats|json|gz|bin|crc|metadata|bucketed|zst|txt)){1,3}$", re.I
)
#: Path segments that are kept: folders that every table has, the folder of a bundle, and ``.`` and ``..``.
_FOLDERS = frozenset({"", ".", "..", "metadata", "data", "_elsewhere"})
#: A path extends to the end of its line or to the closing quote, because folder names may contain spaces and
#: apostrophes.
_PATH = re.compile(
    r"""(?i) (?: [a-z][a-z0-9+.-]{0,30}:/ | (?<![\w.])/(?=[^\s/][^"\n]*/) | \b[a-z]:\\ ) (?: [^"\\\n] | \\. )* """, re.X
)
_FILE_NAME = re.compile(r"(?<![^\s\"'<>/])[^\s\"'<>/]+\.(?:parquet|avro|orc|puffin|stats|json|gz|bin|crc)\b")
#: Names that any table may have: reserved columns, parts of lists and maps, the main branch.
_NAMES = frozenset(
    [
        "key",
        "value",
        "element",
        "main",
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
        "file_path",
        "pos",
        "row",
    ]
)

#: Maximum number of placeholders that are cached: a table may have millions of files.
_MOST_KEPT = 100_000

#: A step of the walk through a document: a generator that yields nested steps and is sent their results.
Walk = Generator[Any, Any, Any]


def walked(walk: Walk) -> JsonValue:
    """Run a walk and return its result; steps are generators because documents may be nested deeper than the stack."""
    stack, value = [walk], None
    while True:
        try:
            stack.append(stack[-1].send(value))
            value = None
        except StopIteration as end:
            stack.pop()
            value = end.value
            if not stack:
                return value


def redactions(redact: bool | str | Iterable[str]) -> frozenset[str]:
    """Return the kinds to redact; True means all, False none.

    Paths contain partition values and names of tables and columns, so ``values`` and ``names`` imply ``paths``.

    Raises
    ------
    OptionError
        A kind is unknown, or ``redact`` is neither a boolean nor one or several texts.
    """
    if isinstance(redact, bool):
        return frozenset(REDACTIONS if redact else ())
    if not isinstance(redact, Iterable):
        raise OptionError(f"redact={redact!r}: give True, False, or any of {', '.join(REDACTIONS)}")
    kinds = frozenset({redact} if isinstance(redact, str) else redact)
    for old in sorted(kinds & _FORMER):
        warn_caller(f"redact={old!r} is now part of 'values'", DeprecationWarning)
    kinds = (kinds - _FORMER) | ({"values"} if kinds & _FORMER else set())
    if unknown := sorted(map(str, kinds - set(REDACTIONS))):
        raise OptionError(f"redact={unknown}: choose from {', '.join(REDACTIONS)}")
    return kinds | {"paths"} if kinds & {"values", "names"} else kinds


def _spans_folders(way: str) -> bool:
    """Return whether a secret in a path contains a slash: redacting folder by folder would then leave a part of it."""
    made = blank_secrets(way)
    return made != way and made != "/".join(map(blank_secrets, way.split("/")))


class Redaction:
    """Redacts texts, names, values and locations, the same way wherever they occur.

    Parameters
    ----------
    kinds
        The kinds of `REDACTIONS` to redact, from `redactions`.
    known
        Names of columns and partition fields, which are kept in a folder ``name=value`` if names are not redacted.

    Attributes
    ----------
    credentials, values, paths, names
        True for the kinds that are redacted.
    blanks
        True if free text is redacted entirely, as it may contain values and names.
    """

    def __init__(self, kinds: frozenset[str], known: Iterable[str] = ()) -> None:
        self.kinds = kinds
        self.credentials, self.values, self.paths, self.names = (k in kinds for k in REDACTIONS)
        self.blanks = self.values or self.names
        #: Number of redactions so far.
        self.touched = 0
        self._known = frozenset(known)
        self._salt = secrets.token_bytes(16)
        self._locations: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._numbers: dict[Any, dict[Any, int]] = {}

    def hashed(self, text: str) -> str:
        """Return a placeholder for a text: equal texts get equal ones, which without the key do not reveal the text."""
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=6).hexdigest()

    def text(self, text: str) -> str:
        """Redact free text."""
        if not text:
            return text
        if self.blanks:
            return self._counted(text, BLANK)
        made = self.secretless(text) if self.credentials else text
        return self._counted(text, self.without_paths(made, self.location) if self.paths else made)

    def secretless(self, text: str) -> str:
        """Redact the parts of a text that look like secrets."""
        return self._counted(text, blank_secrets(text))

    @staticmethod
    def without_paths(text: str, place: Callable[[str], str]) -> str:
        """Replace each path and file name in a text by the result of ``place``."""
        text = _PATH.sub(lambda found: place(found[0]), text)
        return _FILE_NAME.sub(lambda found: place(found[0]), text)

    def token(self, text: str) -> str:
        """Redact a text that identifies something, such as a key id; equal texts stay equal."""
        return f"x{self.hashed(text)}" if self.blanks else self.text(text)

    def key(self, key: str) -> str:
        """Redact the key of a map that may have any keys."""
        if self.names or (self.values and (key.startswith("partitions.") or "=" in key or "/" in key)):
            start = "partitions." if key.startswith("partitions.") else ""
            return f"{start}{BLANK}-{self.hashed(key)}"
        if self.credentials and self.secretless(key) != key:
            return f"{BLANK}-{self.hashed(key)}"
        return f"{BLANK}-{self.hashed(key)}" if self.paths and self.text(key) != key else key

    def is_secret(self, key: str) -> bool:
        """Return whether the value of a key must be a secret, judging by the key's name."""
        return self.credentials and is_secret_name(key)

    def name(self, name: str) -> str:
        """Redact the name of a column, partition field, branch or tag."""
        if name in self._names:
            return self._names[name]
        out = name
        if self.names:
            out = name if name in _NAMES else f"n{self.hashed(name)}"
        elif self.credentials and blank_secrets(name) != name:
            out = f"{BLANK}_{self.hashed(name)}"
        self._names[name] = out
        return out

    def number(self, of: Hashable, value: Hashable) -> int:
        """Return a number as the placeholder of a value; equal values of one field get the same number."""
        numbers = self._numbers.setdefault(of, {})
        return numbers.setdefault(value, len(numbers))

    def location(self, location: str) -> str:
        """Redact the location of a file or folder. Equal locations stay equal, and so do common leading folders."""
        made = self._locations.get(location)
        if made is None:
            made = self._place(location) if self.paths or self.credentials else location
            if len(self._locations) >= _MOST_KEPT:  # safe: a location is always redacted to the same text
                self._locations.clear()
            self._locations[location] = made
        return self._counted(location, made)

    def _counted(self, before: str, after: str) -> str:
        self.touched += before != after
        return after

    def member(self, name: str) -> str:
        """Return the redacted name of a zip member; ``name`` is the name without redaction."""
        return self._way(name) if self.paths or self.credentials else name

    def _place(self, location: str) -> str:
        if not self.paths and _ODD.search(location) is None and not is_secret_name(location):
            return location
        start, authority, way = "", "", location
        found = _SCHEME.match(location)
        if found and not (len(found[1]) == 1 and location[2:3] in ("\\", "/")):  # C:\ is a drive, not a scheme
            scheme = found[1]
            if scheme.lower() not in _SCHEMES and not self.paths and blank_secrets(location) != location:
                return f"{BLANK}-{self.hashed(location)}"  # not a location but text that contains a secret
            start = f"{scheme if scheme.lower() in _SCHEMES else 'x' + self.hashed(scheme)}:"
            way = location[found.end() :]
            if way.startswith("//") and scheme.lower() != "file":
                user = None if scheme.lower() in _AZURE else _USER.match(way, 2)
                at = user.end() if user else 2
                host, slash, rest = way[at:].partition("/")
                host, ask, asked = host.partition("?")
                way = slash + rest if not ask else f"?{asked}{slash}{rest}"
                mark = f"{BLANK}-{self.hashed(user[0])}@" if user and not self.paths else ""
                authority = f"//{mark}{self._segment(host, whole=True)}"
        way, ask, asked = way.partition("?")
        if not self.paths and any(map(_spans_folders, (way, unquote(way)))):
            way = f"/{BLANK}-{self.hashed(way)}"
        else:
            way = self._way(way)
        return start + authority + way + (f"?{BLANK}={self.hashed(asked)}" if ask else "")

    def _way(self, way: str) -> str:
        *folders, last = way.split("/")
        return "/".join([*map(self._folder, folders), self._segment(last)])

    def _folder(self, segment: str) -> str:
        """Redact a path segment like `_segment`, with a cache because many files share a folder."""
        made = self._folders.get(segment)
        if made is None:
            made = self._segment(segment)
            if len(self._folders) >= _MOST_KEPT:
                self._folders.clear()
            self._folders[segment] = made
        return made

    def _segment(self, segment: str, *, whole: bool = False) -> str:
        """Redact one folder or file name; keeps the file's extension and the number of a metadata file."""
        if segment in _FOLDERS:
            return segment
        if not self.paths:
            meant = unquote(segment)
            if blank_secrets(segment) == segment and (meant == segment or blank_secrets(meant) == meant):
                return segment
        if whole:
            return f"x{self.hashed(segment)}"
        found = _METADATA_FILE.fullmatch(segment)
        if found:
            return segment if found[1] else f"{found[2]}-{self.hashed(segment)}{found[3]}"
        name, equals, value = segment.partition("=")
        if equals and not self.names and name in self._known:
            return f"{name}=x{self.hashed(value)}"
        end = _EXTENSION.search(segment)
        made = self.hashed(segment)
        if _UUID.search(segment):  # keep the form of a UUID: files in a moved table are found by it
            made = f"{made[:8]}-{made[8:]}-{made[:4]}-{made[4:8]}-{made}"
        return f"x{made}{end[0] if end else ''}"
