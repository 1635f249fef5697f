"""Open data and delete files, and compare them with the metadata that describes them."""

from iceexplore.verification._cross_file import beside, judged, suspects
from iceexplore.verification._deletes import Puffins, check_equality, check_positions, check_vector
from iceexplore.verification._findings import CHECKED_SCHEMA, FINDING_SCHEMA, Checked, Place
from iceexplore.verification._footers import check_columns, check_entry, check_footer, quiet
from iceexplore.verification._row_lineage import LiveIds, check_kept_ids, claim_row_ids
from iceexplore.verification._values import check_values

__all__ = [
    "CHECKED_SCHEMA",
    "Checked",
    "FINDING_SCHEMA",
    "LiveIds",
    "Place",
    "Puffins",
    "beside",
    "check_columns",
    "check_entry",
    "check_equality",
    "check_footer",
    "check_kept_ids",
    "check_positions",
    "check_values",
    "check_vector",
    "claim_row_ids",
    "judged",
    "quiet",
    "suspects",
]
