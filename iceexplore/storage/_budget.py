"""The memory limit for decoding: one limit for the process, and the share that a single file may take.

A few bytes can expand to gigabytes: compressed zeros, run-length encoding, one long string in a dictionary. The stored
size does not limit the decoded size, so code that decodes untrusted bytes reserves memory for the result first, or as
it grows, and raises `MemoryLimitError` when the limit would be exceeded.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from pathlib import Path
from types import TracebackType

from iceexplore.errors import MemoryLimitError, OptionError

__all__ = ["BIG", "Budget", "DATA_RATIO", "FLOOR", "RATIO", "VARIABLE", "allowed", "memory_limit", "shown_bytes"]

#: The environment variable that sets the limit when the process starts.
VARIABLE = "ICEEXPLORE_MEMORY_LIMIT"
#: The bytes of memory that even the smallest file may take; a large file may take `RATIO` times its stored size.
FLOOR = 512 << 20
#: Real manifests compress by a factor of 10 to 30; one full of zeros, made to exhaust memory, by 1,000.
RATIO = 64
#: The ratio for data files is larger, because columns with few distinct values compress better than metadata.
DATA_RATIO = 256
#: The machine's memory to assume where it cannot be determined: as much as a small machine has.
_UNKNOWN = 4 << 30
_LEAST = 64 << 20
_SHARE = 4

#: Held while something large is decoded, so that threads do not use the limit several times over.
BIG = threading.RLock()
_BIG_FROM = 128 << 20

_UNITS = {"": 1, "B": 1, **{u: 1 << 10 * i for i, u in enumerate(("KIB", "MIB", "GIB", "TIB"), 1)},
          **{u: 1000**i for i, u in enumerate(("KB", "MB", "GB", "TB"), 1)}}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")

_given: int | None = None


def memory_limit(limit: int | str | None = None) -> int:
    """Return the maximum memory for decoding, in bytes; if ``limit`` is given, set the maximum first.

    The default is a quarter of the machine's memory, or of the container's where the container has less. By default,
    each file is limited, too: a metadata file may decode to 64 times its size, a data file to 256 times its size, and
    any file to 512 MiB, however small it is. Once a limit is set, only that limit applies.

    Parameters
    ----------
    limit
        Bytes, or a text such as ``"8 GiB"`` or ``"500 MB"``. The environment variable ``ICEEXPLORE_MEMORY_LIMIT``
        sets the limit at the start, for this process and its child processes (Spark's workers, for example).

    Raises
    ------
    OptionError
        The limit cannot be parsed, or is less than 64 MiB.
    """
    global _given
    if limit is not None:
        _given = _parsed(limit, "limit")
    return _set_limit() or _default()


def _set_limit() -> int | None:
    if _given is not None:
        return _given
    text = os.environ.get(VARIABLE)
    return _parsed(text, VARIABLE) if text else None


def _parsed(limit: int | str, name: str) -> int:
    match = None if isinstance(limit, bool) else _SIZE.fullmatch(str(limit))
    unit = None if match is None else _UNITS.get(match[2].upper())
    if match is None or unit is None:
        raise OptionError(f"{name}={limit!r}: give a number of bytes, or a text such as '8 GiB'")
    value = int(float(match[1]) * unit)
    if value < _LEAST:
        raise OptionError(f"{name}={limit!r}: give at least {shown_bytes(_LEAST)}")
    return value


def allowed(stored: int | None, ratio: int = RATIO) -> int:
    """Return the bytes of memory that a file of ``stored`` bytes may take once decoded."""
    limit = _set_limit()
    if limit is not None:
        return limit
    return min(_default(), max(FLOOR, ratio * (stored or 0)))


def shown_bytes(value: int) -> str:
    """Return a size as text: ``512 MiB``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            number = value / size
            return f"{number:.0f} {unit}" if number >= 100 or number == int(number) else f"{number:.1f} {unit}"
    return f"{value} bytes"


class Budget:
    """The memory that decoding one file takes, checked against the file's limit.

    A context manager: a budget that grows large holds `BIG` until it ends, so that large files are decoded one at a
    time.

    Parameters
    ----------
    location
        The file, for the error.
    stored
        Its size in bytes.
    most
        A lower limit than ``allowed(stored)``; like that default, it is ignored once a memory limit is set.

    Attributes
    ----------
    limit, used
        The memory that the file may take, and the memory reserved so far, in bytes.
    """

    def __init__(self, location: str, stored: int | None, *, ratio: int = RATIO, most: int | None = None) -> None:
        self.location = location
        self.stored = stored
        self.ratio = ratio
        self.limit = allowed(stored, ratio)
        self._least = FLOOR
        if most is not None and most < self.limit and _set_limit() is None:
            self.limit = self._least = most
        self.used = 0
        self._entered = self._big = False

    def reserve(self, size: int, what: str) -> None:
        """Reserve ``size`` more bytes.

        Raises
        ------
        MemoryLimitError
            The limit would be exceeded; ``what`` names the purpose of the bytes in the error: "the entries".
        """
        self.used += size
        if self.used > self.limit:
            raise self.refusal(what)
        if self._entered and not self._big and self.used > _BIG_FROM:
            BIG.acquire()
            self._big = True

    def refusal(self, what: str) -> MemoryLimitError:
        """Return the error that `reserve` raises, for callers that know beforehand that ``what`` does not fit."""
        limit = memory_limit()
        stored = "" if self.stored is None else f", of {shown_bytes(self.stored)} stored"
        if self.limit >= limit:
            why = "that is the memory limit"
        elif self._least == self.limit != FLOOR:
            why = f"that is the limit for files of this kind; the memory limit is {shown_bytes(limit)}"
        else:
            why = (
                f"each file is allowed {self.ratio} times its size, at least {shown_bytes(FLOOR)} and at most the "
                f"memory limit of {shown_bytes(limit)}"
            )
        return MemoryLimitError(
            f"{what} would take more than {shown_bytes(self.limit)} of memory{stored} ({why}). If you trust the file, "
            f"raise the limit: iceexplore.memory_limit('8 GiB') · in {self.location}"
        )

    def __enter__(self) -> Budget:
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = False
        if self._big:
            self._big = False
            BIG.release()


_found: int | None = None


def _default() -> int:
    global _found
    if _found is None:
        _found = max(_LEAST, min([*_machine(), *_containers()], default=_UNKNOWN) // _SHARE)
    return _found


def _machine() -> list[int]:
    """Return the machine's memory in bytes, as a list with one element; an empty list where it is unknown."""
    if sys.platform == "win32":
        return _windows()
    with contextlib.suppress(ValueError, OSError, AttributeError):
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if size > 0:
            return [size]
    return []


def _windows() -> list[int]:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "pages", "page", "all", "virtual", "extended")),
        )

    status = Status()
    status.length = ctypes.sizeof(status)
    library = getattr(ctypes, "windll", None)
    if library is None or not library.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return []
    return [int(status.total)]


def _containers() -> list[int]:
    """Return the memory limits in bytes of the process's control group and of every group above it."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            base = Path("/sys/fs/cgroup") if not controllers else Path("/sys/fs/cgroup/memory")
            name = "memory.max" if not controllers else "memory.limit_in_bytes"
            group = base / path.lstrip("/")
            for folder in (group, *group.parents):
                with contextlib.suppress(OSError, ValueError):  # "max", or a group that this container cannot see
                    found.append(int((folder / name).read_text(encoding="ascii")))
                if folder == base:
                    break
    return [size for size in found if size > 0]
