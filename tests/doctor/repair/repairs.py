"""What repair plans mend: every damage of the registry, but for those named here, with the rows that are then left."""

from __future__ import annotations

#: What no plan mends: the names of damages, by the reason.
UNREPAIRABLE = {
    "the writer alone knows the right value": {
        "field_id_twice", "field_id_zero", "deletes_of_a_newer_spec", "equality_ids_empty", "equality_column_unknown",
        "vector_names_no_file", "vector_past_the_rows", "update_lost", "commit_on_an_older_file",
        "partition_value_of_the_wrong_type", "vector_without_a_puffin_file",
    },
    "the lost values are in no live file": {"deletes_dropped_by_a_compaction", "row_ids_lost_by_a_compaction"},
    "data files have to be rewritten": {
        "rows_of_another_partition", "data_file_without_field_ids",
    },
    "the user has to allow the folder": {"data_file_in_another_bucket"},
    "readers tolerate it": {
        "source_of_a_spec_dropped", "snapshot_without_a_summary", "deletes_name_no_file", "key_in_plain_text",
        "key_of_a_manifest_in_plain_text",
    },
    "maintenance mends it": {"metadata_file_large", "metadata_file_large_when_unpacked", "many_small_manifests"},
}  # fmt: skip
#: Rows after the repair, where they are not the healthy table's 17: rows that are lost with their files, and deletes
#: that cannot be read or apply to nothing.
ROWS = {
    "data_file_gone": 16,
    "manifest_gone_with_its_files": 15,
    "current_list_gone": 15,
    "data_file_cut": 16,
    "file_with_two_sizes": 14,
    "live_file_gone_after_expiry": 12,
    "uuid_bounds_in_the_wrong_byte_order": 2,
    "equality_deletes_older_than_the_data": 18,
    "vector_with_another_crc": 18,
    "vector_with_another_magic": 18,
    "vector_in_no_puffin_file": 18,
    "vector_that_claims_more_bitmaps_than_it_has": 18,
    "list_and_manifests_of_a_commit_cleaned_up": 15,
}
#: Rows of V4 trees after the repair, where they are not the healthy tree's: files whose manifest DV is lost come back.
V4_ROWS = {"manifest_dv_in_no_place": 3006}
#: All of these names.
HOPELESS = {name for names in UNREPAIRABLE.values() for name in names}
