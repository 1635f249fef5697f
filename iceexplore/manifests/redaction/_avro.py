"""Redact an Avro file: its records, its schema and its header.

Large files are redacted column by column (`_columns`), all others record by record.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceexplore.errors import FormatError
from iceexplore.formats import (
    AvroHeader,
    BlockIndex,
    Records,
    block_bytes,
    decompress_block,
    encode_records,
    header_bytes,
    index_blocks,
    is_bare,
    read_header,
)
from iceexplore.manifests.decode._avro import BLOCK_BYTES, RECORD_BYTES, bulk_groups, slow_work, worth_bulk
from iceexplore.manifests.model._reader_schema import ReaderSchema
from iceexplore.manifests.redaction._avro_schema import Schema
from iceexplore.manifests.redaction._columns import Columns, OtherWayError
from iceexplore.manifests.redaction._places import (
    Place,
)
from iceexplore.manifests.redaction._redactor import Redactor
from iceexplore.storage import Budget

__all__ = ["redact_avro"]

#: Sync marker of the redacted file, which replaces the file's own.
_SYNC = b"iceexplore-blank"
_WHAT = "the entries"
#: Redacting record by record takes this many times as long as reading, so datafusion pays off for smaller files than in
#: reading.
_SLOWER = 4
#: Maximum number of decompressed bytes that are redacted column by column at a time, and of bytes in a block: Arrow
#: arrays take about ten times as much memory.
_GROUP_BYTES, _COLUMN_BLOCK = 1 << 23, 1 << 24


def redact_avro(redactor: Redactor, data: bytes, location: str, lengths: Mapping[str, int]) -> bytes:
    """Return the file with its records, schema and header redacted; a damaged file raises."""
    header = read_header(data, location)
    index = index_blocks(data, header, location)
    if index.faults:
        raise index.faults[0]
    schema = Schema(redactor, header.schema, lengths)
    shown, pairs = schema.shown(header.schema), redactor.header(header.metadata)
    codec = "null" if header.codec == "null" else "deflate"
    with Budget(location, len(data)) as budget:
        file = _File(data, header, index, location, schema, codec, budget)
        made = None
        if worth_bulk(_SLOWER * len(data)):
            # Placeholders chosen here remain valid, so they are the same if the records must be redacted one by one
            # after all.
            made = _by_columns(file)
        if made is None:
            made = _by_records(file)
    blocks, same = made
    # `is_bare` comes last because it decompresses every block without a limit; by now the blocks are known to be within
    # limits.
    if same and shown == header.schema and pairs == header.metadata and is_bare(data, header, index):
        return data  # byte for byte: nothing in it needs redaction
    head_pairs = {"avro.schema": json.dumps(shown, ensure_ascii=False), "avro.codec": codec, **pairs}
    head = header_bytes(
        {k.encode("utf-8", "replace"): v.encode("utf-8", "replace") for k, v in head_pairs.items()}, _SYNC
    )
    return b"".join([head, *blocks])


@dataclass(frozen=True)
class _File:
    """A file to redact, with the codec for its blocks and its memory budget."""

    data: bytes
    header: AvroHeader
    index: BlockIndex
    location: str
    schema: Schema
    codec: str
    budget: Budget


def _by_columns(file: _File) -> tuple[list[bytes], bool] | None:
    """Return the blocks redacted column by column, and whether their records are unchanged; None if not possible.

    Columns in which nothing is redacted are encoded again as they were decoded.
    """
    columns = Columns(file.schema)
    plain = file.schema.plain
    try:
        fields = [columns.field(i, f["type"]) for i, f in enumerate(plain["fields"])]
        change = columns.change(plain, Place.RECORD)
    except OtherWayError:
        return None
    avro = columns.avro(plain)
    names = frozenset(f.name for f in fields)
    reader_schema = ReaderSchema(avro, pa.schema(fields), names, (), file.schema.has_ids, frozenset())
    begun, held = file.budget.used, 0
    blocks: list[bytes] = []
    same = True
    groups = bulk_groups(
        file.data, file.header, file.index, reader_schema, reader_schema.arrow.names, file.location, file.budget,
        group_bytes=_GROUP_BYTES, block_bytes=_COLUMN_BLOCK,
    )  # fmt: skip
    try:
        for counts, table in groups:
            if table is None:
                file.budget.used = begun
                return None
            made = table
            if change is not None:
                made = pa.Table.from_struct_array(change(table.to_struct_array().combine_chunks()))
            same = same and bool(made is table or made.equals(table))
            written, starts = encode_records(avro, made)
            first = 0
            for count in counts:
                body = written[starts[first] : starts[first + count]]
                blocks.append(block_bytes(count, body, file.codec, _SYNC))
                first += count
            held += sum(map(len, blocks[-len(counts) :]))
            file.budget.used = begun + held  # the rows are released, but the encoded blocks are kept
            file.budget.reserve(0, _WHAT)
    except (OtherWayError, pa.ArrowException, ValueError):
        file.budget.used = begun
        return None  # redacting record by record finds the fault
    return blocks, same


def _by_records(file: _File) -> tuple[list[bytes], bool]:
    """Return the blocks redacted record by record, and whether their records are unchanged."""
    import fastavro

    schema, header = file.schema, file.header
    change = schema.change(schema.plain, Place.RECORD)
    decode: Any = fastavro.parse_schema(schema.decode(schema.plain))
    # Creating Python objects takes time, so limit the decompressed bytes as when reading.
    work = slow_work(file.location, len(file.data))
    blocks: list[bytes] = []
    same, out = True, io.BytesIO()
    for block in file.index.blocks:
        plain = decompress_block(file.data, block, header.codec, file.location, BLOCK_BYTES)
        if block.count > len(plain):
            text = f"{block.count} records do not fit in {len(plain)} bytes"
            raise FormatError(text, location=file.location, offset=block.start)
        work.reserve(len(plain), f"{_WHAT}, decompressed,")
        records = Records(plain, decode, RECORD_BYTES, file.location)
        out.seek(0)
        out.truncate()
        for _ in range(block.count):
            record = records.read()
            fastavro.schemaless_writer(out, decode, record if change is None else change(record))
        if records.at != len(plain):
            left = len(plain) - records.at
            raise FormatError(f"a block has {left} bytes left over", location=file.location, offset=block.start)
        body = out.getvalue()
        same = same and body == plain
        blocks.append(block_bytes(block.count, body, file.codec, _SYNC))
        file.budget.reserve(len(blocks[-1]), _WHAT)
    return blocks, same
