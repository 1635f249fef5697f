"""Looking for words in every byte that a bundle or a page holds, decompressed and decoded too."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from iceexplore.formats import decompress_block, index_blocks, read_header

__all__ = ["found", "layers", "members", "token"]


def token(seed: object) -> str:
    """A word that nobody guesses, and that nothing else has; the same for the same seed."""
    rng = random.Random(f"redaction {seed}")
    return "".join(rng.choice("abcdefghjkmnpqrstuvwxyz") for _ in range(14))


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of a zip, and the bytes of the zip itself."""
    yield "zip", path.read_bytes()
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            yield name, name.encode()
            yield name, z.read(name)


def layers(data: bytes) -> Iterator[bytes]:
    """The bytes, and whatever they hold once they are decompressed and decoded."""
    yield data
    if data[:2] == b"\x1f\x8b":
        yield from layers(gzip.decompress(data))
    elif data[:4] == b"Obj\x01":
        header = read_header(data, "x")
        yield json.dumps(header.metadata, ensure_ascii=False).encode() + header.schema_text.encode()
        for block in index_blocks(data, header, "x").blocks:
            yield decompress_block(data, block, header.codec, "x")
    elif data[:4] == b"PAR1":
        file = pq.ParquetFile(pa.BufferReader(data))
        yield repr(file.metadata.metadata).encode() + str(file.schema).encode() + str(file.schema_arrow).encode()
        yield repr(file.read().to_pylist()).encode()
        out = io.BytesIO()
        pq.write_table(file.read(), out, compression="none", use_dictionary=False)
        yield out.getvalue()
        for group in range(file.metadata.num_row_groups):
            for column in range(file.metadata.num_columns):
                yield repr(file.metadata.row_group(group).column(column).statistics).encode()
    elif data[:4] == b"PFA1" and data[-4:] == b"PFA1":
        size = struct.unpack("<i", data[-12:-8])[0]
        yield from (json.dumps(b).encode() for b in json.loads(data[-12 - size : -12])["blobs"])


def forms(word: str) -> Iterator[bytes]:
    """Yield a word as it is, and in the other encodings it may be written in."""
    data = word.encode()
    yield from (data, data.hex().encode(), data.hex().upper().encode(), data[::-1])
    yield word.encode("utf-16-le")
    yield word.encode("utf-16-be")
    yield "".join(f"%{b:02X}" for b in data).encode()
    yield "".join(f"%{b:02x}" for b in data).encode()
    yield "".join(f"\\u{b:04x}" for b in data).encode()
    yield "".join(f"\\x{b:02x}" for b in data).encode()
    for shift in range(3):  # the bytes before it shift its Base64
        whole = base64.b64encode(bytes(shift) + data + bytes(2))
        yield whole[-(-shift * 4 // 3) + (1 if shift else 0) : len(data) * 4 // 3 - 2]


def found(words: Iterable[str], parts: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """The words that are somewhere in the parts, and where."""
    sought = [(word, form) for word in words for form in forms(word)]
    out = []
    for name, data in parts:
        for layer in layers(data):
            out += [(word, name) for word, form in sought if form in layer]
    return sorted(set(out))
