"""Translate storage libraries' errors (404, 403, others), and explain why a file cannot be written."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from iceexplore.errors import (
    AccessDeniedError,
    FileMissingError,
    IceexploreError,
    MissingDependencyError,
    OutsideRootsError,
    StorageError,
)
from iceexplore.storage._location import canonical, is_local

__all__ = ["not_written", "short_message", "translate"]

_DENIED = {
    "403",
    "401",
    "AccessDenied",
    "Forbidden",
    "AllAccessDisabled",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AuthorizationFailure",
    "AuthenticationFailed",
    "AuthorizationPermissionMismatch",
}
_MISSING = {"404", "NoSuchKey", "NoSuchBucket", "NotFound", "BlobNotFound", "ContainerNotFound", "PathNotFound"}

# pyarrow's file systems report only text: "AWS Error ACCESS_DENIED during HeadObject", "HTTP status 403".
_DENIED_TEXT = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|InvalidAccessKeyId|\bForbidden\b|"
    r"HTTP (?:status|response code) 40[13]\b|AuthorizationPermissionMismatch|AuthenticationFailed"
)
#: The disk, or the user's quota, is full.
_FULL = (errno.ENOSPC, errno.EDQUOT)
#: The message of Google's client (and of Arrow's) if credentials are missing, rather than insufficient.
_UNKNOWN_TO_GOOGLE = "Could not create a OAuth2 access token"
#: Messages of resolvers for an unknown host: glibc, macOS, Windows, libcurl (Arrow's S3).
_NO_HOST = re.compile(
    r"Name or service not known|nodename nor servname|No address associated with hostname|Temporary failure in name "
    r"resolution|getaddrinfo failed|[Cc]ould(?: not|n't) resolve host"
)
_PASSWORD = re.compile(r"://[^/@\s]+@")
_MISSING_TEXT = re.compile(
    r"NO_SUCH_KEY|NO_SUCH_BUCKET|NoSuchKey|NoSuchBucket|RESOURCE_NOT_FOUND|HTTP (?:status|response code) 404\b|"
    r"[Nn]o such file or directory|Path does not exist"
)


def translate(error: BaseException, location: str, real: str) -> IceexploreError:
    """Return the error for a backend's exception, with the location as written and the real one."""
    refused = next((e for e in _chain(error) if isinstance(e, OutsideRootsError)), None)
    if refused is not None:  # a refused redirect, which fsspec may report as a missing file
        return refused
    if isinstance(error, IceexploreError):
        return error
    place = location if location == real else f"{location} (looked for at {real})"
    if any(isinstance(e, socket.gaierror) or _NO_HOST.search(str(e)) for e in _chain(error)):
        # some libraries report an unknown host as a missing file
        host = urlsplit(real).hostname if real.startswith(("http://", "https://")) else None
        which = f"the host {host}" if host else "a required host"
        detail = "" if host else f" ({_short(error)})"
        return StorageError(
            f"{place} could not be read: {which} is unknown{detail}; check its spelling and that this machine "
            "is on the network"
        )
    verdict = next((v for v in map(_verdict, _chain(error)) if v is not None), None)
    if verdict is FileMissingError:
        return FileMissingError(f"{place} does not exist")
    if verdict is AccessDeniedError:
        advice = "check the permissions of the file and of the folders above it"
        if not is_local(real):
            advice = (
                "check credentials and permissions; "
                "without permission to list, object stores refuse access to a missing file, too"
            )
        return AccessDeniedError(f"access to {place} was refused ({_short(error)}): {advice}")
    absent = next((e.name for e in _chain(error) if isinstance(e, ModuleNotFoundError) and e.name), None)
    if absent is not None:  # some file systems import packages at their first request
        name = absent.partition(".")[0]
        return MissingDependencyError(f"{place} needs the package {name}, which is not installed: pip install {name}")
    if any(_UNKNOWN_TO_GOOGLE in str(e) for e in _chain(error)):
        return StorageError(
            f"{place} could not be read: no credentials for Google Cloud Storage. Set "
            "GOOGLE_APPLICATION_CREDENTIALS to a key file, run gcloud auth application-default login, or pass "
            "properties={'gcs.oauth2.token': ..., 'gcs.oauth2.token-expires-at': ...}"
        )
    if isinstance(error, IsADirectoryError):
        return StorageError(f"{place} is a folder, not a file")
    return StorageError(f"{place} could not be read: {_short(error)}")


def not_written(error: OSError, location: str, real: str) -> IceexploreError:
    """Return the error for a local file that could not be written, with the obstacle or the system's reason."""
    elsewhere = "" if canonical(location) == canonical(real) else f" to {real}"
    what = f"{location} could not be written{elsewhere}"
    folder = os.path.dirname(real)
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        kind = "a link that leads nowhere" if os.path.islink(folder) else "a file"
        return StorageError(f"{what}: {folder} is {kind}, but must be a folder; move it away")
    why = error.strerror or short_message(error)
    if isinstance(error, PermissionError):
        return AccessDeniedError(f"{what}: {why}. Check the permissions and the owner of {folder}")
    return StorageError(f"{what}: {why}{'; make room on the disk' if error.errno in _FULL else ''}")


def short_message(error: BaseException) -> str:
    """Return a library's message on one line, without passwords quoted from URIs."""
    text = " ".join(str(error).split()) or "no message"
    return _PASSWORD.sub("://…@", text)[:300]


def _chain(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    for _ in range(8):
        if at is None:
            return
        yield at
        at = at.__cause__ or at.__context__


def _verdict(error: BaseException) -> type[IceexploreError] | None:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return FileMissingError
    if isinstance(error, PermissionError):
        return AccessDeniedError
    for code in _codes(error):
        if code in _DENIED:
            return AccessDeniedError
        if code in _MISSING:
            return FileMissingError
    if isinstance(error, OSError):
        text = str(error)
        if _DENIED_TEXT.search(text):
            return AccessDeniedError
        if _MISSING_TEXT.search(text):
            return FileMissingError
    return None


def _codes(error: BaseException) -> Iterator[str]:
    response = getattr(error, "response", None)  # botocore's ClientError
    if isinstance(response, dict):
        details = response.get("Error")
        if isinstance(details, dict):
            yield str(details.get("Code"))
        meta = response.get("ResponseMetadata")
        if isinstance(meta, dict):
            yield str(meta.get("HTTPStatusCode"))
    for name in ("status", "status_code", "code", "error_code"):  # aiohttp, requests and azure, gcsfs
        value = getattr(error, name, None)
        if isinstance(value, (int, str)):
            yield str(value)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {short_message(error)}"
