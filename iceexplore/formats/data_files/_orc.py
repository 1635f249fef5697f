"""ORC: read whole by the helper process, since Arrow's reader trusts its input."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from iceexplore.formats._fields import ORC_FIELD_ID
from iceexplore.formats._footers import read_orc_footer
from iceexplore.formats._helper import orc_rows
from iceexplore.formats.data_files._described import Described, Details
from iceexplore.formats.data_files._facts import FileFacts
from iceexplore.formats.data_files._format import DataFileFormat
from iceexplore.formats.data_files._paths import PathRewrite, Rewritten
from iceexplore.formats.data_files._reading import DataFile
from iceexplore.storage import DATA_RATIO, Budget

if TYPE_CHECKING:
    from iceexplore.storage import Storage

__all__ = ["Orc"]

#: Memory limit for the rows of a file that is rewritten.
_REWRITE_LIMIT = 1 << 30
_CODECS = ("UNCOMPRESSED", "SNAPPY", "ZLIB", "LZ4", "ZSTD")


class Orc(DataFileFormat):
    """ORC files. Arrow exposes no bounds of stripes, so nothing is pruned within a file."""

    name = "orc"
    title = "ORC"
    suffixes = (".orc",)
    magic = b"ORC"
    id_property = ORC_FIELD_ID.decode()
    splittable = True
    # The class of Spark's own reader. The short name "orc" may mean another one, depending on the session's settings.
    spark_source = "org.apache.spark.sql.execution.datasources.orc.OrcFileFormat"

    def batches(self, source: DataFile, budget: Budget, encoded: Sequence[str] = ()) -> Iterator[Any]:
        """Return an iterator over the schema, followed by the rows of each stripe."""
        table = orc_rows(source.storage, source.location, kind=source.kind, budget=budget, file=source.file)
        return iter([table.schema, *table.to_batches()])

    def facts(self, source: DataFile) -> FileFacts:
        """Return the facts in the footer."""
        footer = read_orc_footer(source.storage, source.location, file=source.file)
        ids = frozenset(c.field_id for c in footer.columns if c.field_id is not None)
        return FileFacts(self.name, footer.rows, None, ids, bool(footer.columns))

    def describe(self, storage: Storage, location: str) -> Described:
        """Describe a file by its footer; the records to show are its leaf columns."""
        footer = read_orc_footer(storage, location)
        header = {
            "rows": footer.rows,
            "stripes": footer.stripes,
            "columns": len(footer.columns),
            "writer": footer.writer,
            "file_version": footer.file_version,
            "compression": footer.compression,
            "footer_size": footer.footer_size,
        }
        ids = tuple(c.field_id for c in footer.columns)

        def records() -> pa.Table:
            return pa.Table.from_pylist([asdict(c) for c in footer.columns])

        return Described(footer.schema, lambda: Details(header, footer.key_values, records, ids))

    def with_paths(self, storage: Storage, location: str, data: bytes, rewrite: PathRewrite) -> Rewritten | None:
        """Return a position delete file with new paths, in the original's codec; None if no path has moved."""
        from pyarrow import orc

        with (
            storage.open(location, kind="delete-file") as file,
            Budget(location, file.size, ratio=DATA_RATIO, most=_REWRITE_LIMIT) as budget,
        ):
            rows = self._table(DataFile(storage, location, file, "delete-file"), budget)
        changed = rewrite.rows(rows, location)
        if changed is None:
            return None
        table, paths = changed
        footer = read_orc_footer(storage, location)
        codec = footer.compression.upper()
        out = io.BytesIO()
        # The footer's schema has ORC's attributes, including the field ids, in their original spelling.
        table = pa.Table.from_arrays(table.columns, schema=footer.schema)
        orc.write_table(table, out, compression=cast(Any, codec if codec in _CODECS else "ZLIB"))
        return out.getvalue(), paths
