"""Replace the locations of data files in the rows of position delete files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError
from iceexplore.formats._fields import field_id

__all__ = ["Column", "PathRewrite", "Rewritten"]

#: The id of a column, and its name for files without ids.
Column = tuple[int, str]
#: The bytes of a file, and the smallest and largest paths in its rows.
Rewritten = tuple[bytes, tuple[str, str]]


@dataclass(frozen=True)
class PathRewrite:
    """The locations to replace.

    Attributes
    ----------
    find
        Returns the new location of a data file, given the old one; None if the file has not moved.
    path, position
        The columns of a position delete file.
    """

    find: Callable[[str], str | None]
    path: Column
    position: Column

    def moved(self, paths: Iterable[str | None]) -> dict[str, str]:
        """Return the new locations by old location, only of those files that have moved."""
        return {path: new for path in paths if path is not None and (new := self.find(path)) is not None}

    def rows(self, table: pa.Table, location: str) -> tuple[pa.Table, tuple[str, str]] | None:
        """Return the rows with new paths, sorted by them, and the first and last path; None if no path has moved.

        Raises
        ------
        FormatError
            A column is missing.
        """
        ids = {field_id(f): i for i, f in enumerate(table.schema)}
        at, pos = (ids.get(number, table.schema.get_field_index(name)) for number, name in (self.path, self.position))
        if at < 0 or pos < 0:
            raise FormatError("the position delete file lacks the column file_path or pos", location=location)
        paths = table.column(at).cast(pa.string())
        moved = self.moved(build.to_pylist(pc.unique(paths)))
        if not moved:
            return None
        found = pc.index_in(paths, value_set=pa.array(list(moved), pa.string()))
        new = pc.coalesce(pa.array(list(moved.values()), pa.string()).take(found), paths)
        table = table.set_column(at, table.schema.field(at), new.cast(table.schema.field(at).type))
        # Rows are sorted by path and position (spec, "Position Delete Files"), and new names may sort differently.
        names = table.schema.names
        ends = pc.min_max(new).as_py()
        return table.sort_by([(names[at], "ascending"), (names[pos], "ascending")]), (ends["min"], ends["max"])
