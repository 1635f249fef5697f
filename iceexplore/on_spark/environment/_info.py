"""Facts about a Spark session: version, Connect or classic, local or not, and the presence of Iceberg's runtime."""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from iceexplore.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SessionInfo", "version_of"]


@dataclass(frozen=True, eq=False)
class SessionInfo:
    """Facts about a Spark session.

    Attributes
    ----------
    version
        The Spark version, major and minor: ``(4, 1)``. For Connect, the older one of server and client.
    connect
        Whether it is a client of Spark Connect, which has no ``_jvm``, ``sparkContext``, RDDs or ``newSession``.
    local
        Whether the workers run on this machine and can access its disk. For Connect, whether the server does.
    """

    version: tuple[int, int]
    connect: bool
    local: bool
    _session: Any = field(repr=False)

    @classmethod
    def of(cls, session: SparkSession) -> SessionInfo:
        """Return the facts about a session, the same object each time.

        Raises
        ------
        OptionError
            The object is not a Spark session, or the session was stopped.
        UnsupportedError
            Spark is older than 3.5.
        """
        try:
            known = _KNOWN[session]
        except (KeyError, TypeError):  # not seen yet, or not hashable and thus not a session, which is checked below
            pass
        else:
            _check_runs(session, known.connect)
            return known
        kind = f"{type(session).__module__}.{type(session).__qualname__}"
        if not kind.startswith("pyspark.") or not hasattr(session, "createDataFrame"):
            raise OptionError(f"spark={session!r:.80} is not a Spark session: pass one, for example ix.spark()")
        connect = ".connect." in kind
        # Check before any other call, as PySpark raises internal errors for a stopped session.
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
        """Whether the session has Iceberg's runtime; determined by trying, as Connect offers no other way."""
        try:
            # Without a path, Iceberg raises an error but opens nothing.
            _ = self._session.read.format("iceberg").load().schema
        except Exception as e:
            return "DATA_SOURCE_NOT_FOUND" not in str(e) and "Failed to find" not in str(e)
        return True

    def need(self, version: tuple[int, int], what: str) -> None:
        """Raise an error if this Spark is older than a feature needs.

        Raises
        ------
        UnsupportedError
            This Spark is older than ``version``.
        """
        if self.version < version:
            ours, theirs = (".".join(map(str, v)) for v in (self.version, version))
            raise UnsupportedError(f"{what} needs Spark {theirs} or later; this session is Spark {ours}")


_KNOWN: weakref.WeakKeyDictionary[Any, SessionInfo] = weakref.WeakKeyDictionary()


def version_of(text: str) -> tuple[int, int]:
    """Return the major and minor number of a Spark version.

    Raises
    ------
    UnsupportedError
        The text is not a version.
    """
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise UnsupportedError(f"Spark reports the version {text!r}, not a number; iceexplore needs Spark 3.5 or later")
    return int(found.group(1)), int(found.group(2))


def _check_runs(session: SparkSession, connect: bool) -> None:
    """Raise an error if a session was stopped; in classic Spark this stops all sessions of its context."""
    stopped = getattr(session, "is_stopped", False) if connect else session.sparkContext._jsc is None
    if stopped:
        raise OptionError(
            "this Spark session was stopped: ix.spark() starts a new one; DataFrames of the stopped session must be "
            "created again"
        )


def _is_local(session: SparkSession, connect: bool) -> bool:
    try:
        master = session.conf.get("spark.master", "") or ""
    except Exception:  # managed Spark services do not show this setting
        return False
    if not master.startswith("local") or master.startswith("local-cluster"):
        return False
    host = str(getattr(session.client, "host", "")) if connect else "localhost"
    return host in ("localhost", "127.0.0.1", "::1", "[::1]")
