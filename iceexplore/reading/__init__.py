"""Read rows: data files with their deletes applied, with pyarrow only."""

from iceexplore.errors import moved_names
from iceexplore.reading._count import RowCount, count_rows
from iceexplore.reading._data_file import SYNTHETIC_FOLDER, is_synthetic, read_data_file
from iceexplore.reading._equality_deletes import EqualityDeletes, column_of, equality_fields, equality_mask
from iceexplore.reading._outside import outside_error
from iceexplore.reading._position_deletes import (
    PositionDeletes,
    PositionIndex,
    deleted_positions,
    position_index,
    read_vector,
)
from iceexplore.reading._scan import head, row_stream, to_arrow
from iceexplore.reading._tasks import FileRows, TaskReader, outputs_of, read_tasks
from iceexplore.reading.changelogs._algebra import CHANGE_FIELDS, net_of, with_updates, without_carryovers
from iceexplore.reading.changelogs._changelog import ChangelogOptions, changelog, changelog_batches
from iceexplore.reading.changelogs._tasks import ChangeFiles, ChangeReader, change_files, is_expired_start
from iceexplore.reading.columns._convert import arrow_field, arrow_fields
from iceexplore.reading.columns._ids import has_ids, identified, naming_of, no_ids_problem
from iceexplore.reading.columns._wanted import (
    DELETED,
    FILE,
    LAST_UPDATED,
    METADATA_COLUMNS,
    PARTITION,
    POS,
    ROW_ID,
    SPEC_ID,
    Output,
    chosen_columns,
    pruned,
    with_ancestors,
)
from iceexplore.reading.row_history._fate import Fate, RowDelete, RowEvent
from iceexplore.reading.row_history._locations import find_rows
from iceexplore.reading.row_history._place import RowPlace
from iceexplore.reading.row_history._places import RowPlaces
from iceexplore.reading.row_history._story import RowStory

__all__ = [
    "CHANGE_FIELDS",
    "ChangeFiles",
    "ChangeReader",
    "ChangelogOptions",
    "DELETED",
    "EqualityDeletes",
    "FILE",
    "Fate",
    "FileRows",
    "LAST_UPDATED",
    "METADATA_COLUMNS",
    "Output",
    "PARTITION",
    "POS",
    "PositionDeletes",
    "PositionIndex",
    "ROW_ID",
    "RowCount",
    "RowDelete",
    "RowEvent",
    "RowPlace",
    "RowPlaces",
    "RowStory",
    "SPEC_ID",
    "SYNTHETIC_FOLDER",
    "TaskReader",
    "arrow_field",
    "arrow_fields",
    "change_files",
    "changelog",
    "changelog_batches",
    "chosen_columns",
    "column_of",
    "count_rows",
    "deleted_positions",
    "equality_fields",
    "equality_mask",
    "find_rows",
    "has_ids",
    "head",
    "identified",
    "is_expired_start",
    "is_synthetic",
    "naming_of",
    "net_of",
    "no_ids_problem",
    "outputs_of",
    "outside_error",
    "position_index",
    "pruned",
    "read_data_file",
    "read_tasks",
    "read_vector",
    "row_stream",
    "to_arrow",
    "with_ancestors",
    "with_updates",
    "without_carryovers",
]

__getattr__ = moved_names(
    __name__,
    {
        "MADE_UP_FOLDER": "iceexplore.reading:SYNTHETIC_FOLDER",
        "is_made_up": "iceexplore.reading:is_synthetic",
    },
)
