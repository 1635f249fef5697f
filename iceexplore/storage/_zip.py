"""Extract untrusted zips within limits, and write zips."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iceexplore.errors import FormatError, IceexploreError, StorageError, UnsupportedError
from iceexplore.storage._location import basename, canonical, dirname, relative_to
from iceexplore.storage._temporary import TemporaryFolder, no_room
from iceexplore.storage.output._whole import whole_file

if TYPE_CHECKING:
    from iceexplore.storage._storage import Storage

__all__ = ["ZipLimits", "extract_zip", "is_zip", "member_name", "write_zip"]

_STEP = 1 << 20
_ELSEWHERE = "_elsewhere"
#: Errors that concern the extracted files, not the zip: when one of them occurs, the zip is already open.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)


@dataclass(frozen=True)
class ZipLimits:
    """Limits for a zip: files, extracted bytes, and the ratio of extracted bytes to the zip's size.

    The ratio applies only above ``ratio_above`` bytes: small files of zeros compress a thousandfold.
    """

    files: int = 100_000
    bytes: int = 8 << 30
    ratio: int = 200
    ratio_above: int = 64 << 20

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ZipLimits:
        """Return the limits set by ``iceexplore.zip.max-files``, ``.max-bytes`` and ``.max-ratio``."""
        default = cls()
        return cls(
            int(properties.get("iceexplore.zip.max-files", default.files)),
            int(properties.get("iceexplore.zip.max-bytes", default.bytes)),
            int(properties.get("iceexplore.zip.max-ratio", default.ratio)),
            default.ratio_above,
        )


def is_zip(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a zip (possibly empty)."""
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def extract_zip(path: str, limits: ZipLimits | None = None, *, name: str | None = None) -> TemporaryFolder:
    """Extract a zip into a new temporary folder and return the folder; the caller removes it.

    Raises
    ------
    FormatError
        The file is not a zip, is damaged, exceeds a limit, or has a member outside the folder (absolute, ``..``, a
        link).
    UnsupportedError
        The zip is encrypted, or compressed by a method that this Python does not support.
    TemporaryFolderError
        There is no room in the temporary folder.
    """
    name = name or path
    folder = TemporaryFolder("zip", name)
    try:
        _extract(path, folder.path, limits or ZipLimits(), name)
    except BaseException as e:
        folder.remove()
        raise _fault(e, name) from e
    return folder


def _fault(error: BaseException, name: str) -> BaseException:
    """Return the error for an exception from zipfile; for damaged zips, that may be of nearly any type."""
    if isinstance(error, IceexploreError) or not isinstance(error, Exception):
        return error
    if isinstance(error, (NotImplementedError, RuntimeError)):
        return UnsupportedError(f"{name} cannot be extracted: {error}")
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return no_room(error, name)
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return StorageError(f"{name} cannot be extracted: {error}")
    return FormatError(f"the zip is damaged: {error}", location=name)


def _extract(path: str, folder: str, limits: ZipLimits, name: str) -> None:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) > limits.files:
            raise FormatError(f"the zip has {len(members):,} files, more than {limits.files:,}", location=name)
        allowed = min(limits.bytes, max(limits.ratio_above, os.path.getsize(path) * limits.ratio))
        total = 0
        for member in members:
            parts = _member_parts(member, name)
            if parts is None:
                continue
            target = os.path.join(folder, *parts)
            if member.is_dir():
                os.makedirs(target, exist_ok=True)
                continue
            if os.path.lexists(target):
                raise FormatError(f"the zip has {member.filename!r} twice", location=name)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                # The recorded sizes are not trusted: extracted bytes are counted. zipfile checks the CRC.
                with archive.open(member) as source, open(target, "xb") as out:
                    while part := source.read(_STEP):
                        total += len(part)
                        if total > allowed:
                            raise FormatError(
                                f"the zip extracts to more than {allowed:,} bytes (at most {limits.bytes:,}, and "
                                f"{limits.ratio} times its size; properties 'iceexplore.zip.max-bytes' and "
                                "'iceexplore.zip.max-ratio' change them)",
                                location=name,
                            )
                        out.write(part)
            except (FileExistsError, NotADirectoryError, IsADirectoryError) as e:
                raise FormatError(f"the zip has {member.filename!r} as a file and as a folder", location=name) from e


def _member_parts(member: zipfile.ZipInfo, name: str) -> list[str] | None:
    spelled = member.filename.replace("\\", "/")
    if member.flag_bits & 0x1:
        raise UnsupportedError(f"{name} is encrypted ({spelled!r}): decrypt it first, then open it")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise FormatError(f"the zip has a link, {spelled!r}: links are not extracted", location=name)
    parts = [p for p in spelled.split("/") if p not in ("", ".")]
    drive = len(parts) > 0 and len(parts[0]) == 2 and parts[0][1] == ":"
    if spelled.startswith("/") or drive or ".." in parts or any("\0" in p for p in parts):
        raise FormatError(f"the zip has a file {spelled!r} that would land outside its folder", location=name)
    if not parts or parts[0] == "__MACOSX":
        return None
    return parts


def write_zip(path: str | os.PathLike[str], members: Iterable[tuple[str, bytes]], *, overwrite: bool = False) -> Path:
    """Write a zip of (name, bytes) completely or not at all (see `whole_file`); return its path.

    Raises
    ------
    OptionError
        A file cannot be written there, for example because its folder is missing.
    ExistsError
        The file exists and ``overwrite`` is false. The error is a FileExistsError, too.
    StorageError, AccessDeniedError
        Writing fails; an existing file is left unchanged.
    """
    with (
        whole_file(path, overwrite=overwrite) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive,
    ):
        for name, data in members:
            # A fixed time, so that the same members give the same bytes.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return Path(path).expanduser().absolute()


def member_name(storage: Storage, table_location: str, location: str) -> str:
    """Return the name under which to store a table's file in a zip, such that `open_source` finds it by location.

    Files beside the metadata file get names under ``metadata/``, files under the table's folder keep their relative
    path, and other files keep their whole path under ``_elsewhere/``, where `open_source` finds them by the end of that
    path.
    """
    place = canonical(location)
    try:
        real = storage.resolve(location)
        if dirname(real) == storage.metadata_folder:
            return "metadata/" + basename(real)
        tail = relative_to(real, storage.folder)
    except IceexploreError:
        tail = None
    # A file of an overlay is elsewhere on the disk, but its location is still in the table.
    tail = tail or relative_to(place, canonical(table_location))
    if tail and ".." not in tail.split("/"):
        return tail
    return "/".join([_ELSEWHERE, *(p for p in place.replace("://", "/").split("/") if p not in ("", ".", ".."))])
