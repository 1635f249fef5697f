"""Check the Avro schema in a manifest or manifest list for faults that iceexplore tolerates and engines do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from iceexplore.errors import Problem, problem
from iceexplore.manifests import Manifest
from iceexplore.metadata import PartitionSpec, TableMetadata, partition_type, type_base
from iceexplore.storage import JsonValue

__all__ = ["schema_problems"]

#: The fields that must not be null (spec, "Manifests" and "Manifest Lists"): their names by field id.
_REQUIRED = {
    0: "status", 2: "data_file", 100: "file_path", 101: "file_format", 102: "partition", 103: "record_count",
    104: "file_size_in_bytes", 500: "manifest_path", 501: "manifest_length", 502: "partition_spec_id",
}  # fmt: skip
#: Required fields that manifest lists of version 1 may omit.
_REQUIRED_SINCE_V2 = {503: "added_snapshot_id", 515: "sequence_number", 516: "min_sequence_number", 517: "content"}

_INTEGERS, _DECIMALS = frozenset({"int", "long"}), frozenset({"float", "double"})
_BYTES = frozenset({"bytes", "fixed"})
#: For each type of a partition field: the Avro types in which its values may be stored. Readers accept integers and
#: floating-point numbers of either width: 32 or 64 bits.
_STORED: dict[str, frozenset[str]] = {
    "boolean": frozenset({"boolean"}),
    **dict.fromkeys(("int", "long", "date", "time"), _INTEGERS),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), _INTEGERS),
    **dict.fromkeys(("float", "double"), _DECIMALS),
    "string": frozenset({"string"}),
    "uuid": frozenset({"fixed", "bytes", "string"}),  # some writers store text
    **dict.fromkeys(("fixed", "binary", "decimal"), _BYTES),
}


def schema_problems(manifest: Manifest, metadata: TableMetadata) -> Iterator[Problem]:
    """Check the Avro schema of a manifest or manifest list. Manifests of V4 tables are not checked.

    Report fields that the Avro schema allows to be null although the spec requires them, and partition fields whose
    Avro type does not fit their type in the partition spec.
    """
    if manifest.dialect.has_root_manifest:
        return
    nullable, partition = _read(manifest.header.schema)
    required = _REQUIRED
    if manifest.is_root and manifest.header.metadata.get("format-version", "1") != "1":
        required = {**_REQUIRED, **_REQUIRED_SINCE_V2}
    wrong = sorted(nullable & required.keys())
    if wrong:
        names = ", ".join(f"{required[i]} ({i})" for i in wrong)
        text = f"The Avro schema lets required fields be null: {names}. Some engines refuse such a file."
        field = f"{wrong[0]} {required[wrong[0]]}"
        yield problem("avro-nullability", manifest.location, text, field=field, found="optional", expected="required")
    spec_id = manifest.header.spec_id
    spec = next((s for s in metadata.partition_specs if s.spec_id == spec_id), None)
    if not manifest.is_root and spec is not None:
        yield from _partition_problems(manifest, metadata, spec, dict(partition))


def _partition_problems(
    manifest: Manifest, metadata: TableMetadata, spec: PartitionSpec, stored: dict[int, tuple[str, str]]
) -> Iterator[Problem]:
    schema = metadata.schema()
    dropped = {f.field_id for f in spec.fields if all(schema.find(source) is None for source in f.source_ids)}
    for field in partition_type(spec, metadata).fields:
        base, found = type_base(field.type), stored.get(field.field_id)
        due = _STORED.get(base)
        if found is None or due is None:
            continue
        kind, logical = found
        if kind == "null" and field.field_id in dropped:
            continue  # allowed: Java also writes the type null here, because it does not know a dropped column's type
        time = base if base in ("date", "time") else "timestamp" if base.startswith("timestamp") else ""
        # the spec makes int the result type of the day transform, but Java writes date
        other_time = bool(logical) and logical != time and not (logical == "date" and base == "int")
        if kind in due and not other_time:
            continue
        text = (
            f"Values of partition field {field.name!r} are stored as {logical or kind}, but have type {base} "
            "in the partition spec: readers fail, or skip files because of wrong values."
        )
        yield problem(
            "value-undecodable", manifest.location, text, field="102 partition", found=logical or kind, expected=base
        )


#: The number of parsed schemas to cache; all manifests of one writer and spec share a schema.
_MOST_KEPT = 256


@lru_cache(maxsize=_MOST_KEPT)
def _read(schema: str) -> tuple[frozenset[int], tuple[tuple[int, tuple[str, str]], ...]]:
    """Parse the Avro schema of a manifest or manifest list.

    The schema's size and depth are not limited here, because it was parsed before: when the manifest was read.

    Returns
    -------
    frozenset
        The ids of the fields that may be null: for a manifest, fields of the entries and of their ``data_file``; for a
        manifest list, fields of its rows. Empty if the schema is not valid JSON.
    tuple
        A pair for each partition field: its id, and the types that `_types` returns for it. Empty for a manifest list,
        and if the schema is not valid JSON.
    """
    try:
        tree = json.loads(schema)
    except (ValueError, RecursionError):
        return frozenset(), ()
    nullable: set[int] = set()
    partition: dict[int, tuple[str, str]] = {}
    data_file = None
    for field in _fields(tree):
        if _number(field) == 2:
            data_file = _branch(field.get("type"))[0]
        _note(field, nullable)
    for field in _fields(data_file):
        _note(field, nullable)
        if _number(field) == 102:
            for part in _fields(_branch(field.get("type"))[0]):
                kind = _branch(part.get("type"))[0]
                number = _number(part)
                if number is not None:
                    partition[number] = _types(kind)
    return frozenset(nullable), tuple(partition.items())


def _fields(record: JsonValue) -> list[dict[str, Any]]:
    found = record.get("fields") if isinstance(record, dict) else None
    return [f for f in found if isinstance(f, dict)] if isinstance(found, list) else []


def _number(field: dict[str, Any]) -> int | None:
    number = field.get("field-id")
    return number if isinstance(number, int) else None


def _branch(kind: JsonValue) -> tuple[Any, bool]:
    """Return the Avro type of a field without null, and whether null is allowed.

    A field that allows null has a union of ``null`` and another type. For example, for ``["null", "int"]`` the result
    is ``("int", True)``, and for ``"int"`` it is ``("int", False)``. The returned type is None if a union does not have
    exactly one type other than ``null``.

    Parameters
    ----------
    kind
        The field's ``type`` in the Avro schema.
    """
    if isinstance(kind, list):
        others = [k for k in kind if k != "null"]
        return (others[0] if len(others) == 1 else None), "null" in kind
    return kind, False


def _note(field: dict[str, Any], nullable: set[int]) -> None:
    number = _number(field)
    if number is not None and _branch(field.get("type"))[1]:
        nullable.add(number)


def _types(kind: JsonValue) -> tuple[str, str]:
    """Return an Avro type's name, and its logical type: ``date``, ``time``, ``timestamp``, or empty for any other."""
    if isinstance(kind, str):
        return kind, ""
    if not isinstance(kind, dict):
        return "", ""
    logical = str(kind.get("logicalType", ""))
    time = next((t for t in ("date", "timestamp", "time") if logical.removeprefix("local-").startswith(t)), "")
    return str(kind.get("type", "")), time
