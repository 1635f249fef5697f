"""Write Puffin files as Iceberg's Java does (``PuffinWriter``, ``BaseDVFileWriter``)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iceexplore.deletes._puffin import DELETION_VECTOR, PUFFIN_MAGIC
from iceexplore.deletes._vector import encode_deletion_vector
from iceexplore.errors import OptionError

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = ["DV_FIELD_ID", "NewBlob", "new_dv_blob", "write_puffin"]

#: The only id in the ``fields`` of a deletion vector's blob: that of ``_pos``, Java's ``MetadataColumns.ROW_POSITION``.
DV_FIELD_ID = 2147483645

_NO_FLAGS = bytes(4)
_LARGEST_PAYLOAD = (1 << 31) - 1


@dataclass(frozen=True)
class NewBlob:
    """A blob to write, uncompressed. Snapshot id and sequence number are -1 if inherited."""

    type: str
    data: bytes = field(repr=False)
    fields: tuple[int, ...] = ()
    snapshot_id: int = -1
    sequence_number: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)


def new_dv_blob(bitmap: BitMap64, referenced_file: str) -> NewBlob:
    """Return the blob of a deletion vector (Puffin specification, "deletion-vector-v1 blob type").

    Parameters
    ----------
    bitmap
        ``pyroaring.BitMap64`` of the deleted positions.
    referenced_file
        The data file's path as in its manifest entry. If the vector deletes entries of a leaf manifest (v4 draft), that
        manifest's path.
    """
    properties = {"referenced-data-file": referenced_file, "cardinality": str(len(bitmap))}
    return NewBlob(DELETION_VECTOR, encode_deletion_vector(bitmap), (DV_FIELD_ID,), properties=properties)


def write_puffin(
    blobs: Sequence[NewBlob], *, properties: Mapping[str, str] | None = None, created_by: str | None = None
) -> tuple[bytes, list[tuple[int, int]]]:
    """Return a complete Puffin file: magic, blobs and an uncompressed footer.

    Parameters
    ----------
    properties
        The file's properties.
    created_by
        The property ``created-by``.

    Returns
    -------
    tuple
        The bytes, and each blob's offset and length, which a deletion vector's manifest entry must repeat exactly.

    Raises
    ------
    OptionError
        The footer would exceed 2 GB.
    """
    parts, places, described, at = [PUFFIN_MAGIC], [], [], len(PUFFIN_MAGIC)
    for blob in blobs:
        places.append((at, len(blob.data)))
        described.append(
            {
                "type": blob.type,
                "fields": list(blob.fields),
                "snapshot-id": blob.snapshot_id,
                "sequence-number": blob.sequence_number,
                "offset": at,
                "length": len(blob.data),
                **({"properties": dict(blob.properties)} if blob.properties else {}),
            }
        )
        parts.append(blob.data)
        at += len(blob.data)
    file_properties = {**(properties or {}), **({} if created_by is None else {"created-by": created_by})}
    footer = {"blobs": described, **({"properties": file_properties} if file_properties else {})}
    payload = json.dumps(footer, ensure_ascii=False, separators=(",", ":")).encode()
    if len(payload) > _LARGEST_PAYLOAD:
        raise OptionError(f"the footer takes {len(payload)} bytes; write the {len(blobs)} blobs to several files")
    parts += [PUFFIN_MAGIC, payload, struct.pack("<i", len(payload)), _NO_FLAGS, PUFFIN_MAGIC]
    return b"".join(parts), places
