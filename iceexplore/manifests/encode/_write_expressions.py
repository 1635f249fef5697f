"""Where V4 keeps the statistics of what: ids of structs in content_stats, expressions of partition fields."""

from __future__ import annotations

from iceexplore.errors import OptionError
from iceexplore.metadata import Expression, PartitionField, TableMetadata, transform_parts

__all__ = ["base_id", "derives", "expression_of", "find_expression", "is_identity"]

#: Iceberg main, spec "Content Stats": ids of reserved columns' structs (_last_updated_sequence_number, _row_id).
_RESERVED = {2147483539: 9000, 2147483540: 9200}


def base_id(column_id: int) -> int | None:
    """The id of a column's struct in content_stats (FORMATS: 10,000 + 200 × id); None where it cannot have one."""
    return 10_000 + 200 * column_id if 0 <= column_id < 999_950 else _RESERVED.get(column_id)


def is_identity(field: PartitionField) -> bool:
    """Whether the partition value is the source column's own, and stands in its bounds."""
    return transform_parts(field.transform)[0] == "identity"


def derives(field: PartitionField) -> bool:
    """Whether the partition value needs a derived column: neither identity nor void (which is always null)."""
    return transform_parts(field.transform)[0] not in ("identity", "void")


def find_expression(metadata: TableMetadata, field: PartitionField) -> Expression | None:
    """The expression of a partition field: of its transform and sources, and with its field id if there are several.

    A field id alone is not enough: v1 counted from 1000 in every spec.
    """
    same = [e for e in metadata.expressions if (e.transform, e.source_ids) == (field.transform, field.source_ids)]
    by_id = [e for e in same if e.partition_field_id == field.field_id]
    return next(iter(by_id or same), None)


def expression_of(metadata: TableMetadata, field: PartitionField) -> Expression:
    """The same.

    Raises
    ------
    OptionError
        The table has none: its metadata has not been upgraded to V4.
    """
    found = find_expression(metadata, field)
    if found is None:
        sources = ", ".join(map(str, field.source_ids))
        raise OptionError(
            f"the table has no expression for partition field {field.field_id} ({field.name}, {field.transform} of "
            f"{sources}), by whose id its derived column is known: upgrade the metadata to version 4 first"
        )
    return found
