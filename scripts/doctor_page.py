"""Write docs/doctor.md: what the doctor finds, made from the registries of modes and codes and from its tests.

A mode counts as found if a table that is damaged in this way is a test (``tests/doctor/damages.py``,
``tests/doctor/v4_damages.py``): its code, severity and level are then those that the test requires.

Run from the root of the repository: ``python -m scripts.doctor_page``.
"""

from __future__ import annotations

from pathlib import Path

from iceexplore.doctor import MODES, UNTELLABLE
from iceexplore.errors import PROBLEM_KINDS
from tests.doctor import file_damages, manifest_damages  # noqa: F401  (they register their damages)
from tests.doctor.damages import DAMAGES, Damage
from tests.doctor.repair.repairs import ROWS, UNREPAIRABLE, V4_ROWS
from tests.doctor.v4_damages import V4_DAMAGES

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "doctor.md"

_INTRODUCTION = """\
# The doctor

<!-- Written by `make doctor-page` (scripts/doctor_page.py): change the script, or the registries that it reads. -->

`t.check()` looks for everything that is known to break Iceberg tables, and reports what is broken, since which commit,
what it means for readers, and what to do. It needs no catalog, no Java and no Spark, and writes nothing.

```python
import iceexplore as ix

t = ix.sample("trips")
report = t.check()             # of the snapshot that is shown; snapshots="all" for all
report                         # in a notebook: the findings, worst first
report.ok                      # True: nothing is worse than untidy
```

## Levels

- `"metadata"`, the default, reads the metadata file and the folder around it, manifest lists and manifests, and checks
  that the files exist. It finds damage to metadata, and contradictions between files of metadata.
- `"files"` also opens every data and delete file, as `verify` does: it finds truncated files, and sizes, counts and
  bounds that disagree with the file.
- `"rows"` also reads all rows: it finds values outside of their bounds or partition, wrong row ids, and deletes of no
  row.

`t.check("files", spark=spark)` opens the files on a cluster. `only=` and `skip=` choose codes, or the groups
`"health"` and `"damage"`; `baseline=` takes an earlier report, and leaves out what it has.

## How to read a report

A report is a list of findings, the worst first. One fault is one finding: what follows from it is in `follows`.

```python
rows = report.to_pandas()      # a row per finding, and per consequence
report.by_severity()           # how many of each severity
report.timeline()              # the snapshots, and which faults begin at which
text = report.to_json()        # for other programs
page = report.to_html(redact=["values"])   # one offline file, always without secrets
```

| severity | meaning |
|---|---|
| `fail` | readers fail, or refuse the table |
| `wrong` | readers return wrong rows or figures, perhaps without an error |
| `slow` | readers are slower than they need be |
| `untidy` | nothing but order is lost, or only some engines mind |

A finding has a `code`, which never changes its meaning, and `modes`, the numbers of the table below. `where` is a file,
often with `#entry 3` (a row of a manifest) or `#snapshot 17` (a part of the metadata file) after it; `count` is the
number of such places, and `places` has the first ten. `found` and `expected` are the evidence, `field` the field's id
and name in the spec. `means` is what readers do with such a table, `advice` what to do, and `reported` lists public
issues in which people met the fault and mended it.

Affected are `snapshots` and `refs`, `rows`, and `partitions`, which has the first ten of `partition_count`. Rows and
partitions are those of all places, not only of the listed ones, in the newest affected snapshot that was checked:

- Rows are record counts in the metadata: of data files, their rows; of delete files and deletion vectors, the rows that
  they delete, so 0 if they apply to nothing. A file counts once, however many entries it has.
- A manifest counts as its live entries. One that cannot be read whole counts as its manifest list states; its
  partitions are unknown.
- `rows` and `partition_count` are `None` where they are unknown: a lost manifest of deletes, equality deletes (the
  number of rows that have their values), counts that are missing or impossible, and partition values that cannot be
  read. Faults of the metadata file or of a whole manifest list have neither.
- Files without a partition are `unpartitioned` beside others; if there are no others, `partition_count` is 0.

`since` is the commit that introduced the fault, also if only the current snapshot is checked: the one that added the
manifest, the first whose manifest list has the row, or the first file of the metadata log that has the fault. Only a
few lists or metadata files are read for it (bisection). It is `None` for missing files, because nothing records when
they were deleted. For faults of a whole list, such as totals, it is the oldest checked snapshot that has the fault.

`report.exit_code` is 0 if `report.ok`, and 1 otherwise, for scripts and CI: `sys.exit(t.check().exit_code)`. What
prevents the check, such as a table that cannot be opened, is an exception.

## Health

Nothing is damaged, but scans are slower, or the table is larger, than need be. These findings are about the snapshot
that is shown, or about the metadata file, and come after damage of the same severity. Each names its thresholds: table
properties if they are set, else defaults of Iceberg, and defaults of the doctor where Iceberg has none. The advice
names the plan of `t.maintenance()` that shows what the engine's procedure would do.

HEALTH

A finding about files is `slow` if a scan could do with one read task less (`read.split.target-size`, 128 MiB by
default), where opening a file counts `read.split.open-file-cost` (4 MiB); below that it is `untidy`. So a table of
a few tiny files is never slow.

- Files are small, and rows deleted, only where `rewrite_data_files` would rewrite them by its own rules. If a manifest
  is damaged, these checks are in `report.unknown`. Deleted rows of less than `read.split.open-file-cost` in all files
  are not reported.
- A file is "not marked as sorted" by its `sort_order_id`: many engines sort files without recording it.
- Overlap is measured for the first column of the table's sort order, if its transform preserves the order.
- Columns in lists and maps never have bounds, and are not reported.
- Numbers of distinct values (NDV) are compared with the theta sketches of statistics files from level `"files"` on
  (`ndv-untrue`), but not with the data.
- Unused partition specs are not looked for in tables with more than 200 snapshots (20 in V4) and more than one spec,
  because every manifest list would have to be read.

## Mending

`report.repair()` plans how to mend what was found, and applies the plan to a simulation; the table is never written.

```python
plan = report.repair()         # the steps, in words and in SQL
plan.table.count()             # a simulation of the repaired table
plan.unrepaired                # what no step mends, with the reasons
```

`plan.save("fixed")` writes the repaired table and its data files into a new folder, which opens anywhere. Each step
says which rows come back or are lost, and whether its values follow from other evidence (`certain`) or are a guess. It
mends all places of a fault, however many; the report lists the first ten. What one step brings to light is mended as
well, in up to five rounds. A step after which its findings remain as they were is not repeated: it is shown as one
without effect (`effective`), and the findings are in `plan.unrepaired`. The notebook
[08_six_patients](../notebooks/08_six_patients.ipynb) finds, dates and mends six broken tables, with exercises.

- Only what the report found is mended: `t.check(snapshots="all").repair()` mends older snapshots, too. Other snapshots
  that list a repaired manifest get the repaired one.
- If the newest metadata file cannot be read, the plan goes back to the last one that can. Later commits are lost.
- Data files are never rewritten, and entries of lost files go. Position delete files that name data files by old paths
  are written again, if each old path can mean one live file only.
- The files of a lost or truncated manifest are listed again where they can be found; see below (not in V4 trees).
- V4: a damaged tree is written again from its parent's tree and the files that it lists, under new names, so that it
  records exactly what its commit changed. Lost values are taken from the parent's entry of the same file, or from the
  file itself; if neither has them, the finding stays, with the reason. Older snapshots that share the fault, and all
  snapshots after a repaired one, are written again, too. Where the parent has expired, and in the V4 draft, a tree is
  edited in place: statuses are then not compared with the parent. What a manifest deletion vector removed is lost with
  it, unless the parent has it. The files of a lost manifest that a compaction wrote are taken from the manifests that
  it merged.
- Encrypted tables are refused.

### Lost manifests

The row of a lost manifest in the manifest list still states how many files and rows the manifest added and kept, their
partitions, and its sequence number. The plan looks for these files

1. in the manifests of other snapshots: those that a merge replaced, or later ones. A file that a commit removed since
   does not come back. This is `certain` if every file found must have been in the lost manifest;
2. in the data folder (`data` below the table's location, and `write.data.path`): data files with the table's columns,
   delete files and Puffin files that no readable manifest lists. Metrics and partition values come from their footers
   and folders. Files that were written after the commit are left out, if the times of other files can be trusted. This
   is always a guess, because a failed commit may have left a file with the same number of rows.

Files are taken only if the stated counts allow exactly one choice. Otherwise none is taken: the step names the
candidates, and how to register the right ones with Spark, PyIceberg or Java. What is not found is left out, and the
step says how many files and rows that are.

- Sequence numbers and row ids are those of the other manifests. Of files from the data folder, added ones get the
  sequence number of the lost manifest; files that it had only kept get its lowest one, and the step says so if equality
  deletes may then remove too much. Their row ids are known only if one file is missing, or if the files store them, as
  rewritten ones do; otherwise they are new.
- Deleted rows stay deleted only if their deletes are found, too. The step says if deletes are lost. Equality delete
  files are found in the data folder if their key-value metadata names the columns (`delete-type` and
  `delete-field-ids`, which Iceberg's Java writers add) and folders such as `k=a` name their partition; without these,
  they could as well be data files.
- Data files in ORC and Avro are found in the data folder if they have field ids, and if folders name their partition.
  Only their row counts are read, so that filters cannot skip them until they are rewritten.

`report.to_html(repair=True)` adds the steps to the page.

## Limits

- What could not be checked is in `report.unknown`, with the reason: no finding about it does not mean that it is sound.
- By default only the snapshot that is shown is checked. Damage to older ones is found with `snapshots="all"`.
- Two sides that contradict each other are a finding; often nothing shows which of them is wrong, and the text says so.
- In a remote store, more than 200 data files are not looked up one by one at level `"metadata"`.
- The rules of V4 trees are those of the proposal; of the draft, those that it shares and its own. Rules about
  what a commit changed need the parent snapshot: if that has expired, they are not checked.
- A rule that was broken on purpose (a simulation's `relaxed` layout) is reported like any other.

## What it finds

"""
#: Ways in which tables break so that they do not open, which `ix.check` reports (``tests/doctor/test_unopened.py``).
_OPENING = {5: ("`metadata-missing` (fail) by `ix.check`", "any")}
#: Codes of health that are slow whatever a scan would gain.
_ALWAYS_SLOW = ("manifests-fragmented", "metadata-large")
_SOURCES = """
Sources: a bare `#n` is an issue or pull request of apache/iceberg; others are named by their project. Without a source,
the mode breaks the Iceberg spec. "Found as" and "level" come from tests: for each, a sound table is damaged in this
way, and the doctor must report this code at the right place, with this severity, at this level, and no other fault.
"Mended" does, too: the saved copy of the repaired table must check clean and have the expected rows.
"""


def page() -> str:
    """Return the text of the page."""
    tested: dict[int, list[Damage]] = {number: [] for number in MODES}
    for damage in (*DAMAGES, *V4_DAMAGES):
        tested[damage.mode].append(damage)
    lines = ["| | what breaks | reported in | found as | level | mended |", "|---|---|---|---|---|---|"]
    for number, mode in MODES.items():
        found, level = _found(tested[number], number)
        lines.append(
            f"| {number} | {mode.text} | {mode.source} | {found} | {level} | {_mended(tested[number], number)} |"
        )
    count = sum(map(bool, tested.values())) + len(_OPENING)
    total = (
        f"Of {len(MODES)} ways in which tables break, {count} are found in tests with damaged tables. The others are "
        "mistakes of readers,\nwhich no table shows.\n"
    )
    introduction = _INTRODUCTION.replace("HEALTH\n", _health())
    return introduction + total + _SOURCES + "\n" + "\n".join(lines) + "\n"


def _health() -> str:
    """Return the table of health codes."""
    lines = ["| code | what is found | severity | what to do |", "|---|---|---|---|"]
    for code, kind in PROBLEM_KINDS.items():
        if kind.health and not code.startswith("view-"):  # those are in docs/views.md
            severities = "untidy" if kind.effect == "untidy" else "slow" if code in _ALWAYS_SLOW else "slow, untidy"
            lines.append(f"| `{code}` | {kind.title} | {severities} | {kind.remedy} |")
    return "\n".join(lines) + "\n"


def _found(damages: list[Damage], number: int) -> tuple[str, str]:
    """Return the codes by which a mode is found, and the levels at which it is; or why no check can find it."""
    if damages:
        codes = dict.fromkeys(f"`{d.code}` ({d.severity})" for d in damages)
        levels = [level for level in ("metadata", "files", "rows") if any(d.level == level for d in damages)]
        return ", ".join(codes), ", ".join(levels)
    return _OPENING[number] if number in _OPENING else (f"no check: {UNTELLABLE[number]}", "")


def _mended(damages: list[Damage], number: int) -> str:
    """Return whether repair plans mend a mode, with the reason where they do not."""
    if number in _OPENING:
        return "no: the catalog has to be pointed elsewhere; the finding has the call"
    out: dict[str, None] = {}
    for one in damages:
        reason = next((reason for reason, names in UNREPAIRABLE.items() if one.name in names), None)
        lossy = "yes, without what is lost" if one.name in {**ROWS, **V4_ROWS} else "yes"
        out[lossy if reason is None else f"no: {reason}"] = None
    if "yes" in out and "yes, without what is lost" in out:
        del out["yes"]
    return "; ".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
