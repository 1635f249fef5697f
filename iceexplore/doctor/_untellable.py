"""Faults that ``docs/doctor.md`` lists but no check can find, because they are in readers, not in tables."""

from __future__ import annotations

__all__ = ["UNTELLABLE"]

#: The reasons why no check can find these faults, by the numbers of the faults in ``docs/doctor.md``.
UNTELLABLE: dict[int, str] = {
    77: "A reader does not undo the escapes in names that Avro cannot store ('_x20' for a space). The files are fine.",
    79: "After a column's type was widened, some readers decode its bounds and Bloom filters with the new type, also "
    "in files written before. The spec allows these files to keep the bounds and Bloom filters of the old type.",
}
