"""The early draft of the view spec, sentence by sentence, with the tests that show that we honour it.

The sentences are quoted as they are written, some of them shortened. Sentences that only introduce, motivate or
describe a table of keys are left out.
"""

from __future__ import annotations

import importlib

import pytest

SPEC, WRITERS, TRAVEL = "test_view_spec", "test_view_writers", "test_view_travel"

#: Each sentence with the modules and the names of its tests.
SENTENCES: dict[str, tuple[tuple[str, str], ...]] = {
    # Goals and overview
    "views created from one engine can not be read or altered easily from another engine": (
        ("test_view_sql", "test_a_translation_is_labelled"),
        (WRITERS, "test_added_dialects_make_a_new_version"),
    ),
    "Supports versioning of views to track how a view evolved over time.": (
        ("test_view_diff", "test_versions_are_compared"),
        (TRAVEL, "test_by_id"),
    ),
    "View metadata storage mirrors how Iceberg table metadata is stored and retrieved.": (
        ("test_open_view", "test_the_newest_metadata_file_is_found_as_for_tables"),
    ),
    "View metadata is maintained in metadata files.": (
        ("test_open_view", "test_a_view_is_opened_from_a_folder_a_file_a_uri_and_a_zip"),
    ),
    "All changes to view state create a new view metadata file and completely replace the old metadata": (
        (SPEC, "test_all_changes_create_a_new_metadata_file_that_replaces_the_old_one"),
        (WRITERS, "test_each_change_writes_one_new_metadata_file_and_none_is_changed"),
    ),
    "… using an atomic swap.": ((WRITERS, "test_the_swap_is_atomic_so_of_many_writers_none_is_lost"),),
    "this atomic swap is delegated to the metastore that tracks tables and/or views by name.": (
        ("test_create_view", "test_a_view_in_a_sql_catalog"),
        ("test_create_view", "test_a_name_that_another_writer_takes_first"),
    ),
    "The view metadata file tracks the view schema, custom properties, current and past versions": (
        ("test_view_inspect", "test_the_rows"),
    ),
    "Each metadata file is self-sufficient.": ((SPEC, "test_each_metadata_file_is_self_sufficient"),),
    "It contains the history of the last few operations performed on the view and can be used to roll back": (
        (WRITERS, "test_any_metadata_file_can_be_used_to_roll_back"),
    ),
    # Metadata location
    "Readers use the version of the view that was current when they loaded the view metadata": (
        (SPEC, "test_readers_keep_the_version_that_was_current_when_they_loaded_until_they_refresh"),
    ),
    "Writers create view metadata files optimistically, assuming that the current metadata location will not be "
    "changed before the writer’s commit.": (
        (WRITERS, "test_writers_commit_optimistically_and_try_again_on_the_newest_state"),
        (WRITERS, "test_a_writer_that_does_not_retry_gets_a_conflict"),
        ("test_view_simulation", "test_any_history_of_two_writers_is_sound"),
    ),
    # View metadata
    "format-version: Currently, this must be 1.": (
        (WRITERS, "test_the_first_version_is_1_and_the_format_version_is_1"),
        ("test_open_view", "test_format_versions_above_1_are_refused"),
    ),
    "Implementations must throw an exception if the view’s version is higher than the supported version.": (
        (SPEC, "test_implementations_must_throw_if_the_format_version_is_higher_than_supported"),
    ),
    "Required …": ((SPEC, "test_a_key_that_the_early_draft_requires"),),
    "Optional …": ((SPEC, "test_a_key_that_is_optional_in_the_early_draft"),),
    "location: This is used to determine where to store manifest files and view metadata files.": (
        (WRITERS, "test_metadata_files_are_written_below_the_location"),
    ),
    "current-version-id: Set to ‘1’ when the view is first created.": (
        (WRITERS, "test_the_first_version_is_1_and_the_format_version_is_1"),
    ),
    "properties: A string to string map of view properties.": ((SPEC, "test_properties_are_a_map_of_strings"),),
    "… and for settings that affect view maintenance.": (
        (WRITERS, "test_the_number_of_versions_is_limited_by_the_property"),
    ),
    "versions: An array of structs describing the last known versions of the view.": (
        (SPEC, "test_a_key_that_a_version_requires"),
    ),
    "Controlled by the table property: “version.history.num-entries”.": (
        (SPEC, "test_the_number_of_versions_to_retain_is_a_property"),
        (WRITERS, "test_the_number_of_versions_is_limited_by_the_property"),
        (WRITERS, "test_the_number_of_versions_is_positive"),
    ),
    "Each time the current-version-id is changed, a new entry should be added with the last-updated-ms and the new "
    "current-version-id.": (
        (SPEC, "test_each_change_of_the_current_version_is_logged"),
        (WRITERS, "test_each_change_of_the_current_version_adds_an_entry_to_the_log"),
    ),
    "schemas: A list of schemas, the same as the ‘schemas’ field from Iceberg table spec.": (
        (SPEC, "test_schemas_are_those_of_the_table_spec"),
    ),
    "current-schema-id: ID of the current schema of the view": (
        (WRITERS, "test_in_the_early_draft_a_version_names_its_parent_and_its_operation"),
    ),
    # Versions
    "version-id: Monotonically increasing id indicating the version of the view.": (
        (SPEC, "test_version_ids_increase_monotonically"),
        ("test_view_simulation", "test_any_history_of_two_writers_is_sound"),
    ),
    "Starts with 1.": (
        (SPEC, "test_version_ids_start_with_1"),
        (WRITERS, "test_the_first_version_is_1_and_the_format_version_is_1"),
    ),
    "timestamp-ms: Timestamp expressed in ms since epoch at which the version of the view was created.": (
        ("test_view_simulation", "test_times"),
    ),
    "summary: A string map summarizes the version changes, including operation": (
        (SPEC, "test_the_operation_is_create_or_replace_in_the_early_draft"),
    ),
    # Version log
    "an array of structs that describe when each version was considered “current”.": (
        (SPEC, "test_a_key_that_an_entry_of_the_log_requires"),
    ),
    "Creation time is different and is stored in each version’s metadata.": (
        (SPEC, "test_the_log_says_when_a_version_was_current_rather_than_created"),
    ),
    "This allows you to reconstruct what someone would have seen at some point in time.": ((TRAVEL, "test_by_time"),),
    "If the view has been updated and rolled back, this will show it.": (
        (SPEC, "test_a_version_can_appear_several_times_because_the_view_was_rolled_back"),
        (WRITERS, "test_each_change_of_the_current_version_adds_an_entry_to_the_log"),
    ),
    # Summary
    "Only operation is required.": ((SPEC, "test_the_operation_is_create_or_replace_in_the_early_draft"),),
    "Engines may store additional key-value pairs in this map.": (
        (SPEC, "test_engines_may_store_more_in_the_summary"),
    ),
    "Allowed values are “create” and “replace”.": (
        (SPEC, "test_the_operation_is_create_or_replace_in_the_early_draft"),
        (WRITERS, "test_in_the_early_draft_a_version_names_its_parent_and_its_operation"),
    ),
    "engine-version: A string value indicating the version of the engine that performed the operation": (
        (SPEC, "test_engine_name_and_version_are_optional"),
    ),
    # Representations
    "Each representation is stored as an object with only one common field “type”.": (
        (SPEC, "test_a_key_that_a_sql_representation_requires"),
    ),
    "There is only one type of representation defined in the spec.": (
        (SPEC, "test_only_sql_is_defined_and_other_types_are_kept"),
        ("test_view_simulation", "test_unknown_keys_and_representations_are_kept"),
    ),
    "This type of representation stores the original view definition in SQL and its SQL dialect.": (
        (SPEC, "test_the_sql_is_kept_as_it_was_written"),
        ("test_view_simulation", "test_hostile_texts_are_stored_as_they_are"),
    ),
    "dialect: It can be used by the engines to detect the SQL dialect.": (
        (SPEC, "test_a_version_can_have_several_dialects"),
        ("test_sql_changes", "test_dialects_decide_what_a_text_means"),
    ),
    "schema-id: ID of the view’s schema when the version was created": (
        (SPEC, "test_in_the_early_draft_schema_and_defaults_are_in_the_representation"),
        (WRITERS, "test_an_equal_schema_is_reused_and_ids_are_kept_by_name"),
    ),
    "default-catalog: A string specifying the catalog to use when the table or view references in the view definition "
    "do not contain an explicit catalog.": (("test_lineage_queries", "test_names_are_resolved_by_defaults"),),
    "default-namespace: … when the references in the view definition do not contain an explicit namespace.": (
        ("test_lineage_queries", "test_names_are_resolved_by_defaults"),
    ),
    "Since the namespace may contain multiple parts, it is serialized as a list of strings.": (
        (SPEC, "test_a_default_namespace_has_several_parts_or_none"),
    ),
    "field-aliases, field-docs: The list should have the same length as the schema’s top level fields.": (
        (SPEC, "test_field_aliases_and_docs_have_the_length_of_the_schema"),
    ),
    "the field aliases are ‘alias_name’, ‘alias_name2’, and etc., and the field docs are ‘docs’, null, and etc.": (
        (SPEC, "test_field_aliases_and_docs_name_the_columns"),
        (WRITERS, "test_aliases_and_docs_become_columns_in_the_adopted_form"),
    ),
    # Appendix A
    "Imagine the following sequence of operations: CREATE TABLE …; CREATE VIEW …; CREATE OR REPLACE VIEW …;": (
        (WRITERS, "test_the_operations_of_the_example_replay_to_its_documents"),
    ),
    "The path is intentionally similar to the path for iceberg tables and contains a ‘metadata’ directory.": (
        ("test_create_view", "test_a_view_in_a_folder"),
        (WRITERS, "test_metadata_files_are_written_below_the_location"),
    ),
    "The text after ‘=>’ symbols describes the fields.": (
        ("test_open_view", "test_the_example_as_written_is_an_error_with_line_and_column"),
        ("test_open_view", "test_the_example_opens_once_it_is_cleaned"),
    ),
    "The Iceberg / view library creates a new metadata JSON file every time the view undergoes a DDL change.": (
        (WRITERS, "test_each_change_writes_one_new_metadata_file_and_none_is_changed"),
    ),
    "Version 2 was created on top of version 1, making parent-version-id 1": (
        (SPEC, "test_a_parent_is_an_earlier_version"),
        (WRITERS, "test_in_the_early_draft_a_version_names_its_parent_and_its_operation"),
    ),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_each_sentence_has_its_tests(sentence: str) -> None:
    for module, name in SENTENCES[sentence]:
        assert callable(getattr(importlib.import_module(f"tests.views.{module}"), name, None)), f"{module}.{name}"
