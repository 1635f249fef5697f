"""What a Spark session is, and what it can do."""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from iceexplore.errors import OptionError, UnsupportedError

__all__ = ["SessionInfo", "version_of"]


@dataclass(frozen=True, eq=False)
class SessionInfo:
    """What a Spark session is, and can do.

    Attributes
    ----------
    version
        Spark's, major and minor: ``(4, 1)``. Of Connect the server's or the client's, whichever is older.
    connect
        A client of Spark Connect: it has no ``_jvm``, no ``sparkContext``, no RDDs, no ``newSession``.
    local
        The workers run on this machine, so that they see its disk. Of Connect: on the server's machine, which is this
        one.
    """

    version: tuple[int, int]
    connect: bool
    local: bool
    _session: Any = field(repr=False)

    @classmethod
    def of(cls, session: Any) -> SessionInfo:
        """What a session is; the same answer each time.

        Raises
        ------
        OptionError
            It is no Spark session, or one that was stopped.
        UnsupportedError
            Spark is older than 3.5.
        """
        try:
            known = _KNOWN[session]
        except (KeyError, TypeError):  # not seen yet, or what cannot be a key is no session either
            pass
        else:
            _check_runs(session, known.connect)
            return known
        kind = f"{type(session).__module__}.{type(session).__qualname__}"
        if not kind.startswith("pyspark.") or not hasattr(session, "createDataFrame"):
            raise OptionError(f"spark={session!r:.80} is no Spark session: give one, or what ix.spark() returns")
        connect = ".connect." in kind
        # Before anything is asked of it: PySpark answers with errors of its inside.
        _check_runs(session, connect)
        version = version_of(session.version)
        if connect:
            import pyspark

            version = min(version, version_of(pyspark.__version__))
        if version < (3, 5):
            raise UnsupportedError(f"this is Spark {session.version}: iceexplore needs Spark 3.5 or later")
        made = cls(version, connect, _is_local(session, connect), session)
        _KNOWN[session] = made
        return made

    @cached_property
    def iceberg(self) -> bool:
        """Whether the session has Iceberg's runtime; found out by trying, since Connect has no other way."""
        try:
            # Without a path: Iceberg refuses that by itself, and opens nothing.
            _ = self._session.read.format("iceberg").load().schema
        except Exception as e:
            return "DATA_SOURCE_NOT_FOUND" not in str(e) and "Failed to find" not in str(e)
        return True

    def need(self, version: tuple[int, int], what: str) -> None:
        """Refuse what this Spark is too old for.

        Raises
        ------
        UnsupportedError
            It is older than ``version``.
        """
        if self.version < version:
            ours, theirs = (".".join(map(str, v)) for v in (self.version, version))
            raise UnsupportedError(f"{what} needs Spark {theirs} or later; this session is Spark {ours}")


_KNOWN: weakref.WeakKeyDictionary[Any, SessionInfo] = weakref.WeakKeyDictionary()


def version_of(text: str) -> tuple[int, int]:
    """Major and minor of a Spark version.

    Raises
    ------
    UnsupportedError
        It is none.
    """
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise UnsupportedError(f"this Spark says that its version is {text!r}: iceexplore needs Spark 3.5 or later")
    return int(found.group(1)), int(found.group(2))


def _check_runs(session: Any, connect: bool) -> None:
    """Refuse a session that was stopped; of classic Spark each session of its context is."""
    stopped = getattr(session, "is_stopped", False) if connect else session.sparkContext._jsc is None
    if stopped:
        raise OptionError(
            "this Spark session was stopped: ix.spark() makes a new one; data frames of the stopped one are gone with "
            "it, and have to be made again"
        )


def _is_local(session: Any, connect: bool) -> bool:
    try:
        master = session.conf.get("spark.master", "") or ""
    except Exception:  # managed Sparks show no such settings
        return False
    if not master.startswith("local") or master.startswith("local-cluster"):
        return False
    host = str(getattr(session.client, "host", "")) if connect else "localhost"
    return host in ("localhost", "127.0.0.1", "::1", "[::1]")
