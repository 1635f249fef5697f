"""``t.inspect``: the metadata tables of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.inspect import _content, _definitions, _files, _log, _manifests, _partitions, _position_deletes, _puffin
from iceexplore.inspect._by_leaf import ByLeaf
from iceexplore.inspect._metadata_table import Build, Definition, MetadataTable, OnSpark
from iceexplore.inspect._source import DELETES
from iceexplore.render import html_table

__all__ = ["DEFINITIONS", "Inspect"]


def _metadata_file(name: str, doc: str, schema: pa.Schema, build: Build, *, spark: bool = True) -> Definition:
    """Define a table that has fixed columns and shows the metadata file."""
    return Definition(name, doc, lambda state: schema, build, travels=False, spark=spark)


def _snapshot(
    name: str,
    doc: str,
    schema: pa.Schema | Callable[[TableState], pa.Schema],
    build: Build,
    *,
    spark: bool = True,
) -> Definition:
    """Define a table that shows the state's snapshot."""
    columns = (lambda state: schema) if isinstance(schema, pa.Schema) else schema
    return Definition(name, doc, columns, build, travels=True, spark=spark)


def _by_leaf(
    name: str, doc: str, schema: pa.Schema | Callable[[TableState], pa.Schema], made: ByLeaf, *, spark: bool = True
) -> Definition:
    """Define a table that is built one manifest at a time."""
    columns = (lambda state: schema) if isinstance(schema, pa.Schema) else schema
    return Definition(name, doc, columns, made.build, travels=not made.every, spark=spark, by_leaf=made)


def _files_table(name: str, doc: str) -> Definition:
    every, contents = _files.FILES[name]
    made = ByLeaf(
        partial(_files.files_maker, contents=contents),
        every,
        contents,
        statistics=_files.STATISTICS,
        count=partial(_files.count_files, contents=contents),
    )
    return _by_leaf(name, doc, _files.files_schema, made)


def _entries_table(name: str, doc: str) -> Definition:
    made = ByLeaf(_files.entries_maker, _files.ENTRIES[name], count=_files.count_entries)
    return _by_leaf(name, doc, _files.entries_schema, made)


_ALL_DOC = "that are live in a manifest of any snapshot; a file may occur twice."

#: Every metadata table: Spark's sixteen, then those that only iceexplore has.
DEFINITIONS: dict[str, Definition] = {
    d.name: d
    for d in (
        _metadata_file("snapshots", "Every snapshot in the metadata.", _log.SNAPSHOTS_SCHEMA, _log.build_snapshots),
        _metadata_file("history", "When each snapshot became current.", _log.HISTORY_SCHEMA, _log.build_history),
        _metadata_file("refs", "Branches and tags.", _log.REFS_SCHEMA, _log.build_refs),
        _metadata_file(
            "metadata_log_entries",
            "Earlier metadata files and, last, the current one.",
            _log.METADATA_LOG_SCHEMA,
            _log.build_metadata_log,
        ),
        _snapshot(
            "manifests", "The manifests of the snapshot.", _manifests.MANIFESTS_SCHEMA, _manifests.build_manifests
        ),
        _metadata_file(
            "all_manifests",
            "The manifests of every snapshot, once for each that refers to them.",
            _manifests.ALL_MANIFESTS_SCHEMA,
            _manifests.build_all_manifests,
        ),
        _files_table("files", "The live data and delete files of the snapshot, including those in a V4 root itself."),
        _files_table("data_files", "The live data files of the snapshot."),
        _files_table("delete_files", "The live delete files and deletion vectors of the snapshot."),
        _files_table("all_files", f"Data and delete files {_ALL_DOC}"),
        _files_table("all_data_files", f"Data files {_ALL_DOC}"),
        _files_table("all_delete_files", f"Delete files {_ALL_DOC}"),
        _entries_table(
            "entries",
            "The manifest entries of the snapshot, including deleted ones and (V4) those that a manifest DV removes.",
        ),
        _entries_table("all_entries", "The manifest entries of every snapshot, including deleted ones."),
        _snapshot(
            "partitions",
            "The live files of the snapshot, summed by partition.",
            _partitions.partitions_schema,
            _partitions.build_partitions,
        ),
        _by_leaf(
            "position_deletes",
            "Every position that the snapshot's delete files and deletion vectors delete; reads these files.",
            _position_deletes.position_deletes_schema,
            ByLeaf(_position_deletes.position_deletes_maker, contents=DELETES, parts=("entries", "partition")),
        ),
        _by_leaf(
            "content_entries",
            "Every row of the snapshot's root and manifests, in the same columns for all format versions.",
            _content.content_entries_schema,
            ByLeaf(
                _content.content_entries_maker,
                parts=("entries", "partition"),
                root=True,
                count=_content.count_content_entries,
            ),
            spark=False,
        ),
        _by_leaf(
            "deletion_vectors",
            "The live deletion vectors of the snapshot.",
            _content.deletion_vectors_schema,
            _puffin.VECTORS,
            spark=False,
        ),
        _by_leaf(
            "column_files",
            "The column files of the snapshot's data files: newer values of some columns (V4 draft).",
            _content.COLUMN_FILES_SCHEMA,
            ByLeaf(_content.column_files_maker, parts=("entries",)),
            spark=False,
        ),
        _snapshot(
            "manifest_deletion_vectors",
            "The manifest DVs in the snapshot's root, including replaced ones (V4).",
            _content.MANIFEST_VECTORS_SCHEMA,
            _content.build_manifest_vectors,
            spark=False,
        ),
        _snapshot(
            "puffin_blobs",
            "The blobs in statistics files and the snapshot's deletion-vector files; reads their footers.",
            _puffin.PUFFIN_BLOBS_SCHEMA,
            _puffin.build_puffin_blobs,
            spark=False,
        ),
        _by_leaf(
            "column_stats",
            "One row for each live file (V4: and manifest) and column with statistics.",
            _content.COLUMN_STATS_SCHEMA,
            ByLeaf(_content.column_stats_maker, parts=("entries", "stats"), root=True),
            spark=False,
        ),
        _metadata_file(
            "schemas",
            "Every field of every schema.",
            _definitions.SCHEMAS_SCHEMA,
            _definitions.build_schemas,
            spark=False,
        ),
        _metadata_file(
            "specs",
            "Every field of every partition spec.",
            _definitions.SPECS_SCHEMA,
            _definitions.build_specs,
            spark=False,
        ),
        _metadata_file(
            "expressions",
            "Every expression that specs and statistics refer to (V4).",
            _definitions.EXPRESSIONS_SCHEMA,
            _definitions.build_expressions,
            spark=False,
        ),
        _metadata_file(
            "sort_orders",
            "Every field of every sort order.",
            _definitions.SORT_ORDERS_SCHEMA,
            _definitions.build_sort_orders,
            spark=False,
        ),
        _metadata_file(
            "properties",
            "The table's properties.",
            _definitions.PROPERTIES_SCHEMA,
            _definitions.build_properties,
            spark=False,
        ),
    )
}


class Inspect:
    """The metadata tables of a table: Spark's, with Spark's names, columns and values, and eleven more.

    ``t.inspect.files()`` returns a pandas data frame, ``t.inspect.files.arrow()`` an Arrow table and
    ``t.inspect.files(spark=spark)`` a Spark data frame; ``t.inspect.files.essentials()`` has few columns and short
    names, for people to read. ``t.inspect["files"]`` is the same as ``t.inspect.files``. On a time-travelled table, the
    tables that follow ``VERSION AS OF`` in Spark show its snapshot; the others show the metadata file.
    """

    # Declared for editors and type checkers; `__getattr__` creates them.
    snapshots: MetadataTable
    history: MetadataTable
    refs: MetadataTable
    metadata_log_entries: MetadataTable
    manifests: MetadataTable
    all_manifests: MetadataTable
    files: MetadataTable
    data_files: MetadataTable
    delete_files: MetadataTable
    all_files: MetadataTable
    all_data_files: MetadataTable
    all_delete_files: MetadataTable
    entries: MetadataTable
    all_entries: MetadataTable
    partitions: MetadataTable
    position_deletes: MetadataTable
    content_entries: MetadataTable
    deletion_vectors: MetadataTable
    column_files: MetadataTable
    manifest_deletion_vectors: MetadataTable
    puffin_blobs: MetadataTable
    column_stats: MetadataTable
    schemas: MetadataTable
    specs: MetadataTable
    expressions: MetadataTable
    sort_orders: MetadataTable
    properties: MetadataTable

    def __init__(self, state: TableState, on_spark: OnSpark | None = None) -> None:
        self._state = state
        self._on_spark = on_spark

    def __getattr__(self, name: str) -> MetadataTable:
        if name in DEFINITIONS:
            return MetadataTable(self._state, DEFINITIONS[name], self._on_spark)
        raise AttributeError(f"no metadata table {name!r}; choose from {', '.join(DEFINITIONS)}")

    def __getitem__(self, name: str) -> MetadataTable:
        if name not in DEFINITIONS:
            raise OptionError(f"no metadata table {name!r}; choose from {', '.join(DEFINITIONS)}")
        return MetadataTable(self._state, DEFINITIONS[name], self._on_spark)

    def __iter__(self) -> Iterator[str]:
        return iter(DEFINITIONS)

    def __len__(self) -> int:
        return len(DEFINITIONS)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *DEFINITIONS]

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(d.name, "snapshot" if d.travels else "metadata file", d.doc) for d in DEFINITIONS.values()]

    def __repr__(self) -> str:
        width = max(map(len, DEFINITIONS)) + 3
        lines = [f"  {f'.{name}()':{width}}  {scope:13}  {doc}" for name, scope, doc in self._rows()]
        head = (
            f"Metadata tables of {self._state.name}; (flat=True) flattens structs, .arrow() returns Arrow,\n"
            "and .essentials() a few columns to look at:"
        )
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        caption = f"Metadata tables of {self._state.name}: .inspect.files() is pandas, .inspect.files.arrow() is Arrow"
        return str(html_table(("table", "shows", "description"), self._rows(), caption))
