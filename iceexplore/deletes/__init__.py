"""Read and write deletes: deletion vectors in Puffin files, position and equality delete files."""

from __future__ import annotations

from iceexplore.deletes._bitmap import Bitmap
from iceexplore.deletes._delete_files import (
    FILE_PATH_ID,
    POS_ID,
    ROW_ID,
    read_equality_deletes,
    read_position_deletes,
)
from iceexplore.deletes._mumbling import MUMBLING_POSITIONS, decode_mumbling, encode_mumbling
from iceexplore.deletes._positions import PositionSet, bitmap_of, read_positions, widened
from iceexplore.deletes._puffin import (
    DELETION_VECTOR,
    PUFFIN_MAGIC,
    THETA_SKETCH,
    PuffinBlob,
    PuffinFile,
    read_puffin_blob,
    read_puffin_footer,
)
from iceexplore.deletes._roaring import (
    MAX_KEY,
    MAX_POSITION,
    encode_bitmap32,
    encode_bitmap64,
    read_bitmap32,
    read_bitmap64,
)
from iceexplore.deletes._theta import theta_ndv
from iceexplore.deletes._vector import (
    DV_MAGIC,
    bare_vector_problem,
    decode_deletion_vector,
    encode_deletion_vector,
    read_deletion_vector,
    read_range,
)
from iceexplore.deletes._write_files import write_equality_deletes, write_position_deletes
from iceexplore.deletes._write_puffin import DV_FIELD_ID, NewBlob, new_dv_blob, write_puffin

__all__ = [
    "Bitmap",
    "DELETION_VECTOR",
    "DV_FIELD_ID",
    "DV_MAGIC",
    "FILE_PATH_ID",
    "MAX_KEY",
    "MAX_POSITION",
    "MUMBLING_POSITIONS",
    "NewBlob",
    "POS_ID",
    "PUFFIN_MAGIC",
    "PositionSet",
    "PuffinBlob",
    "PuffinFile",
    "ROW_ID",
    "THETA_SKETCH",
    "bare_vector_problem",
    "bitmap_of",
    "decode_deletion_vector",
    "decode_mumbling",
    "encode_bitmap32",
    "encode_bitmap64",
    "encode_deletion_vector",
    "encode_mumbling",
    "new_dv_blob",
    "read_bitmap32",
    "read_bitmap64",
    "read_deletion_vector",
    "read_equality_deletes",
    "read_position_deletes",
    "read_positions",
    "read_puffin_blob",
    "read_puffin_footer",
    "read_range",
    "theta_ndv",
    "widened",
    "write_equality_deletes",
    "write_position_deletes",
    "write_puffin",
]
