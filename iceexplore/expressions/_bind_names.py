"""Which column a name in a filter means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from iceexplore.expressions._unbound import Name
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType

__all__ = ["Column", "Columns", "METADATA_COLUMNS"]

#: Spec, "Reserved Field IDs".
METADATA_COLUMNS = (
    "_deleted", "_file", "_last_updated_sequence_number", "_partition", "_pos", "_row_id", "_spec_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a schema, and the names that lead to it through structs."""

    field: NestedField
    path: tuple[str, ...]
    quoted: bool = False

    @property
    def name(self) -> str:
        """Dotted; what could be read in another way stands in backticks."""
        return ".".join(f"`{p.replace('`', '``')}`" if self.quoted or "." in p or "`" in p else p for p in self.path)


class Columns:
    """The columns of a schema that a filter may name.

    A name means the column that is spelled so. Where there is none, letter case does not count, as in Spark. A column
    that has dots in its own name wins over one inside a struct, unless the parts are quoted apart.
    """

    def __init__(self, schema: Schema) -> None:
        self._columns = list(_columns(schema.fields, ()))
        self._exact: dict[str, list[Column]] = {}
        self._folded: dict[str, list[Column]] = {}
        for column in self._columns:
            dotted = ".".join(column.path)
            self._exact.setdefault(dotted, []).append(column)
            self._folded.setdefault(dotted.casefold(), []).append(column)
        self._schema = schema
        self._found: dict[tuple[tuple[str, ...], tuple[bool, ...]], Column] = {}

    def find(self, name: Name) -> Column:
        """The column.

        Raises
        ------
        OptionError
            There is none, or there are several that differ in letter case alone, or it is inside a list or map.
        """
        key = name.parts, name.quoted
        if key not in self._found:
            self._found[key] = self._find(name)
        return self._found[key]

    def every(self) -> Iterator[Column]:
        """All of them, those inside structs after the struct."""
        return map(self._told_apart, self._columns)

    def _find(self, name: Name) -> Column:
        dotted = ".".join(name.parts)
        found = self._exact.get(dotted) or self._folded.get(dotted.casefold(), [])
        same = [c for c in found if tuple(p.casefold() for p in c.path) == tuple(p.casefold() for p in name.parts)]
        if any(name.quoted) and same:
            found = same
        elif found:
            found = [c for c in found if len(c.path) == min(len(c.path) for c in found)]
        if not found:
            raise name.at.error(self._missing(dotted))
        if len(found) > 1:
            raise name.at.error(
                f"column {dotted!r} is ambiguous without regard to letter case: {', '.join(c.name for c in found)}"
            )
        return self._told_apart(found[0])

    def _told_apart(self, column: Column) -> Column:
        """Quoted where it would be read as another."""
        alike = self._folded[".".join(column.path).casefold()]
        return replace(column, quoted=any(len(c.path) < len(column.path) for c in alike))

    def _missing(self, dotted: str) -> str:
        for full, field in self._schema.walk():
            if full.casefold() == dotted.casefold():
                return (
                    f"column {full!r} (field {field.field_id}) is inside a list or map: rows have several values of it"
                )
        if dotted.partition(".")[0].casefold() in METADATA_COLUMNS:
            return (
                f"{dotted!r} is a metadata column, by which no filter goes; name it in columns=, and choose among the "
                "rows that come"
            )
        names = [c.name for c in self._columns]
        folded = {n.casefold(): n for n in reversed(names)}
        # The last part alone, too: people forget the struct that a column is in.
        for column in reversed(self._columns):
            folded.setdefault(column.path[-1].casefold(), column.name)
        close = dict.fromkeys(folded[f] for f in get_close_matches(dotted.casefold()[:200], folded, 3, 0.5))
        said = f"nearest: {', '.join(close)}" if close else f"there are {', '.join(names[:20]) or 'none'}"
        return f"no column {dotted!r}; {said}"


def _columns(fields: tuple[NestedField, ...], path: tuple[str, ...]) -> Iterator[Column]:
    for field in fields:
        here = (*path, field.name)
        yield Column(field, here)
        match field.type:
            case StructType(children):
                yield from _columns(children, here)
            case ListType() | MapType():
                continue
