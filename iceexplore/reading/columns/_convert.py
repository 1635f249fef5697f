"""Convert a file's columns to the types of a schema: by field id at every depth, promoted, with defaults filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, AnyListArray, AnyListType, AnyMapArray, AnyMapType, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats import FIELD_ID, children_of, field_id
from iceexplore.metadata import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    arrow_type,
    fixed_length,
    is_known_type,
    type_base,
)
from iceexplore.reading.columns._ids import is_by_name

__all__ = ["Maker", "arrow_field", "arrow_fields", "constant", "converter", "same_ids"]

#: Converts a column of a file to the requested type.
Maker: TypeAlias = "Callable[[AnyArray], AnyArray]"

#: A variant that is not shredded (Parquet's format, "Variant").
_VARIANT = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])


def arrow_fields(fields: Iterable[NestedField]) -> list[AnyField]:
    """Return the Arrow fields of the rows that are read, with field ids at every depth.

    Types are those of `iceexplore.metadata.arrow_type`, except that ``fixed`` has its length and ``variant`` is a
    struct of the binary fields ``metadata`` and ``value``. Everything is nullable: damaged files have nulls where a
    schema forbids them.
    """
    return [arrow_field(f) for f in fields]


def arrow_field(f: NestedField, *, nullable: bool = True) -> AnyField:
    """Return the Arrow field of one schema field."""
    return pa.field(f.name, _held(f.type), nullable=nullable, metadata={FIELD_ID: str(f.field_id)})


def _held(kind: Type) -> pa.DataType:
    match kind:
        case StructType(fields):
            return pa.struct(arrow_fields(fields))
        case ListType(element):
            return pa.list_(arrow_field(element))
        case MapType(key, value):
            return build.map_(arrow_field(key, nullable=False), arrow_field(value))
    length = fixed_length(kind)
    if length is not None:
        return pa.binary(length)
    return _VARIANT if type_base(kind) == "variant" else arrow_type(kind)


def constant(
    f: NestedField, target: pa.DataType, rows: int, constants: Mapping[int, Any], *, given: PlainValue = None
) -> AnyArray:
    """Return a column that the file lacks: the partition's value (``constants``, by field id), the default, or null."""
    if f.field_id in constants:  # also a null from the partition, which the default does not replace
        held = constants[f.field_id]
        return _as(pa.repeat(held, rows), target) if held.is_valid else build.nulls(rows, target)
    value = f.initial_default if given is None else given
    if isinstance(f.type, StructType):
        return _constant_struct(f.type, value, target, rows, constants)
    if value is None:
        return build.nulls(rows, target)
    if isinstance(target, pa.BaseExtensionType):
        return _as(build.repeat(pa.scalar(value, target.storage_type), rows), target)
    return build.repeat(pa.scalar(value, target), rows)


def _constant_struct(
    kind: StructType, value: PlainValue, target: pa.DataType, rows: int, constants: Mapping[int, Any]
) -> AnyArray:
    """Return a struct column that the file lacks.

    It is null, unless the struct has a default or the partition has the value of one of its fields. Fields that the
    struct's default does not name have their own defaults (spec, "Default values").
    """
    held = value is not None or any(_holds(f, constants) for f in kind.fields)
    if not held:
        return build.nulls(rows, target)
    given = value if isinstance(value, Mapping) else {}
    arrays = [
        constant(f, target.field(i).type, rows, constants, given=given.get(f.field_id))
        for i, f in enumerate(kind.fields)
    ]
    return _struct_of(arrays, target, rows)


def _holds(f: NestedField, constants: Mapping[int, Any]) -> bool:
    if f.field_id in constants:
        return bool(constants[f.field_id].is_valid)
    return isinstance(f.type, StructType) and any(_holds(child, constants) for child in f.type.fields)


def same_ids(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether two equal types have the same field ids in their structs."""
    ours, theirs = children_of(found), children_of(wanted)
    ids = not pa.types.is_struct(found) or [field_id(f) for f in ours] == [field_id(f) for f in theirs]
    return ids and all(same_ids(a.type, b.type) for a, b in zip(ours, theirs, strict=True))


def converter(found: pa.DataType, kind: Type, target: pa.DataType, constants: Mapping[int, Any], name: str) -> Maker:
    """Return a function that converts a column of type ``found`` to ``target``.

    Parameters
    ----------
    found
        The file's type, with field ids.
    kind
        The schema's type, whose Arrow type is ``target``.
    constants
        Values given by the partition, by field id; they do not apply inside lists and maps.
    name
        The column's name, for messages.

    Raises
    ------
    FormatError
        The schema's type cannot be a promotion of the stored type (spec, "Schema Evolution").
    UnsupportedError
        A variant is shredded, or a type is unknown.
    """
    if type_base(kind) == "unknown":
        return lambda array: build.nulls(len(array), target)
    match kind:
        case StructType(fields) if pa.types.is_struct(found):
            if found == target and same_ids(found, target) and not _overridden(found, constants):
                return _same
            return _struct(found, fields, target, constants, name)
        case ListType(element) if pa.types.is_list(found):
            inner = converter(found.value_type, element.type, cast(AnyListType, target).value_type, {}, name)
            return _same if inner is _same and found == target else _list(inner, target)
        case MapType(key, value) if pa.types.is_map(found):
            to = cast(AnyMapType, target)
            keys = converter(found.key_type, key.type, to.key_type, {}, name)
            items = converter(found.item_type, value.type, to.item_type, {}, name)
            return _same if keys is _same and items is _same and found == target else _map(keys, items, target)
    if type_base(kind) == "variant":
        return _variant(found, target, name)
    if found == target:
        return _same
    if not is_known_type(kind):
        raise UnsupportedError(
            f"column {name!r} has type {str(kind)[:60]!r}, which is unknown: select the other columns with columns="
        )
    if not _promotable(found, kind):
        raise FormatError(
            f"column {name!r} is stored as {found}, which cannot be read as {str(kind)[:60]}: its values would change",
            field=name,
            code="stored-type",
        )
    return lambda array: _as(array, target)


def _overridden(found: pa.DataType, constants: Mapping[int, Any]) -> bool:
    """Return whether the partition gives the value of a field that was identified by name only."""
    return bool(constants) and any(
        (is_by_name(f) and field_id(f) in constants) or (pa.types.is_struct(f.type) and _overridden(f.type, constants))
        for f in children_of(found)
    )


#: For each type, the stored types that hold its values or that may be promoted to it. Many writers store texts as
#: bytes, and some store times in other units and without zone; a conversion that would lose information still fails.
_STORED: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "boolean": (pa.types.is_boolean,),
    "int": (pa.types.is_int8, pa.types.is_int16, pa.types.is_int32, pa.types.is_uint8, pa.types.is_uint16),
    "long": (pa.types.is_integer,),
    "float": (pa.types.is_float16, pa.types.is_float32),
    "double": (pa.types.is_floating,),
    "date": (pa.types.is_date,),
    "time": (pa.types.is_time, pa.types.is_int64),  # ORC has no time type: Iceberg stores microseconds as a long
    "timestamp": (pa.types.is_timestamp, pa.types.is_date),
    "timestamptz": (pa.types.is_timestamp,),
    "timestamp_ns": (pa.types.is_timestamp, pa.types.is_date),
    "timestamptz_ns": (pa.types.is_timestamp,),
}
_BYTES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def _promotable(found: pa.DataType, kind: Type) -> bool:
    """Return whether values stored as ``found`` may be read as ``kind``: the same type, or a promotion."""
    if isinstance(found, pa.BaseExtensionType):
        return _promotable(found.storage_type, kind)
    if pa.types.is_dictionary(found) or pa.types.is_run_end_encoded(found):
        return _promotable(found.value_type, kind)
    if pa.types.is_null(found):
        return True
    match kind:
        case StructType(fields):
            given = {field_id(f): f for f in found} if pa.types.is_struct(found) else {}
            return pa.types.is_struct(found) and all(
                f.field_id not in given or _promotable(given[f.field_id].type, f.type) for f in fields
            )
        case ListType(element):
            lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
            return any(test(found) for test in lists) and _promotable(cast(AnyListType, found).value_type, element.type)
        case MapType(key, value):
            return (
                pa.types.is_map(found)
                and _promotable(found.key_type, key.type)
                and _promotable(found.item_type, value.type)
            )
    base = type_base(kind)
    if base == "decimal":
        wanted = arrow_type(kind)
        return bool(pa.types.is_decimal(found) and pa.types.is_decimal(wanted) and found.scale == wanted.scale)
    return any(test(found) for test in _STORED.get(base, _BYTES))


def _same(array: AnyArray) -> AnyArray:
    return array


def _struct(
    found: pa.DataType, fields: tuple[NestedField, ...], target: pa.DataType, constants: Mapping[int, Any], name: str
) -> Maker:
    given = [field_id(found.field(i)) for i in range(found.num_fields)]
    steps: list[tuple[int, Maker | NestedField]] = []
    for i, f in enumerate(fields):
        to = target.field(i).type
        at = given.index(f.field_id) if f.field_id in given else -1
        if at >= 0 and f.field_id in constants and is_by_name(found.field(at)):
            at = -1
        inner = found.field(at).type if at >= 0 else None
        steps.append((at, f if inner is None else converter(inner, f.type, to, constants, f"{name}.{f.name}")))

    def make(array: AnyArray) -> AnyArray:
        children = []
        for i, (at, step) in enumerate(steps):
            if isinstance(step, NestedField):
                children.append(constant(step, target.field(i).type, len(array), constants))
            else:
                children.append(step(pc.struct_field(array, [at])))
        return _struct_of(children, target, len(array), array.is_null() if array.null_count else None)

    return make


def _struct_of(
    children: list[AnyArray], target: pa.DataType, rows: int, mask: pa.BooleanArray | None = None
) -> AnyArray:
    """Build structs from their fields; without fields, as in a damaged schema, the mask supplies the length."""
    if not children and mask is None:
        mask = pa.repeat(pa.scalar(False), rows)
    return pa.StructArray.from_arrays(children, fields=children_of(target), mask=mask)


def _list(inner: Maker, target: pa.DataType) -> Maker:
    def make(array: AnyArray) -> AnyArray:
        full = cast(AnyListArray, _unsliced(array))
        return build.list_array(full.offsets, inner(full.values), type=target, mask=_mask(full))

    return make


def _map(keys: Maker, items: Maker, target: pa.DataType) -> Maker:
    def make(array: AnyArray) -> AnyArray:
        full = cast(AnyMapArray, _unsliced(array))
        made = build.map_array(full.offsets, keys(full.keys), items(full.items), type=target)
        mask = _mask(full)
        return made if mask is None else pc.if_else(mask, pa.scalar(None, target), made)

    return make


def _variant(found: pa.DataType, target: pa.DataType, name: str) -> Maker:
    names = [f.name for f in children_of(found)]
    if "typed_value" in names or "metadata" not in names or "value" not in names:
        shape = "is shredded" if "typed_value" in names else f"is stored as {found}"
        raise UnsupportedError(
            f"column {name!r} is a variant that {shape}: only variants of metadata and value can be read; select the "
            "other columns with columns="
        )
    places = [names.index(child.name) for child in children_of(target)]

    def make(array: AnyArray) -> AnyArray:
        children = [_as(pc.struct_field(array, [i]), pa.binary()) for i in places]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=children_of(target), mask=mask)

    return make


def _as(array: AnyArray, target: pa.DataType) -> AnyArray:
    """Cast a primitive column to a promoted type, or from a different physical form of the same type."""
    if array.type == target:
        return array
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, _as(array, target.storage_type))
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        return array.cast(target, safe=False)  # INT96 and ORC timestamps arrive as nanoseconds
    if pa.types.is_time(target) and pa.types.is_time64(array.type):
        return array.cast(target, safe=False)
    return array.cast(target)


def _unsliced(array: AnyArray) -> AnyArray:
    return pa.concat_arrays([array]) if array.offset else array


def _mask(array: AnyArray) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None
