"""From the bytes of an Avro manifest to Arrow columns: in bulk by datafusion, in small or damaged files by fastavro.

Both decode the same equivalent schema (`_layout`), so both give the same table. datafusion is five times as fast, but
takes 0.6 s to import and reads from paths only: small files do not pay for that. Damage goes the slow way, block by
block, and what stands in whole blocks, or before the fault in a broken one, is kept.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import AvroHeader, BlockIndex, container, decompress_block, index_blocks
from iceexplore.manifests._layout import Layout

__all__ = ["Decoded", "decode", "decode_blocks", "decode_bulk"]

#: Files from this size on are worth datafusion once it is imported ...
BULK_BYTES = 64_000
#: ... and its import is worth it for this many bytes in all (fastavro takes about 0.1 s per MB of deflated manifest).
IMPORT_BYTES = 2_000_000
#: Plain bytes that are handed to datafusion at a time: what bounds memory, and the temporary file.
GROUP_BYTES = 1 << 26
#: Rows that are Python objects at a time on the slow way: 2,000 with statistics take megabytes that Python keeps.
BATCH_ROWS = 250

_MEMORY = "/dev/shm"  # noqa: S108 - mkstemp makes the file, with a name of its own
_slow_bytes = 0


class Decoded:
    """Decoded columns, and the faults met on the way (empty if the file is healthy)."""

    __slots__ = ("faults", "lost", "table")

    def __init__(self, table: pa.Table, faults: tuple[IceexploreError, ...] = (), lost: int = 0) -> None:
        self.table = table
        self.faults = faults
        self.lost = lost


def _worth_bulk(size: int) -> bool:
    global _slow_bytes
    if size < BULK_BYTES:
        return False
    if "datafusion" in sys.modules or _slow_bytes + size > IMPORT_BYTES:
        return True
    _slow_bytes += size
    return False


def decode(
    data: bytes, header: AvroHeader, layout: Layout, columns: list[str], location: str, *, bulk: bool | None = None
) -> Decoded:
    """Decode the named columns of ``layout.arrow``; rows are in file order.

    Parameters
    ----------
    bulk
        True forces datafusion, False fastavro (for tests); by default what is faster.

    Raises
    ------
    UnsupportedError
        An unknown codec. Damage is not raised but kept in ``Decoded.faults``.
    """
    index = index_blocks(data, header, location)
    if not index.faults and (_worth_bulk(len(data)) if bulk is None else bulk):
        table = decode_bulk(data, header, index, layout, columns, location)
        if table is not None:
            return Decoded(table)
    return decode_blocks(data, header, index, layout, columns, location)


def decode_bulk(
    data: bytes, header: AvroHeader, index: BlockIndex, layout: Layout, columns: list[str], location: str
) -> pa.Table | None:
    """Decode by datafusion; None where it cannot, or where the result is not certain (the slow way then says why).

    datafusion 55 spins forever, and cannot be stopped, on a file without blocks and on a block that has bytes left
    after its last record, which one flipped bit can bring about. So it never sees the file's own blocks, but one block
    made of many, with a record of ours at the end, and is asked for exactly as many rows. If the records do not fit
    their bytes, then what comes last is not that record.
    """
    wanted = pa.schema([layout.arrow.field(name) for name in columns])
    mark = _sentinel(layout.avro)
    tables = []
    for rows, plain in _groups(data, header, index, layout, location):
        table = _decode_group(layout, columns, wanted, rows, plain, mark)
        if table is None:
            return None
        tables.append(table)
    if len(tables) == 1:  # the usual case: not copied once more
        return tables[0]
    return pa.concat_tables([wanted.empty_table(), *tables]).combine_chunks()


def _groups(
    data: bytes, header: AvroHeader, index: BlockIndex, layout: Layout, location: str
) -> Iterator[tuple[int, list[bytes] | None]]:
    """Blocks by the plain `GROUP_BYTES`: how many records, and their bytes; None where a block is damaged."""
    rows, size, plain = 0, 0, []
    for block in index.blocks:
        try:
            body = decompress_block(data, block, header.codec, location)
        except FormatError:
            yield block.count, None
            return
        if block.count * len(layout.arrow) > len(body):  # every field takes a byte at least
            yield block.count, None
            return
        rows, size = rows + block.count, size + len(body)
        plain.append(body)
        if size > GROUP_BYTES:
            yield rows, plain
            rows, size, plain = 0, 0, []
    if rows:
        yield rows, plain


def _decode_group(
    layout: Layout, columns: list[str], wanted: pa.Schema, rows: int, plain: list[bytes] | None, mark: Any
) -> pa.Table | None:
    import datafusion
    import fastavro

    if plain is None:
        return None
    last = io.BytesIO()
    fastavro.schemaless_writer(last, layout.avro, mark)
    # One partition keeps the file's order, which ordinals and deletion vectors of manifests count; one batch that is
    # just full, with the limit, keeps datafusion from looking at what follows.
    settings = datafusion.SessionConfig().with_target_partitions(1).with_batch_size(rows + 1)
    context: Any = datafusion.SessionContext(settings)
    try:
        with _temporary(container(layout.avro, rows + 1, [*plain, last.getvalue()])) as path:
            batches = context.read_avro(path).select(*columns).limit(rows + 1).collect()
        table = pa.Table.from_batches(batches).cast(wanted)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # datafusion raises bare Exception; a panic of its Rust code is a BaseException
        return None
    expected = _to_batch([mark], wanted)
    if table.num_rows != rows + 1 or not table.slice(rows).combine_chunks().equals(pa.Table.from_batches([expected])):
        return None
    return table.slice(0, rows)


#: In no file, because it is made up here and now.
_TOKEN = os.urandom(16)
_NUMBER = int.from_bytes(_TOKEN[:3], "little") + 1


def _sentinel(avro: Any) -> Any:
    """A record that no file has."""
    if isinstance(avro, list):
        return _sentinel(next(branch for branch in avro if branch != "null"))
    if isinstance(avro, str):
        return {"boolean": True, "bytes": _TOKEN, "float": float(_NUMBER), "double": float(_NUMBER)}.get(avro, _NUMBER)
    match avro["type"]:
        case "record":
            return {field["name"]: _sentinel(field["type"]) for field in avro["fields"]}
        case "array":
            return [_sentinel(avro["items"])]
        case "map":
            return {"": _sentinel(avro["values"])}
        case _:  # fixed
            return (_TOKEN * (avro["size"] // 16 + 1))[: avro["size"]]


@contextmanager
def _temporary(parts: list[bytes]) -> Iterator[str]:
    """A temporary file with these bytes, in memory (/dev/shm) where there is room for it."""
    path: str | None = None
    try:
        for folder in (_MEMORY, None):
            if folder is not None and not os.access(folder, os.W_OK):
                continue
            try:
                descriptor, path = tempfile.mkstemp(prefix="iceexplore-", suffix=".avro", dir=folder)
                with os.fdopen(descriptor, "wb") as file:
                    for part in parts:
                        file.write(part)
                break
            except OSError:
                if path is not None:
                    os.unlink(path)
                    path = None
                if folder is None:
                    raise
        assert path is not None
        yield path
    finally:
        if path is not None:
            os.unlink(path)


def decode_blocks(
    data: bytes, header: AvroHeader, index: BlockIndex, layout: Layout, columns: list[str], location: str
) -> Decoded:
    """Decode by fastavro, block by block; a record that does not decode ends its block."""
    import fastavro

    schema: Any = fastavro.parse_schema(layout.avro)
    wanted = pa.schema([layout.arrow.field(name) for name in columns])
    faults: list[IceexploreError] = list(index.faults)
    chunks: list[pa.RecordBatch] = []
    rows: list[Any] = []
    lost = 0

    def flush() -> None:
        if rows:
            chunks.append(_to_batch(rows, wanted))
            rows.clear()

    for block in index.blocks:
        kept = 0
        try:
            plain = decompress_block(data, block, header.codec, location)
            if block.count * len(layout.arrow) > len(plain):  # every field takes a byte at least
                raise FormatError(f"{block.count} records in {len(plain)} bytes", location=location, offset=block.start)
            stream = io.BytesIO(plain)
            while kept < block.count:
                rows.append(_read_one(fastavro, stream, schema, block.start, location))
                kept += 1
                if len(rows) >= BATCH_ROWS:
                    flush()
            if stream.tell() != len(plain):
                left = len(plain) - stream.tell()
                raise FormatError(f"{left} bytes are left over in a block", location=location, offset=block.start)
        except UnsupportedError:
            raise
        except FormatError as error:
            faults.append(error)
            lost += block.count - kept
    flush()
    return Decoded(pa.Table.from_batches(chunks, schema=wanted).combine_chunks(), tuple(faults), lost)


def _read_one(fastavro: Any, stream: io.BytesIO, schema: Any, offset: int, location: str) -> Any:
    try:
        return fastavro.schemaless_reader(stream, schema)
    except Exception as error:  # fastavro raises EOFError, IndexError, ValueError, OverflowError, MemoryError, ...
        raise FormatError(f"a record does not decode: {error}", location=location, offset=offset) from None


def _to_batch(rows: list[Any], wanted: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in wanted:
        values = [row[field.name] for row in rows]
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            # An int of more than 32 bits: damaged, but no reason to lose its neighbours.
            arrays.append(pa.array([_fits(v, field.type) for v in values], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _fits(value: Any, kind: pa.DataType) -> Any:
    try:
        pa.scalar(value, kind)
        return value
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
