"""The metadata files of a folder, by the numbers in their names, and which of them is the newest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from iceexplore.storage._location import basename

__all__ = ["HINT", "Choice", "MetadataVersion", "choose", "hinted_names", "parse_name", "is_metadata_name", "match_version"]

HINT = "version-hint.text"

# "v3.metadata.json" of file-system tables, "00003-<uuid>.metadata.json" of catalogs; ".gz" before or, as older Java
# wrote it, after (spec, "Naming for GZIP compressed Metadata JSON files").
_SUFFIX = r"(?:\.gz)?\.metadata\.json(?:\.gz)?"
_NAME = re.compile(rf"(?:v(\d{{1,18}})|(\d{{1,18}})-.*?){_SUFFIX}", re.DOTALL)
_ANY = re.compile(r"[^.].*\.metadata\.json(?:\.gz)?", re.DOTALL)


@dataclass(frozen=True)
class MetadataVersion:
    """One metadata file of a table.

    Attributes
    ----------
    number
        From its name; None where the name has none.
    location
        As the table spells it.
    size, modified_ms
        Bytes, and milliseconds since the epoch (UTC); None where only the metadata log names the file.
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
    """Names to try, best first, and why. ``tied`` names could all be the newest."""

    names: tuple[str, ...]
    reason: str
    tied: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def parse_name(location: str) -> int | None:
    """The number of a metadata file, from its name; None where it has none."""
    match = _NAME.fullmatch(basename(location))
    return int(match[1] or match[2]) if match else None


def is_metadata_name(name: str) -> bool:
    """Whether a file is named like table metadata (Hadoop's hidden checksum files are not)."""
    return _ANY.fullmatch(name) is not None


def hinted_names(hint: str) -> tuple[int | None, tuple[str, ...]]:
    """What a version hint points at: a number as Java writes it, or a name as other writers do; and the file names."""
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
    """The names of version ``number`` of a file-system table, in the order in which Java's HadoopTableOperations looks."""
    return tuple(f"v{number}{end}" for end in (".metadata.json", ".gz.metadata.json", ".metadata.json.gz"))


def choose(names: Iterable[str]) -> Choice:
    """The newest metadata file by name alone: the largest number; ties are left to who can read the files."""
    all_names = sorted(n for n in names if is_metadata_name(n))
    numbered: dict[int, list[str]] = {}
    for name in all_names:
        number = parse_name(name)
        if number is not None:
            numbered.setdefault(number, []).append(name)
    if not numbered:
        return Choice(tuple(all_names), "the only one", tuple(all_names) if len(all_names) > 1 else ())
    top = max(numbered)
    # A table has one way to name its files; where both are, a catalog took a file-system table over, or gave it up.
    best = {kind: max(n for n, names in numbered.items() if any(_is_v(x) == kind for x in names)) for kind in _kinds(numbered)}
    tied = list(numbered[top])
    for kind, number in best.items():
        tied += [n for n in numbered[number] if _is_v(n) == kind and n not in tied]
    rest = [n for number in sorted(numbered, reverse=True) for n in numbered[number] if n not in tied]
    unnumbered = [n for n in all_names if parse_name(n) is None]
    reason = "the only one" if len(all_names) == 1 else f"the largest number of {len(all_names)} metadata files"
    return Choice((*tied, *rest, *unnumbered), reason, tuple(tied) if len(tied) > 1 else ())


def _is_v(name: str) -> bool:
    return name.startswith("v")


def _kinds(numbered: dict[int, list[str]]) -> set[bool]:
    return {_is_v(n) for names in numbered.values() for n in names}


def match_version(version: int | str, files: Iterable[MetadataVersion], same: Callable[[str, str], bool]) -> list[MetadataVersion]:
    """The files that ``version=`` means: by number, by file name (the ending may be left out), or by location."""
    if isinstance(version, str) and re.fullmatch(r"v?\d{1,18}", version):
        version = int(version.lstrip("v"))
    if isinstance(version, int):
        return [f for f in files if f.number == version]
    ends = ("", ".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
    return [f for f in files if any(f.name == version + end for end in ends) or same(f.location, version)]
