"""The commands that commit: ``simulate``, without writing to the table, and ``lab``, in a table that it created."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import iceexplore as ix
from iceexplore.cli._options import json_option, open_table, pairs, state_option, table_options
from iceexplore.cli._output import echo, echo_json, write_file
from iceexplore.cli._steps import Made, StepsCommand, make_steps, read_rows, step_options

if TYPE_CHECKING:
    from iceexplore.graph import Diff
    from iceexplore.table import Table

__all__ = ["lab", "simulate"]

_VERSION = click.IntRange(1, 4)
_STATUS = "Exit status: 0 done, 2 a commit was refused, the table could not be read, or the command line is invalid."
_IN_ORDER = "Commits are made in the order in which their options are given."


def _check_layout(format_version: int, layout: Mapping[str, Any]) -> None:
    """Refuse names that are not layout options: they would be passed on as arguments of a different kind."""
    from iceexplore.commits import LayoutOptions

    LayoutOptions.of(format_version, **layout)


def _layout(ctx: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, object]:
    """Return layout options by name; values are parsed as Python literals where possible, else kept as text."""

    def value_of(text: str) -> object:
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return text

    return {name: value_of(text) for name, text in pairs(ctx, option, values).items()}


_layout_option = click.option(
    "--layout", multiple=True, metavar="NAME=VALUE", callback=_layout,
    help="A layout option, as ix.commits.option_docs(4) lists them. Repeatable.",
)  # fmt: skip


@click.command(cls=StepsCommand, epilog=f"{_IN_ORDER} {_STATUS}")
@table_options
@state_option
@click.option("--format-version", type=_VERSION, help="Upgrade the table with the first commit.")
@step_options("simulation")
@click.option("--rows", type=click.IntRange(min=0), default=100_000, show_default=True,
              help="For --append: the number of rows in each synthetic file.")  # fmt: skip
@click.option("--seed", type=int, help="Make ids, names and synthetic files reproducible.")
@_layout_option
@click.option("--save", metavar="FOLDER", help="Write the simulated table and its data into this new folder.")
@click.option("--html", metavar="FILE", help="Also write the result as an HTML page.")
@json_option
def simulate(
    source: str,
    at: str | None,
    format_version: int | None,
    seed: int | None,
    layout: dict[str, Any],
    save: str | None,
    html: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Try commits on a table, and see what they would write; the table itself is never written."""
    table = open_table(source, how, at)
    _check_layout(format_version or table.format_version, layout)
    simulation = table.simulate(format_version, seed=seed, **layout)
    try:
        made = list(make_steps(simulation, "simulation", how))
        _report("simulate", table, simulation, made, save, html, as_json)
    finally:
        simulation.close()


@click.command(cls=StepsCommand, epilog=f"{_IN_ORDER} {_STATUS}")
@click.argument("folder")
@click.option("--sample", metavar="NAME", help="Create it with the columns and rows of a sample, such as trips.")
@click.option("--schema", metavar="COLUMNS", help="Create it with these columns and random rows: 'id long, day date'.")
@click.option("--from", "rows_of", metavar="FILE", help="Create it with the columns and rows of a file.")
@click.option("--partition-by", multiple=True, metavar="FIELD", help="A partition field: 'day(ts)'. Repeatable.")
@click.option("--sort-by", multiple=True, metavar="FIELD", help="A field of the sort order: 'ts desc'. Repeatable.")
@click.option(
    "--format-version", type=_VERSION, default=2, show_default=True, help="The format version, if a table is created."
)
@click.option("--properties", multiple=True, metavar="NAME=VALUE", callback=pairs,
              help="A table property, if a table is created. Repeatable.")  # fmt: skip
@_layout_option
@click.option("--commits", type=click.IntRange(min=0), default=5, show_default=True,
              help="If a table is created: the number of appends that write its rows.")  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1, max=10_000_000), default=1000, show_default=True,
              help="For --schema: the number of random rows in each append.")  # fmt: skip
@click.option("--seed", type=int, help="Make random rows reproducible.")
@step_options("lab")
@click.option("--html", metavar="FILE", help="Also write the result as an HTML page.")
@json_option
def lab(
    folder: str,
    sample: str | None,
    schema: str | None,
    rows_of: str | None,
    html: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Create a real table in FOLDER to try things out on, or commit to a table that lab has created.

    Without --sample, --schema or --from, lab commits to the table in FOLDER; if FOLDER is empty or missing, it
    creates a table like the sample trips.
    Tables that iceexplore has not created are never written.
    """
    given = [value for value in (sample, schema, rows_of) if value is not None]
    if len(given) > 1:
        raise click.UsageError("give only one of --sample, --schema and --from")
    if not given and os.path.isdir(folder) and os.listdir(folder):
        opened = ix.lab(folder)
        before: Table | None = opened.table
    else:
        opened, before = _created(folder, sample, schema, rows_of, how), None
    made = list(make_steps(opened, "lab", how))
    _report("lab", before, opened, made, None, html, as_json)


def _created(
    folder: str, sample: str | None, schema: str | None, rows_of: str | None, how: Mapping[str, Any]
) -> ix.Lab:
    commits, version = how["commits"], how["format_version"]
    _check_layout(version, how["layout"])
    partition_by: Sequence[str] = how["partition_by"]
    rows: Any
    columns: Any
    if schema is not None:
        columns = _columns(schema)
        made = ix.empty(columns, partition_by=partition_by, format_version=version, seed=how["seed"])
        try:
            # A file per commit, so that each append touches few partitions, as real appends do.
            if commits:
                made.append(commits, rows=how["rows"], materialize=True)
            rows = made.to_arrow()
        finally:
            made.close()
    elif rows_of is not None:
        rows = columns = read_rows(rows_of)
    else:
        source = ix.sample(sample or "trips")
        columns, rows = source.schema, source.to_arrow()
        if not partition_by:
            partition_by = _partition_texts(source)
    created = ix.create(
        folder,
        columns,
        partition_by=partition_by,
        sort_by=how["sort_by"],
        format_version=version,
        properties=how["properties"],
        **how["layout"],
    )
    for number in range(commits):
        begin, end = (len(rows) * n // commits for n in (number, number + 1))
        if end > begin:
            created.append(rows.slice(begin, end - begin))
    return created


def _partition_texts(table: Table) -> list[str]:
    """Return a table's partition fields in the notation that `iceexplore.create` accepts."""
    from iceexplore.metadata import parse_transform

    names = {field.field_id: field.name for field in table.schema.fields}
    found = []
    for field in () if table.spec is None else table.spec.fields:
        transform = parse_transform(field.transform)
        name, _, width = str(transform).partition("[")
        column = names[field.source_id]
        width = f"{width.rstrip(']')}, " if width else ""
        if not transform.is_void:
            found.append(column if transform.is_identity else f"{name}({width}{column})")
    return found


def _columns(text: str) -> dict[str, str]:
    """Parse ``id long, point struct<x: double, y: double>``; return the types by column name."""
    found: dict[str, str] = {}
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    for part in parts:
        name, _, kind = part.strip().partition(" ")
        if not name or not kind.strip():
            raise ix.OptionError(f"--schema {part.strip()!r}: give a name and a type, such as 'id long, day date'")
        if name in found:
            raise ix.OptionError(f"--schema: column {name!r} is given twice")
        found[name] = kind.strip()
    return found


# The report -----------------------------------------------------------------------------------------------------------


def _report(
    command: str,
    before: Table | None,
    after: ix.Simulation | ix.Lab,
    made: list[Made],
    save: str | None,
    html: str | None,
    as_json: bool,
) -> None:
    """Print what commits did; ``before`` is None if the table is new."""
    totals = [None if one is None else _totals(one) for one in (before, after)]
    changes = None if before is None else after.diff(before, after.table)
    saved = None if save is None else after.save(save)
    if html is not None:
        write_file(html, _page(command, after, made, totals, changes))
    if as_json:
        more = {"saved": None if saved is None else saved.metadata_location} if command == "simulate" else {}
        echo_json(
            command,
            table=after.name,
            metadata_location=after.metadata_location,
            steps=[one.to_dict() for one in made],
            before=totals[0],
            after=totals[1],
            changes=None if changes is None else changes.counts_arrow.to_pylist(),
            **more,
        )
        return
    echo("\n".join(_text(command, after, made, totals, changes)))
    if saved is not None:
        echo(f"\nSaved: {saved!r}")


def _totals(table: Table) -> dict[str, int]:
    """Return a table's totals (snapshots, files, rows, bytes), and the metadata that planning a full scan reads."""
    from iceexplore.commits import plan_files

    plan = table.plan().totals
    cold = plan_files(table.state)
    return {
        "format_version": table.format_version,
        "snapshots": len(table.snapshots),
        "files": plan["files"] or 0,
        "rows": plan["rows"] or 0,
        "bytes": plan["bytes"] or 0,
        "deletes": plan["deletes"] or 0,
        "delete_bytes": plan["delete_bytes"] or 0,
        "metadata_files": len(cold),
        "metadata_bytes": sum(one.size for one in cold),
    }


_TOTALS = {
    "format_version": "format version",
    "snapshots": "snapshots",
    "files": "data files",
    "rows": "rows before deletes",
    "bytes": "bytes of data files",
    "deletes": "deletes to apply",
    "delete_bytes": "bytes of deletes",
    "metadata_files": "metadata files that planning reads",
    "metadata_bytes": "bytes of metadata that planning reads",
}


def _compared(totals: list[dict[str, int] | None]) -> list[tuple[str, str, str]]:
    before, after = totals
    return [
        (text, "" if before is None else f"{before[name]:,}", f"{(after or {})[name]:,}")
        for name, text in _TOTALS.items()
    ]


def _written(one: Made) -> str:
    from iceexplore.graph import human_bytes

    parts = [f"{files:,} {kind} ({human_bytes(size)})" for kind, (files, size) in one.written.items()]
    return ", ".join(parts) or "nothing"


def _title(command: str, table: Table, made: list[Made]) -> str:
    what = "Simulation of" if command == "simulate" else "Lab"
    return f"{what} {table.name}: {len(made):,} commit{'' if len(made) == 1 else 's'}"


def _text(
    command: str, table: Table, made: list[Made], totals: list[dict[str, int] | None], changes: Diff | None
) -> list[str]:
    lines = [_title(command, table, made), table.metadata_location]
    for number, one in enumerate(made, 1):
        lines += ["", f"{number}. {one.call}"]
        if one.snapshot_id is not None:
            lines.append(f"   snapshot  {one.snapshot_id}, {one.operation}")
        lines.append(f"   written   {_written(one)}")
        if one.note:
            lines.append(f"   note      {one.note}")
        if one.summary:
            lines.append("   summary")
            lines += [f"     {key:<29} {value}" for key, value in one.summary.items()]
    rows = [("", "before", "after"), *_compared(totals)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    if totals[0] is None:
        lines += ["", *(f"{row[0]:<{widths[0]}}  {row[2]:>{widths[2]}}".rstrip() for row in rows[1:])]
    else:
        lines += ["", *(f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows)]
    return [*lines, "", *repr(changes).splitlines()] if changes is not None else lines


def _page(
    command: str, table: Table, made: list[Made], totals: list[dict[str, int] | None], changes: Diff | None
) -> str:
    from iceexplore.render import Html, details, escape, html_lines, html_page, html_table

    title = _title(command, table, made)
    out = [Html(f"<h1>{escape.html(title)}</h1><p>{escape.html(table.metadata_location)}</p>")]
    for number, one in enumerate(made, 1):
        facts = [("snapshot", str(one.snapshot_id or "none")), ("operation", one.operation or "none")]
        facts += [("written", _written(one)), *([("note", one.note)] if one.note else []), *one.summary.items()]
        out.append(
            details(f"{number}. {escape.shorten(one.call, 300)}", html_table(("", ""), facts), opened=number <= 3)
        )
    out.append(html_table(("", "before", "after"), _compared(totals), "Before and after"))
    if changes is not None:
        out.append(Html(changes._repr_html_()))
    out.append(details("Tree", html_lines(table.tree().to_text())))
    return html_page(title, f'<div style="font-family:system-ui,sans-serif;font-size:13px">{"".join(out)}</div>')
