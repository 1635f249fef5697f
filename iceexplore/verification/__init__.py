"""Open data and delete files, and compare them with the metadata that describes them."""

from iceexplore.verification._cross_file import judged, suspects
from iceexplore.verification._findings import CHECKED_SCHEMA, FINDING_SCHEMA
from iceexplore.verification._verify import Level, Slice, check_slice, joined, slices_of, verify_local, verify_steps

__all__ = [
    "CHECKED_SCHEMA",
    "FINDING_SCHEMA",
    "Level",
    "Slice",
    "check_slice",
    "joined",
    "judged",
    "slices_of",
    "suspects",
    "verify_local",
    "verify_steps",
]
