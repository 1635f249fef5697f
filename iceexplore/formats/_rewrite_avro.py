"""Rewrite an Avro file with other values, but with the original's header, including the text of its schema."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from iceexplore.formats._avro import decompress_block, index_blocks, read_header
from iceexplore.formats._avro_rows import Records, record_limit
from iceexplore.storage import Budget, JsonValue

__all__ = ["read_avro", "rewritten_avro"]

_META = {"type": "map", "values": "bytes"}


def read_avro(data: bytes, location: str, work: Budget) -> tuple[Any, Mapping[str, str], Iterator[Any]]:
    """Return a file's schema and metadata, for `rewritten_avro`, and its records, decoded lazily.

    Parameters
    ----------
    work
        Limit for the total size of the decompressed blocks. Records are decoded and encoded one by one, so this also
        limits the time: 16 MiB take 7 seconds if they are one-byte numbers, and 25 seconds if they are pairs of a map.

    Raises
    ------
    FormatError
        The header or a block is damaged. fastavro may raise other errors for a damaged record.
    MemoryLimitError
        The header, a block or a record exceeds its memory limit, or all blocks together exceed ``work``.
    """
    import fastavro

    header = read_header(data, location)  # checked before fastavro reads it
    index = index_blocks(data, header, location)
    if index.faults:
        raise index.faults[0]
    file: Any = fastavro.reader(io.BytesIO(data))

    def records() -> Iterator[Any]:
        schema = fastavro.parse_schema(file.writer_schema)
        for block in index.blocks:
            plain = decompress_block(data, block, header.codec, location)
            work.reserve(len(plain), "the records, decompressed,")
            found = Records(plain, schema, record_limit(len(data)), location)
            for _ in range(block.count):
                yield found.read()

    return file.writer_schema, file.metadata, records()


def rewritten_avro(schema: JsonValue, metadata: Mapping[str, str], records: Iterable[Any]) -> bytes:
    """Return an Avro file with these records and another file's header.

    Parameters
    ----------
    schema, metadata
        The writer's schema and the header's key-value metadata as returned by ``fastavro.reader``, including the keys
        that begin with ``avro.``.
    """
    import fastavro

    codec = metadata.get("avro.codec", "null")
    # The sync marker is derived from the header instead of random, so that the same table is saved as the same bytes.
    sync = hashlib.sha256(repr(sorted(metadata.items())).encode("utf-8", "surrogatepass")).digest()[:16]
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec, sync_marker=sync)
    made = out.getvalue()
    header = io.BytesIO()
    header.write(b"Obj\x01")
    # Write the header here: fastavro would write the keys of its schema in a different order.
    header_values = {key: value.encode("utf-8", "surrogatepass") for key, value in metadata.items()}
    fastavro.schemaless_writer(header, _META, header_values)
    return header.getvalue() + made[made.index(sync) :]
