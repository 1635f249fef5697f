"""The memory that decoding may take: one limit for the process, and what a single file may claim of it.

A few bytes can stand for gigabytes: compressed zeros, run lengths, one long string in a dictionary. What is stored
says nothing about what is decoded, so whoever decodes foreign bytes reserves memory for the result first, or as it
grows, and stops with `MemoryLimitError` where the limit would be passed.
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
#: Every file may take this much, however small it is ...
FLOOR = 512 << 20
#: ... and above it so many times what it stores. Manifests compress by 10 to 30, one of zeros by 1,000.
RATIO = 64
#: Of data files, which columns of few values make far smaller than metadata.
DATA_RATIO = 256
#: Without knowledge of the machine: what a small one has.
_UNKNOWN = 4 << 30
_LEAST = 64 << 20
_SHARE = 4

#: Held by whoever decodes something large, so that threads do not take the limit several times over.
BIG = threading.RLock()
_BIG_FROM = 128 << 20

_UNITS = {"": 1, "B": 1, **{u: 1 << 10 * i for i, u in enumerate(("KIB", "MIB", "GIB", "TIB"), 1)},
          **{u: 1000**i for i, u in enumerate(("KB", "MB", "GB", "TB"), 1)}}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")

_given: int | None = None


def memory_limit(limit: int | str | None = None) -> int:
    """Return the memory that decoding may take, in bytes; set it if one is given.

    The default is a quarter of the machine's memory, or of the container's where that is less. Under the default a
    small file may also not expand without measure: a metadata file to 64 times its size, a data file to 256 times, at
    least 512 MiB each. Once a limit is set, it alone counts.

    Parameters
    ----------
    limit
        Bytes, or a text such as ``"8 GiB"`` or ``"500 MB"``. The environment variable ``ICEEXPLORE_MEMORY_LIMIT``
        sets the limit at the start, for this process and those that it starts (Spark's workers, for example).

    Raises
    ------
    OptionError
        No such number, or less than 64 MiB.
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
    """Return the bytes that a file of ``stored`` bytes may take in memory once it is decoded."""
    limit = _set_limit()
    if limit is not None:
        return limit
    return min(_default(), max(FLOOR, ratio * (stored or 0)))


def shown_bytes(value: int) -> str:
    """Return a size for people: ``512 MiB``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            number = value / size
            return f"{number:.0f} {unit}" if number >= 100 or number == int(number) else f"{number:.1f} {unit}"
    return f"{value} bytes"


class Budget:
    """What one file's decoding takes, against what it may take.

    A context manager: a budget that grows large holds `BIG` until it ends, so that large files are decoded one at a
    time.

    Parameters
    ----------
    location
        The file, for the error.
    stored
        Its size in bytes.
    most
        A lower limit than `allowed` of ``stored``; like that one it gives way to a limit that was set.

    Attributes
    ----------
    limit, used
        Bytes.
    """

    def __init__(
        self, location: str, stored: int | None, *, ratio: int = RATIO, most: int | None = None
    ) -> None:
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
        """Take ``size`` more bytes.

        Raises
        ------
        MemoryLimitError
            They would pass the limit. ``what`` says what for: "the entries".
        """
        self.used += size
        if self.used > self.limit:
            raise self.refusal(what)
        if self._entered and not self._big and self.used > _BIG_FROM:
            BIG.acquire()
            self._big = True

    def refusal(self, what: str) -> MemoryLimitError:
        """Return the error for ``what``, to be raised where it is known without reserving."""
        limit = memory_limit()
        stored = "" if self.stored is None else f", of {shown_bytes(self.stored)} stored"
        if self.limit >= limit:
            why = "that is the memory limit"
        elif self._least == self.limit != FLOOR:
            why = f"what is of this kind may take no more of the memory limit of {shown_bytes(limit)}"
        else:
            why = (
                f"a file may take {self.ratio} times its size, at least {shown_bytes(FLOOR)}, within the memory limit "
                f"of {shown_bytes(limit)}"
            )
        return MemoryLimitError(
            f"{what} would take more than {shown_bytes(self.limit)} of memory{stored} ({why}). If you trust the file, "
            f"set a limit that holds it: iceexplore.memory_limit('8 GiB') · in {self.location}"
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
    """The memory of the machine, if it can be found out."""
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
    """What control groups allow this process: its own group, and every one above it."""
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
                with contextlib.suppress(OSError, ValueError):  # "max", or a group that is not seen from in here
                    found.append(int((folder / name).read_text(encoding="ascii")))
                if folder == base:
                    break
    return [size for size in found if size > 0]
