"""A metadata table as an object: called it is a pandas data frame, ``.arrow()`` an Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.graph import TableState
from iceexplore.inspect._docs import COLUMN_DOCS
from iceexplore.render import html_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Definition", "MetadataTable"]


@dataclass(frozen=True)
class Definition:
    """What a metadata table is: its name, what it shows, its columns, and how it is read.

    ``travels`` says whether it shows the state's snapshot (as Spark's ``VERSION AS OF``) or the whole metadata file.
    """

    name: str
    doc: str
    schema: Callable[[TableState], pa.Schema]
    build: Callable[[TableState, pa.Schema], Iterable[pa.Table]]
    travels: bool
    spark: bool = True


class MetadataTable:
    """One metadata table of one table. Nothing is read before it is called.

    Examples
    --------
    >>> t.inspect.files()             # pandas, Arrow-backed: every digit of every integer is kept
    >>> t.inspect.files(flat=True)    # a plain column for each partition field and metric
    >>> t.inspect.files.arrow()       # pyarrow.Table
    """

    def __init__(self, state: TableState, definition: Definition) -> None:
        self._state = state
        self._definition = definition
        self.__doc__ = definition.doc

    @property
    def name(self) -> str:
        """Its name, as in Spark's ``SELECT * FROM db.table.<name>``."""
        return self._definition.name

    @property
    def schema(self) -> pa.Schema:
        """Its columns and their types; nothing is read."""
        return self._definition.schema(self._state)

    @property
    def columns(self) -> dict[str, str]:
        """What each column means; nothing is read."""
        own = {k.partition(".")[2]: v for k, v in COLUMN_DOCS.items() if k.startswith(f"{self.name}.")}
        return {name: own.get(name) or COLUMN_DOCS.get(name, "") for name in self.schema.names}

    def arrow(self, *, flat: bool = False) -> pa.Table:
        """The table as Arrow.

        Parameters
        ----------
        flat
            One plain column for each field of a struct, named by its path: ``partition.kind``,
            ``readable_metrics.id.lower_bound``. Maps and lists stay.

        Raises
        ------
        IceexploreError
            A fault of the table's files, if it was opened with ``strict=True``; else it is one of ``t.problems``.
        """
        schema = self.schema
        parts = list(self._definition.build(self._state, schema))
        table = pa.concat_tables(parts) if parts else schema.empty_table()
        while flat and any(pa.types.is_struct(f.type) for f in table.schema):
            table = table.flatten()
        return table

    def __call__(self, *, flat: bool = False) -> pd.DataFrame:
        """The table as a pandas data frame with Arrow-backed columns; see `arrow` for ``flat`` and errors."""
        import pandas as pd

        frame: pd.DataFrame = self.arrow(flat=flat).to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def _rows(self) -> list[tuple[str, str, str]]:
        docs = self.columns
        return [(f.name, _type_name(f.type), docs[f.name]) for f in self.schema]

    def __repr__(self) -> str:
        rows = self._rows()
        name, kind = (max((len(r[i]) for r in rows), default=0) for i in (0, 1))
        lines = [f"{self.name}: {self._definition.doc}", f"  call it for pandas: .inspect.{self.name}()"]
        return "\n".join([*lines, *[f"  {n:{name}}  {t:{kind}}  {d}".rstrip() for n, t, d in rows]])

    def _repr_html_(self) -> str:
        caption = f"{self.name}: {self._definition.doc} Call it for pandas: .inspect.{self.name}()"
        return str(html_table(("column", "type", "what it is"), self._rows(), caption))


def _type_name(kind: Any) -> str:
    """A type in a few letters."""
    if pa.types.is_struct(kind):
        return "struct"
    if pa.types.is_map(kind):
        return f"map<{kind.key_type}, {kind.item_type}>"
    if pa.types.is_list(kind):
        return f"list<{_type_name(kind.value_type)}>"
    return str(kind)
