"""Report a metadata file that is missing; choose and describe the other metadata files in its folder."""

from __future__ import annotations

from collections.abc import Sequence

from iceexplore.errors import Problem, problem
from iceexplore.storage import MetadataSurvey, MetadataVersion, Opened, same_location

__all__ = ["files_to_compare", "missing_metadata", "other_files"]

_MOST_NAMED = 3
_NAMING = {"catalog": "The catalog points to", "hint": "version-hint.text points to", "path": "You asked for"}


def missing_metadata(found: MetadataSurvey) -> Problem:
    """Return the problem that a metadata file does not exist, although a catalog, a hint or the user names it."""
    wanted = found.wanted or found.folder
    name = wanted.rpartition("/")[2]
    text = f"{_NAMING[found.named_by or 'path']} {name}, which does not exist. {other_files(found)}"
    readable = None if found.readable is None else found.readable.name
    return problem("metadata-missing", wanted, text, found="no such file", expected=readable)


def other_files(found: MetadataSurvey) -> str:
    """Return a sentence about the other metadata files in the folder.

    It states how many newer and how many older files there are, names some of them, and names the newest file that can
    be read.
    """
    if found.unlisted is not None:
        return f"Its folder could not be listed: {found.unlisted}"
    newer, older = found.newer(), found.older()
    if not newer and not older:
        return "There is no other metadata file in its folder."
    parts = [
        f"{len(files):,} {word} ({_names(files)})" for word, files in (("newer", newer), ("older", older)) if files
    ]
    if found.wanted is None:
        parts = [f"{len(older):,} ({_names(older)})"]
    text = f"Other metadata files in its folder: {', '.join(parts)}"
    if found.readable is None:
        return f"{text}; the newest cannot be read."
    return f"{text}; the newest that can be read is {found.readable.name}."


def _names(files: Sequence[MetadataVersion]) -> str:
    newest = [f.name for f in files[::-1]]
    return ", ".join(newest[:_MOST_NAMED]) + (", …" if len(newest) > _MOST_NAMED else "")


def files_to_compare(
    opened: Opened, files: Sequence[MetadataVersion], most: int
) -> tuple[list[MetadataVersion], str | None]:
    """Choose the metadata files to compare with the current one: those with the nearest version numbers.

    If the name of the current file has no version number, choose the files that were modified last.

    Parameters
    ----------
    opened
        The opened table or view. The file from which it was opened is the current one, and is not chosen.
    files
        All metadata files of the table or view. Those of unknown size are not chosen: only the metadata log names them.
    most
        The maximum number of files to choose.

    Returns
    -------
    tuple
        The chosen files, and a note on how many were chosen and which; None instead of the note if none was left out.
    """
    others = [f for f in files if not same_location(f.location, opened.metadata_location) and f.size is not None]
    number = opened.version
    if number is None:
        others.sort(key=lambda f: -1 if f.modified_ms is None else f.modified_ms, reverse=True)
        which = "modified last"
    else:
        others.sort(key=lambda f: abs((number if f.number is None else f.number) - number))
        which = "with version numbers closest to the current one"
    left_out = f"only {most} of {len(others):,} were opened, those {which}" if len(others) > most else None
    return others[:most], left_out
