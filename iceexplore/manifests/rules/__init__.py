"""Find the entries that violate a rule, as masks: reading reports them as problems, commits as violations.

Each fact is computed by one function. The registry with the texts and sources of all rules is in `iceexplore.errors`.
"""

from __future__ import annotations

from iceexplore.manifests.rules._counts import lowest_sequence_number, stored_counts
from iceexplore.manifests.rules._keys import key_faults
from iceexplore.manifests.rules._leaf_content import misplaced, not_allowed
from iceexplore.manifests.rules._root_rows import loosely_affiliated, stray_manifest_dvs
from iceexplore.manifests.rules._rows import FILES, MANIFESTS, Mask, Rows
from iceexplore.manifests.rules._single_entries import ENTRY_CHECKS, EntryCheck
from iceexplore.manifests.rules._values import above_file_sequence, beyond_stored, later_than, repeated

__all__ = [
    "ENTRY_CHECKS",
    "EntryCheck",
    "FILES",
    "MANIFESTS",
    "Mask",
    "Rows",
    "above_file_sequence",
    "beyond_stored",
    "key_faults",
    "later_than",
    "loosely_affiliated",
    "lowest_sequence_number",
    "misplaced",
    "not_allowed",
    "repeated",
    "stored_counts",
    "stray_manifest_dvs",
]
