"""Evolve the partition spec and change the sort order in a document (spec, "Partition Evolution", "Sorting")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from iceexplore.commits.metadata_updates._document import Json, entries, whole_number, with_values
from iceexplore.commits.metadata_updates._schema import without_history
from iceexplore.commits.metadata_updates._upgrade import uses_expressions, with_expressions, with_lists
from iceexplore.errors import FormatError, OptionError, RuleError, items_of, mapping_of, texts_of
from iceexplore.metadata import (
    TRANSFORMS,
    PartitionField,
    PartitionSpec,
    Schema,
    SortField,
    SortOrder,
    TableMetadata,
    check_names,
    check_sources,
    parse_transform,
    resolve_term,
)

__all__ = ["evolve_spec", "set_sort_order"]

_SORT = re.compile(r"(.*?)(?:\s+(asc|desc))?(?:\s+nulls[\s-]+(first|last))?\s*", re.IGNORECASE | re.DOTALL)

#: A field of the new spec, and its JSON from the old spec; the JSON is None if the field is new or becomes void.
Part = tuple[PartitionField, Json | None]


def evolve_spec(
    document: Mapping[str, Any],
    *,
    add: Iterable[str | tuple[str, str]] = (),
    remove: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
) -> Json:
    """Return a document with an evolved partition spec, which becomes the default one.

    Removals are applied first, then renames, then additions. In v1 a removed field stays with the transform ``void``
    (spec, "Partition Evolution"). From v2 on an added field reuses the id of a field with the same source and transform
    (and name, if given) in any spec; otherwise it gets the next id after ``last-partition-id``. If the table already
    has an equal spec, that one becomes the default. In a V4 document with expressions, each new field gets an
    expression unless its transform is identity.

    Parameters
    ----------
    add
        ``"day(ts)"``, ``"bucket(16, id)"``, ``"truncate(4, s)"``, ``"bucket[16](id)"``, a column name for identity; or
        a pair of such a term and the field's name. Default names are ``ts_day``, ``id_bucket_16``, ``s_trunc_4``. From
        v3 on, also a bucket of several columns, ``"bucket(16, a, b)"``; the spec does not define its hash, so this
        library chose one.
    remove
        Partition fields to remove, by name or by a term as in ``add``.
    rename
        New names of partition fields, by old name.

    Raises
    ------
    RuleError
        ``partition-source``, ``partition-names``, ``partition-fields``, ``partition-ids-v1``.
    OptionError
        A term is not a transform of a column, or an argument has the wrong type.
    FormatError
        The document's schemas or specs violate the spec.
    """
    wanted = [_field_of(item) for item in items_of("add", add, "['day(ts)', 'bucket(16, id)']")]
    removed = texts_of("remove", remove, "['ts_day', 'bucket(16, id)']")
    renames = mapping_of("rename", rename, "{'ts_day': 'day'}", values=str)
    document = with_lists(document)
    metadata = without_history(document)
    base = metadata.spec()
    if base is None or not isinstance(base.raw, dict):
        raise FormatError(
            "the default spec is not an object among the partition specs",
            field="default-spec-id",
            code="metadata-invalid",
        )
    schema = metadata.schema()
    parts: list[Part] = list(zip(base.fields, entries(base.raw, "fields"), strict=True))
    gone = {_named(base, text, schema).field_id for text in removed}
    names = _renamed(base, renames, gone)
    added, last_id = _added(wanted, metadata, base, schema, gone, names)
    parts = _kept(parts, gone, names, metadata.format_version) + [(f, None) for f in added]

    new = PartitionSpec(-1, tuple(f for f, _ in parts))
    _check(new, schema, metadata.format_version)
    return _with_spec(document, metadata, new, [json or _field_json(f) for f, json in parts], last_id)


def _field_of(item: object) -> tuple[str, str | None]:
    """Return the term of a partition field to add, such as ``day(ts)``, and its name (None for the default name).

    ``item`` is the term alone, or a pair of the term and the name.

    Raises
    ------
    OptionError
        ``item`` is neither a string nor a pair of strings.
    """
    if isinstance(item, str):
        return item, None
    if isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(part, str) for part in item):
        return item[0], item[1]
    raise OptionError(
        f"{item!r} is not a partition field: give a string such as 'day(ts)', or a pair of such a string and a name"
    )


def _named(spec: PartitionSpec, text: str, schema: Schema) -> PartitionField:
    """Find a partition field in a spec.

    Parameters
    ----------
    text
        The name of the field, such as ``ts_day``; or its transform and source column as a term, such as ``day(ts)``. If
        the text is the name of one field and a term for another, the field with the name is returned.
    schema
        The schema in which the column of a term is looked up.

    Raises
    ------
    RuleError
        ``partition-fields``: the spec has no such field.
    """
    for field in spec.fields:
        if field.name == text:
            return field
    try:
        transform, sources, _ = resolve_term(text, schema)
    except (OptionError, RuleError):
        transform, sources = "", ()
    for field in spec.fields:
        if _is(field, transform, sources):
            return field
    known = ", ".join(f.name for f in spec.fields) or "none"
    raise RuleError("partition-fields", f"the spec has no field {text!r}; fields: {known}")


def _renamed(spec: PartitionSpec, rename: Mapping[str, str], gone: set[int]) -> dict[int, str]:
    """Return the new names of partition fields by field id.

    If a void field already has one of the new names, it is renamed, too: its id is appended to its name, as in Java.

    Parameters
    ----------
    rename
        The new names by old name.
    gone
        The ids of the fields that the same evolution removes.

    Raises
    ------
    RuleError
        ``partition-fields``: there is no field with one of the old names, or it is also removed.
    """
    out: dict[int, str] = {}
    by_name = {f.name: f for f in spec.fields}
    for name, new_name in rename.items():
        if name not in by_name:
            raise RuleError(
                "partition-fields", f"the spec has no field {name!r}; fields: {', '.join(by_name) or 'none'}"
            )
        if by_name[name].field_id in gone:
            raise RuleError("partition-fields", f"{name!r} cannot be both removed and renamed")
        _make_way(by_name.get(new_name), out)
        out[by_name[name].field_id] = new_name
    return out


def _make_way(field: PartitionField | None, names: dict[int, str]) -> None:
    if field is not None and parse_transform(field.transform).is_void and field.field_id not in names:
        names[field.field_id] = f"{field.name}_{field.field_id}"


def _added(
    given: Iterable[tuple[str, str | None]],
    metadata: TableMetadata,
    base: PartitionSpec,
    schema: Schema,
    gone: set[int],
    names: dict[int, str],
) -> tuple[list[PartitionField], int]:
    """Return the partition fields that an evolution adds to a spec, and the highest partition field id of the table.

    The highest id is computed over all specs of the table and the added fields. In two cases, the function also changes
    ``gone`` and ``names``:

    - If the evolution removes a field and adds a field with the same source and transform, the old field simply stays
      in the spec. Its id is removed from ``gone``, and no new field is returned. If the field to add has a different
      name, this name is stored in ``names`` for the old field.
    - If an added field has the same name as a void field or a field that the evolution removes, the other field gets a
      new name, which is stored in ``names``: its old name and its id, as in ``ts_day_1000``. Such a name is needed in
      v1, where a removed field stays in the spec as a void field.

    Parameters
    ----------
    given
        For each field to add: its transform and source as a term, such as ``day(ts)``, and its name. If the name is
        None, the field gets a default name.
    metadata
        The table's metadata. From v2 on, if one of its specs has a field with the same source and transform (and the
        same name, if a name is given), the added field gets the id and the name of that field.
    base
        The spec to which the fields are added.
    schema
        The schema in which the columns of the terms are looked up.
    gone
        The ids of the fields to remove from ``base``.
    names
        The new names of fields of ``base``, by field id.

    Raises
    ------
    RuleError
        ``partition-fields``: the spec already has such a field, the same field is added twice, or two of the transforms
        year, month, day and hour are added for one column. ``partition-source``: there is no such column.
    OptionError
        A term cannot be parsed.
    """
    last_id = max(
        999, metadata.last_partition_id or 0, *(f.field_id for s in metadata.partition_specs for f in s.fields), 0
    )
    out: list[PartitionField] = []
    for text, name in given:
        transform, sources, column = resolve_term(text, schema)
        same = next((f for f in base.fields if _is(f, transform, sources)), None)
        if same is not None and same.field_id in gone:
            gone.discard(same.field_id)
            if name is not None and name != same.name:
                names[same.field_id] = name
            continue
        double = same or next((f for f in out if _is(f, transform, sources)), None)
        if double is not None:
            raise RuleError("partition-fields", f"{text!r} is already partition field {double.name!r}")
        times = [f for f in out if f.source_ids == sources and parse_transform(f.transform).is_time]
        if times and parse_transform(transform).is_time:
            *some, last = [cls.name for cls in TRANSFORMS if cls.is_time]
            one_of = f"{', '.join(some)} and {last}"
            raise RuleError("partition-fields", f"{text!r}: add only one of {one_of} of a column")
        field = _recycled(metadata, transform, sources, name)
        if field is None:
            last_id += 1
            field = PartitionField(
                last_id, parse_transform(transform).default_name(column) if name is None else name, transform, sources
            )
        holder = next((f for f in base.fields if f.name == field.name), None)
        if holder is not None and holder.field_id in gone:
            names[holder.field_id] = f"{holder.name}_{holder.field_id}"
        else:
            _make_way(holder, names)
        out.append(field)
    return out, last_id


def _is(field: PartitionField, transform: str, sources: tuple[int, ...]) -> bool:
    return field.source_ids == sources and parse_transform(field.transform) == parse_transform(transform)


def _recycled(
    metadata: TableMetadata, transform: str, sources: tuple[int, ...], name: str | None
) -> PartitionField | None:
    if metadata.format_version < 2:
        return None
    for spec in metadata.partition_specs:
        for field in spec.fields:
            if _is(field, transform, sources) and name in (None, field.name):
                return field
    return None


def _kept(parts: Iterable[Part], gone: set[int], names: Mapping[int, str], version: int) -> list[Part]:
    out: list[Part] = []
    for field, json in parts:
        name = names.get(field.field_id, field.name)
        if field.field_id in gone:
            if version >= 2:
                continue
            field, json = PartitionField(field.field_id, name, "void", field.source_ids), None
        elif name != field.name:
            field = PartitionField(field.field_id, name, field.transform, field.source_ids)
            json = {**(json or {}), "name": name}
        out.append((field, json))
    return out


def _check(spec: PartitionSpec, schema: Schema, version: int) -> None:
    check_sources(schema, spec)
    columns = {name for name, _ in schema.walk()}
    seen: set[str] = set()
    for field in spec.fields:
        if not field.name or field.name in seen:
            raise RuleError(
                "partition-names", f"partition fields need unique names; {field.name!r} is empty or used twice"
            )
        seen.add(field.name)
        transform = parse_transform(field.transform)
        if field.name in columns and not (transform.is_identity or transform.is_void):
            raise RuleError(
                "partition-names",
                f"partition field {field.name!r} ({field.transform}) has the name of a column: give it another name",
            )
        if len(field.source_ids) > 1 and version < 3:
            raise RuleError(
                "partition-source",
                f"partition field {field.name!r} has several columns, which needs format version 3 (source-ids)",
            )
    check_names(schema, spec)
    if version < 2 and [f.field_id for f in spec.fields] != list(range(1000, 1000 + len(spec.fields))):
        raise RuleError(
            "partition-ids-v1",
            f"the partition field ids would be {', '.join(str(f.field_id) for f in spec.fields)}, but version 1 needs "
            "consecutive ids from 1000: upgrade the table to version 2 first",
        )


def _field_json(field: PartitionField) -> Json:
    """Return a partition field's JSON as Java writes it; several sources are written as in v3 (``source-ids``)."""
    source = {"source-id": field.source_id} if len(field.source_ids) == 1 else {"source-ids": list(field.source_ids)}
    return {"name": field.name, "transform": field.transform, **source, "field-id": field.field_id}


def _with_spec(document: Json, metadata: TableMetadata, new: PartitionSpec, fields: list[Json], last_id: int) -> Json:
    specs = entries(document, "partition-specs")
    same = next((s for s in metadata.partition_specs if _equivalent(s, new)), None)
    if same is not None:
        spec_id = same.spec_id
        fields = entries(same.raw, "fields")
        out = with_values(document, default_spec_id=spec_id)
    else:
        spec_id = max(s.spec_id for s in metadata.partition_specs) + 1
        out = dict(document)
        if uses_expressions(document):
            out, fields = with_expressions(document, fields)
        specs.append({"spec-id": spec_id, "fields": fields})
        last_id = max(last_id, whole_number(document, "last-partition-id", 0))
        out = with_values(out, default_spec_id=spec_id, partition_specs=specs, last_partition_id=last_id)
    if metadata.format_version == 1:
        out["partition-spec"] = fields
    return out


def _equivalent(one: PartitionSpec, other: PartitionSpec) -> bool:
    """Return whether the fields of two specs have the same sources, transforms and names (spec, "Partitioning")."""
    return [(f.source_ids, parse_transform(f.transform), f.name) for f in one.fields] == [
        (f.source_ids, parse_transform(f.transform), f.name) for f in other.fields
    ]


def set_sort_order(document: Mapping[str, Any], *, fields: Iterable[str]) -> Json:
    """Return a document with a different default sort order; without fields, the table becomes unsorted (order 0).

    Parameters
    ----------
    fields
        Columns or transforms of columns, optionally followed by ``asc`` or ``desc`` and by ``nulls first`` or ``nulls
        last``: ``"ts desc"``, ``"bucket(16, id) asc nulls last"``. The default is ascending, with nulls first if
        ascending and last if descending.

    Raises
    ------
    RuleError
        ``sort-source``.
    OptionError
        A string is not a sort field.
    """
    document = with_lists(document)
    metadata = without_history(document)
    schema = metadata.schema()
    sorted_by = []
    for text in texts_of("fields", fields, "'ts desc', 'bucket(16, id)'"):
        match = _SORT.fullmatch(text)
        if match is None:
            raise OptionError(f"{text!r} is not a sort field: give, for example, 'ts desc nulls last'")
        transform, sources, _ = resolve_term(match[1], schema, rule="sort-source")
        if len(sources) > 1:
            raise OptionError(f"{text!r}: a sort field is a transform of one column")
        direction = (match[2] or "asc").lower()
        nulls = (match[3] or ("first" if direction == "asc" else "last")).lower()
        sorted_by.append(SortField(transform, sources, direction, f"nulls-{nulls}"))
    orders = entries(document, "sort-orders")
    same = next((o for o in metadata.sort_orders if o.fields == tuple(sorted_by)), None)
    order_id = max([0, *(o.order_id for o in metadata.sort_orders)]) + 1 if sorted_by else 0
    if same is not None:
        order_id = same.order_id
    check_sources(schema, SortOrder(order_id, tuple(sorted_by)))
    if all(o.get("order-id") != order_id for o in orders):
        orders.append({"order-id": order_id, "fields": [_sort_json(f) for f in sorted_by]})
    return with_values(document, sort_orders=orders, default_sort_order_id=order_id)


def _sort_json(field: SortField) -> Json:
    return {
        "transform": field.transform,
        "source-id": field.source_ids[0],
        "direction": field.direction,
        "null-order": field.null_order,
    }
