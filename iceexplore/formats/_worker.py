"""Run decoders that may crash on untrusted bytes, as a script in a separate process that does not import iceexplore.

A request is a line of JSON on standard input: ``{"op": …, "path": …, "limit": …, "more": {…}, "memory": …}``, where the
last two are optional. The answer on standard output is a line of JSON: ``{"error": …, "unsupported": …, "memory": …}``,
or ``{"length": …, "info": …}``, followed by that many bytes of an Arrow IPC stream. The process ends when its input
ends.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["serve"]

#: pyarrow's ``ColumnChunkMetaData`` and ``Statistics``, untyped because the stubs lack some of their attributes.
_Chunk: TypeAlias = Any
_Statistics: TypeAlias = Any


class _TooLargeError(Exception):
    """Raised if there are more rows or row groups than the limit allows."""


#: The exit code of a process that exceeded its memory limit.
_TOO_MUCH = 77
_LOOK_SECONDS = 0.02
_most = 0


def _confine(memory: int) -> None:
    """Limit this process's memory, in bytes.

    Linux refuses allocations beyond the limit, which Arrow reports as an error. On other systems (macOS does not
    enforce such a limit, Windows has none), a thread watches how much memory is used and ends the process.
    """
    global _most
    first, _most = _most == 0, memory
    if sys.platform.startswith("linux"):
        import resource

        # Not RLIMIT_AS, which also counts address space that allocators reserve but never use.
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory if hard < 0 else min(memory, hard), hard))
    elif first:
        threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    while True:
        time.sleep(_LOOK_SECONDS)
        if _taken() > _most:
            os._exit(_TOO_MUCH)


def _taken() -> int:
    """Return the memory that this process uses, in bytes: Arrow's count, or on macOS the system's if it is greater."""
    arrow = sys.modules.get("pyarrow")
    known = int(arrow.total_allocated_bytes()) if arrow is not None else 0
    if sys.platform == "darwin":
        import resource

        known = max(known, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # the peak so far
    return known


def serve() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # the libraries print warnings there
    os.dup2(quiet, 2)
    for line in sys.stdin:
        request = json.loads(line)
        body: bytes | memoryview = b""
        try:
            if "memory" in request:
                _confine(request["memory"])
            operation = _OPERATIONS[request["op"]]
            info, body = operation(request["path"], request["limit"], **request.get("more", {}))
            head: dict[str, Any] = {"length": len(body), "info": info}
        except Exception as error:
            # Arrow reads ORC's timestamps as nanoseconds, from 1677 to 2262; those of the file may be earlier or later.
            far = "nanosecond resolution" in str(error)
            unsupported = far or isinstance(error, (NotImplementedError, _TooLargeError))
            memory = isinstance(error, (MemoryError, _TooLargeError))  # Arrow's error is a MemoryError as well
            text = str(error)[:500] or type(error).__name__
            head = {"error": text, "unsupported": unsupported, "memory": memory}
        answers.write(json.dumps(head).encode() + b"\n")
        answers.write(body)
        answers.flush()


def _orc_rows(path: str, limit: int) -> tuple[dict[str, Any], bytes | memoryview]:
    import pyarrow as pa
    from pyarrow import orc

    file = orc.ORCFile(path)
    # Arrow allocates all rows of a stripe at once, so their claimed number is checked first.
    if file.nrows < 0 or file.nrows * max(1, len(file.schema)) > limit:
        raise _TooLargeError(f"{file.nrows:,} rows do not fit in {limit:,} bytes of memory")
    sink = io.BytesIO()
    total = rows = 0
    with pa.ipc.new_stream(sink, file.schema) as stream:
        for index in range(file.nstripes):
            batch = file.read_stripe(index)
            total += batch.nbytes
            rows += batch.num_rows
            if total > limit:
                raise _TooLargeError(f"the rows take more than {limit:,} bytes of memory")
            stream.write_batch(batch)
    if rows != file.nrows:
        raise ValueError(f"the stripes have {rows} rows, but the footer counts {file.nrows}")
    return {}, sink.getbuffer()


def _orc_footer(path: str, limit: int) -> tuple[dict[str, Any], bytes]:
    import pyarrow as pa
    from pyarrow import orc

    file = orc.ORCFile(path)
    pairs = {_text(k): _text(v) for k, v in dict(file.metadata or {}).items()}
    info = {
        "rows": file.nrows,
        "stripes": file.nstripes,
        "writer": f"{file.writer} {file.software_version or ''}".strip(),
        "file_version": str(file.file_version),
        "compression": str(file.compression),
        "compression_block": file.compression_size,
        "row_index_stride": file.row_index_stride,
        "footer_size": file.file_footer_length + file.file_postscript_length + 1,
        "content_size": file.content_length,
        "key_values": pairs,
    }
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, file.schema):
        pass
    return info, sink.getvalue()


def _parquet_footer(path: str, limit: int) -> tuple[dict[str, Any], bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    try:
        schema = found.schema.to_arrow_schema()
    except (pa.ArrowException, ValueError):
        schema = None
    columns = [found.schema.column(i) for i in range(found.num_columns)]
    groups = min(found.num_row_groups, limit // max(1, found.num_columns))
    chunks = [_chunk(found.row_group(g).column(i), g, i, c) for g in range(groups) for i, c in enumerate(columns)]
    info = {
        "rows": found.num_rows,
        "row_groups": found.num_row_groups,
        "created_by": found.created_by or "",
        "format_version": found.format_version,
        "footer_size": found.serialized_size,
        "key_values": {_text(k): _text(v) for k, v in (found.metadata or {}).items()},
        "columns": [(c.path, c.physical_type, str(c.logical_type)) for c in columns],
        "chunks": chunks,
        "has_schema": schema is not None,
    }
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema if schema is not None else pa.schema([])):
        pass
    return info, sink.getvalue()


def _parquet_leaves(path: str, limit: int) -> tuple[dict[str, Any], bytes]:
    """Return the counts of rows and row groups, and the leaf columns with Parquet's physical and logical types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    schema = found.schema.to_arrow_schema()
    columns = [found.schema.column(i) for i in range(found.num_columns)]
    leaves = [(c.physical_type, c.logical_type.to_json(), c.length) for c in columns]
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema):
        pass
    return {"rows": found.num_rows, "row_groups": found.num_row_groups, "leaves": leaves}, sink.getvalue()


def _parquet_row_groups(path: str, limit: int, columns: list[int]) -> tuple[dict[str, Any], bytes]:
    """Return every row group, with the stored bounds of some columns; ``limit`` is for row groups times columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    count = found.num_row_groups
    if count * (len(columns) + 1) > limit:
        raise _TooLargeError(
            f"the statistics of {len(columns)} columns in {count:,} row groups exceed the limit of {limit:,} values"
        )
    groups, bounds = [], []
    for g in range(count):
        group = found.row_group(g)
        first = group.column(0) if group.num_columns else None
        groups.append([group.num_rows, group.total_byte_size, None if first is None else _start(first)])
        bounds.append([_stored(group.column(i), found.schema.column(i)) for i in columns])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([])):
        pass
    return {"groups": groups, "bounds": bounds}, sink.getvalue()


def _stored(chunk: _Chunk, column: pq.ColumnSchema) -> list[Any]:
    stats = _statistics(chunk, column)
    bounds = (None, None) if stats is None or not stats.has_min_max else (stats.min_raw, stats.max_raw)
    return [
        chunk.num_values,
        stats.null_count if stats is not None and stats.has_null_count else None,
        *({"bytes": b.hex()} if isinstance(b, bytes) else b for b in bounds),
        chunk.bloom_filter_offset,
        chunk.bloom_filter_length,
    ]


def _start(chunk: _Chunk) -> int:
    # Some writers write 0 for a missing dictionary page (see parquet-mr's PARQUET-2078).
    dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return int(dictionary if dictionary and dictionary < chunk.data_page_offset else chunk.data_page_offset)


def _statistics(chunk: _Chunk, column: pq.ColumnSchema) -> _Statistics:
    # pyarrow's statistics crash on a chunk whose type differs from its column's (seen in 26.0).
    trusted = chunk.physical_type == column.physical_type
    return chunk.statistics if trusted and chunk.is_stats_set else None


def _chunk(chunk: _Chunk, group: int, index: int, column: pq.ColumnSchema) -> list[Any]:
    stats = _statistics(chunk, column)
    bounds = stats is not None and stats.has_min_max
    return [
        group,
        index,
        chunk.num_values,
        stats.null_count if stats is not None and stats.has_null_count else None,
        stats.distinct_count if stats is not None and stats.has_distinct_count else None,
        _bound(stats, "min") if bounds else None,
        _bound(stats, "max") if bounds else None,
        list(chunk.encodings),
        chunk.compression,
        chunk.total_compressed_size,
        chunk.total_uncompressed_size,
        chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset,
    ]


def _bound(stats: _Statistics, which: str) -> str | None:
    try:
        value = getattr(stats, which)
    except Exception:
        value = getattr(stats, f"{which}_raw")  # the value is outside its logical type, or a string is not UTF-8
    return value.hex() if isinstance(value, bytes) else None if value is None else str(value)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_OPERATIONS: dict[str, Callable[..., tuple[dict[str, Any], bytes | memoryview]]] = {
    "orc-rows": _orc_rows,
    "orc-footer": _orc_footer,
    "parquet-footer": _parquet_footer,
    "parquet-leaves": _parquet_leaves,
    "parquet-row-groups": _parquet_row_groups,
}


if __name__ == "__main__":
    serve()
