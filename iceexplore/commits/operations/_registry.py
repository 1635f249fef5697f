"""Register the commit operations that simulations and labs have, each with its parameters.

The registry is `OPERATIONS`. Each method of `Simulation` or `Lab` that commits finds its operation there by name, and
the commit panel shows a form for each operation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from iceexplore.commits.operations import _metadata as metadata
from iceexplore.commits.operations._operation import CommitOperation, Parameter
from iceexplore.commits.operations._rewrite_data_files import compact
from iceexplore.commits.operations._rewrite_metadata import cherry_pick, rewrite_manifests, rewrite_position_deletes
from iceexplore.commits.operations._row_delta import row_delta
from iceexplore.commits.operations._update_columns import update_columns
from iceexplore.commits.operations._whole_files import append, delete_files, delete_where, overwrite
from iceexplore.errors import OptionError, nearest
from iceexplore.graph import to_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OPERATIONS", "operation", "operations"]

_SCHEMA_PINS = ("schema", "current-schema-id", "last-column-id")
_SPEC_PINS = (*_SCHEMA_PINS, "partition-spec", "default-spec-id", "last-partition-id")
_NO_ROW = "no row matches"


def _named(*parameters: Parameter) -> tuple[Parameter, ...]:
    """Return the parameters, marked as keyword-only: a method accepts them by name, not by position."""
    return tuple(replace(p, passed="name") for p in parameters)


def _options(*parameters: Parameter) -> tuple[Parameter, ...]:
    """Return the parameters, marked as options, which a method collects in ``**how``."""
    return tuple(replace(p, passed="option") for p in parameters)


# Parameters that several operations share -----------------------------------------------------------------------------

_REF = _named(Parameter("ref", "branch", "The branch to commit to.", "main"))
_FILES = Parameter(
    "files", "files", "Data files to add: a number, dictionaries, paths of Parquet files, or a data frame."
)
_FILES_OR_NONE = replace(_FILES, default=None)
_ROWS = Parameter("rows", "rows", "Rows to add: a data frame, an Arrow table, columns, or dictionaries.")
_SPARK = _named(Parameter("spark", "session", "A Spark session, whose workers read and write the files.", None))
_WHERE = Parameter("where", "filter", "Rewrite only files that may contain matching rows.", None)
_PARTITION = Parameter(
    "partition", "mapping", "Values by partition field; a field that is left out matches any value.", None
)
_ISOLATION = Parameter(
    "isolation", "choice", "Whether data that other writers add meanwhile conflicts (serializable) or not (snapshot).",
    "serializable",
    choices=("serializable", "snapshot"),
)  # fmt: skip
#: Parameters that describe files to add; see `new_files`.
_NEW_FILES = _options(
    Parameter(
        "rows", "int", "If files is a number: how many rows each file has, as one number or a list.", None, least=0
    ),
    Parameter(
        "partitions", "mapping", "If files is a number: the partitions to which the files are assigned in turn.", None
    ),
    Parameter(
        "bytes_per_row", "number", "If files is a number: the size of one row, to compute file sizes.", None, least=0
    ),
    Parameter("materialize", "flag", "If files is a number: write real files, with random data.", False),
    Parameter("check_duplicates", "flag", "Refuse files that the table already has.", True),
)
_COMPACT = (
    Parameter("small_than", "int", "Rewrite only files smaller than this, in bytes.", None, least=0),
    Parameter("files", "int", "The number of files to write per partition.", 1, least=1),
)
_COLUMN_UPDATES = (
    Parameter("paths", "locations", "Data files to update; by default all.", None),
    *_named(replace(_WHERE, help="The rows to update; by default all.")),
    *_REF,
)
_RETENTION = (
    Parameter("max_ref_age_ms", "int", "Expiry removes the ref once its snapshot is older than this.", None, least=1),
)
_EXPIRE = (
    Parameter("ids", "snapshots", "Snapshots to expire whatever their age.", None),
    *_named(
        Parameter("older_than", "time", "Expire snapshots older than this.", None),
        Parameter("retain_last", "int", "Keep at least this number of snapshots of each branch.", None, least=1),
    ),
)


class _Both(TypedDict):
    simulation: tuple[Parameter, ...]
    lab: tuple[Parameter, ...]


def _both(*parameters: Parameter) -> _Both:
    """Return keyword arguments for `CommitOperation`: the same parameters for its methods in simulations and labs."""
    return {"simulation": parameters, "lab": parameters}


# The operations -------------------------------------------------------------------------------------------------------

_FILE_OPERATIONS = (
    CommitOperation(
        "append", "Append data files", "Adds data files, or writes rows to new data files.", "files",
        simulation=(_FILES, *_REF, *_NEW_FILES),
        lab=(_ROWS, *_REF),
        adds_only=True,
        change=append,
    ),
    CommitOperation(
        "row_delta", "Delete rows", "Deletes rows by position or by value, and adds data files.", "files",
        simulation=(
            _FILES_OR_NONE,
            *_named(Parameter("deletes", "mapping", "Positions of the rows to delete, by data file.", None, since=2)),
            *_REF,
            *_options(
                Parameter(
                    "equality", "mapping", "Values by column; rows that have these values are deleted.", None, since=2
                ),
                Parameter(
                    "equality_partition", "mapping", "The partition to which the equality deletes apply.", None, since=2
                ),
                _ISOLATION,
            ),
            *_NEW_FILES,
        ),
        change=row_delta,
    ),
    CommitOperation(
        "overwrite", "Overwrite data files", "Replaces data files, or matching rows, with others in one commit.",
        "files",
        simulation=(
            _FILES_OR_NONE,
            *_named(Parameter("delete", "locations", "Data files to remove.", None)),
            *_REF,
            *_options(replace(_WHERE, help="Remove files in which all rows match."), _PARTITION, _ISOLATION),
            *_NEW_FILES,
        ),
        lab=(_ROWS, replace(_WHERE, help="Delete the matching rows; by default all."), *_REF),
        change=overwrite,
    ),
    CommitOperation(
        "delete_files", "Delete data files", "Removes data files by location, with their deletion vectors.", "files",
        simulation=(Parameter("paths", "locations", "Data files to remove."), *_REF),
        change=delete_files,
    ),
    CommitOperation(
        "delete_where", "Delete data files by a filter",
        "Removes data files if their metadata shows that all of their rows match.", "files",
        simulation=(replace(_WHERE, help="Remove files in which all rows match."), *_named(_PARTITION), *_REF),
        change=delete_where,
    ),
    CommitOperation(
        "compact", "Compact data files", "Rewrites data files into fewer files, without deleted rows.", "files",
        simulation=(
            Parameter("paths", "locations", "Data files to rewrite; by default all.", None),
            *_REF,
            *_options(
                _WHERE,
                _PARTITION,
                *_COMPACT,
                Parameter(
                    "read", "flag",
                    "Read and rewrite the data, instead of merging only metadata; by default where data exists.", None,
                ),
            ),
        ),
        lab=(
            _WHERE,
            *_SPARK,
            *_REF,
            *_options(
                Parameter("paths", "locations", "Data files to rewrite; by default all.", None),
                _PARTITION,
                *_COMPACT,
                Parameter("read", "flag", "A lab always reads the data: read=False is an error.", None),
            ),
        ),
        nothing="compaction would not reduce the number of files in any partition",
        change=compact,
    ),
    CommitOperation(
        "update_columns", "Update columns",
        "Writes new values of some columns to column files, without rewriting data files (V4 draft).", "files",
        simulation=(
            Parameter(
                "columns", "mapping",
                "New values by column, as constants or functions of the rows; names are enough for synthetic files.",
            ),
            *_COLUMN_UPDATES,
        ),
        lab=(
            Parameter("columns", "mapping", "New values by column, as constants or functions of the rows."),
            *_COLUMN_UPDATES,
        ),
        since=4,
        nothing="no row of the chosen data files matches",
        change=update_columns,
    ),
    CommitOperation(
        "rewrite_manifests", "Rewrite manifests", "Rewrites manifests without changing the data.", "files",
        **_both(
            Parameter("manifests", "locations", "Leaf manifests to rewrite; by default the layout chooses some.", None),
            *_REF,
        ),
        nothing="the table has no manifests",
        change=rewrite_manifests,
    ),
    CommitOperation(
        "rewrite_position_deletes", "Rewrite position deletes",
        "Merges position delete files (version 2) or converts them to deletion vectors (from version 3 on).", "files",
        **_both(Parameter("paths", "locations", "Position delete files to rewrite; by default all.", None), *_REF),
        since=2,
        nothing="there are no position delete files to rewrite",
        change=rewrite_position_deletes,
    ),
    CommitOperation(
        "cherry_pick", "Cherry-pick a snapshot",
        "Applies the changes of a snapshot to main, which does not have the snapshot in its history.", "files",
        **_both(Parameter("snapshot", "snapshot", "The snapshot to pick.")),
        change=cherry_pick,
    ),
)  # fmt: skip

#: Operations on rows: only labs have them, and their functions are in `iceexplore.labs.ROW_OPERATIONS`.
_ROW_OPERATIONS = (
    CommitOperation(
        "delete", "Delete rows by a filter", "Deletes the matching rows.", "files",
        lab=(Parameter("where", "filter", "The rows to delete; 'true' deletes all."), *_SPARK, *_REF),
        nothing=_NO_ROW,
    ),
    CommitOperation(
        "update", "Update rows", "Sets columns to other values in the matching rows.", "files",
        lab=(
            Parameter("set", "mapping", "New values by column, as constants or functions of the rows."),
            replace(_WHERE, help="The rows to update; by default all."),
            *_SPARK,
            *_REF,
        ),
        nothing=_NO_ROW,
    ),
    CommitOperation(
        "merge", "Merge rows", "Merges rows into the table, matching them by key columns.", "files",
        lab=(
            _ROWS,
            Parameter("on", "texts", "Key columns; rows match if all of these are equal."),
            *_named(
                Parameter("matched", "choice", "What to do with matching rows of the table.", "update",
                          choices=("update", "delete"), optional=True),
                Parameter("not_matched", "choice", "What to do with given rows that match none.", "insert",
                          choices=("insert",), optional=True),
                replace(_WHERE, help="Consider only rows of the table that match this filter."),
            ),
            *_REF,
        ),
        nothing=_NO_ROW,
    ),
)  # fmt: skip

_METADATA_OPERATIONS = (
    CommitOperation(
        "expire_snapshots", "Expire snapshots",
        "Removes snapshots from the metadata and, in a lab, the files that only these snapshots use.",
        "metadata",
        simulation=_EXPIRE,
        lab=(
            *_EXPIRE,
            *_named(Parameter("files", "flag", "Also remove the files that only expired snapshots use.", True)),
        ),
        update=metadata.Expiration,
    ),
    CommitOperation(
        "evolve_schema", "Change the schema", "Adds, drops, renames, promotes and moves columns.", "metadata",
        **_both(*_options(
            Parameter("add", "mapping", "Types of the columns to add, by path.", None),
            Parameter("drop", "texts", "Columns to drop.", ()),
            Parameter("rename", "mapping", "New names of columns, by path.", None),
            Parameter("update", "mapping", "Types to which columns are promoted, by path.", None),
            Parameter("move", "mapping", "New positions of columns, by path: first, after x or before x.", None),
            Parameter("require", "texts", "Which of the added columns are required.", ()),
            Parameter("make_optional", "texts", "Required columns that become optional.", ()),
            Parameter("doc", "mapping", "Comments on columns, by path.", None),
            Parameter(
                "initial_default", "mapping", "Values of added columns in existing rows, by path.", None, since=3
            ),
            Parameter(
                "write_default", "mapping", "Values for columns that are missing in new rows, by path.", None, since=3
            ),
            Parameter("identifier", "texts", "The new identifier fields; None keeps the current ones.", None),
            Parameter("case_sensitive", "flag", "Whether column names are case-sensitive.", True),
        )),
        update=metadata.evolve_schema,
        pins=_SCHEMA_PINS,
    ),
    CommitOperation(
        "evolve_spec", "Change the partitioning", "Sets a new partition spec for future files.", "metadata",
        **_both(*_options(
            Parameter("add", "texts", "Partition fields to add: columns, or transforms such as day(ts).", ()),
            Parameter("remove", "texts", "Partition fields to remove.", ()),
            Parameter("rename", "mapping", "New names of partition fields, by old name.", None),
        )),
        update=metadata.evolve_spec,
        pins=_SPEC_PINS,
    ),
    CommitOperation(
        "evolve_virtual_columns", "Change virtual columns",
        "Adds and removes virtual columns: functions of a column, for which new files store statistics.", "metadata",
        **_both(*_options(
            Parameter("add", "texts", "Functions to add, such as lower(name) or bucket(16, id).", ()),
            Parameter("remove", "texts", "Virtual columns to remove.", ()),
        )),
        update=metadata.evolve_virtual_columns,
        since=4,
        pins=(*_SCHEMA_PINS, "expressions"),
    ),
    CommitOperation(
        "set_sort_order", "Change the sort order", "Sets the order of the rows in future files.", "metadata",
        **_both(
            Parameter("fields", "texts", "Sort fields, such as ts desc; without any, the table is unsorted.", many=True)
        ),
        update=metadata.set_sort_order,
        pins=_SCHEMA_PINS,
    ),
    CommitOperation(
        "set_properties", "Change properties", "Sets and removes table properties.", "metadata",
        **_both(
            Parameter("properties", "mapping", "Values of the properties to set, by name.", None),
            *_named(Parameter("remove", "texts", "Properties to remove.", ())),
        ),
        update=metadata.set_properties,
    ),
    CommitOperation(
        "branch", "Create or move a branch", "Creates a branch, or moves it to another snapshot.", "refs",
        **_both(
            Parameter("name", "text", "The branch's name."),
            Parameter("at", "snapshot", "The snapshot to point to; by default the current one.", None),
            *_options(
                Parameter(
                    "min_snapshots_to_keep", "int", "The minimum number of snapshots that expiry keeps.", None, least=1
                ),
                Parameter(
                    "max_snapshot_age_ms", "int", "The age from which snapshots in the branch expire.", None, least=1
                ),
                *_RETENTION,
            ),
        ),
        update=metadata.set_ref("branch"),
    ),
    CommitOperation(
        "tag", "Create or move a tag", "Creates a tag for a snapshot, or moves a tag to another snapshot.", "refs",
        **_both(
            Parameter("name", "text", "The tag's name."),
            Parameter("at", "snapshot", "The snapshot to point to; by default the current one.", None),
            *_named(*_RETENTION),
        ),
        update=metadata.set_ref("tag"),
    ),
    CommitOperation(
        "remove_ref", "Remove a branch or tag", "Removes a branch or tag; its snapshots stay until they expire.",
        "refs",
        **_both(Parameter("name", "text", "The name of the branch or tag.")),
        update=metadata.remove_ref,
    ),
    CommitOperation(
        "fast_forward", "Fast-forward a branch", "Moves a branch to the snapshot of another ref.", "refs",
        **_both(
            Parameter("name", "text", "The branch to move."),
            Parameter("to", "text", "The branch or tag to move it to."),
        ),
        update=metadata.fast_forward,
    ),
    CommitOperation(
        "rollback", "Roll back", "Makes an ancestor of the current snapshot current again.", "refs",
        **_both(
            Parameter("snapshot", "snapshot", "The ancestor to make current.", None),
            *_named(Parameter("timestamp", "time", "Or a time: the newest ancestor before it becomes current.", None)),
        ),
        update=metadata.rollback,
    ),
    # This operation has no ``update`` function, because every commit upgrades the table if its format version is lower
    # than the one in the committer's layout options. The method ``upgrade`` changes these options, and then commits.
    CommitOperation(
        "upgrade", "Upgrade the table", "Raises the format version, in a commit without other changes.", "metadata",
        **_both(
            Parameter("format_version", "int", "The new format version, 1 to 4.", least=1),
            *_options(Parameter("layout", "options", "Layout options of later commits; see option_docs().", many=True)),
        ),
    ),
)  # fmt: skip

#: Every operation by name. `operations` returns them in this order.
OPERATIONS: dict[str, CommitOperation] = {
    o.name: o for o in (*_FILE_OPERATIONS, *_ROW_OPERATIONS, *_METADATA_OPERATIONS)
}


def operation(name: str) -> CommitOperation:
    """Return the commit operation with this name; a notebook displays it with its parameters.

    Raises
    ------
    OptionError
        There is no such operation; the message lists the nearest names.
    """
    if str(name) not in OPERATIONS:
        raise OptionError(f"no commit operation {str(name)[:60]!r}; {nearest(str(name), list(OPERATIONS))}")
    return OPERATIONS[str(name)]


def operations() -> pd.DataFrame:
    """Return the commit operations, one per row.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``title``, ``help``, ``changes`` (files, metadata or refs), ``since`` (the first format version that
        allows the operation), ``simulation`` and ``lab`` (the call in a simulation and in a lab; null where the
        operation does not exist).
    """
    rows = [
        {
            "name": o.name,
            "title": o.title,
            "help": o.help,
            "changes": o.changes,
            "since": o.since,
            "simulation": None if o.simulation is None else o.signature("simulation"),
            "lab": None if o.lab is None else o.signature("lab"),
        }
        for o in OPERATIONS.values()
    ]
    schema = pa.schema([(name, pa.int32() if name == "since" else pa.string()) for name in rows[0]])
    return to_frame(pa.Table.from_pylist(rows, schema=schema))
