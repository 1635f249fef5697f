"""Redact Puffin files: the footer as JSON, and blobs except vectors and (unless values are redacted) sketches."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable

from iceexplore.deletes import (
    PUFFIN_MAGIC,
    PuffinBlob,
    PuffinFile,
    decode_deletion_vector,
    read_puffin_blob,
    read_puffin_footer,
    theta_ndv,
)
from iceexplore.errors import FormatError, IceexploreError
from iceexplore.formats import json_texts
from iceexplore.graph.redaction._document import DocumentRedactor, to_json
from iceexplore.manifests import decode_manifest_dv
from iceexplore.storage import Storage

__all__ = ["redact_puffin"]


def redact_puffin(
    storage: Storage,
    location: str,
    documents: DocumentRedactor,
    regions: Iterable[tuple[int, int]] = (),
) -> tuple[bytes, dict[str, int]]:
    """Return the redacted file, with every blob at its old offset, and the lengths to state in table metadata.

    Blobs other than deletion vectors and, where values are not redacted, sketches are filled with zeros.

    Parameters
    ----------
    regions
        Offset and size of the vectors that manifests refer to.
    """
    data = storage.read(location, kind="puffin")
    try:
        footer = read_puffin_footer(storage, location)
    except FormatError:
        if data[:4] == PUFFIN_MAGIC:
            raise
        return _kept(data, len(data), regions), {}  # bare vectors without a footer (Delta Lake): keep the length
    end = len(data) - footer.footer_size
    spans = [*regions, *((b.offset, b.length) for b in footer.blobs if b.type == "deletion-vector-v1")]
    body = bytearray(_kept(data, end, spans))
    kept = {b.ordinal for b in footer.blobs if b.type == "deletion-vector-v1"}
    for blob in footer.blobs:
        if not documents.redaction.values and _is_sketch(storage, location, blob):
            body[blob.offset : blob.offset + blob.length] = data[blob.offset : blob.offset + blob.length]
            kept.add(blob.ordinal)
    payload = _payload(footer, documents, kept).encode("utf-8", "backslashreplace")
    if bytes(body[4:]) == data[4:end] and payload == data[end + 4 : -12]:  # nothing redacted, no duplicate keys
        return data, {}
    body[:4] = PUFFIN_MAGIC
    tail = PUFFIN_MAGIC + payload + struct.pack("<i", len(payload)) + bytes(4) + PUFFIN_MAGIC
    lengths = {"file-size-in-bytes": len(body) + len(tail), "file-footer-size-in-bytes": len(tail)}
    return bytes(body) + tail, lengths


def _kept(data: bytes, end: int, spans: Iterable[tuple[int, int]]) -> bytes:
    """Return ``end`` bytes: the deletion vectors at ``spans`` of the data, and zeros everywhere else."""
    out = bytearray(end)
    for offset, length in spans:
        if offset < 0 or length < 0 or offset + length > end:
            continue
        part = data[offset : offset + length]
        if _is_vector(part):
            out[offset : offset + length] = part
    return bytes(out)


def _is_vector(data: bytes) -> bool:
    for decode in (decode_deletion_vector, decode_manifest_dv):
        try:
            decode(data)
        except IceexploreError:
            continue
        return True
    return False


def _is_sketch(storage: Storage, location: str, blob: PuffinBlob) -> bool:
    if blob.type != "apache-datasketches-theta-v1":
        return False
    try:
        return theta_ndv(read_puffin_blob(storage, location, blob)) is not None
    except IceexploreError:
        return False


def _payload(footer: PuffinFile, documents: DocumentRedactor, kept: set[int]) -> str:
    document = json.loads(footer.payload)
    for ordinal, blob in enumerate(document["blobs"]):
        if isinstance(blob, dict) and ordinal not in kept:
            blob.pop("compression-codec", None)  # the zeros are not compressed
    made, texts = documents.puffin(document), json_texts(document)
    return json_texts(made)[texts.index(footer.payload)] if footer.payload in texts else to_json(made)
