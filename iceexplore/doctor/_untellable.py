"""Ways of breaking that neither metadata nor files reveal: the fault is in the reader, not in the table."""

from __future__ import annotations

__all__ = ["UNTELLABLE"]

#: The reasons why no check can find these ways of breaking, by their numbers in ``docs/doctor.md``.
UNTELLABLE: dict[int, str] = {
    77: "A reader does not map names back that Avro cannot hold ('_x20' for a blank). The files are as they should be.",
    79: "A reader takes bounds or Bloom filters from before a column was widened for values of the new type. The spec "
    "lets both stay as they were written.",
}
