"""The report on where PyIceberg's metadata tables and ours differ: one line per difference, with its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["reason", "report"]

#: Why, by metadata table, column and kind (regular expressions); found in PyIceberg's ``table/inspect.py``, in
#: Iceberg's Java and in the spec. A difference without a reason is printed as not yet explained.
_REASONS: tuple[tuple[str, str, str, str], ...] = (
    (
        "files|entries",
        r".*readable_metrics.*",
        "nested",
        "Java (`MetricsUtil.readableMetricsSchema`) has one struct per primitive column, named by its full path; "
        "PyIceberg one per top-level field, without the columns inside structs, lists and maps",
    ),
    (
        "files|entries",
        r"(data_file\.)?(content_offset|content_size_in_bytes|first_row_id|referenced_data_file)",
        "missing",
        "fields 142 to 145 of data_file (spec, v3 and, for 143, v2): PyIceberg reads but does not show them",
    ),
    (
        "entries",
        r"data_file\.spec_id",
        "missing",
        "PyIceberg fills it in, but its Arrow schema lacks it, so it is dropped",
    ),
    (
        "files|entries",
        r"partition",
        "extra",
        "Java leaves the column out of an unpartitioned table's; PyIceberg shows an empty struct",
    ),
    (
        "files|entries",
        r"(data_file\.)?partition\.\*",
        "values",
        "PyIceberg goes by the field's name in the file's spec; "
        'a field renamed in a later spec is null. By field id, as the spec has it ("Partition Evolution"), it is not. '
        "Its Avro reader also gives a `double` the precision of a `float`",
    ),
    (
        "partitions",
        "",
        "rows",
        "PyIceberg loses partition values, as above. Besides, where a row's snapshots are no longer in the metadata, "
        "Java has spec_id 0 and PyIceberg the files' own: there PyIceberg's says more, and we follow Java",
    ),
    (
        "entries",
        r"data_file\.(value|null_value|nan_value)_counts",
        "values",
        "null in the file (the counts are optional); PyIceberg makes it an empty map",
    ),
    (
        ".*manifests",
        "partition_summaries",
        "values",
        "a bound that is not there is the text `null` in Java "
        "(`ManifestsTable`: `Transform.toHumanString(null)`); PyIceberg has a real null, and takes the bound of an "
        "empty string (no bytes) for none",
    ),
    (
        "entries",
        r"TypeError.*NoneType.*not iterable",
        "raises",
        "`dict(entry.data_file.column_sizes)` without asking "
        "whether the optional field is there (Avro data files have no sizes)",
    ),
    (".*", r"ValueError.*does not have any.*", "raises", "a table without a snapshot has an empty table, not an error"),
    (
        ".*",
        r"ValueError: Could not find field with id.*",
        "raises",
        "a spec names a column that was dropped since: "
        'allowed for old specs (spec, "Partition Evolution"); PyIceberg looks for it in the current schema only',
    ),
    (
        ".*",
        r"ArrowNotImplementedError: extension.*",
        "raises",
        "uuid columns: Arrow cannot build PyIceberg's extension type from Python values",
    ),
    (
        ".*",
        "FileNotFoundError",
        "raises",
        "a file of the table is missing: PyIceberg raises; we show the rest, and a `Problem`",
    ),
    (
        ".*",
        r"ResolveError: added_\w+_count: required.*",
        "raises",
        'the counts of a v1 manifest list are optional (spec, "Manifest Lists"); they are null here',
    ),
    (
        ".*",
        r"TypeError: list indices must be integers.*",
        "raises",
        "a writer that wraps an array's items in another union; read by shape, it is a map like any other",
    ),
    (
        "all_manifests|refs|snapshots",
        r"OverflowError.*",
        "raises",
        "a snapshot id past 2⁶³, which is no `long`: we read it as Java's 64 bits would be, with a `Problem`",
    ),
    (
        "files",
        "ArrowInvalid: Must pass at least one table",
        "raises",
        "a table whose manifest list is empty has an empty table, not an error",
    ),
    (
        "files|entries",
        r"(data_file\.)?partition\.\*",
        "missing",
        "two specs have a field of one name: PyIceberg's struct has the name twice, so that neither can be read by it; "
        "we add the field id to the second",
    ),
    (
        "partitions",
        r"partition\.\*",
        "missing",
        "the same, and PyIceberg leaves out the fields of specs under which the snapshot has no file; Java's is the "
        "union over all specs (`Partitioning.partitionType`)",
    ),
    (".*", r".*", "type", "{types}"),
    (
        "snapshots",
        "manifest_list|operation",
        "values",
        "v1 may inline its manifests and a summary may be missing: null; PyIceberg writes the text `None`",
    ),
)

_KINDS = {
    "raises": "raises",
    "missing": "column missing",
    "extra": "column too many",
    "rows": "rows",
    "values": "values",
    "type": "type",
    "nested": "columns inside",
}
_TYPE_REASONS = (
    (
        r"timestamp\[us, tz=UTC\].*timestamp\[(ms|us)\]$",
        "a moment, not a wall-clock time: Spark's column is a `timestamp` in UTC",
    ),
    (r"int32.*int8", "Spark's is an int"),
    (
        r"int32 / int64",
        "a field dropped in v1 lives on as `void`; Java takes the type it had before (`Partitioning.partitionType`)",
    ),
)


def reason(group: str, column: str, kind: str, example: tuple[str, str, str]) -> str:
    """Why a difference is what it is; empty if nobody has looked yet."""
    for wanted, path, of_kind, text in _REASONS:
        if of_kind == kind and re.fullmatch(wanted, group) and re.fullmatch(path, column):
            if text != "{types}":
                return text
            pair = f"{example[1]} / {example[2]}"
            return next((t for pattern, t in _TYPE_REASONS if re.search(pattern, pair)), "")
    return ""


def report(
    found: Mapping[Any, Any],
    opened: Mapping[str, str],
    wild: Mapping[Any, Any],
    wild_opened: Mapping[str, str],
    skipped: Mapping[str, str],
    versions: str,
) -> str:
    """The report as Markdown."""
    total = sum(sum(f.judged.values()) for f in found.values())
    right: dict[str, int] = {}
    for item in found.values():
        for who, count in item.judged.items():
            right[who] = right.get(who, 0) + count
    named = {"ours": "ours", "PyIceberg": "PyIceberg's", "neither": "neither's", "–": "no answer from Spark"}
    lines = [
        "# Where PyIceberg's `inspect` and ours differ",
        "",
        f"Made by `python benchmarks/pyiceberg_differences.py`; PyIceberg {versions}. Values are compared, not how "
        'Arrow holds them: dictionaries and wide strings count as strings. "Spark" is Iceberg\'s own runtime on the '
        "same table, and decides who is right. `files` represents the six tables like it, `data_files` to "
        "`all_delete_files`.",
        "",
        f"## {len(opened)} tables that Spark wrote",
        "",
        f"{total} differing columns, over all tables. Spark's value is "
        + ", ".join(f"{named[who]} in {count}" for who, count in sorted(right.items(), key=lambda p: -p[1]))
        + ".",
        "",
        "| metadata table | column | what differs | tables | example: ours / PyIceberg's | Spark agrees with | why |",
        "|---|---|---|--:|---|---|---|",
    ]
    lines += [_line(key, item, judged=True) for key, item in sorted(found.items(), key=lambda p: p[0])]
    lines += ["", *_unopened(opened)]
    if wild_opened:
        new = {key: item for key, item in wild.items() if key not in found}
        lines += [
            "",
            f"## {len(wild_opened)} tables from elsewhere",
            "",
            "Tables of many writers, some damaged on purpose. PyIceberg was helped to find files that have moved. No "
            "Spark here: the reasons say who is right.",
            "",
            *_unopened(wild_opened),
            "",
            f"{len(wild) - len(new)} of the {len(wild)} kinds of difference are those above. The others:",
            "",
            "| metadata table | column | what differs | tables | example: ours / PyIceberg's | why |",
            "|---|---|---|--:|---|---|",
        ]
        lines += [_line(key, item, judged=False) for key, item in sorted(new.items(), key=lambda p: p[0])]
    if skipped:
        lines += ["", f"{len(skipped)} folders of the corpus are no table that we open; our errors:", ""]
        lines += [f"- {_cell(text, 160)}" for text in sorted(set(skipped.values()))]
    return "\n".join(lines) + "\n"


def _unopened(opened: Mapping[str, str]) -> list[str]:
    failed = {table: text for table, text in opened.items() if text}
    if not failed:
        return ["PyIceberg opens all of them."]
    lines = [f"PyIceberg cannot open {len(failed)} of them:", ""]
    by_text: dict[str, list[str]] = {}
    for table, text in failed.items():
        by_text.setdefault(text, []).append(table)
    for text, tables in sorted(by_text.items(), key=lambda p: -len(p[1])):
        named = ", ".join(sorted(tables)[:3]) + ("" if len(tables) <= 3 else f" and {len(tables) - 3} more")
        lines.append(f"- {_cell(named, 120)}: {_cell(text, 140)}")
    return lines


def _line(key: Any, item: Any, *, judged: bool) -> str:
    group, column, kind = key
    where = group if len(item.where) == 1 and group != "files" else f"{group} ({len(item.where)})"
    where = group if group != "files" else where
    _, ours, theirs = item.example
    example = f"{_cell(ours)} / {_cell(theirs)}" if ours or (theirs and kind != "raises") else ""
    who = ", ".join(sorted(item.judged)) if judged else ""
    cells = [where, _cell(column, 120), _KINDS[kind], str(len(item.tables)), example]
    cells += [who] if judged else []
    return "| " + " | ".join([*cells, reason(group, column, kind, item.example) or "**not yet explained**"]) + " |"


def _cell(text: str, width: int = 70) -> str:
    """Text for a Markdown table; it comes from files, so it is code and holds no pipe."""
    short = text if len(text) <= width else text[: width - 1] + "…"
    safe = "".join(c if c.isprintable() else "·" for c in short).replace("`", "'").replace("|", "¦")
    return f"`{safe}`" if safe else ""
