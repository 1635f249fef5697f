"""An Avro file with other values and the header of its writer, the schema's text included."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from iceexplore.formats import Records, decompress_block, index_blocks, read_header, record_limit
from iceexplore.storage import Budget

__all__ = ["read_avro", "rewritten_avro"]

_META = {"type": "map", "values": "bytes"}


def read_avro(data: bytes, location: str, work: Budget) -> tuple[Any, Mapping[str, str], Iterator[Any]]:
    """Return a file's schema and metadata, for `rewritten_avro`, and its records, which are decoded as they are taken.

    Parameters
    ----------
    work
        What the blocks may have together once decompressed. Records are decoded and encoded one by one, so this limits
        the time: 16 MiB take seven seconds as numbers of a byte, 25 as the pairs of a map.

    Raises
    ------
    FormatError
        The header or a block is damaged. Whatever fastavro raises where a record is.
    MemoryLimitError
        The header, a block or a record would take more memory than it may, or all blocks together too much time.
    """
    import fastavro

    header = read_header(data, location)  # checked before fastavro sees it
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


def rewritten_avro(schema: Any, metadata: Mapping[str, str], records: Iterable[Any]) -> bytes:
    """Write records below another file's header.

    Parameters
    ----------
    schema, metadata
        The writer's schema and the header's keys, as ``fastavro.reader`` gives them, ``avro.`` ones included.
    """
    import fastavro

    codec = metadata.get("avro.codec", "null")
    # Of the content, not of chance: the same table is saved as the same bytes.
    sync = hashlib.sha256(repr(sorted(metadata.items())).encode("utf-8", "surrogatepass")).digest()[:16]
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec, sync_marker=sync)
    made = out.getvalue()
    header = io.BytesIO()
    header.write(b"Obj\x01")
    # fastavro's own header would hold the schema in another order of keys.
    said = {key: value.encode("utf-8", "surrogatepass") for key, value in metadata.items()}
    fastavro.schemaless_writer(header, _META, said)
    return header.getvalue() + made[made.index(sync) :]
