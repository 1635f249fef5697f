"""Report on a table that cannot be opened: the reason, the other metadata files in its folder, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from iceexplore.doctor._check import check_options
from iceexplore.doctor.checks._metadata_file import missing_metadata, other_files
from iceexplore.doctor.examination._examination import Level
from iceexplore.doctor.model._finding import Finding, Since, finding_of
from iceexplore.doctor.report._report import Report
from iceexplore.errors import (
    CatalogError,
    FormatError,
    IceexploreError,
    MetadataNotFoundError,
    MissingDependencyError,
    OptionError,
    OutsideRootsError,
    Problems,
    SnapshotNotFoundError,
    TemporaryFolderError,
    problem,
)
from iceexplore.storage import CatalogLike, MetadataSurvey, SourceLike, same_location, survey

__all__ = ["unopened"]

#: Errors in the call or on this machine, not faults of the table: they are raised again.
_NOT_THE_TABLES = (OptionError, SnapshotNotFoundError, MissingDependencyError, TemporaryFolderError)


def unopened(
    error: IceexploreError,
    source: SourceLike,
    *,
    level: Level = "metadata",
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    seconds: float = 0.0,
    catalog: CatalogLike | None = None,
    moved: Mapping[str, str | os.PathLike[str]] | None = None,
    allow: object = (),
    properties: Mapping[str, str] | None = None,
) -> Report:
    """Return the report on a table that could not be opened: one finding, with the reason and what to do.

    Parameters
    ----------
    error
        The error that opening raised.
    source, catalog, moved, allow, properties
        The arguments with which the table was opened.
    level, only, skip
        As for `examine`. The finding is returned even if ``only`` or ``skip`` excludes its code.
    seconds
        How long the attempt to open the table took, in seconds: the value for `Report.seconds`.

    Raises
    ------
    OptionError
        An unknown level or code.
    OptionError, SnapshotNotFoundError, MissingDependencyError, TemporaryFolderError
        ``error`` is one of these: it is not a fault of the table, and is raised again.
    """
    check_options(level, only, skip)
    if isinstance(error, _NOT_THE_TABLES):
        raise error
    name = _name(source)
    found = survey(source, catalog=catalog, moved=moved, allow=allow, properties=properties)
    finding = _finding(error, name, found)
    if found is not None and found.readable is not None and not same_location(finding.where, found.readable.location):
        finding = replace(finding, advice=_advice(found, name))
    if isinstance(error, MetadataNotFoundError) and error.tables:
        finding = replace(finding, advice=f"Check all tables of the warehouse: ix.check_catalog({name!r}).")
    if isinstance(error, OutsideRootsError) and error.allow:
        finding = replace(finding, advice=f"If you trust the table, open it with allow={list(error.allow)!r}.")
    return Report(
        table=name,
        location=finding.location,
        format_version=None,
        level=level,
        snapshots=(),
        findings=(finding,),
        unknown={"everything in the table": "it could not be opened"},
        seconds=seconds,
        metadata=None,
        opened=False,
    )


def _finding(error: IceexploreError, name: str, found: MetadataSurvey | None) -> Finding:
    if isinstance(error, CatalogError):
        return finding_of(problem("catalog-failed", name, str(error)))
    if found is not None and found.wanted is not None and found.exists is False:
        item = missing_metadata(found)
        if found.files and found.readable is None:
            item = replace(item, text=f"{item.text[:-1]}: {error}")
        return finding_of(item, modes=(12,) if found.named_by == "hint" else (5,))
    if isinstance(error, MetadataNotFoundError):
        return finding_of(problem("metadata-missing", name, str(error)), modes=())
    where = getattr(error, "location", None) or (found.wanted if found is not None and found.wanted else name)
    item = Problems().add_error(error, where)
    if isinstance(error, FormatError) and found is not None:
        item = replace(item, text=f"{item.text[:1].upper()}{item.text[1:]}. {other_files(found)}")
    return replace(finding_of(item), since=Since(metadata_file=where) if isinstance(error, FormatError) else None)


def _advice(found: MetadataSurvey, name: str) -> str:
    """Advise how to restore the table from its newest readable metadata file, and how to open this file until then."""
    assert found.readable is not None
    place, number = found.readable.location, found.readable.number
    meanwhile = f"Until then, open the table with ix.open({place!r})."
    if found.named_by == "catalog":
        # Whether the recommended file is newer than the one that the catalog names. It may be older, even if there are
        # newer files: these may be unreadable.
        newer = found.readable in found.newer()
        lost = " (nothing is lost: it is newer than the one that the catalog names)" if newer else ""
        register = f"drop the table without purging its files, then call catalog.register_table({name!r}, {place!r})"
        return f"Restore the file, or point the catalog to {found.readable.name}{lost}: {register}. {meanwhile}"
    if found.named_by == "hint" and number is not None:
        return f"Write {number} to version-hint.text: {found.readable.name} is the newest metadata file. {meanwhile}"
    return f"Restore the file, or go back to {found.readable.name}, the newest that can be read. {meanwhile}"


def _name(source: object) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    named = getattr(source, "name", None)
    parts = named() if callable(named) else source
    return ".".join(map(str, parts)) if isinstance(parts, (tuple, list)) else str(parts)
