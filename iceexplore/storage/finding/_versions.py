"""Order a folder's metadata files by the numbers in their names, and choose the newest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from iceexplore.errors import OptionError
from iceexplore.storage._location import basename

__all__ = [
    "Choice",
    "HINT",
    "MetadataVersion",
    "choose",
    "hinted_names",
    "is_metadata_name",
    "match_version",
    "parse_name",
]

HINT = "version-hint.text"

# "v3.metadata.json" of file-system tables, "00003-<uuid>.metadata.json" of catalogs; ".gz" before or, as older Java
# wrote it, after (spec, "Naming for GZIP compressed Metadata JSON files").
_SUFFIX = r"(?:\.(?:gz|zstd|zst))?\.metadata\.json(?:\.(?:gz|zstd|zst))?"
_NAME = re.compile(rf"(?:v(\d{{1,18}})|(\d{{1,18}})-.*?){_SUFFIX}", re.DOTALL)
_ANY = re.compile(r"[^.].*\.metadata\.json(?:\.(?:gz|zstd|zst))?", re.DOTALL)
# Java writes "<uuid>.metadata.json" and then renames it to "vN": a file that still has such a name was never committed.
_UNCOMMITTED = re.compile(rf"[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{_SUFFIX}")
_MOST_TIED = 64


@dataclass(frozen=True)
class MetadataVersion:
    """A metadata file of a table.

    Attributes
    ----------
    number
        The number in its name; None where the name has none.
    location
        As the table spells it.
    size, modified_ms
        Bytes, and milliseconds since the epoch (UTC); None where the file is known only from the metadata log.
    """

    number: int | None
    location: str
    size: int | None = None
    modified_ms: int | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return basename(self.location)


@dataclass(frozen=True)
class Choice:
    """File names to try, best first, with the reason for the choice; any of the ``tied`` names could be the newest."""

    names: tuple[str, ...]
    reason: str
    tied: tuple[str, ...] = ()


def parse_name(location: str) -> int | None:
    """Return the number in a metadata file's name; None where it has none."""
    match = _NAME.fullmatch(basename(location))
    return int(match[1] or match[2]) if match else None


def is_metadata_name(name: str) -> bool:
    """Return whether a file is named like table metadata (Hadoop's hidden checksum files are not)."""
    return _ANY.fullmatch(name) is not None


def hinted_names(hint: str) -> tuple[int | None, tuple[str, ...]]:
    """Return the number in a version hint (Java writes one; None for a name) and the file names it may mean."""
    text = hint.split("\n", 1)[0].strip()
    if re.fullmatch(r"\d{1,18}", text):
        number = int(text)
        return number, version_names(number)
    if not text or "/" in text or "\\" in text or "\0" in text:
        return None, ()
    if is_metadata_name(text):
        return None, (text,)
    return None, tuple(text + end for end in (".metadata.json", ".gz.metadata.json", ".metadata.json.gz"))


def version_names(number: int) -> tuple[str, ...]:
    """Return the names of version ``number`` of a file-system table, in HadoopTableOperations' search order."""
    return tuple(f"v{number}{end}" for end in (".metadata.json", ".gz.metadata.json", ".metadata.json.gz"))


def choose(names: Iterable[str], modified: Callable[[str], int] | None = None) -> Choice:
    """Choose the newest metadata file by the number in its name; ``tied`` names the files that must be read to decide.

    Names do not decide if both naming schemes occur (a catalog took over a file-system table), if a number occurs twice
    (a table that was dropped and created again starts from 0), or if a file with another name could be newer.
    ``modified`` returns when a file was modified: if too many names are tied, only the latest stay in ``tied``.
    """
    committed = sorted(n for n in names if is_metadata_name(n))
    numbered = [(number, n) for n in committed if (number := parse_name(n)) is not None]
    unnumbered = [n for n in committed if parse_name(n) is None]
    others = [n for n in unnumbered if not _UNCOMMITTED.fullmatch(n)] or (unnumbered if not numbered else [])
    numbered.sort(key=lambda pair: -pair[0])
    ordered = [n for _, n in numbered]
    counts = Counter((number, name.startswith("v")) for number, name in numbered)
    if any(count > 1 for count in counts.values()):
        tied = ordered
        if modified is not None and len(ordered) > _MOST_TIED:
            tied = sorted(ordered, key=lambda n: -modified(n))
    else:
        tops = {name.startswith("v"): name for _, name in reversed(numbered)}
        tied = [n for n in ordered if n in tops.values()]
    tied = [*tied, *others][:_MOST_TIED]
    rest = [n for n in (*ordered, *unnumbered) if n not in tied]
    reason = "the only one" if len(committed) == 1 else f"the largest number of {len(committed)} metadata files"
    return Choice((*tied, *rest), reason, tuple(tied) if len(tied) > 1 else ())


def match_version(
    version: int | str, files: Iterable[MetadataVersion], same: Callable[[str, str], bool]
) -> list[MetadataVersion]:
    """Return the files that ``version=`` means: by number, file name (with or without ending) or location."""
    if isinstance(version, str) and re.fullmatch(r"v?\d{1,18}", version):
        version = int(version.lstrip("v"))
    if isinstance(version, int):
        return [f for f in files if f.number == version]
    if not isinstance(version, str):
        raise OptionError(f"version={version!r}: expected the number, name or location of a metadata file")
    ends = ("", ".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
    return [f for f in files if any(f.name == version + end for end in ends) or same(f.location, version)]
