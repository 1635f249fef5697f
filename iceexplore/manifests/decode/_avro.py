"""Decode the bytes of an Avro manifest into Arrow columns, behind one interface: `decode` tries `DECODERS` in order.

Every decoder uses the same schema (`ReaderSchema`), which is equivalent to the file's, so all produce the same table.
datafusion (54 and later) is twenty times as fast as fastavro, but its import and first file take 0.1 s, and it reads
only from paths, so it does not pay off for small files. Damaged files are decoded by fastavro, block by block: intact
blocks are kept and, of a damaged block, the records before the fault.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import pyarrow as pa

from iceexplore.arrow import PlainValue
from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import AvroHeader, BlockIndex, Records, container, decompress_block, index_blocks
from iceexplore.manifests.model._reader_schema import ReaderSchema
from iceexplore.storage import Budget, JsonValue

__all__ = [
    "DECODERS",
    "DataFusionDecoder",
    "Decoded",
    "Decoder",
    "FastavroDecoder",
    "bulk_groups",
    "decode",
    "decode_blocks",
    "decode_bulk",
    "expect_files",
    "slow_work",
    "worth_bulk",
]

#: Earlier versions of datafusion's Avro reader panic on null lists of records and are six times slower.
_FIRST_DATAFUSION = 54

#: Minimum size of a file that datafusion decodes faster than fastavro, once it is imported.
BULK_BYTES = 64_000
#: Minimum total size of such files for which importing datafusion pays off: fastavro takes about 0.4 s per MB of
#: deflated manifest; the import and datafusion's first file take 0.1 s.
IMPORT_BYTES = 500_000
#: Decompressed bytes given to datafusion at a time, which limits memory and the size of the temporary file.
GROUP_BYTES = 1 << 26
#: Maximum size of a decompressed block: usually it is 64 kB, but a single entry of the widest tables may take 20 MB.
BLOCK_BYTES = 1 << 26
#: Blocks up to this decompressed size always go to datafusion; larger ones only up to this compression ratio: in a
#: decompression bomb, each byte may be a number, and datafusion holds several copies of each number.
_PLAIN_BLOCK = 1 << 20
_MOST_RATIO = 64
#: Longest record (in bytes) that fastavro decodes: it turns numbers of one or two bytes into Python objects of 40
#: bytes.
RECORD_BYTES = 1 << 25
#: Decompressed bytes after which fastavro's rows are converted to Arrow, even if there are only a few rows.
BATCH_BYTES = 1 << 22
#: Number of rows that fastavro holds as Python objects at a time: 2,000 rows with statistics take megabytes, which
#: Python does not give back to the system.
BATCH_ROWS = 250

#: Number of blocks above `BLOCK_BYTES` after which the rest of a file is not read: decompressing each of them up to
#: this limit takes a tenth of a second.
_MOST_BOMBS = 8
_SLOW_BYTES = 16 << 20
_SLOW_RATIO = 32
_WHAT = "the entries"
_MEMORY = "/dev/shm"  # noqa: S108 - mkstemp creates the file under a unique name
_slow_bytes = 0


class Decoded:
    """Decoded columns, the faults found (none if the file is healthy), and the number of lost records."""

    __slots__ = ("faults", "lost", "table")

    def __init__(self, table: pa.Table, faults: tuple[IceexploreError, ...] = (), lost: int = 0) -> None:
        self.table = table
        self.faults = faults
        self.lost = lost


class Decoder(Protocol):
    """Decodes the bytes of an Avro manifest. Only the implementations know the library that they use."""

    @property
    def name(self) -> str:
        """The name of the decoder's library."""

    def takes(self, size: int, *, whole: bool) -> bool:
        """Return whether to try this decoder for a file of this size; ``whole`` is false if blocks are damaged."""

    def decode(
        self,
        data: bytes,
        header: AvroHeader,
        index: BlockIndex,
        reader_schema: ReaderSchema,
        columns: list[str],
        location: str,
    ) -> Decoded | None:
        """Decode the named columns of ``reader_schema.arrow``; None to leave the file to the next decoder.

        Rows are in file order. Damage is not raised but collected in ``Decoded.faults``.

        Raises
        ------
        UnsupportedError
            An unknown codec.
        """


class DataFusionDecoder:
    """The fast decoder, for large healthy files; not used if datafusion is too old or not installed."""

    name = "datafusion"

    def takes(self, size: int, *, whole: bool) -> bool:
        """Return whether the file is healthy, and large enough for the import to pay off."""
        return whole and worth_bulk(size)

    def decode(
        self,
        data: bytes,
        header: AvroHeader,
        index: BlockIndex,
        reader_schema: ReaderSchema,
        columns: list[str],
        location: str,
    ) -> Decoded | None:
        """Decode in bulk (`decode_bulk`); None if the result is not certain to be right."""
        table = decode_bulk(data, header, index, reader_schema, columns, location)
        return None if table is None else Decoded(table)


class FastavroDecoder:
    """The tolerant decoder, for small and damaged files, and for files that the fast one declines."""

    name = "fastavro"

    def takes(self, size: int, *, whole: bool) -> bool:
        """Return True: it decodes every file."""
        return True

    def decode(
        self,
        data: bytes,
        header: AvroHeader,
        index: BlockIndex,
        reader_schema: ReaderSchema,
        columns: list[str],
        location: str,
    ) -> Decoded | None:
        """Decode block by block (`decode_blocks`)."""
        return decode_blocks(data, header, index, reader_schema, columns, location)


#: Tried in this order; the last one decodes every file.
DECODERS: tuple[Decoder, ...] = (DataFusionDecoder(), FastavroDecoder())


def slow_work(location: str, stored: int) -> Budget:
    """Return a budget for the decompressed bytes of a file that is decoded to Python objects.

    Python takes a second for three million items. Manifests usually compress by a factor of 10 to 30.
    """
    return Budget(location, stored, ratio=_SLOW_RATIO, most=max(_SLOW_BYTES, _SLOW_RATIO * stored))


def worth_bulk(size: int) -> bool:
    """Return whether datafusion decodes a healthy file of this size."""
    return _worth_bulk(size) and _has_fast_datafusion()


def _worth_bulk(size: int) -> bool:
    global _slow_bytes
    if size < BULK_BYTES:
        return False
    if "datafusion" in sys.modules or _slow_bytes + size > IMPORT_BYTES:
        return True
    _slow_bytes += size
    return False


def expect_files(sizes: Iterable[int]) -> None:
    """Announce the sizes of the next files: if importing datafusion pays off, all large ones are decoded with it."""
    global _slow_bytes
    if sum(size for size in sizes if size >= BULK_BYTES) > IMPORT_BYTES:
        _slow_bytes = max(_slow_bytes, IMPORT_BYTES)


@cache
def _has_fast_datafusion() -> bool:
    """Return whether the installed datafusion can decode manifests; if not, warn once."""
    try:
        found = version("datafusion")
    except PackageNotFoundError:
        what = "datafusion is not installed"
    else:
        if int(found.partition(".")[0]) >= _FIRST_DATAFUSION:
            return True
        what = f"datafusion {found} cannot decode them"
    warnings.warn(
        f"Large Avro manifests are read by fastavro, up to twenty times slower: {what}. "
        f"For speed, pip install 'datafusion>={_FIRST_DATAFUSION}', unless you register PyIceberg tables in a "
        "datafusion SessionContext, which needs the version that PyIceberg requires.",
        stacklevel=2,
    )
    return False


def decode(
    data: bytes,
    header: AvroHeader,
    reader_schema: ReaderSchema,
    columns: list[str],
    location: str,
    *,
    decoders: tuple[Decoder, ...] | None = None,
) -> Decoded:
    """Decode the named columns of ``reader_schema.arrow``; rows are in file order.

    Parameters
    ----------
    decoders
        Decoders to try in order, instead of `DECODERS`.

    Raises
    ------
    UnsupportedError
        An unknown codec. Damage is not raised but collected in ``Decoded.faults``.
    FormatError
        No decoder can read the file.
    """
    index = index_blocks(data, header, location)
    for decoder in DECODERS if decoders is None else decoders:
        if decoder.takes(len(data), whole=not index.faults):
            decoded = decoder.decode(data, header, index, reader_schema, columns, location)
            if decoded is not None:
                return decoded
    raise FormatError("no decoder can read this Avro file", location=location)


def decode_bulk(
    data: bytes, header: AvroHeader, index: BlockIndex, reader_schema: ReaderSchema, columns: list[str], location: str
) -> pa.Table | None:
    """Decode with datafusion; None if it fails or the result is not certain (fastavro then finds the reason).

    datafusion 55 loops forever, and cannot be interrupted, on a file without blocks and on a block with bytes after its
    last record, which one flipped bit can cause. So it never gets the file's own blocks, but a single block, which has
    the records of many blocks and a sentinel record at the end. This block must yield the expected number of rows; if
    the records do not fit their bytes, the last row is not the sentinel.
    """
    wanted = pa.schema([reader_schema.arrow.field(name) for name in columns])
    tables = []
    with Budget(location, len(data)) as budget:
        for _, table in bulk_groups(data, header, index, reader_schema, columns, location, budget):
            if table is None:
                return None
            tables.append(table)
    if len(tables) == 1:  # the usual case, without another copy
        return tables[0]
    return pa.concat_tables([wanted.empty_table(), *tables]).combine_chunks()


def bulk_groups(
    data: bytes,
    header: AvroHeader,
    index: BlockIndex,
    reader_schema: ReaderSchema,
    columns: list[str],
    location: str,
    budget: Budget,
    *,
    group_bytes: int = GROUP_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[tuple[list[int], pa.Table | None]]:
    """Decode with datafusion, some blocks at a time; yield these blocks' record counts, and their rows as a table.

    The table is None and the iteration ends if datafusion's result cannot be verified, or if a block is damaged,
    exceeds ``block_bytes`` or decompresses to suspiciously many bytes. The rows' memory stays reserved in ``budget``.
    """
    wanted = pa.schema([reader_schema.arrow.field(name) for name in columns])
    mark = _sentinel(reader_schema.avro)
    for counts, plain in _groups(data, header, index, reader_schema, location, group_bytes, block_bytes):
        # A stored byte becomes a number of at most eight bytes; `Budget` lets only one file at a time take much memory.
        if plain is not None:
            budget.reserve(sum(map(len, plain)), _WHAT)
        table = _decode_group(reader_schema, columns, wanted, sum(counts), plain, mark)
        if table is not None:
            budget.used -= sum(map(len, plain or ()))
            budget.reserve(table.nbytes, _WHAT)
        yield counts, table
        if table is None:
            return


def _groups(
    data: bytes,
    header: AvroHeader,
    index: BlockIndex,
    reader_schema: ReaderSchema,
    location: str,
    group_bytes: int,
    block_bytes: int,
) -> Iterator[tuple[list[int], list[bytes] | None]]:
    """Group blocks up to ``group_bytes`` decompressed; yield record counts, and bytes (None: an unusable block)."""
    size = 0
    counts: list[int] = []
    plain: list[bytes] = []
    for block in index.blocks:
        try:
            body = decompress_block(data, block, header.codec, location, block_bytes)
        except FormatError:
            yield [block.count], None
            return
        most = max(_PLAIN_BLOCK, _MOST_RATIO * (block.stop - block.start))
        if block.count * len(reader_schema.arrow) > len(body) or len(body) > most:  # a field takes at least one byte
            yield [block.count], None
            return
        if counts and size + len(body) > group_bytes:
            yield counts, plain
            size, counts, plain = 0, [], []
        size += len(body)
        counts.append(block.count)
        plain.append(body)
    if counts:
        yield counts, plain


def _decode_group(
    reader_schema: ReaderSchema,
    columns: list[str],
    wanted: pa.Schema,
    rows: int,
    plain: list[bytes] | None,
    mark: PlainValue,
) -> pa.Table | None:
    import datafusion
    import fastavro

    if plain is None:
        return None
    last = io.BytesIO()
    fastavro.schemaless_writer(last, reader_schema.avro, mark)
    # One partition keeps the file's order, which ordinals and deletion vectors of manifests refer to. One batch of
    # exactly this size, with the limit, keeps datafusion from reading past the records.
    settings = datafusion.SessionConfig().with_target_partitions(1).with_batch_size(rows + 1)
    context: Any = datafusion.SessionContext(settings)
    try:
        with _temporary(container(reader_schema.avro, rows + 1, [*plain, last.getvalue()])) as path:
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


#: Random at run time, so that no file contains it.
_TOKEN = os.urandom(16)
_NUMBER = int.from_bytes(_TOKEN[:3], "little") + 1


def _sentinel(avro: JsonValue) -> PlainValue:
    """Return a record that conforms to an Avro schema and has values that no file contains."""
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
    """Yield the path of a temporary file with these bytes, in memory (/dev/shm) if there is room for it."""
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
    data: bytes, header: AvroHeader, index: BlockIndex, reader_schema: ReaderSchema, columns: list[str], location: str
) -> Decoded:
    """Decode with fastavro, block by block; a record that cannot be decoded ends its block."""
    import fastavro

    schema: Any = fastavro.parse_schema(reader_schema.avro)
    wanted = pa.schema([reader_schema.arrow.field(name) for name in columns])
    faults: list[IceexploreError] = list(index.faults)
    chunks: list[pa.RecordBatch] = []
    rows: list[Any] = []
    lost = 0
    budget = Budget(location, len(data))
    work = slow_work(location, len(data))
    bombs = 0

    def flush() -> None:
        if rows:
            chunks.append(_to_batch(rows, wanted))
            budget.reserve(chunks[-1].nbytes, _WHAT)
            rows.clear()

    for block in index.blocks:
        kept = 0
        if bombs >= _MOST_BOMBS:
            text = f"{bombs} blocks exceed {BLOCK_BYTES >> 20} MiB decompressed; the rest of the file is not read"
            faults.append(FormatError(text, location=location, offset=block.start))
            break
        try:
            plain = decompress_block(data, block, header.codec, location, BLOCK_BYTES)
            if block.count * len(reader_schema.arrow) > len(plain):  # every field takes at least one byte
                raise FormatError(
                    f"{block.count} records do not fit in {len(plain)} bytes", location=location, offset=block.start
                )
            work.reserve(len(plain), "the entries, decompressed,")
            records = Records(plain, schema, RECORD_BYTES, location)
            flushed = 0
            while kept < block.count:
                rows.append(_read_one(records, block.start, location))
                kept += 1
                if len(rows) >= BATCH_ROWS or records.at - flushed > BATCH_BYTES:
                    flush()
                    flushed = records.at
            if records.at != len(plain):
                left = len(plain) - records.at
                raise FormatError(f"a block has {left} bytes left over", location=location, offset=block.start)
        except UnsupportedError:
            raise
        except FormatError as error:
            # Drop the traceback and the underlying error, which would keep the block's bytes alive.
            error.__context__ = error.__traceback__ = None
            bombs += "MiB" in error.reason
            faults.append(error)
            lost += block.count - kept
    flush()
    return Decoded(pa.Table.from_batches(chunks, schema=wanted).combine_chunks(), tuple(faults), lost)


def _read_one(records: Records, offset: int, location: str) -> PlainValue:
    try:
        return records.read()
    except Exception as error:  # fastavro raises EOFError, IndexError, ValueError, OverflowError, MemoryError, ...
        raise FormatError(f"a record cannot be decoded: {error}", location=location, offset=offset) from None


def _to_batch(rows: list[Any], wanted: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in wanted:
        values = [row[field.name] for row in rows]
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            # An integer of more than 32 bits: this value is damaged, but the others are good.
            arrays.append(pa.array([_fits(v, field.type) for v in values], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _fits(value: PlainValue, kind: pa.DataType) -> PlainValue:
    try:
        pa.scalar(value, kind)
        return value
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
