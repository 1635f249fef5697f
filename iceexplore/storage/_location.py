"""Spellings of locations, and their canonical form for comparisons.

Engines spell one location in many ways: ``/x``, ``file:/x``, ``file:///x``; ``s3://``, ``s3a://``, ``s3n://``.
`canonical` returns the same spelling for all of them; all code that compares locations compares this spelling. Percent
signs are never decoded: Iceberg writes partition values percent-encoded into directory names, so ``a%2Fb`` is the name
itself.
"""

from __future__ import annotations

import os
import posixpath
import re

from iceexplore.errors import OptionError

__all__ = [
    "basename",
    "canonical",
    "check_host",
    "dirname",
    "is_absolute",
    "is_local",
    "is_uri",
    "join",
    "path_only",
    "relative_to",
    "same_location",
    "within",
]

# One letter is a Windows drive; a colon in a relative path ("ts:2024/x") is not a scheme, so a slash must follow.
_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+):(?=/)", re.ASCII)
_FILE = re.compile(r"^file:", re.IGNORECASE)
#: Authorities after ``file://`` that mean this machine; the last alternative is a Windows drive.
_HERE = re.compile(r"|localhost|\.|\.\.|~|[a-z]:", re.IGNORECASE)
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}


def is_uri(location: str) -> bool:
    """Return whether the location has a scheme (``s3://…``, ``file:/…``)."""
    return bool(_URI.match(location) or _FILE.match(location))


def canonical(location: str) -> str:
    """Return the one canonical spelling of a location.

    Local files are plain paths, without ``.``, doubled slashes, or ``..`` (except at the start of a relative path);
    everything else is ``scheme://authority/path``. A ``file://x/y`` (two slashes, a common bug in writers) is the
    relative path ``x/y``. Doubled slashes in an object store's key are kept: they are part of the name there.
    """
    if _FILE.match(location):
        return _local(_file_path(location[5:]))
    match = _URI.match(location)
    if match is None:
        return _local(location)
    scheme = match[1].lower()
    scheme = _SAME_SCHEME.get(scheme, scheme)
    rest = location[match.end() :]
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    else:
        authority, path = "", rest
    if any(part in (".", "..") for part in path.split("/")):
        path = posixpath.normpath(path)
    return f"{scheme}://{authority}{path.rstrip('/')}"


def check_host(location: str) -> str:
    """Return a user's location unchanged; refuse ``file://x/y``, because the user may mean a host named ``x``.

    In metadata ``file://x/y`` is a writer's bug, see `canonical`.

    Raises
    ------
    OptionError
        The location names a host.
    """
    if _FILE.match(location) and location[5:].startswith("//"):
        host, slash, path = location[7:].partition("/")
        if not _HERE.fullmatch(host):
            raise OptionError(
                f"{location} names the host {host}, and file: is for files of this machine: write file:///{path} "
                f"for /{path}, or {host}{slash}{path} for a path from the working folder"
            )
    return location


def _file_path(rest: str) -> str:
    if not rest.startswith("//"):
        return rest
    authority, slash, path = rest[2:].partition("/")
    return slash + path if authority.lower() in ("", "localhost") else authority + slash + path


def _local(path: str) -> str:
    normal = posixpath.normpath(path) if path else "."
    # POSIX keeps exactly two leading slashes; engines treat them as one.
    return normal[1:] if normal.startswith("//") else normal


def is_local(place: str) -> bool:
    """Return whether a canonical location is on the local file system (or relative)."""
    return "://" not in place


def is_absolute(place: str) -> bool:
    """Return whether a canonical location is absolute."""
    return "://" in place or place.startswith("/") or os.path.isabs(place)


def relative_to(place: str, prefix: str) -> str | None:
    """Return the part of ``place`` after ``prefix`` (both canonical): ``""`` if equal, None if not under it."""
    if place == prefix:
        return ""
    if prefix == "." and not is_absolute(place):
        return None if place == ".." or place.startswith("../") else place
    base = prefix if prefix.endswith("/") else prefix + "/"
    return place[len(base) :] if place.startswith(base) else None


def within(place: str, prefix: str) -> bool:
    """Return whether ``place`` is ``prefix`` or under it (both canonical)."""
    return relative_to(place, prefix) is not None


def join(prefix: str, tail: str) -> str:
    """Return ``tail`` appended to ``prefix``; an empty tail gives the prefix itself."""
    if not tail:
        return prefix
    return prefix + tail if prefix.endswith("/") else f"{prefix}/{tail}"


def dirname(place: str) -> str:
    """Return the folder of a location, spelled as the location is."""
    head, slash, _ = place.rstrip("/").rpartition("/")
    if head == "" and slash:
        return "/"
    return head if slash else "."


def basename(place: str) -> str:
    """Return the last part of a location: the name of the file or folder."""
    return place.rstrip("/").rpartition("/")[2]


def path_only(location: str) -> str:
    """Return the path of a location, without scheme and authority: ``/t/x`` of ``hdfs://host:8020/t/x``.

    Used in comparisons that ignore scheme and host, for tables that were moved by editing their metadata.
    """
    place = canonical(location)
    if is_local(place):
        return place
    _, slash, path = place.partition("://")[2].partition("/")
    return slash + path


def same_location(a: str, b: str) -> bool:
    """Return whether two spellings mean the same place."""
    return a == b or canonical(a) == canonical(b)
