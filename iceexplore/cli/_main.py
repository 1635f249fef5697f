"""The commands of ``iceexplore``, named as in Python.

Large packages are imported inside the functions, so that ``--help`` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

import iceexplore as ix
from iceexplore.cli._commits import lab, simulate
from iceexplore.cli._options import json_option, open_table, opening, pairs, reference, state_option, table_options
from iceexplore.cli._output import Commands, coloured, echo, echo_json, echo_rows
from iceexplore.cli._reports import leave, read_baseline, write_report
from iceexplore.cli._views import view

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["main"]

F = TypeVar("F", bound=Callable[..., Any])
_LEVELS = click.Choice(["metadata", "files", "rows"])
_SECONDS = click.FloatRange(min=0, min_open=True)
_EPILOG = (
    "Exit status: 0 clean, 1 findings or a failed assertion, 2 the table could not be read, or the command line is"
    " invalid."
)


@click.group(cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ix.__version__, prog_name="iceexplore")
def main() -> None:
    """Look into Apache Iceberg tables and find what is broken in them.

    Nothing is ever written to a table, except by lab, to tables that it has created.

    SOURCE is a table folder, a metadata file, a URI of either, a zip, or, with --catalog, a table's name.
    """


main.add_command(simulate)
main.add_command(lab)
main.add_command(view)


# Damage ---------------------------------------------------------------------------------------------------------------


@main.command(epilog=_EPILOG)
@table_options
@click.option("--level", type=_LEVELS, default="metadata", show_default=True, help="The depth of the check.")
@click.option("--snapshots", multiple=True, metavar="STATE",
              help="current (the default), all, or a snapshot id, branch or tag. Repeatable.")  # fmt: skip
@click.option(
    "--only",
    multiple=True,
    metavar="CODE",
    help="Report only this code or group of codes (health, damage). Repeatable.",
)
@click.option("--skip", multiple=True, metavar="CODE", help="Leave out this problem code. Repeatable.")
@click.option("--baseline", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="An earlier report, from --json, whose findings are left out.")  # fmt: skip
@click.option("--html", metavar="FILE", help="Also write the report as an HTML page.")
@click.option("--junit", metavar="FILE", help="Also write the report as JUnit XML.")
@json_option
def check(
    source: str,
    level: Literal["metadata", "files", "rows"],
    snapshots: tuple[str, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    baseline: str | None,
    html: str | None,
    junit: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Find what is broken in a table, since when, and what it means for readers."""
    chosen: Any = [reference(one) for one in snapshots] or "current"
    if chosen in (["current"], ["all"]):
        (chosen,) = chosen
    known = None if baseline is None else read_baseline(baseline)
    report = ix.check(source, level, snapshots=chosen, only=only or None, skip=skip, baseline=known, **opening(how))
    write_report(report, html, junit)
    if as_json:
        echo_json("check", report=report.to_dict())
    else:
        echo(repr(report), coloured)
    leave(report.exit_code)


@main.command(epilog=_EPILOG)
@table_options
@click.option("--level", type=_LEVELS, default="metadata", show_default=True, help="The depth of the check.")
@click.option("--all", "everything", is_flag=True, help="Also repair snapshots other than the current one.")
@click.option("--save", metavar="FOLDER", help="Write the mended table and its data files into this new folder.")
@json_option
def repair(
    source: str,
    level: Literal["metadata", "files", "rows"],
    everything: bool,
    save: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Plan how to mend what is broken in a table; the table itself is never written.

    The exit status is 1 if something remains that the plan does not mend.
    """
    report = open_table(source, how).check(level, snapshots="all" if everything else "current")
    made = report.repair()
    saved = None if save is None else made.save(save)
    if as_json:
        echo_json("repair", plan=made.to_dict(), saved=None if saved is None else saved.metadata_location)
    else:
        echo(repr(made))
        if saved is not None:
            echo(f"\nSaved: {saved!r}")
    leave(0 if made.is_complete else 1)


@main.command(epilog=_EPILOG)
@table_options
@json_option
def maintain(source: str, as_json: bool, **how: Any) -> None:
    """Show what each maintenance procedure of the engines would do now, given the table's properties."""
    made = open_table(source, how).maintenance()
    if as_json:
        echo_json("maintain", maintenance=made.to_dict())
    else:
        echo(repr(made))


@main.command(epilog=_EPILOG)
@click.argument("source")
@click.option("--list", "only_list", is_flag=True, help="List the tables and views, without checking them.")
@click.option("--level", type=_LEVELS, default="metadata", show_default=True, help="The depth of the check.")
@click.option("--snapshots", type=click.Choice(["current", "all"]), default="current", show_default=True)
@click.option(
    "--only",
    multiple=True,
    metavar="CODE",
    help="Report only this code or group of codes (health, damage). Repeatable.",
)
@click.option("--skip", multiple=True, metavar="CODE", help="Leave out this problem code. Repeatable.")
@click.option("--allow", multiple=True, metavar="PLACE", help="Another location that may be read. Repeatable.")
@click.option("--properties", multiple=True, metavar="NAME=VALUE", callback=pairs,
              help="An option of the catalog or the storage. Repeatable.")  # fmt: skip
@click.option("--time-limit", type=_SECONDS, metavar="SECONDS", help="Time limit for checking each table.")
@click.option("--listing-limit", type=_SECONDS, metavar="SECONDS", help="Time limit for listing the tables.")
@click.option("--resume", metavar="FILE", help="A JSON file with the progress: read to continue, and updated.")
@click.option("--workers", type=click.IntRange(min=1), default=8, show_default=True, help="Tables checked in parallel.")
@click.option("--html", metavar="FILE", help="Also write the result as an HTML page.")
@click.option("--junit", metavar="FILE", help="Also write the result as JUnit XML.")
@json_option
def catalog(
    source: str,
    only_list: bool,
    properties: dict[str, str],
    html: str | None,
    junit: str | None,
    as_json: bool,
    only: tuple[str, ...],
    allow: tuple[str, ...],
    **how: Any,
) -> None:
    """Check all tables of a catalog or warehouse folder, the worst first. SOURCE is a catalog's name, or the folder."""
    if only_list:
        _list_tables(source, properties or None, allow, how["listing_limit"], as_json)
        return
    found = ix.check_catalog(source, only=only or None, allow=allow, properties=properties or None, **how)
    write_report(found, html, junit)
    if as_json:
        echo_json("catalog", result=found.to_dict())
    else:
        echo(repr(found), coloured)
    if (how["time_limit"] is not None and any(one.report is None for one in found)) or (
        how["listing_limit"] is not None and not found.complete
    ):
        _leave_at_once(found.exit_code)
    leave(found.exit_code)


def _leave_at_once(status: int) -> None:
    """Exit without waiting for threads that hang: a normal exit would stop them inside C++ code, which may crash."""
    sys.stdout.flush()
    os._exit(status)


def _list_tables(
    source: str, properties: dict[str, str] | None, allow: tuple[str, ...], limit: float | None, as_json: bool
) -> None:
    found = ix.open_catalog(source, properties=properties, allow=allow, time_limit=limit)
    tables, views = (list(frame) for frame in (found.tables["table"], found.views["view"]))
    if as_json:
        echo_json(
            "catalog",
            source=found.name,
            namespaces=found.namespaces,
            tables=tables,
            views=views,
            unlisted=found.failed,
            complete=found.complete,
        )
    else:
        echo("\n".join(tables) or "no tables")
        for name in views:
            echo(f"ℹ {name} is a view")
        for name, why in found.failed.items():
            echo(f"ℹ Namespace {name} could not be listed: {why}")
        if not found.complete:
            echo("ℹ Not everything is listed: a limit ended the listing")
    status = 0 if found.complete and not found.failed else 2
    if limit is not None and not found.complete:
        _leave_at_once(status)
    leave(status)


# Looking --------------------------------------------------------------------------------------------------------------


@main.command(epilog=_EPILOG)
@table_options
@state_option
@json_option
def show(source: str, at: str | None, as_json: bool, **how: Any) -> None:
    """Show a table's card: schema, partitioning, snapshots, refs, problems."""
    _show("show", open_table(source, how, at), as_json)


@main.command(epilog=_EPILOG)
@table_options
@click.argument("state", required=False)
@click.option("--timestamp", metavar="TIME", help="The state at a time (ISO text, UTC) instead of STATE.")
@json_option
def at(source: str, state: str | None, timestamp: str | None, as_json: bool, **how: Any) -> None:
    """Show a table's card as of STATE (a snapshot id, branch or tag) or as of a time."""
    table = open_table(source, how)
    chosen = table.at(timestamp=timestamp) if state is None else table.at(reference(state), timestamp=timestamp)
    _show("at", chosen, as_json)


def _show(command: str, table: ix.Table, as_json: bool) -> None:
    if not as_json:
        echo(repr(table))
        return
    metadata, snapshot = table.metadata, table.snapshot
    echo_json(
        command,
        table={
            "name": table.name,
            "location": table.location,
            "metadata_location": table.metadata_location,
            "format_version": table.format_version,
            "table_uuid": metadata.table_uuid,
            "snapshot_id": None if snapshot is None else snapshot.snapshot_id,
            "snapshots": len(metadata.snapshots),
            "refs": {name: {"type": ref.type, "snapshot_id": ref.snapshot_id} for name, ref in metadata.refs.items()},
            "columns": [
                {"id": f.field_id, "name": f.name, "type": str(f.type), "required": f.required}
                for f in table.schema.fields
            ],
            "properties": dict(table.properties),
        },
        problems=table.problems.to_records(),
    )


@main.command(epilog=_EPILOG)
@table_options
@state_option
@click.option("--snapshots", type=click.Choice(["current", "all"]), default="current", show_default=True)
@click.option("--depth", type=click.Choice(["snapshots", "manifests", "files"]), default="manifests", show_default=True)
@click.option("--labels", type=click.Choice(["short", "full", "counts"]), default="short", show_default=True)
@click.option("--max-nodes", type=click.IntRange(min=1), default=150, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", show_default=True)
def tree(source: str, at: str | None, form: str, **how: Any) -> None:
    """Draw the tree of metadata files, snapshots, manifest lists, manifests and files."""
    table = open_table(source, how, at)
    drawn: Any = table.tree(**how)
    # click.echo prints the picture as it is: the renderers have already escaped control characters in names.
    click.echo({"text": drawn.to_text, "mermaid": drawn.to_mermaid, "svg": drawn.to_svg}[form]())


@main.command(epilog=_EPILOG)
@table_options
@click.argument("metadata_table")
@state_option
@click.option("--columns", metavar="NAMES", help="Column names separated by commas; all by default.")
@click.option("--limit", type=click.IntRange(min=0), help="Rows to print; 50 by default, all with --json.")
@json_option
def inspect(
    source: str, metadata_table: str, at: str | None, columns: str | None, limit: int | None, as_json: bool, **how: Any
) -> None:
    """Print a metadata table, such as files, manifests or snapshots."""
    table = open_table(source, how, at)
    names = list(table.inspect)
    if metadata_table not in names:
        raise ix.OptionError(f"no metadata table {metadata_table!r}: choose one of {', '.join(names)}")
    _print_arrow("inspect", table.inspect[metadata_table].arrow(), columns, limit, as_json)


def _print_arrow(
    command: str, table: pa.Table, columns: str | None, limit: int | None, as_json: bool, **more: Any
) -> None:
    if columns is not None:
        wanted = [name.strip() for name in columns.split(",")]
        unknown = [name for name in wanted if name not in table.column_names]
        if unknown:
            raise ix.OptionError(f"no column {unknown[0]!r}: choose from {', '.join(table.column_names)}")
        table = table.select(wanted)
    shown = table.slice(0, len(table) if limit is None and as_json else 50 if limit is None else limit)
    if as_json:
        echo_json(command, columns=shown.column_names, rows=shown.to_pylist(), total=len(table), **more)
    else:
        echo_rows(shown.column_names, shown.to_pylist(), len(table) - len(shown))


@main.command(epilog=_EPILOG)
@table_options
@click.argument("a")
@click.argument("b", required=False)
@json_option
def diff(source: str, a: str, b: str | None, as_json: bool, **how: Any) -> None:
    """Compare state A of a table with state B (by default the current state): files, rows, schema, properties."""
    table = open_table(source, how)
    found = table.diff(reference(a), None if b is None else reference(b))
    if not as_json:
        echo(repr(found))
        return
    echo_json(
        "diff",
        title=found.title,
        empty=found.is_empty,
        counts=found.counts_arrow.to_pylist(),
        files=found.files_arrow.to_pylist(),
        manifests=found.manifests_arrow.to_pylist(),
        schema=found.schema,
        spec=found.spec,
        properties=found.properties,
    )


def _limit(name: str, text: str) -> Callable[[F], F]:
    """Return a decorator that adds the option for a plan's limit, such as ``--max-files``."""
    return click.option(f"--max-{name.replace('_', '-')}", type=click.IntRange(min=0), metavar="N", help=text)


@main.command(epilog=_EPILOG)
@table_options
@click.argument("where", required=False)
@state_option
@click.option("--columns", metavar="NAMES", help="Columns that the scan reads, separated by commas; all by default.")
@click.option("--row-groups", is_flag=True, help="Open the footers, and prune row groups.")
@click.option("--bloom", is_flag=True, help="Check the row groups' Bloom filters, too.")
@_limit("files", "Fail (exit status 1) if the scan reads more than N data files.")
@_limit("bytes", "Fail if the data files to read have more than N bytes.")
@_limit("rows", "Fail if the data files to read have more than N rows.")
@_limit("splits", "Fail if an engine would get more than N splits (tasks).")
@_limit("manifests", "Fail if planning reads more than N data manifests.")
@_limit("deletes", "Fail if more than N deletes have to be applied.")
@_limit("delete_bytes", "Fail if the deletes to apply have more than N bytes.")
@json_option
def plan(
    source: str,
    where: str | None,
    at: str | None,
    columns: str | None,
    row_groups: bool,
    bloom: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Plan a scan with the filter WHERE: which files it reads and skips, and why. The limits are assertions for CI."""
    limits = {name.removeprefix("max_"): how.pop(name) for name in list(how) if name.startswith("max_")}
    table = open_table(source, how, at)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    made = table.plan(where, columns=names, row_groups=row_groups, bloom=bloom)
    totals = made.totals
    failed = [
        f"{name.replace('_', ' ')}: {found:,} are read, at most {most:,} allowed"
        for name, most in limits.items()
        if most is not None and (found := totals[name]) is not None and found > most
    ]
    if as_json:
        echo_json("plan", where=where, totals=totals, failed=failed, tasks=made.tasks_arrow.to_pylist())
    else:
        echo(repr(made))
        for one in failed:
            echo(f"✖ {one}", coloured)
    leave(1 if failed else 0)


@main.command(epilog=_EPILOG)
@table_options
@click.argument("where")
@state_option
@click.option("--columns", metavar="NAMES", help="Columns to show besides those of the filter, separated by commas.")
@click.option("--history", is_flag=True, help="Also search removed files, which only earlier snapshots list.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Maximum number of places to find."
)
@json_option
def rows(
    source: str, where: str, at: str | None, columns: str | None, history: bool, limit: int, as_json: bool, **how: Any
) -> None:
    """Find the rows that match WHERE: where each is or was, which snapshot added it, and what became of it since."""
    table = open_table(source, how, at)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    found = table.rows(where, columns=names, history=history, limit=limit)
    if as_json:
        places = found.to_arrow()
        echo_json("rows", where=where, complete=found.complete, columns=places.column_names, rows=places.to_pylist())
    else:
        echo(repr(found))


# Copies ---------------------------------------------------------------------------------------------------------------

_KINDS = ("credentials", "values", "paths", "names")


@main.command(epilog=_EPILOG)
@table_options
@click.option(
    "--format-version", type=click.IntRange(1, 4), default=4, show_default=True, help="The format version to replay in."
)
@click.option("--save", metavar="FOLDER", help="Write the replayed table into this new folder.")
@json_option
def replay(source: str, format_version: int, save: str | None, as_json: bool, **how: Any) -> None:
    """Commit a table's history again in another format version, and compare what each commit writes."""
    made = open_table(source, how).replay(format_version)
    saved = None if save is None else made.simulation.save(save)
    if as_json:
        rows = made.table.astype(object).where(made.table.notna(), None).to_dict("records")
        place = None if saved is None else saved.metadata_location
        echo_json("replay", summary=made.summary, snapshots=rows, saved=place)
    else:
        echo(repr(made))
        if saved is not None:
            echo(f"\nSaved: {saved!r}")


@main.command(epilog=_EPILOG)
@table_options
@click.argument("target")
@click.option("--redact", multiple=True, type=click.Choice([*_KINDS, "all", "none"]), metavar="KIND",
              help="Hide credentials (the default), values, paths, names, all or none. Repeatable.")  # fmt: skip
@click.option("--deletes", is_flag=True, help="Also pack delete files into a zip.")
@click.option("--force", is_flag=True, help="Replace TARGET if it exists.")
@json_option
def export(
    source: str, target: str, redact: tuple[str, ...], deletes: bool, force: bool, as_json: bool, **how: Any
) -> None:
    """Write a table's metadata into TARGET: a .zip that can be opened again, or an .html page that works offline."""
    kinds: bool | tuple[str, ...] = redact or ("credentials",)
    if "all" in redact or "none" in redact:
        if len(redact) > 1:
            raise click.UsageError("--redact all and --redact none cannot be combined with other kinds")
        kinds = redact == ("all",)
    table = open_table(source, how)
    if target.endswith(".zip"):
        made: object = table.bundle(target, redact=kinds, deletes=deletes, overwrite=force)
    elif target.endswith((".html", ".htm")):
        if deletes:
            raise click.UsageError("--deletes is for zips: a page has no delete files")
        made = table.explore().save_html(target, redact=kinds, overwrite=force)
    else:
        raise click.UsageError(f"{target}: give a name that ends in .zip or .html")
    if as_json:
        echo_json("export", target=target, bytes=os.path.getsize(target))
    else:
        echo(repr(made))
