"""Write docs/v4.md: the rules of V4 with their sentences and tests, and what the proposal leaves open.

The rules, their quotations and the open points come from the registries in ``iceexplore.errors``. For all that the
proposal says, see ``scripts/v4_conformance.py``.

Run from the root of the repository: ``python -m scripts.v4_page``.
"""

from __future__ import annotations

from pathlib import Path

from iceexplore.errors import OPEN_POINTS, RULES, Rule
from tests.commits.rules.test_check_rules import FILE_EDITS, LEAF_EDITS, ROOT_EDITS
from tests.commits.rules.test_draft_rules import EDITS

__all__ = ["PAGE", "page", "rule_tests"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "v4.md"
_RULES = "tests/commits/rules/test_check_rules.py"
_DRAFT_RULES = "tests/commits/rules/test_draft_rules.py"
_COLUMN_FILES = "tests/reading/test_column_files.py"
#: Measured by benchmarks/draft.py.
_MEASURED = PAGE.parent.parent / "benchmarks" / "results" / "draft.md"

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

Of the rules that the draft shares with the proposal, these have a sentence in it, in the spec on which it builds, or in
Iceberg's implementation of it; `t.rules()` of a draft quotes them:

| rule | in the draft |
|---|---|
{quoted}

The same history, written in each form (`benchmarks/draft.py`: 8 appends of 20 files, each followed by deletion vectors
for 10 files; "near" flushes the root at 40 files). Where all files are in the root, the draft is a little smaller: it
has no entries of vectors, and no derived columns. Where they are in leaves, a changed vector takes its data file's entry
out of the leaf and into the root or another leaf, with its statistics.

{measured}
"""

_INTRODUCTION = """\
# The V4 proposal, sentence by sentence

<!-- Written by `make v4-page` (scripts/v4_page.py): change the script, or the registries that it reads. -->

iceexplore follows the proposal "Iceberg Single File Commits" for format version 4. This page lists the rules that it
checks, with the document's own words, and what the document leaves open or contradicts, with what is written here.
[Points of the V4 proposal](v4-conformance.md) has all that the document says, with the module and the test of each
point. What the open questions cost, v3 beside V4, is measured in the [evidence](../benchmarks/results/evidence.md), with
a command for each answer.

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
    own = [r for r in checked if r.draft_only]
    quoted = [r for r in rules if r.draft and r.draft_quote]
    measured = _MEASURED.read_text(encoding="utf-8").partition("\n\n|")[2]
    lines += [
        "",
        _DRAFT.format(
            count=len(own),
            shared=sum(r.draft for r in rules),
            rules="\n".join(_rule_row(r, tests) for r in own),
            of_doctor="\n".join(_rule_row(r, tests) for r in RULES.values() if r.scope == "doctor"),
            quoted="\n".join(f"| `{r.id}` | {_cell(f'“{r.draft_quote}” ({r.draft_source})')} |" for r in quoted),
            measured="|" + measured.rstrip(),
        ).rstrip(),
    ]
    lines += ["", "## What the proposal leaves open or contradicts, and what is written here", ""]
    for point in OPEN_POINTS.values():
        lines += [f"### {point.title}", "", f'<a id="{point.id}"></a>', ""]
        lines += [f"> {quote}\n" for quote in point.says]
        lines.append(point.answer)
        lines += [f"The draft: “{quote}” ({source})." for quote, source in point.draft]
        if point.rules:
            lines.append("Rules: " + ", ".join(f"`{rule}`" for rule in point.rules) + ".")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _test(name: str) -> str:
    file, _, test = name.partition("::")
    return f"[{test}](../{file})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
