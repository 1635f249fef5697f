"""Decode the bytes of an Avro manifest into Arrow columns, behind one interface: `decode` asks the `DECODERS` in order.

Every decoder decodes the same equivalent schema (`_layout`), so all give the same table. datafusion (54 and later) is
twenty times as fast as fastavro, but takes 0.6 s to import and reads from paths only: small files do not pay for that.
Damage goes to fastavro, block by block, and what is in whole blocks, or before the fault in a broken one, is kept.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import pyarrow as pa

from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import AvroHeader, BlockIndex, Records, container, decompress_block, index_blocks
from iceexplore.manifests.model._reader_schema import Layout
from iceexplore.storage import Budget

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
    "slow_work",
    "worth_bulk",
]

#: datafusion's Avro reader panics on null lists of records before this version, and is six times slower.
_FIRST_DATAFUSION = 54

#: Files from this size on are worth datafusion once it is imported ...
BULK_BYTES = 64_000
#: ... and its import is worth it for this many bytes in all (fastavro takes about 0.1 s per MB of deflated manifest).
IMPORT_BYTES = 2_000_000
#: Plain bytes that are handed to datafusion at a time: what bounds memory, and the temporary file.
GROUP_BYTES = 1 << 25
#: The plain bytes of a block: it holds some 64 kB, of the widest tables (a single entry) some 20 MB.
BLOCK_BYTES = 1 << 26
#: A longer record is not decoded on the slow way: numbers of one or two bytes become Python objects of 40.
RECORD_BYTES = 1 << 25
#: After so many plain bytes the rows become Arrow's, however few they are.
BATCH_BYTES = 1 << 22
#: Rows that are Python objects at a time on the slow way: 2,000 with statistics take megabytes that Python keeps.
BATCH_ROWS = 250

#: Blocks that are too large once decompressed, each of which takes a tenth of a second to find out.
_MOST_BOMBS = 8
_SLOW_BYTES = 16 << 20
_SLOW_RATIO = 32
_WHAT = "the entries"
_MEMORY = "/dev/shm"  # noqa: S108 - mkstemp makes the file, with a name of its own
_slow_bytes = 0


class Decoded:
    """Decoded columns, and the faults met on the way (empty if the file is healthy)."""

    __slots__ = ("faults", "lost", "table")

    def __init__(self, table: pa.Table, faults: tuple[IceexploreError, ...] = (), lost: int = 0) -> None:
        self.table = table
        self.faults = faults
        self.lost = lost


class Decoder(Protocol):
    """Decodes the bytes of an Avro manifest; replaceable, so that nothing else knows which library does it."""

    @property
    def name(self) -> str:
        """The library behind it."""

    def takes(self, size: int, *, whole: bool) -> bool:
        """Return whether to ask it for a file of this many bytes; ``whole`` is false where blocks are damaged."""

    def decode(
        self, data: bytes, header: AvroHeader, index: BlockIndex, layout: Layout, columns: list[str], location: str
    ) -> Decoded | None:
        """Decode the named columns of ``layout.arrow``; None to leave the file to the next decoder.

        Rows are in file order. Damage is kept in ``Decoded.faults``, not raised.

        Raises
        ------
        UnsupportedError
            An unknown codec.
        """


class DataFusionDecoder:
    """The fast one, for large healthy files; not used with a datafusion that is too old or not installed."""

    name = "datafusion"

    def takes(self, size: int, *, whole: bool) -> bool:
        """Return whether the file is healthy, and large enough to be worth the import."""
        return whole and worth_bulk(size)

    def decode(
        self, data: bytes, header: AvroHeader, index: BlockIndex, layout: Layout, columns: list[str], location: str
    ) -> Decoded | None:
        """Decode in bulk (`decode_bulk`); None where the result is not certain."""
        table = decode_bulk(data, header, index, layout, columns, location)
        return None if table is None else Decoded(table)


class FastavroDecoder:
    """The tolerant one, for small and damaged files, and for whatever the fast one leaves."""

    name = "fastavro"

    def takes(self, size: int, *, whole: bool) -> bool:
        """Return True: it takes every file."""
        return True

    def decode(
        self, data: bytes, header: AvroHeader, index: BlockIndex, layout: Layout, columns: list[str], location: str
    ) -> Decoded | None:
        """Decode block by block (`decode_blocks`)."""
        return decode_blocks(data, header, index, layout, columns, location)


#: Asked in this order; the last one takes every file.
DECODERS: tuple[Decoder, ...] = (DataFusionDecoder(), FastavroDecoder())


def slow_work(location: str, stored: int) -> Budget:
    """Return what of a file may be decompressed where its records become Python objects.

    Python takes a second for three million items; manifests shrink by 10 to 30.
    """
    return Budget(location, stored, ratio=_SLOW_RATIO, most=max(_SLOW_BYTES, _SLOW_RATIO * stored))


def worth_bulk(size: int) -> bool:
    """Return whether a healthy file of this many bytes is decoded by datafusion."""
    return _worth_bulk(size) and _has_fast_datafusion()


def _worth_bulk(size: int) -> bool:
    global _slow_bytes
    if size < BULK_BYTES:
        return False
    if "datafusion" in sys.modules or _slow_bytes + size > IMPORT_BYTES:
        return True
    _slow_bytes += size
    return False


@cache
def _has_fast_datafusion() -> bool:
    """Return whether the installed datafusion decodes manifests; warn, once, where it does not."""
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
        f"pip install 'datafusion>={_FIRST_DATAFUSION}' for speed, unless PyIceberg tables are registered in a "
        "datafusion SessionContext, which needs the version that PyIceberg asks for.",
        stacklevel=2,
    )
    return False


def decode(
    data: bytes,
    header: AvroHeader,
    layout: Layout,
    columns: list[str],
    location: str,
    *,
    decoders: tuple[Decoder, ...] | None = None,
) -> Decoded:
    """Decode the named columns of ``layout.arrow``; rows are in file order.

    Parameters
    ----------
    decoders
        Asked in order, instead of `DECODERS`.

    Raises
    ------
    UnsupportedError
        An unknown codec. Damage is not raised but kept in ``Decoded.faults``.
    FormatError
        No decoder takes the file.
    """
    index = index_blocks(data, header, location)
    for decoder in DECODERS if decoders is None else decoders:
        if decoder.takes(len(data), whole=not index.faults):
            decoded = decoder.decode(data, header, index, layout, columns, location)
            if decoded is not None:
                return decoded
    raise FormatError("no decoder reads this Avro file", location=location)


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
    tables = []
    with Budget(location, len(data)) as budget:
        for _, table in bulk_groups(data, header, index, layout, columns, location, budget):
            if table is None:
                return None
            tables.append(table)
    if len(tables) == 1:  # the usual case: not copied once more
        return tables[0]
    return pa.concat_tables([wanted.empty_table(), *tables]).combine_chunks()


def bulk_groups(
    data: bytes,
    header: AvroHeader,
    index: BlockIndex,
    layout: Layout,
    columns: list[str],
    location: str,
    budget: Budget,
    *,
    group_bytes: int = GROUP_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[tuple[list[int], pa.Table | None]]:
    """Decode by datafusion, some blocks at a time: the records of each block, and their rows.

    The rows are None, and nothing follows, where the result is not certain, or a block has more than ``block_bytes``.
    They stay reserved in ``budget``.
    """
    wanted = pa.schema([layout.arrow.field(name) for name in columns])
    mark = _sentinel(layout.avro)
    for counts, plain in _groups(data, header, index, layout, location, group_bytes, block_bytes):
        # Eight bytes for each that is stored is the most that a number becomes: of more, one file at a time.
        if plain is not None:
            budget.reserve(sum(map(len, plain)), _WHAT)
        table = _decode_group(layout, columns, wanted, sum(counts), plain, mark)
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
    layout: Layout,
    location: str,
    group_bytes: int,
    block_bytes: int,
) -> Iterator[tuple[list[int], list[bytes] | None]]:
    """Blocks by the plain ``group_bytes``: the records of each, and their bytes; None where a block is damaged."""
    size = 0
    counts: list[int] = []
    plain: list[bytes] = []
    for block in index.blocks:
        try:
            body = decompress_block(data, block, header.codec, location, block_bytes)
        except FormatError:
            yield [block.count], None
            return
        if block.count * len(layout.arrow) > len(body):  # every field takes a byte at least
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
            text = f"after {bombs} blocks of more than {BLOCK_BYTES >> 20} MiB the rest is not read"
            faults.append(FormatError(text, location=location, offset=block.start))
            break
        try:
            plain = decompress_block(data, block, header.codec, location, BLOCK_BYTES)
            if block.count * len(layout.arrow) > len(plain):  # every field takes a byte at least
                raise FormatError(f"{block.count} records in {len(plain)} bytes", location=location, offset=block.start)
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
                raise FormatError(f"{left} bytes are left over in a block", location=location, offset=block.start)
        except UnsupportedError:
            raise
        except FormatError as error:
            # Its traceback, and that of the error behind it, would keep the block's bytes.
            error.__context__ = error.__traceback__ = None
            bombs += "MiB" in error.reason
            faults.append(error)
            lost += block.count - kept
    flush()
    return Decoded(pa.Table.from_batches(chunks, schema=wanted).combine_chunks(), tuple(faults), lost)


def _read_one(records: Records, offset: int, location: str) -> Any:
    try:
        return records.read()
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
