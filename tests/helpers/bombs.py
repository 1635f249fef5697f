"""Small files that expand to gigabytes, and a child process that opens them under a limit and measures itself.

``python -m tests.helpers.bombs NAME FOLDER DOOR`` makes one and goes through one door (a public operation).
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import resource
import struct
import sys
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.formats import read_header
from tests.helpers.varints import zigzag

__all__ = ["BOMBS", "DOORS", "main"]

MIB = 1 << 20


def a_table(folder: Path, **how: Any) -> Path:
    """A table of two commits with one data file each."""
    lab = ix.create(folder, {"id": "long", "s": "string", "l": "list<long>"}, **how)
    lab.append(pd.DataFrame({"id": [1, 2, 3], "s": ["a", "b", "c"], "l": [[1], [2], [3]]}))
    lab.append(pd.DataFrame({"id": [4], "s": ["d"], "l": [[4]]}))
    return folder


def newest(folder: Path) -> Path:
    """Its newest metadata file."""
    return max((folder / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))


def manifests(folder: Path) -> list[Path]:
    """Its manifests, the newest last; no lists."""
    found = [p for p in (folder / "metadata").glob("*.avro") if "snap-" not in p.name]
    return sorted(found, key=lambda p: p.stat().st_mtime_ns)


def deflated(*parts: bytes) -> bytes:
    """Raw deflate."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join([*(packer.compress(part) for part in parts), packer.flush()])


def zeros(count: int) -> list[bytes]:
    """That many zero bytes in parts."""
    return [bytes(MIB)] * (count // MIB) + [bytes(count % MIB)]


def record(file: bytes, change: dict[str, Any]) -> bytes:
    """The first record of a manifest, changed, as Avro's bytes."""
    reader = fastavro.reader(io.BytesIO(file))
    entry = next(iter(reader))
    entry["data_file"] |= change
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(reader.writer_schema), entry)
    return out.getvalue()


def blocks(file: bytes, *given: tuple[int, bytes]) -> bytes:
    """The file's header, then blocks: how many records, and their bytes as stored."""
    header = read_header(file, "bomb")
    made = [zigzag(count) + zigzag(len(body)) + body + header.sync for count, body in given]
    return b"".join([file[: header.end], *made])


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change each entry of a manifest."""
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    entries = list(reader)
    for entry in entries:
        change(entry["data_file"])
    metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, entries, codec="deflate", metadata=metadata)
    path.write_bytes(out.getvalue())


def relist(folder: Path) -> None:
    """Set the manifests' lengths in every list to what they are now."""
    for path in (folder / "metadata").glob("*snap-*.avro"):
        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        rows = list(reader)
        for row in rows:
            row["manifest_length"] = os.path.getsize(row["manifest_path"].removeprefix("file://"))
        metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        out = io.BytesIO()
        fastavro.writer(out, reader.writer_schema, rows, codec="deflate", metadata=metadata)
        path.write_bytes(out.getvalue())


def data_bomb(folder: Path, data: bytes, file_format: str, rows: int) -> Path:
    """A table whose newest data file is this one."""
    a_table(folder)
    path = manifests(folder)[-1]
    entry = next(iter(fastavro.reader(io.BytesIO(path.read_bytes()))))
    Path(entry["data_file"]["file_path"].removeprefix("file://")).write_bytes(data)
    none = dict.fromkeys(("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"))
    claimed = {"record_count": rows, "file_size_in_bytes": len(data), "file_format": file_format, **none}
    rewrite(path, lambda e: e.update(claimed))
    relist(folder)
    return folder


def with_ids(table: pa.Table) -> pa.Table:
    """Columns with the field ids of `a_table`."""
    fields = []
    for f in table.schema:
        kind = f.type
        if pa.types.is_list(kind):
            kind = pa.list_(pa.field("element", kind.value_type, metadata={"PARQUET:field_id": "4"}))
        fields.append(pa.field(f.name, kind, metadata={"PARQUET:field_id": {"id": "1", "s": "2", "l": "3"}[f.name]}))
    return table.cast(pa.schema(fields))


def parquet(table: pa.Table, **how: Any) -> bytes:
    """A Parquet file."""
    out = io.BytesIO()
    pq.write_table(with_ids(table), out, compression="zstd", **how)
    return out.getvalue()


# --- metadata ---------------------------------------------------------------------------------------------------------


def gzip_brackets(folder: Path) -> Path:
    """200 MB of ``[],`` in 200 KB of gzip."""
    a_table(folder)
    document = newest(folder).read_text()
    plain = document.rstrip()[:-1] + ', "x": [' + "[]," * (200_000_000 // 3) + "[]]}"
    newest(folder).write_bytes(gzip.compress(plain.encode()))
    return folder


def gzip_snapshots(folder: Path) -> Path:
    """Ten million snapshots in 29 KB of gzip."""
    a_table(folder)
    document = json.loads(newest(folder).read_text())
    document["snapshots"] = "@"
    plain = json.dumps(document).replace('"@"', "[" + "{}," * 9_999_999 + "{}]")
    newest(folder).write_bytes(gzip.compress(plain.encode()))
    return folder


def sparse(path: Path, size: int = 3_000_000_000) -> None:
    """Make a file larger without a byte on the disk."""
    with open(path, "r+b") as file:
        file.truncate(size)


def sparse_hint(folder: Path) -> Path:
    """A version hint of 3 GB."""
    a_table(folder)
    sparse(folder / "metadata" / "version-hint.text")
    return folder


def sparse_metadata(folder: Path) -> Path:
    """A metadata file of 3 GB."""
    a_table(folder)
    sparse(newest(folder))
    return folder


def sparse_manifest(folder: Path) -> Path:
    """A manifest of 3 GB."""
    a_table(folder)
    sparse(manifests(folder)[-1])
    return folder


def sparse_list(folder: Path) -> Path:
    """Manifest lists of 3 GB."""
    a_table(folder)
    for path in (folder / "metadata").glob("*snap-*.avro"):
        sparse(path)
    return folder


def zipped(folder: Path, name: str, size: int) -> Path:
    """The table as a zip in which one file has grown by zeros."""
    made = folder.with_suffix(".zip")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            with out.open(str(path.relative_to(folder.parent)), "w", force_zip64=True) as file:
                file.write(path.read_bytes())
                if path.name == name:
                    for part in zeros(size):
                        file.write(part)
    return made


def zipped_manifest(folder: Path) -> Path:
    """A manifest of 1 GB in a zip of 1 MB."""
    return zipped(a_table(folder), manifests(folder)[-1].name, 1_000_000_000)


# --- Avro -------------------------------------------------------------------------------------------------------------


def offsets(folder: Path, each: int, records: int = 1) -> Path:
    """A manifest whose records have so many split offsets."""
    a_table(folder)
    path = manifests(folder)[-1]
    file = path.read_bytes()
    plain = record(file, {"split_offsets": [7_777_777]})
    before, _, after = plain.partition(zigzag(1) + zigzag(7_777_777) + b"\0")
    parts = [before + zigzag(each), *zeros(each), b"\0" + after]
    path.write_bytes(blocks(file, *[(records, deflated(*parts * records))] * 3))
    relist(folder)
    return folder


def avro_offsets(folder: Path) -> Path:
    """One entry with 250 million split offsets, in 250 KB."""
    return offsets(folder, 250_000_000)


def avro_offsets_60(folder: Path) -> Path:
    """Three hundred entries with 200,000 split offsets each: a block within the limit."""
    return offsets(folder, 200_000, 300)


def avro_blocks(folder: Path) -> Path:
    """Ten blocks of 250 MB of valid entries each."""
    a_table(folder)
    path = manifests(folder)[-1]
    file = path.read_bytes()
    plain = record(file, {})
    count = 250_000_000 // len(plain)
    many = plain * 1000
    body = deflated(*[many] * (count // 1000))
    path.write_bytes(blocks(file, *[(count // 1000 * 1000, body)] * 10))
    relist(folder)
    return folder


def avro_again(folder: Path) -> Path:
    """Forty blocks of 250 MB of zeros: damaged, and decoded again for each question."""
    a_table(folder)
    path = manifests(folder)[-1]
    path.write_bytes(blocks(path.read_bytes(), *[(1000, deflated(*zeros(250_000_000)))] * 40))
    relist(folder)
    return folder


def avro_faults(folder: Path) -> Path:
    """Damage every 16 bytes: a block of a negative size, then the sync marker, four million times."""
    a_table(folder)
    path = manifests(folder)[-1]
    file = path.read_bytes()
    header = read_header(file, "bomb")
    path.write_bytes(file[: header.end] + header.sync * (64 * MIB // 16))
    relist(folder)
    return folder


def avro_data(folder: Path) -> Path:
    """A data file of one record with 250 million zeros, in 245 KB."""
    kind = {"type": "array", "items": "long", "element-id": 4}
    schema = {"type": "record", "name": "r", "fields": [{"name": "l", "field-id": 3, "type": ["null", kind]}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [], codec="deflate")
    plain = [zigzag(1) + zigzag(250_000_000), *zeros(250_000_000), b"\0"]
    return data_bomb(folder, blocks(out.getvalue(), (1, deflated(*plain))), "AVRO", 1)


def avro_header(folder: Path) -> Path:
    """A manifest whose schema is 60 MB of brackets."""
    a_table(folder)
    path = manifests(folder)[-1]
    text = b"[" + b"[]," * 20_000_000 + b"[]]"
    key, codec = b"avro.schema", b"avro.codec"
    pairs = b"".join(zigzag(len(part)) + part for part in (key, text, codec, b"null"))
    path.write_bytes(b"Obj\x01" + zigzag(2) + pairs + b"\0" + bytes(16))
    relist(folder)
    return folder


# --- Parquet and ORC --------------------------------------------------------------------------------------------------


def parquet_strings(folder: Path) -> Path:
    """A million rows of one string of 1 MB."""
    index = pa.array(np.zeros(1_000_000, dtype=np.int32))
    text = pa.DictionaryArray.from_arrays(index, build.array(["x" * MIB]))  # type: ignore[arg-type]
    table = pa.table({"id": pa.array(np.zeros(1_000_000, dtype=np.int64)), "s": text})
    fields = [f.with_metadata({"PARQUET:field_id": n}) for f, n in zip(table.schema, ("1", "2"), strict=True)]
    out = io.BytesIO()
    pq.write_table(table.cast(pa.schema(fields)), out, compression="zstd", store_schema=False)
    return data_bomb(folder, out.getvalue(), "PARQUET", 1_000_000)


def parquet_deltas(folder: Path) -> Path:
    """Strings that repeat the one before: no dictionary, and as small."""
    return data_bomb(folder, delta_strings(MIB, 200_000), "PARQUET", 200_000)


def delta_strings(width: int, rows: int) -> bytes:
    """A Parquet file of one string many times, of which each says only that it is as the one before."""
    # Written by Arrow in one go the column would be there in full; a chunk of many pages needs one page at a time.
    out = io.BytesIO()
    field = pa.field("s", pa.string(), metadata={"PARQUET:field_id": "2"})
    with pq.ParquetWriter(out, pa.schema([field]), compression="zstd", use_dictionary=False,
                          column_encoding={"s": "DELTA_BYTE_ARRAY"}, write_statistics=False,
                          data_page_size=1 << 30) as writer:  # fmt: skip
        for _ in range(rows // 500):
            writer.write_table(pa.table({"s": ["x" * width] * 500}, schema=pa.schema([field])), row_group_size=500)
    return out.getvalue()


def parquet_list(folder: Path) -> Path:
    """One row with a list of 100 million zeros."""
    values = pa.array(np.zeros(100_000_000, dtype=np.int64))
    lists = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return data_bomb(folder, parquet(pa.table({"l": lists}), store_schema=False), "PARQUET", 1)


def orc_list(folder: Path) -> Path:
    """An ORC file of 600 bytes: a list of 100 million zeros."""
    from pyarrow import orc

    values = pa.array(np.zeros(100_000_000, dtype=np.int64))
    lists = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    out = io.BytesIO()
    orc.write_table(pa.table({"l": lists}), out, compression="ZSTD")
    return data_bomb(folder, out.getvalue(), "ORC", 1)


def parquet_manifest(folder: Path) -> Path:
    """A manifest in Parquet whose location is one string of 1 MB, in ten thousand rows."""
    simulation = ix.empty({"id": "long"}, format_version=4, manifest_format="parquet")
    simulation.append(files=3, rows=10)
    simulation.save(folder)
    simulation.close()
    path = max((folder / "metadata").glob("*.parquet"), key=os.path.getsize)
    table = pq.read_table(path)
    name = next(f.name for f in table.schema if (f.metadata or {}).get(b"PARQUET:field_id") == b"100")
    at = table.schema.get_field_index(name)
    many = table.take(np.zeros(10_000, dtype=np.int64))
    text = pa.DictionaryArray.from_arrays(np.zeros(10_000, dtype=np.int32), ["x" * MIB])  # type: ignore[arg-type]
    field = table.schema.field(at)
    schema = table.schema.set(at, field.with_type(text.type))
    columns = [text if i == at else c for i, c in enumerate(many.columns)]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, compression="zstd", store_schema=False)
    return folder


# --- deletes ----------------------------------------------------------------------------------------------------------


def delete_runs(folder: Path) -> Path:
    """A position delete file of 1.6 MB that deletes 100 million rows."""
    lab = ix.create(folder, {"id": "long", "s": "string", "l": "list<long>"}, properties={
        "write.delete.mode": "merge-on-read"})  # fmt: skip
    lab.append(pd.DataFrame({"id": [1, 2, 3], "s": ["a", "b", "c"], "l": [[1], [2], [3]]}))
    lab.delete("id = 2")
    entries = {p: next(iter(fastavro.reader(io.BytesIO(p.read_bytes())))) for p in manifests(folder)}
    data = next(e["data_file"] for e in entries.values() if e["data_file"]["content"] == 0)
    deletes = next(e["data_file"] for e in entries.values() if e["data_file"]["content"] == 1)
    fields = [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
    target = Path(deletes["file_path"].removeprefix("file://"))
    with pq.ParquetWriter(target, build.schema(fields), compression="zstd", use_dictionary=["file_path"],  # type: ignore[arg-type]
                          column_encoding={"pos": "DELTA_BINARY_PACKED"}) as writer:  # fmt: skip
        for i in range(100):
            path = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, dtype=np.int32), [data["file_path"]])  # type: ignore[arg-type]
            pos = np.arange(i * 1_000_000, (i + 1) * 1_000_000)
            writer.write_table(build.table([path.cast(pa.string()), pa.array(pos)], schema=build.schema(fields)))

    def change(entry: dict[str, Any]) -> None:
        if entry["content"] == 0:
            entry["record_count"] = 200_000_000
        else:
            entry.update(record_count=100_000_000, file_size_in_bytes=target.stat().st_size)

    for entry in entries:
        rewrite(entry, change)
    relist(folder)
    return folder


def puffin_footer(folder: Path) -> Path:
    """A Puffin file whose footer is 120 MB of brackets, in LZ4 frames of 500 KB."""
    folder.mkdir(parents=True)
    plain = b'{"blobs": [' + b"[]," * 40_000_000 + b"[]]}"
    buffer = pa.BufferOutputStream()
    with pa.CompressedOutputStream(buffer, "lz4") as stream:
        stream.write(plain)
    payload = buffer.getvalue().to_pybytes()
    path = folder / "stats.puffin"
    path.write_bytes(b"PFA1PFA1" + payload + struct.pack("<i", len(payload)) + b"\1\0\0\0PFA1")
    return path


BOMBS: dict[str, Callable[[Path], Path]] = {
    f.__name__: f
    for f in (
        gzip_brackets, gzip_snapshots, sparse_hint, sparse_metadata, sparse_manifest, sparse_list, zipped_manifest,
        avro_offsets, avro_offsets_60, avro_blocks, avro_again, avro_faults, avro_data, avro_header, parquet_strings,
        parquet_deltas, parquet_list, parquet_manifest, orc_list, delete_runs, puffin_footer,
    )
}  # fmt: skip


# --- doors ------------------------------------------------------------------------------------------------------------


def _every_table(path: Path) -> object:
    table = ix.open(path)
    for name in table.inspect:
        try:
            len(getattr(table.inspect, name)())
        except ix.IceexploreError:
            continue
    return list(table.problems)


def _saved(path: Path) -> object:
    target = path.with_suffix(".html")
    ix.open(path).explore().save_html(target)
    return target.stat().st_size


def _bundle(path: Path) -> object:
    return ix.open(path).bundle(path.with_suffix(".out.zip"))


def _redacted(path: Path) -> object:
    """A bundle with what it leaves out; nothing that it has may be left out without a word."""
    made = ix.open(path).bundle(path.with_suffix(".redacted.zip"), redact=True)
    return {Path(p).name: why[:120] for p, why in made.missing.items()}


def _simulated(path: Path) -> object:
    """Commits of every kind on top; what an operation refuses does not keep the next ones from being tried."""
    refused = []
    with contextlib.closing(ix.open(path).simulate()) as simulation:
        for commit in (
            lambda: simulation.append(files=2, rows=10),
            lambda: simulation.delete_where("id = 1"),
            simulation.rewrite_manifests,
            simulation.rewrite_position_deletes,
            simulation.compact,
            lambda: repr(simulation.cost()),
            lambda: repr(simulation.table.tree()),
        ):
            try:
                commit()
            except ix.IceexploreError as error:
                refused.append(type(error).__name__)
    return refused


def _copied(path: Path) -> object:
    with contextlib.closing(ix.open(path).simulate()) as simulation:
        return repr(simulation.save(path.with_suffix(".saved")))


def _again(path: Path) -> object:
    table = ix.open(path)
    for _ in range(5):
        table.tree()
        table.inspect.files()
    return list(table.problems)


def _loose(path: Path) -> object:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        try:
            loose = ix.open_file(file)
            repr(loose)
            len(loose.to_pandas())
        except ix.IceexploreError as error:
            print(f"  {file.name}: {str(error)[:160]}", file=sys.stderr)
    return None


DOORS: dict[str, Callable[[Path], object]] = {
    "open": lambda path: repr(ix.open(path)),
    "tree": lambda path: ix.open(path).tree().to_text(),
    "inspect": _every_table,
    "count": lambda path: ix.open(path).count(),
    "where": lambda path: ix.open(path).count("id >= 0 and s is not null"),
    "head": lambda path: len(ix.open(path).head(5)),
    "arrow": lambda path: ix.open(path).to_arrow().num_rows,
    "plan": lambda path: repr(ix.open(path).plan("id = 1", row_groups=True)),
    "verify": lambda path: len(ix.open(path).verify(level="data")),
    "html": _saved,
    "bundle": _bundle,
    "redacted": _redacted,
    "simulate": _simulated,
    "save": _copied,
    "again": _again,
    "file": _loose,
}


def main(name: str, folder: str, door: str) -> dict[str, Any]:
    """Go through a door, and say what came of it, how long it took and how much memory."""
    path = Path(folder)
    warnings.simplefilter("ignore")
    begun, outcome = time.perf_counter(), "ok"
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        detail = repr(DOORS[door](path))[:300]
    except ix.IceexploreError as error:
        outcome, detail = type(error).__name__, str(error)[:300]
    except BaseException as error:
        outcome, detail = f"foreign {type(error).__name__}", str(error)[:300]
    seconds, cpu = time.perf_counter() - begun, time.process_time()
    from iceexplore.formats import _helper

    _helper._HELPER.stop()  # only children that have ended are counted
    own, helper = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    taken = {"mib": own // 1024, "helper_mib": helper // 1024, "base_mib": base // 1024}
    took = {"seconds": round(seconds, 1), "cpu": round(cpu, 1)}
    return {"bomb": name, "door": door, "outcome": outcome, "detail": detail, **took, **taken}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:4])))
