"""The errors that iceexplore raises; each message says what is wrong, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = [
    "AccessDeniedError",
    "CatalogError",
    "CommitConflictError",
    "FileMissingError",
    "FormatError",
    "IceexploreError",
    "MemoryLimitError",
    "MetadataNotFoundError",
    "MissingDependencyError",
    "OptionError",
    "OutsideRootsError",
    "RuleError",
    "SnapshotNotFoundError",
    "StorageError",
    "TableChangedError",
    "TemporaryFolderError",
    "UnsupportedError",
    "visible",
]

#: Invisible characters that control the display. ZWNJ and ZWJ (U+200C, U+200D) are not among them, because some scripts
#: and emoji need them.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U0001fffe\U0001ffff\U000e0000-\U000e0fff]"
)


def _show(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\u27e8U+{code:04X}\u27e9"


def visible(value: object) -> str:
    """Return the text with control characters made visible: ``␛`` for escape, ``⟨U+202E⟩`` for a bidi override."""
    return _ACTING.sub(_show, str(value))


class IceexploreError(Exception):
    """Base of every error that iceexplore raises. Control characters in its message are made visible."""

    def __str__(self) -> str:
        return "\n".join(map(visible, super().__str__().split("\n")))

    def __reduce__(self) -> tuple[Any, ...]:  # pickled without calling `__init__`, whose arguments differ from `args`
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[IceexploreError], args: tuple[Any, ...], state: dict[str, Any]) -> IceexploreError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class MetadataNotFoundError(IceexploreError, FileNotFoundError):
    """No table metadata file was found at the given location.

    Attributes
    ----------
    tables
        The folders of tables that were found below that location instead.
    """

    tables: tuple[str, ...] = ()


class FileMissingError(IceexploreError, FileNotFoundError):
    """A file that the table references does not exist (404)."""


class AccessDeniedError(IceexploreError, PermissionError):
    """The storage denied access (403): the file may exist."""


class StorageError(IceexploreError, OSError):
    """The storage failed in another way: a network error, a time-out, malformed credentials."""


class TemporaryFolderError(StorageError):
    """The temporary folder is full, read-only or missing: not the table's fault, so never recorded as a problem."""


class OutsideRootsError(IceexploreError, PermissionError):
    """A location was refused because it is outside the table's roots, the folders from which its files may be read.

    Attributes
    ----------
    allow
        The locations to pass as ``allow=`` so that it can be read.
    """

    allow: tuple[str, ...] = ()


class CatalogError(IceexploreError, LookupError):
    """A catalog or a table in it could not be found or loaded."""


class SnapshotNotFoundError(IceexploreError, LookupError):
    """No such snapshot, ref, version or time; the message lists the nearest existing ones."""


class TableChangedError(IceexploreError, RuntimeError):
    """A refresh found a different table (one with a different table-uuid) at the same location."""


class OptionError(IceexploreError, ValueError):
    """An invalid argument; the message lists the accepted values."""


class RuleError(IceexploreError, ValueError):
    """A commit that would break a rule of the format, refused before anything is written.

    Parameters
    ----------
    rule
        The rule's id, a key of `iceexplore.commits.RULES`.
    message
        The operation that breaks the rule, and what to do instead.
    """

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        super().__init__(f"{message} [rule {rule}]")


class CommitConflictError(IceexploreError, RuntimeError):
    """A concurrent commit came first, and this one conflicts with it.

    Parameters
    ----------
    rule
        The validation that failed, a key of `iceexplore.commits.RULES`.
    message
        The change made by the other commit.
    files
        The locations of the files in conflict.
    """

    def __init__(self, rule: str, message: str, files: Iterable[str] = ()) -> None:
        self.rule = rule
        self.files = tuple(files)
        shown = ", ".join(self.files[:5]) + (f" and {len(self.files) - 5} more" if len(self.files) > 5 else "")
        super().__init__(f"{message}{': ' + shown if shown else ''} [rule {rule}]")


class UnsupportedError(IceexploreError, NotImplementedError):
    """The file seems valid, but needs a feature that is not supported."""


class MemoryLimitError(UnsupportedError, MemoryError):
    """Decoding a file would exceed the memory limit, which `iceexplore.memory_limit` can increase."""


class MissingDependencyError(IceexploreError, ImportError):
    """An optional package or program is not installed; the message says how to get it."""


class FormatError(IceexploreError, ValueError):
    """A file is damaged or does not have the expected format.

    Parameters
    ----------
    message
        The fault, as a clause without a final period.
    location
        The file.
    offset
        Byte offset in the file, where known.
    field
        The field or key, named as in the spec, where known.
    code
        The problem code under which tolerant reading reports it.
    """

    def __init__(
        self,
        message: str,
        *,
        location: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        code: str = "file-corrupt",
    ) -> None:
        self.reason = message
        self.location = location
        self.offset = offset
        self.field = field
        self.code = code
        parts = [message]
        if field is not None:
            parts.append(f"field {field}")
        if offset is not None:
            parts.append(f"at byte {offset}")
        if location is not None:
            parts.append(f"in {location}")
        super().__init__(" · ".join(parts))
