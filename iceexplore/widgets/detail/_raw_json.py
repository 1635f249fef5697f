"""The raw JSON of a node: its object in the metadata file, or its record in a manifest list, root or manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from iceexplore.arrow import PlainValue
from iceexplore.errors import OptionError
from iceexplore.formats import Avro, avro_batches, container, decompress_block, index_blocks, read_header, read_rows
from iceexplore.graph import TableState, TreeNode
from iceexplore.manifests import Manifest
from iceexplore.metadata import Dialect
from iceexplore.storage import JsonValue
from iceexplore.widgets.grid._cells import safe_text, text_of

__all__ = ["MAX_JSON", "raw_json"]

#: Maximum number of characters that are shown.
MAX_JSON = 200_000
_MANY = 1_000  # the maximum number of elements of an array that are shown


def raw_json(state: TableState, node: TreeNode) -> str:
    """Return a node as stored in its file, as indented JSON.

    For the table and its metadata file, this is the whole document; for a snapshot, ref or statistics file, its object
    in that document. For a manifest, it is the record in the manifest list or root; for a file, the record in the
    manifest; both as written, before inheritance, with binary values as ``0x…``. For a manifest list or root, it is the
    header: format, codec and key-value metadata. Arrays are cut after a thousand elements, the text after 200,000
    characters.

    Raises
    ------
    IceexploreError
        The file cannot be read.
    OptionError
        The node has no JSON of its own.
    """
    try:
        text = safe_text(json.dumps(_shortened(_object(state, node)), ensure_ascii=False, indent=2))
    except RecursionError:
        raise OptionError(f"{node.label[:100]!r}: its JSON is too deeply nested to be shown") from None
    if len(text) <= MAX_JSON:
        return text
    return f"{text[:MAX_JSON]}\n… {len(text) - MAX_JSON:,} more characters"


def _object(state: TableState, node: TreeNode) -> JsonValue:
    metadata = state.metadata
    kind, _, rest = node.id.partition(":")
    parts = [int(p) for p in rest.split(":") if p] if kind != "ref" else []
    if kind in ("table", "metadata") and not parts:
        return metadata.raw
    if kind == "ref":
        refs = metadata.raw.get("refs")
        own = refs.get(node.label) if isinstance(refs, Mapping) else None
        return own if own is not None else dict(node.fields)  # version 1 has no refs; main is derived
    snapshot = metadata.snapshot(parts[0]) if parts else None
    if snapshot is None:
        raise OptionError(f"{node.id[:100]!r} has no JSON of its own")
    if kind == "snapshot":
        return snapshot.raw
    if kind == "statistics":
        found = [s for s in metadata.statistics if s.snapshot_id == snapshot.snapshot_id]
        return found[parts[1]].raw
    root = state.root(snapshot)
    if root is None:
        raise OptionError(f"snapshot {snapshot.snapshot_id} has no manifests")
    if kind == "root":
        return _header(root)
    holder = root if len(parts) == 2 else state.reader.leaf(root, parts[1])
    if holder.dialect is Dialect.INLINE:
        return {"manifests": snapshot.raw.get("manifests")}
    return _record(state, holder, holder.entries["ordinal"][parts[-1]].as_py(), is_root=holder is root)


def _header(root: Manifest) -> dict[str, Any]:
    header = root.header
    return {
        "location": root.location,
        "length": root.length,
        "format": header.format,
        "codec": header.codec,
        "metadata": dict(header.metadata),
    }


def _record(state: TableState, manifest: Manifest, ordinal: int, *, is_root: bool) -> JsonValue:
    """Return a record of an Avro or Parquet file; for Avro, only the record's block is decoded."""
    location, kind = manifest.location, "manifest-list" if is_root else "manifest"
    data = state.storage.read(location, kind=kind)
    if not data.startswith(Avro.magic):
        return read_rows(state.storage, location, kind=kind).slice(ordinal, 1).to_pylist()[0]
    header = read_header(data, location)
    row = ordinal
    for block in index_blocks(data, header, location).blocks:
        if row < block.count:
            plain = decompress_block(data, block, header.codec, location)
            batches = avro_batches(b"".join(container(header.schema, block.count, [plain])), location)
            next(batches)  # skip the schema, which comes first
            for batch in batches:
                if row < batch.num_rows:
                    return batch.slice(row, 1).to_pylist()[0]
                row -= batch.num_rows
        row -= block.count
    raise OptionError(f"{location} has no record {ordinal}")


def _shortened(value: PlainValue) -> JsonValue:
    """Return a value for JSON: bytes in hexadecimal, maps as objects, arrays cut after a thousand elements."""
    match value:
        case Mapping():
            return {str(k): _shortened(v) for k, v in value.items()}
        case list() | tuple():
            if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):  # a map from Arrow
                return {str(k): _shortened(v) for k, v in value}
            shown = [_shortened(v) for v in value[:_MANY]]
            return shown if len(value) <= _MANY else [*shown, f"… {len(value) - _MANY:,} more"]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return text_of(value)
