"""Faults that ``docs/doctor.md`` lists but no check can find, because they are in readers, not in tables."""

from __future__ import annotations

__all__ = ["UNTELLABLE"]

#: The reasons why no check can find these faults, by the numbers of the faults in ``docs/doctor.md``.
UNTELLABLE: dict[int, str] = {
    77: "Names that Avro cannot store are escaped ('_x20' for a space). The files are fine, but some readers do not "
    "restore the original names.",
    79: "After a column's type was widened, some readers decode all its bounds and Bloom filters with the new type. "
    "Files that were written before the change still store them in the old type, as the spec allows.",
}
