"""An Avro file with other values and the header of its writer, the schema's text included."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["rewritten_avro"]

_META = {"type": "map", "values": "bytes"}


def rewritten_avro(schema: Any, metadata: Mapping[str, str], records: Sequence[Any]) -> bytes:
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
