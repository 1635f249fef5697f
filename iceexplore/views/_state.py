"""The state of a view: a metadata file and one of its versions. Immutable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from iceexplore.errors import Problems, TableChangedError
from iceexplore.metadata import Schema
from iceexplore.storage import VIEW, CatalogLike, Opened, Storage, open_source, reopen
from iceexplore.views._model import ViewMetadata, ViewVersion
from iceexplore.views._parse import parse_view_metadata

__all__ = ["ViewState", "open_view_state", "refreshed_view", "view_state_of"]


@dataclass(frozen=True, eq=False)
class ViewState:
    """The state that a `View` shows. Immutable.

    Attributes
    ----------
    opened
        The opened source: storage, metadata document and how it was found.
    version
        The selected version; None if the metadata has no current one.
    travel
        A phrase that describes a time-travelled state; None for the current state.
    """

    opened: Opened
    metadata: ViewMetadata
    version: ViewVersion | None
    problems: Problems
    notes: tuple[str, ...] = ()
    travel: str | None = None

    def __repr__(self) -> str:
        at = "no version" if self.version is None else f"version {self.version.version_id}"
        return f"<ViewState {self.name!r}, {at}>"

    @property
    def name(self) -> str:
        """The catalog's identifier, or the last part of the location."""
        return self.opened.name_of(self.metadata.location, "view")

    @property
    def storage(self) -> Storage:
        """The storage that the view's files are read from."""
        return self.opened.storage

    @property
    def metadata_location(self) -> str:
        """The metadata file's location, as spelled in the view's metadata."""
        return self.opened.metadata_location

    @property
    def schema(self) -> Schema | None:
        """The schema of the selected version; None if the metadata has none for it."""
        return self.metadata.schema(self.version)

    def showing(self, version: ViewVersion, travel: str) -> ViewState:
        """Return a state of the same metadata file that shows another version."""
        return replace(self, version=version, travel=travel)


def view_state_of(opened: Opened, *, strict: bool = False, travel: str | None = None) -> ViewState:
    """Return the current state of an opened source.

    Raises
    ------
    FormatError
        The document is not view metadata or, with ``strict``, has any fault.
    UnsupportedError
        The view's format-version is above 1.
    """
    problems = Problems(strict=strict)
    for item in opened.problems:
        problems.add(item)
    metadata = parse_view_metadata(opened.document, opened.metadata_location, problems)
    return ViewState(opened, metadata, metadata.version(), problems, opened.notes, travel)


def open_view_state(
    source: Any,  # noqa: ANN401  (a path, a catalog's identifier, or PyIceberg's View, which old versions lack)
    *,
    catalog: CatalogLike | None = None,
    moved: Mapping[str, str | os.PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: object = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
) -> ViewState:
    """Find a view's metadata (`iceexplore.storage.open_source`) and read it: one JSON file, nothing else."""
    opened = open_source(
        source, catalog=catalog, moved=moved, version=version, allow=allow, properties=properties, strict=strict,
        kind=VIEW,
    )  # fmt: skip
    return view_state_of(opened, strict=strict)


def refreshed_view(state: ViewState) -> ViewState:
    """Open the source again and return a new state with the newest metadata.

    Raises
    ------
    TableChangedError
        The source now holds another view, with another ``view-uuid`` (view spec, "View Metadata").
    """
    new = view_state_of(reopen(state.opened.source), strict=state.problems.strict)
    old_uuid, new_uuid = state.metadata.view_uuid, new.metadata.view_uuid
    if old_uuid and new_uuid and old_uuid.lower() != new_uuid.lower():
        raise TableChangedError(
            f"{state.name}: the view at {new.metadata_location} has view-uuid {new_uuid}, this one has {old_uuid}: "
            "the view was dropped and created again. Open it again with ix.open_view(...)."
        )
    return new
