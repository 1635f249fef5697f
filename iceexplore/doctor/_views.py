"""Examine a view: problems found when it was opened, other metadata files, queries, and the number of versions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from iceexplore.doctor._check import check_options
from iceexplore.doctor._view_queries import query_problems
from iceexplore.doctor.checks._metadata_file import files_to_compare
from iceexplore.doctor.model._finding import Finding, finding_of, rank
from iceexplore.doctor.report._report import Report
from iceexplore.errors import IceexploreError, Problem, Problems, problem
from iceexplore.storage import VIEW, MetadataVersion, list_versions, parse_document
from iceexplore.views import (
    HISTORY_PROPERTY,
    OpenSource,
    ViewMetadata,
    ViewState,
    ViewVersion,
    history_entries,
    parse_view_metadata,
)

__all__ = ["examine_view"]

#: The maximum number of metadata files to open besides the view's current one.
_MOST_OPENED = 20
#: The maximum size, in bytes, of a metadata file that is opened to look for changed versions.
_MOST_BYTES = 32 << 20
_FOLDER = "other metadata files"


def examine_view(
    state: ViewState,
    open_source: OpenSource | None = None,
    *,
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    baseline: Report | Iterable[Finding] | None = None,
) -> Report:
    """Examine a view and return the report.

    Parameters
    ----------
    open_source
        A function that opens the tables and views that the queries read. If None, the queries are not compared with
        them.
    only, skip
        The only codes to report, and the codes to leave out.
    baseline
        An earlier report, or its findings. The new report leaves out findings with the same code, place and field as
        one of the earlier findings.

    Raises
    ------
    OptionError
        An unknown code.
    """
    wanted, unwanted = check_options("metadata", only, skip)
    start = time.perf_counter()
    unknown: dict[str, str] = {}
    changed = list(_changed_versions(state, unknown))
    queries = list(query_problems(state, open_source, unknown))
    for item in (*changed, *queries):
        state.problems.add_examined(item, ())
    # `Problems.met` returns only problems found while reading. It leaves out those that `add_examined` recorded: an
    # earlier examination, perhaps of another version of the view, may have recorded some of them.
    found = [*_folded([*state.problems.met(), *changed]), *map(finding_of, (*queries, *_too_many(state)))]
    found = [f for f in found if (wanted is None or f.code in wanted) and f.code not in unwanted]
    if baseline is not None:
        before = {(f.code, f.where, f.field) for f in baseline}
        found = [f for f in found if (f.code, f.where, f.field) not in before]
    names = {part for s in state.metadata.schemas for name, f in s.walk() for part in (name, f.name)}
    return Report(
        table=state.name,
        location=state.metadata_location,
        format_version=state.metadata.format_version,
        level="metadata",
        snapshots=(),
        findings=tuple(rank(found)),
        unknown=unknown,
        seconds=time.perf_counter() - start,
        metadata=None,
        kind="view",
        versions=tuple(dict.fromkeys(v.version_id for v in state.metadata.versions)),
        names=frozenset(names),
    )


def _folded(problems: Iterable[Problem]) -> Iterator[Finding]:
    """Yield one finding for all problems that have the same code, field and severity, with the places of all."""
    groups: dict[tuple[str, str | None, str], list[Problem]] = {}
    for item in problems:
        groups.setdefault((item.code, item.field, item.severity), []).append(item)
    for items in groups.values():
        places = list(dict.fromkeys(item.where for item in items))
        yield finding_of(items[0], places=places, count=len(items))


def _too_many(state: ViewState) -> Iterator[Problem]:
    """Report more versions than the property ``version.history.num-entries`` allows: Java will remove the oldest."""
    count, most = len(state.metadata.versions), history_entries(state.metadata)
    if most is None or count <= most:
        return
    source = "the property" if HISTORY_PROPERTY in state.metadata.properties else "the default of"
    text = f"The view has {count:,} versions, more than {source} {HISTORY_PROPERTY} allows ({most:,})."
    yield problem(
        "view-versions-many", state.metadata_location, text, field=HISTORY_PROPERTY, found=count, expected=most
    )


def _changed_versions(state: ViewState, unknown: dict[str, str]) -> Iterator[Problem]:
    """Report versions of the view that have different content in another metadata file of the view.

    The content of a version must never change: "View versions are immutable" (view spec).

    Parameters
    ----------
    unknown
        Receives the reason if other metadata files cannot be compared.
    """
    own = {v.version_id: v for v in reversed(state.metadata.versions)}
    for file, metadata in _other_files(state, unknown):
        uuids = [m.view_uuid and m.view_uuid.lower() for m in (state.metadata, metadata)]
        if uuids[0] != uuids[1]:
            continue  # this file belongs to another view, which had the same name at another time
        for version in metadata.versions:
            mine = own.get(version.version_id)
            # If the creation times of the two versions differ, they may belong to two views that had the same name at
            # different times. Such versions are not compared.
            if mine is None or mine.timestamp_ms != version.timestamp_ms or _content(mine) == _content(version):
                continue
            what = ", ".join(name for name in _content(mine) if _content(mine)[name] != _content(version)[name])
            text = (
                f"Version {version.version_id} differs from the version with the same id in {file.name} ({what}), "
                "although both have the same creation time: a version must never change."
            )
            where = f"{state.metadata_location}#version {version.version_id}"
            yield problem("view-version-changed", where, text, field=what, found=file.name)


def _content(version: ViewVersion) -> dict[str, object]:
    """Return the fields of a version that must never change, by their names in the spec, to compare versions.

    The summary is not compared.
    """
    return {
        "representations": [(r.type, (r.dialect or "").lower(), r.sql) for r in version.representations],
        "schema-id": version.schema_ids(),
        "default-catalog": version.catalog_of(),
        "default-namespace": version.namespace_of(),
    }


def _other_files(state: ViewState, unknown: dict[str, str]) -> Iterator[tuple[MetadataVersion, ViewMetadata]]:
    """Yield the view's metadata files besides the current one, each with its parsed metadata.

    At most `_MOST_OPENED` files are opened, and none that is larger than `_MOST_BYTES`. Files that cannot be read are
    left out.

    Parameters
    ----------
    unknown
        Receives, under the key `_FOLDER`, the reasons why files were not opened or could not be read.
    """
    if state.storage.is_extracted:
        return
    try:
        files = list_versions(state.opened)
    except IceexploreError as error:
        unknown[_FOLDER] = str(error)
        return
    others, left_out = files_to_compare(state.opened, files, _MOST_OPENED)
    reasons: list[str] = []

    def cannot_know(why: str) -> None:
        reasons.append(why.rstrip("."))
        unknown[_FOLDER] = "; ".join(reasons)

    if left_out is not None:
        cannot_know(left_out)
    for file in others:
        if (file.size or 0) > _MOST_BYTES:
            cannot_know(f"{file.name} is larger than {_MOST_BYTES >> 20} MiB")
            continue
        try:
            data = state.storage.read(file.location, kind="metadata")
            document, _ = parse_document(data, file.location, kind=VIEW)
            yield file, parse_view_metadata(document, file.location, Problems())
        except IceexploreError as error:
            cannot_know(f"{file.name} cannot be read: {error}")
