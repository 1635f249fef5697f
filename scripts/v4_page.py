"""Write docs/v4.md: the rules of V4 with their sentences and tests, and what the proposal leaves open.

The rules, their quotations and the open points come from the registries in ``iceexplore.errors``; the statements that
are no rules are listed here, each with the test that checks it.

Run from the root of the repository: ``python -m scripts.v4_page``.
"""

from __future__ import annotations

from pathlib import Path

from iceexplore.errors import OPEN_POINTS, RULES, Rule
from tests.commits.rules.test_check_rules import FILE_EDITS, LEAF_EDITS, ROOT_EDITS
from tests.commits.rules.test_draft_rules import EDITS

__all__ = ["PAGE", "STATEMENTS", "page", "rule_tests"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "v4.md"
_RULES = "tests/commits/rules/test_check_rules.py"
_DRAFT_RULES = "tests/commits/rules/test_draft_rules.py"
_COLUMN_FILES = "tests/reading/test_column_files.py"
#: Measured by benchmarks/draft.py.
_MEASURED = PAGE.parent.parent / "benchmarks" / "results" / "draft.md"
_LAYOUT, _MANIFESTS = "tests/commits/layouts/test_layout_root.py", "tests/manifests"

#: Tests of rules that no edit of a root or leaf violates alone.
_BY_HAND = {
    "column-file-rows": f"{_COLUMN_FILES}::test_the_doctor_opens_column_files",
    "column-file-there": f"{_COLUMN_FILES}::test_the_doctor_finds_a_missing_column_file",
    "compaction-existing": f"{_RULES}::test_a_manifest_that_hides_a_change",
    "geo-bounds": f"{_DRAFT_RULES}::test_boxes_of_geometries",
    "known-status": f"{_RULES}::test_statuses_out_of_range",
    "manifest-dv-form": f"{_DRAFT_RULES}::test_older_forms_of_manifest_dvs_are_noted",
    "one-root": f"{_RULES}::test_more_than_one_root",
    "partition-rebuilds": f"{_RULES}::test_a_partition_that_cannot_be_rebuilt",
    "stats-cover": f"{_RULES}::test_statistics_that_do_not_cover",
    "timestamp-order": f"{_DRAFT_RULES}::test_a_snapshot_that_is_not_later_than_its_parent",
}

_DRAFT = """\
## The draft beside the proposal

The draft of the V4 spec grew out of the proposal. `dialect="v4-draft"` writes it as of September 2026
([simulations](simulations.md#the-draft-of-the-v4-spec)); trees that Delta Lake 4.4 writes are an older form of it.

| | the proposal | the draft | Delta Lake 4.4 |
|---|---|---|---|
| a data file's deletion vector | an entry of its own | in the data file's entry (148) | as the draft |
| a changed vector | DELETED and ADDED vectors | REPLACED and MODIFIED data files | ADDED, the older entry in the manifest DV |
| a manifest DV | an entry of its own, inline or a Puffin blob | in the manifest's entry (522), Mumbling | a roaring bitmap, with its cardinality (523) |
| what a commit removed from a leaf | a DELETED manifest DV beside the new one | `deleted_positions`, `replaced_positions` | not recorded |
| delete manifests | V4 manifests, affiliated or not | only those from before V4 | none |
| newer values of some columns | none | column files in the data file's entry (158), which becomes MODIFIED | none |
| new equality deletes | yes | no (apache/iceberg#17783, open) | none |
| partition values | in the statistics of derived columns | a tuple (102) of all specs | texts by physical name |
| partition bounds of a manifest | statistics of derived columns | only those of source columns | none |
| locations | absolute or relative | relative below the table | relative and percent-encoded |
| a snapshot's time | as before V4 | above its parent's (apache/iceberg#16294, open) | above its parent's |

{count} rules are the draft's alone. `t.rules()` of a draft checks these, and {shared} of those above.

| rule | what must hold | in the draft | test |
|---|---|---|---|
{rules}

Only `t.check()` reports these, as they concern data files, or forms that are read, too:

| rule | what must hold | in the draft | test |
|---|---|---|---|
{of_doctor}

The same history, written in each form (`benchmarks/draft.py`: 8 appends of 20 files, each followed by deletion vectors
for 10 files; "near" flushes the root at 40 files). Where all files are in the root, the draft is a little smaller: it
has no entries of vectors, and no derived columns. Where they are in leaves, a changed vector takes its data file's entry
out of the leaf and into the root or another leaf, with its statistics.

{measured}
"""

#: Statements of the proposal that are no rules: section, statement, test (empty: none yet).
STATEMENTS: tuple[tuple[str, str, str], ...] = (
    ("Append Files", "An append writes one root, without a leaf.", f"{_LAYOUT}::test_append_to_the_root"),
    ("Append Files", "A larger append adds a leaf data manifest.", f"{_LAYOUT}::test_append_with_a_leaf"),
    ("Append Files", "Rows that a commit does not change become EXISTING.", f"{_LAYOUT}::test_append_to_the_root"),
    ("Remove Files", "A file of the root becomes a DELETED row.", f"{_LAYOUT}::test_remove_from_the_root"),
    ("Remove Files", "A file of a leaf is removed by a manifest DV.", f"{_LAYOUT}::test_remove_from_a_leaf"),
    ("Remove Files", "Removing all files of a leaf is a manifest DV, too.", f"{_LAYOUT}::test_a_leaf_loses_all_of_its_files"),
    ("Removing Data Files", "A removed data file's DV goes with it: two manifest DVs.", f"{_LAYOUT}::test_dvs_go_with_their_data_files"),
    ("Overwrite Files", "An overwrite in leaf and root.", f"{_LAYOUT}::test_overwrite_in_a_leaf_and_in_the_root"),
    ("Row Delta", "A row delta in the root alone.", f"{_LAYOUT}::test_row_delta_in_the_root_only"),
    ("Row Delta", "A replaced DV in a delete manifest.", f"{_LAYOUT}::test_complex_row_delta"),
    ("Manifest Compaction", "Manifests are merged with their DVs applied, as EXISTING.", f"{_LAYOUT}::test_compaction_during_an_append"),
    ("Manifest Compaction", "Compaction is possible in any commit.", f"{_LAYOUT}::test_small_leaves_are_compacted_in_any_commit"),
    ("Open Questions 1", "Manifest DVs are inline or in Puffin files.", f"{_LAYOUT}::test_encodings_of_manifest_dvs"),
    ("Optional Affinity", "Affiliated delete manifests hold one data manifest's deletes.", f"{_LAYOUT}::test_affinity_all"),
    ("Optional Affinity", "A small number of delete manifests stays unaffiliated, after every commit.", f"{_LAYOUT}::test_every_commit_keeps_the_limit_of_unaffiliated_manifests"),
    ("Optional Affinity", "Flushing rewrites or merges affiliated delete manifests.", f"{_LAYOUT}::test_delete_manifests_of_one_data_manifest_are_merged_later"),
    ("Optional Affinity", "Compacting a leaf affiliates its delete manifests anew.", f"{_LAYOUT}::test_compaction_re_affiliates"),
    ("Optional Affinity", "Only delete manifests of data manifests that are read are opened.", "tests/planning/delete_index/test_affinity.py::test_a_filter_that_leaves_one_leaf_opens_two_manifests"),
    ("How does planning work?", "Data manifests and their affiliated delete manifests are read in one pass.", "tests/planning/delete_index/test_affinity.py::test_all_of_them_are_read_in_one_pass"),
    ("How does planning work?", "Delete manifests are pruned by statistics against the data that is read.", "tests/planning/delete_index/test_delete_pruning.py::test_pruning_changes_no_assignment"),
    ("How does planning work?", "A wholly removed leaf is not read.", "tests/commits/test_cost.py::test_a_leaf_that_is_removed_wholly_is_not_planned"),
    ("Metadata Tree Maintenance", "The root is flushed above thresholds for data files and for DVs.", f"{_LAYOUT}::test_flushing_data_files"),
    ("V4 content entry structure", "Every field has the id and type of the table.", f"{_MANIFESTS}/test_write_oracles.py::test_pyarrow_reads_v4_by_field_id"),
    ("V4 content entry structure", "All types of content in a root are read.", f"{_MANIFESTS}/test_v4_proposal.py::test_all_types_in_a_root"),
    ("V4 content entry structure", "The ids of the second table are read, too.", f"{_MANIFESTS}/test_v4_proposal.py::test_all_types_in_a_root"),
    ("V4 Manifest Key Value Metadata", "No schema and no spec are written.", f"{_MANIFESTS}/test_v4_proposal.py::test_the_metadata_of_v4"),
    ("V4 Manifest Key Value Metadata", "A saved table keeps its key-value metadata, codec and encodings.", "tests/commits/saving/test_save_dress.py::test_files_keep_the_dress_of_their_writer"),
    ("Leaf Manifest DVs", "Blobs of manifest DVs in a saved table reference its manifests.", "tests/commits/saving/test_save_dress.py::test_puffins_of_manifests_name_the_saved_manifests"),
    ("version_info", "Sequence numbers and ids are inherited.", f"{_MANIFESTS}/test_v4_proposal.py::test_inheritance_and_row_ids"),
    ("Goals: Aggregate Metrics", "A manifest's statistics cover those of its entries.", f"{_MANIFESTS}/test_write_aggregate.py::test_statistics_cover"),
    ("Partition tuple, (a)", "A partition value is the lower bound of a derived column.", f"{_MANIFESTS}/test_v4_proposal.py::test_tuples_are_rebuilt_and_united"),
    ("Partition tuple, (a)", "Identity values are not truncated.", f"{_MANIFESTS}/test_write_oracles.py::test_a_partition_value_wins_over_a_truncated_bound"),
    ("Partition tuple, (b)", "Files have `partition_<id>_<name>` in the source column's struct, manifests its bounds.", f"{_MANIFESTS}/test_v4_layout_b.py::test_files_and_manifests_have_the_fields_of_the_document"),
    ("Partition tuple, (b)", "One column may have several transforms.", f"{_MANIFESTS}/test_v4_layout_b.py::test_the_sample_with_two_transforms_of_one_column"),
    ("Partition tuple, (b)", "Lengths are of variable-length types only.", f"{_MANIFESTS}/test_v4_lengths.py::test_lengths_are_of_types_of_variable_length_only"),
    ("Global field ID space", "Expressions share the id space of columns.", "tests/commits/metadata_updates/test_document_upgrade.py::test_expressions_share_the_columns_id_space"),
    ("Global field ID space", "The document's example is read.", "tests/commits/metadata_updates/test_document_upgrade.py::test_the_proposal_s_own_spelling_reads_the_same"),
    ("Global field ID space", "`bucket16(a, b)`: a transform of several columns.", "tests/commits/metadata_updates/test_several_columns.py::test_a_table_partitioned_by_two_columns"),
    ("Global field ID space", "Virtual columns such as `lower(str)` have statistics.", ""),
    ("Equality deletes", "An equality delete's partition is rebuilt from its statistics.", f"{_MANIFESTS}/test_v4_proposal.py::test_tuples_are_rebuilt_and_united"),
    ("V4 Upgrade Path", "The first commit lists every old manifest in the root.", "tests/commits/layouts/test_layout_root_corpus.py::test_upgraded_tables"),
    ("V4 Upgrade Path", "A manifest DV may apply to a manifest of v3.", f"{_MANIFESTS}/test_v4_manifest_dv.py::test_on_a_v3_shaped_leaf"),
    ("(tmp) change detection", "Scenario 1, option 1, as the document reads it.", "tests/commits/experiments/test_scenarios.py::test_option_1_is_right_as_the_document_reads_it"),
    ("(tmp) change detection", "Scenario 1, option 2.", "tests/commits/experiments/test_scenarios.py::test_the_rest_deleted_by_a_vector_of_the_change_is_found_with_a_doubt"),
    ("(tmp) change detection", "Scenario 2.", "tests/commits/experiments/test_scenarios.py::test_a_rewritten_manifest_that_is_added_looks_like_an_append"),
    ("(tmp) change detection", "Scenario 3.", "tests/commits/experiments/test_scenarios.py::test_a_rewrite_with_changes_is_misread_by_the_root"),
    ("Examples", "Every figure of the document is drawn from a real tree.", "tests/test_figures.py::test_a_figure_shows_what_the_proposal_says"),
    ("Appendix", "The charts of bit vector sizes.", ""),
    ("Discarded Alternatives", "An experiment on buffering in metadata.json.", ""),
    ("Why limit tree depth to 2?", "An experiment on deeper trees.", ""),
)  # fmt: skip

_INTRODUCTION = """\
# The V4 proposal, sentence by sentence

<!-- Written by `make v4-page` (scripts/v4_page.py): change the script, or the registries that it reads. -->

iceexplore follows the proposal "Iceberg Single File Commits" for format version 4. This page lists the rules that it
checks, with the document's own words; further statements, with the test of each; and what the document leaves open or
contradicts, with what is written here. What the open questions cost, v3 beside V4, is measured in the
[evidence](../benchmarks/results/evidence.md), with a command for each answer.

```python
import iceexplore as ix

t = ix.sample("trips").simulate(format_version=4)
t.append(files=3, rows=100)
t.rules()                  # every rule, kept or broken, with its sentence
t.rules().ok               # True
t.rules().to_pandas()
```
"""


def rule_tests() -> dict[str, str]:
    """Return the test of each checked rule, by the rule's id."""
    out = dict(_BY_HAND)
    for edits, name in (
        (ROOT_EDITS, "test_a_root_that_breaks_a_rule"),
        (LEAF_EDITS, "test_a_leaf_that_breaks_a_rule"),
        (FILE_EDITS, "test_keys_that_a_manifest_lacks"),
    ):
        for rule in edits:
            out.setdefault(rule.strip(), f"{_RULES}::{name}")
    for rule in EDITS:
        out.setdefault(rule.strip(), f"{_DRAFT_RULES}::test_a_draft_root_that_breaks_a_rule")
    return out


def _rule_row(rule: Rule, tests: dict[str, str]) -> str:
    quote = f"“{rule.quote}” ({rule.source})" if rule.quote else rule.source
    return f"| `{rule.id}` | {_cell(rule.text)} | {_cell(quote)} | {_test(tests[rule.id])} |"


def page() -> str:
    """Return the page."""
    tests = rule_tests()
    checked = [r for r in RULES.values() if r.is_checked and r.only != "manifest list"]
    rules = [r for r in checked if not r.draft_only]
    lines = [_INTRODUCTION, "## Rules", "", f"{len(rules)} rules are checked in every tree.", ""]
    lines += ["| rule | what must hold | in the document | test |", "|---|---|---|---|"]
    lines += [_rule_row(rule, tests) for rule in rules]
    without = sum(not test for _, _, test in STATEMENTS)
    lines += [
        "",
        "## Further statements",
        "",
        f"{len(STATEMENTS)} statements that are no rules, {without} of them without a test. The list is not complete: an "
        "audit of the document counted about 150 statements, many of which are several of these.",
        "",
        "| section | statement | test |",
        "|---|---|---|",
    ]
    lines += [f"| {_cell(section)} | {_cell(text)} | {_test(test)} |" for section, text, test in STATEMENTS]
    own = [r for r in checked if r.draft_only]
    measured = _MEASURED.read_text(encoding="utf-8").partition("\n\n|")[2]
    lines += [
        "",
        _DRAFT.format(
            count=len(own),
            shared=sum(r.draft for r in rules),
            rules="\n".join(_rule_row(r, tests) for r in own),
            of_doctor="\n".join(_rule_row(r, tests) for r in RULES.values() if r.scope == "doctor"),
            measured="|" + measured.rstrip(),
        ).rstrip(),
    ]
    lines += ["", "## What the proposal leaves open or contradicts, and what is written here", ""]
    for point in OPEN_POINTS.values():
        lines += [f"### {point.title}", "", f'<a id="{point.id}"></a>', ""]
        lines += [f"> {quote}\n" for quote in point.says]
        lines.append(f"Written: {point.written}" + (f" Also read: {point.read}" if point.read else ""))
        if point.rules:
            lines.append("Rules: " + ", ".join(f"`{rule}`" for rule in point.rules) + ".")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _test(name: str) -> str:
    if not name:
        return "none yet"
    file, _, test = name.partition("::")
    return f"[{test}](../{file})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
