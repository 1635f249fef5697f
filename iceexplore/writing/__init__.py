"""Write data files; the counterpart of the package `reading`."""

from iceexplore.writing._column_metrics import (
    StatColumn,
    bounds_as,
    bounds_of,
    stat_columns,
    stats_arrays,
    truncate_lower,
    truncate_upper,
)
from iceexplore.writing._foreign_frames import RowsLike, foreign_frame
from iceexplore.writing._foreign_schemas import SchemaLike, given_schema
from iceexplore.writing._frames import (
    arrow_frame,
    columns_at,
    files_of_frame,
    fit_columns,
    partition_tuples,
    split_by_partition,
    target_bytes,
)
from iceexplore.writing._from_python import plain_values
from iceexplore.writing._parquet import (
    DataFile,
    column_values,
    file_schema,
    parquet_path,
    write_column_file,
    write_data_files,
)
from iceexplore.writing._partition_path import partition_path
from iceexplore.writing._set_values import is_array, set_values
from iceexplore.writing._sort import default_order, sorted_rows
from iceexplore.writing._type_strings import checked_type, type_of
from iceexplore.writing._virtual_columns import VirtualColumn, virtual_columns

__all__ = [
    "DataFile",
    "RowsLike",
    "SchemaLike",
    "StatColumn",
    "VirtualColumn",
    "arrow_frame",
    "bounds_as",
    "bounds_of",
    "checked_type",
    "column_values",
    "columns_at",
    "default_order",
    "file_schema",
    "files_of_frame",
    "fit_columns",
    "foreign_frame",
    "given_schema",
    "is_array",
    "parquet_path",
    "partition_path",
    "partition_tuples",
    "plain_values",
    "set_values",
    "sorted_rows",
    "split_by_partition",
    "stat_columns",
    "stats_arrays",
    "target_bytes",
    "truncate_lower",
    "truncate_upper",
    "type_of",
    "virtual_columns",
    "write_column_file",
    "write_data_files",
]
