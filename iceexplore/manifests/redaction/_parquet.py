"""Redact a Parquet file of records, column by column."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, AnyColumn, AnyField, DynamicArray, build
from iceexplore.arrow import compute as pc
from iceexplore.formats import FIELD_ID, field_id
from iceexplore.manifests.decode._parquet import ParquetManifest
from iceexplore.manifests.model._field_ids import partition_part
from iceexplore.manifests.redaction._places import (
    FIELD_NAMES,
    FORMATS,
    PATH_ID,
    Kind,
    Place,
    ids_by_name,
    inside,
    statistic,
)
from iceexplore.manifests.redaction._redactor import Redactor
from iceexplore.storage import Budget

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["redact_parquet"]

_ROWS = 8192
#: Maximum number of bytes of rows decoded at once; some of their columns become Python objects.
_BATCH_BYTES = 1 << 26
#: Number of copies of a row group that are in memory at a time: the redacted rows, and the writer's copy.
_COPIES = 2
_CODECS = frozenset({"zstd", "gzip", "snappy", "lz4", "brotli"})
_STATS_NAME = re.compile(r"c?\d{1,10}", re.A)


def redact_parquet(redactor: Redactor, data: bytes, location: str, lengths: Mapping[str, int]) -> bytes:
    """Return the file with columns, names and key-value metadata redacted, without statistics and dictionaries."""
    opened = ParquetManifest(data, location)
    columns = _Columns(redactor, lengths, opened.has_ids)
    out = pa.BufferOutputStream()
    codec = opened.codec if opened.codec in _CODECS else "none"
    writer = None
    try:
        # Keep the row groups, as readers may depend on them; usually there is one.
        with Budget(location, len(data)) as budget:
            for group in range(opened.file.num_row_groups):
                table = _redacted_group(opened, group, columns, budget)
                if table is None:
                    continue
                writer = writer or _writer(out, table.schema, codec)
                writer.write_table(table, row_group_size=max(1, table.num_rows))
                budget.used = out.tell()
        if writer is None:
            schema = columns.redacted(opened.schema.empty_table()).schema
            writer = _writer(out, schema, codec)
        # The file is rewritten even if nothing is redacted: Arrow's own schema, statistics and the bytes between pages
        # may hold anything.
        writer.add_key_value_metadata(redactor.header(opened.metadata))
    finally:
        if writer is not None:
            writer.close()
    return bytes(out.getvalue())


def _redacted_group(opened: ParquetManifest, group: int, columns: _Columns, budget: Budget) -> pa.Table | None:
    """Return the redacted rows of a row group; None if it has none."""
    rows, size = opened.group_size(group)
    budget.reserve(_COPIES * size, "the entries")
    parts = []
    step = max(1, min(_ROWS, _BATCH_BYTES * rows // size)) if size else _ROWS
    for batch in opened.file.iter_batches(step, row_groups=[group], use_threads=False):
        if batch.nbytes > 2 * _BATCH_BYTES + (1 << 20):  # more than the page headers state
            raise budget.refusal("the entries")
        parts.append(columns.redacted(pa.Table.from_batches([batch])))
    return pa.concat_tables(parts) if parts else None


def _writer(out: pa.BufferOutputStream, schema: pa.Schema, codec: str) -> pq.ParquetWriter:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        out, schema, compression=cast(Any, codec), use_dictionary=False, write_statistics=False, store_schema=False
    )


class _Columns:
    def __init__(self, redactor: Redactor, lengths: Mapping[str, int], has_ids: bool) -> None:
        self.redactor = redactor
        self.terms = redactor.terms
        self.lengths = lengths
        self.has_ids = has_ids

    def redacted(self, table: pa.Table) -> pa.Table:
        """Return redacted rows."""
        ids = [self._id(f) for f in table.schema]
        is_file = None
        if 134 in ids:
            kinds = table.column(ids.index(134)).combine_chunks()
            if pa.types.is_integer(kinds.type):
                is_file = pc.fill_null(pc.less(kinds, 3), False)
        columns = {i: _whole(table.column(i)) for i in range(table.num_columns)}
        self._put_lengths(ids, columns)
        arrays, fields = [], []
        for i, field in enumerate(table.schema):
            place = inside(Place.RECORD, ids[i], _kind(field.type))
            if place is Place.STATS:
                array, made = self._stats(columns[i], field, is_file)
            else:
                array, made = self._field(columns[i], field, place)
            arrays.append(array)
            fields.append(made)
        return pa.table(arrays, schema=pa.schema(fields))

    def _put_lengths(self, ids: list[int | None], columns: dict[int, Any]) -> None:
        if not self.lengths:
            return
        for where, size in ((100, 104), (500, 501)):
            if where in ids and size in ids:
                now, at = self.redactor.length_of(self.lengths), ids.index(size)
                pairs = zip(columns[ids.index(where)].to_pylist(), columns[at].to_pylist(), strict=True)
                made = [None if length is None else now(place, length) for place, length in pairs]
                columns[at] = pa.array(made, columns[at].type)

    def _id(self, field: AnyField) -> int | None:
        number = field_id(field)
        return number if number is not None or self.has_ids else ids_by_name.get(field.name)

    def _field(self, array: DynamicArray, field: AnyField, place: Place, key: Hashable = None) -> tuple[Any, AnyField]:
        """Return a column and its field, redacted."""
        array = self._array(array, field, place, key)
        return array, self._named(field, array.type)

    def _named(self, field: AnyField, kind: pa.DataType) -> AnyField:
        name = field.name
        known = name in FIELD_NAMES or _STATS_NAME.fullmatch(name)
        number = field_id(field)
        metadata = None if number is None else {FIELD_ID: str(number).encode()}
        return pa.field(name if known else self.terms.name(name), kind, field.nullable, metadata)

    def _array(self, array: DynamicArray, field: AnyField, place: Place, key: Hashable) -> DynamicArray:
        kind = array.type
        if isinstance(kind, pa.ExtensionType):
            array, kind = array.storage, array.type.storage_type
        if pa.types.is_dictionary(kind):
            array = array.dictionary_decode()
            kind = array.type
        if place is Place.FILE_KEY or (place in (Place.ANY, Place.SUMMARIES) and self.terms.values):
            return self._named_blank(array, field)
        if place is Place.SUMMARIES:
            place = Place.ANY
        if place is Place.BOUNDS:
            return self._bounds(array, field)
        if pa.types.is_struct(kind):
            return self._struct(array, place)
        if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return self._list(array, field, place)
        if _is_text(kind):
            return self._text(array, place, key)
        if _is_bytes(kind):
            return self._bytes(array, field, place, key)
        if place is Place.VALUE and self.terms.values:
            return self._stand_in(array, key)
        if (place is Place.ANY or pa.types.is_floating(kind) or pa.types.is_decimal(kind)) and self.terms.values:
            return self._named_blank(array, field)
        return array

    def _named_blank(self, array: DynamicArray, field: AnyField) -> DynamicArray:
        """Return a blank column of the redacted type, whose nested fields may have redacted names."""
        return _blank(len(array), self._shown(array.type), field.nullable)

    def _shown(self, kind: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([self._named(f, self._shown(f.type)) for f in kind])
        if pa.types.is_map(kind):
            key, item = kind.key_field, kind.item_field
            return build.map_(self._named(key, self._shown(key.type)), self._named(item, self._shown(item.type)))
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return pa.list_(self._named(kind.value_field, self._shown(kind.value_type)))
        return kind

    def _struct(self, array: DynamicArray, place: Place) -> DynamicArray:
        arrays, fields = [], []
        for child, field in zip(array.flatten(), array.type, strict=True):
            number, key = self._id(field), None
            inner = inside(place, number, _kind(field.type))
            if place is Place.TUPLE:
                key = self.redactor.field_keys.get(number, ("field", number, field.name))  # type: ignore[arg-type]
            made, shown = self._field(child, field, inner, key)
            arrays.append(made)
            fields.append(shown)
        return _struct(arrays, fields, array)

    def _list(self, array: DynamicArray, field: AnyField, place: Place) -> DynamicArray:
        kind = array.type
        mask: Any = pc.is_null(array) if array.null_count else None
        if pa.types.is_map(kind):
            if place is Place.KEEP:
                return array
            if place is Place.VALUE and self.terms.values:
                return self._named_blank(array, field)
            keys = self._array(array.keys, kind.key_field, Place.ANY, None)
            items = self._array(array.items, kind.item_field, Place.ANY, None)
            return build.map_array(array.offsets, keys, items, kind)
        inner = Place.RECORD if place is Place.RECORD else Place.KEEP if place is Place.KEEP else Place.ANY
        if place is Place.VALUE and self.terms.values:
            return self._named_blank(array, field)
        values, shown = self._field(array.values, kind.value_field, inner)
        return build.list_array(array.offsets.cast(pa.int32()), values, pa.list_(shown), mask=mask)

    def _bounds(self, array: DynamicArray, field: AnyField) -> DynamicArray:
        """Redact bounds that are stored as maps by column id."""
        if not pa.types.is_map(array.type) or not _is_bytes(array.type.item_type):
            return self._array(array, field, Place.ANY, None)
        redactor, path = self.redactor, PATH_ID
        rows: list[Any] = []
        for row in array.to_pylist():
            if row is None:
                rows.append(None)
                continue
            kept = []
            for column, bound in row:
                if column == path and bound is not None:
                    kept.append((column, self.terms.location(bound.decode("utf-8", "replace")).encode()))
                elif not self.terms.values and (column in redactor.plain or not redactor.has_secret(bound or b"")):
                    kept.append((column, bound))
            rows.append(kept)
        return pa.array(rows, array.type)

    def _text(self, array: DynamicArray, place: Place, key: Hashable) -> DynamicArray:
        terms = self.terms
        if place is Place.VALUE:
            if terms.values:
                return self._stand_in(array, key)
            return _mapped(array, self.redactor.value_text)
        if place is Place.LOCATION:
            return _mapped(array, terms.location)
        if place is Place.FORMAT:
            return _mapped(array, lambda v: v if v.lower() in FORMATS else terms.text(v))
        return _mapped(array, terms.text)

    def _bytes(self, array: DynamicArray, field: AnyField, place: Place, key: Hashable) -> DynamicArray:
        redactor = self.redactor
        if place is Place.VECTOR:
            return _mapped(array, redactor.vector)
        if place is Place.VALUE and self.terms.values:
            return self._stand_in(array, key)
        if pa.types.is_fixed_size_binary(array.type):
            width = array.type.byte_width
            return _mapped(array, lambda v: bytes(width) if self.terms.blanks or redactor.has_secret(v) else v)
        if place is Place.VALUE:
            return _mapped(array, lambda v: b"" if redactor.has_secret(v) else v)
        return _mapped(array, redactor.data)

    def _stand_in(self, array: DynamicArray, key: Hashable) -> DynamicArray:
        """Replace values by placeholders of their type."""
        kind = array.type
        coded = array.dictionary_encode()
        values = coded.dictionary
        if pa.types.is_decimal(kind):
            known = [int(v.scaleb(kind.scale)) for v in values.to_pylist()]
        elif pa.types.is_temporal(kind):
            known = values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        else:
            known = values.to_pylist()
        numbers = [self.terms.number(key, v) for v in known]
        return _typed(numbers, kind).take(coded.indices)

    # Statistics of V4 ----------------------------------------------------------------------------------------------

    def _stats(self, array: DynamicArray, field: AnyField, is_file: AnyColumn | None) -> tuple[Any, AnyField]:
        if not pa.types.is_struct(array.type):
            return self._field(array, field, Place.ANY)
        arrays, fields = [], []
        for child, inner in zip(array.flatten(), array.type, strict=True):
            found = statistic(self._id(inner))
            if found is None or found[1] != 0 or not pa.types.is_struct(inner.type):
                made, shown = self._field(child, inner, Place.ANY)
            else:
                made = self._column_stats(child, found[0], is_file)
                shown = self._named(inner, made.type)
            arrays.append(made)
            fields.append(shown)
        made = _struct(arrays, fields, array)
        return made, self._named(field, made.type)

    def _column_stats(self, array: DynamicArray, column: int, is_file: AnyColumn | None) -> DynamicArray:
        bound_key, derived_key = self.redactor.stats_keys.get(column), self.redactor.derived_keys.get(column)
        children = array.flatten()
        offsets = []
        for field in array.type:
            found = statistic(self._id(field))
            offsets.append(found[1] if found is not None and found[0] == column else -1)
        lower = children[offsets.index(1)] if 1 in offsets else None
        arrays, fields = [], []
        for child, field, offset in zip(children, array.type, offsets, strict=True):
            held = partition_part(offset)
            if (offset in (1, 2, 9) or (held and held[1] == "value")) and self.terms.values:
                key = derived_key if offset == 9 else bound_key
                key = key if held is None else self.redactor.field_keys.get(held[0])
                made = self._bound(child, field, key, is_file, lower if offset == 2 else None)
                shown = self._named(field, made.type)
            else:
                keep = offset in range(3, 9) or bool(held and held[1] == "null_count")
                place = Place.KEEP if keep and _kind(field.type) is Kind.NUMBER else Place.ANY
                if offset in (1, 2, 9) or (held and not keep):
                    place = Place.VALUE
                    if self.terms.values:
                        place = Place.ANY
                made, shown = self._field(child, field, place)
            arrays.append(made)
            fields.append(shown)
        return _struct(arrays, fields, array)

    def _bound(
        self,
        array: DynamicArray,
        field: AnyField,
        key: Hashable,
        is_file: AnyColumn | None,
        lower: DynamicArray,
    ) -> DynamicArray:
        """Redact a bound: a placeholder if it is a file's partition value, otherwise blank."""
        nested = pa.types.is_nested(array.type)
        if key is None or is_file is None or nested:
            return self._named_blank(array, field)
        if isinstance(array.type, pa.ExtensionType):
            array = array.storage
        if lower is not None:
            lower = lower.storage if isinstance(lower.type, pa.ExtensionType) else lower
            if lower.type != array.type:
                return self._named_blank(array, field)
            # If the bounds differ, only the lower one is the partition value.
            is_file = pc.and_(is_file, pc.fill_null(pc.equal(lower, array), True))
        made = self._stand_in(array, key)
        return pc.if_else(is_file, made, _blank(len(array), array.type, field.nullable))


def _whole(column: AnyChunkedArray) -> DynamicArray:
    array: AnyColumn = column.combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) and array.num_chunks else array


def _struct(arrays: list[Any], fields: list[AnyField], like: DynamicArray) -> DynamicArray:
    mask = pc.is_null(like) if like.null_count else None
    if mask is not None:  # a required child of a null struct, as in the draft, must not be null itself
        pairs = zip(arrays, fields, strict=True)
        arrays = [a if f.nullable else pc.if_else(mask, _blank(len(a), a.type, False), a) for a, f in pairs]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _mapped(array: DynamicArray, change: Callable[[Any], Any]) -> DynamicArray:
    """Change the values of an array, with one call for each distinct value."""
    coded = array.dictionary_encode()
    return pa.array([change(v) for v in coded.dictionary.to_pylist()], array.type).take(coded.indices)


def _typed(numbers: list[int], kind: pa.DataType) -> DynamicArray:
    """Return numbers as values of a type."""
    if pa.types.is_boolean(kind):
        return pa.array([bool(n % 2) for n in numbers], kind)
    if _is_text(kind):
        return pa.array([f"value-{n}" for n in numbers], kind)
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        return pa.array([(n % (1 << max(0, 8 * width - 1))).to_bytes(width, "big") for n in numbers], kind)
    if _is_bytes(kind):
        return pa.array([b"%d" % n for n in numbers], kind)
    if pa.types.is_decimal(kind):
        return pa.array([decimal.Decimal(n).scaleb(-kind.scale) for n in numbers], kind)
    if pa.types.is_floating(kind):
        return pa.array([float(n) for n in numbers], kind)
    if pa.types.is_temporal(kind):
        return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if pa.types.is_null(kind):
        return pa.nulls(len(numbers), kind)
    return pa.array(numbers, kind)


def _blank(count: int, kind: pa.DataType, nullable: bool) -> DynamicArray:
    """Return neutral values of a type: nulls where possible."""
    if nullable or pa.types.is_null(kind):
        return build.nulls(count, kind)
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([_blank(count, f.type, f.nullable) for f in kind], fields=list(kind))
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return pa.array([[]] * count, kind)
    if _is_text(kind):
        return pa.array([""] * count, kind)
    if _is_bytes(kind) and not pa.types.is_fixed_size_binary(kind):
        return pa.array([b""] * count, kind)
    return _typed([0] * count, kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _kind(kind: pa.DataType) -> Kind:
    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        return Kind.STRUCT
    if pa.types.is_nested(kind):
        return Kind.LIST
    if _is_text(kind):
        return Kind.TEXT
    return Kind.BYTES if _is_bytes(kind) else Kind.NUMBER
