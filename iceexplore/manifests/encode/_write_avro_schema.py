"""Arrow fields with ids to an Avro schema, named and typed as Java does it (``TypeToSchema``; spec, Appendix A)."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from iceexplore.manifests.encode._fields import id_of

__all__ = ["avro_name", "avro_schema", "decimal_bytes"]

_PLAIN: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def avro_name(name: str) -> str:
    """A name that Avro allows (``AvroSchemaUtil.sanitize``)."""
    text = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_x{ord(m[0]):X}", name)
    return f"_{text}" if text[:1].isdigit() or not text else text


def decimal_bytes(precision: int) -> int:
    """Bytes of the two's complement that holds every decimal of this precision."""
    return (int(10**precision).bit_length() + 8) // 8


def avro_schema(schema: pa.Schema, name: str) -> dict[str, Any]:
    """The Avro schema of a table's columns; the record is called ``name``, those inside ``r`` and their id."""
    return {"type": "record", "name": name, "fields": _Maker().fields(list(schema))}


class _Maker:
    def __init__(self) -> None:
        self.named: set[str] = set()

    def fields(self, fields: list[pa.Field]) -> list[dict[str, Any]]:
        out = []
        for field in fields:
            kind = self.kind(field)
            made: dict[str, Any] = {"name": avro_name(field.name), "type": ["null", kind] if field.nullable else kind}
            doc = (field.metadata or {}).get(b"doc")
            if doc is not None:
                made["doc"] = doc.decode()
            if field.nullable:
                made["default"] = None
            if made["name"] != field.name:
                made["iceberg-field-name"] = field.name
            out.append(made | {"field-id": id_of(field)})
        return out

    def kind(self, field: pa.Field) -> Any:
        arrow, field_id = field.type, id_of(field)
        if arrow in _PLAIN:
            return _PLAIN[arrow]
        if pa.types.is_struct(arrow):
            return {"type": "record", "name": f"r{field_id}", "fields": self.fields(list(arrow))}
        if pa.types.is_map(arrow):
            key, value = arrow.key_field, arrow.item_field
            pair = {
                "type": "record",
                "name": f"k{id_of(key)}_v{id_of(value)}",
                "fields": self.fields([key, value]),
            }
            return {"type": "array", "items": pair, "logicalType": "map"}
        if pa.types.is_list(arrow):
            return {"type": "array", "items": self.kind(arrow.value_field), "element-id": id_of(arrow.value_field)}
        if pa.types.is_timestamp(arrow) and arrow.unit in ("us", "ns"):
            logical = "timestamp-micros" if arrow.unit == "us" else "timestamp-nanos"
            return {"type": "long", "logicalType": logical, "adjust-to-utc": arrow.tz is not None}
        if pa.types.is_decimal128(arrow):
            name = f"decimal_{arrow.precision}_{arrow.scale}"
            more = {"logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
            return self.fixed(name, decimal_bytes(arrow.precision), **more)
        if pa.types.is_fixed_size_binary(arrow):
            if (field.metadata or {}).get(b"logical") == b"uuid":
                return self.fixed("uuid_fixed", arrow.byte_width, logicalType="uuid")
            return self.fixed(f"fixed_{arrow.byte_width}", arrow.byte_width)
        raise ValueError(f"{arrow} has no Avro type")  # a type of ours, so this is a mistake of ours

    def fixed(self, name: str, size: int, **more: Any) -> Any:
        if name in self.named:  # defined once, then referred to
            return name
        self.named.add(name)
        return {"type": "fixed", "name": name, "size": size, **more}
