"""Ways tables break that neither metadata nor files show: a reader is wrong, and the table is not."""

from __future__ import annotations

__all__ = ["UNTELLABLE"]

#: The reason why no check can find a way of breaking, by its number in ``docs/doctor.md``.
UNTELLABLE: dict[int, str] = {
    77: "A reader does not map names back that Avro cannot hold ('_x20' for a blank). The files are as they should be.",
    79: "A reader takes bounds or Bloom filters from before a column was widened for values of the new type. The spec "
    "lets both stay as they were written.",
}
