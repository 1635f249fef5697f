"""``iceexplore view``: the commands for views, named as in Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

import iceexplore as ix
from iceexplore.cli._options import json_option, opening, pairs, reference, table_options
from iceexplore.cli._output import coloured, echo, echo_json, echo_rows, write_file
from iceexplore.cli._reports import leave, read_baseline, write_report

if TYPE_CHECKING:
    from iceexplore.view import View

__all__ = ["view"]

F = TypeVar("F", bound=Callable[..., Any])
_EPILOG = "Exit status: 0 clean, 1 findings, 2 the view could not be read or run, or the command line is invalid."
_VERSION = ("version_id", "created_at", "is_current", "operation", "engine", "dialects", "schema_id")
_LOG = ("made_current_at", "version_id", "is_rollback", "is_expired")


@click.group(epilog=_EPILOG)
@click.pass_context
def view(ctx: click.Context) -> None:
    """Look into Iceberg views, check them, and run their queries.

    SOURCE is a view folder, a metadata file, a URI of either, a zip, or, with --catalog, a view's name.
    """
    ctx.find_root().meta["iceexplore.command"] = f"view {ctx.invoked_subcommand}"


def _version_option(command: F) -> F:
    """Add the options that choose a version of the view."""
    for add in (
        click.option("--timestamp", metavar="TIME", help="The version that was current at a time (ISO text, UTC)."),
        click.option("--at", metavar="ID", help="A version id; by default the current version."),
    ):
        command = add(command)
    return command


def _source_options(command: F) -> F:
    """Add the options that say where the tables of the query are stored."""
    for add in (
        click.option("--tables", multiple=True, metavar="NAME=PLACE", callback=pairs,
                     help="The name of a table or view in the query, and its path. Repeatable."),
        click.option("--source-catalog", metavar="NAME",
                     help="A PyIceberg catalog with the tables of the query, if the view is not opened from one."),
    ):  # fmt: skip
        command = add(command)
    return command


_no_sources = click.option("--no-sources", is_flag=True, help="Do not open the tables and views of the query.")
_html_option = click.option("--html", metavar="FILE", help="Also write the result as an HTML page.")
_dialect_option = click.option("--dialect", metavar="NAME", help="A stored dialect.")


def _opened(source: str, how: dict[str, Any]) -> View:
    """Open a command's view at the version that its options name; the options are removed from ``how``."""
    at, timestamp = how.pop("at", None), how.pop("timestamp", None)
    if at is not None and timestamp is not None:
        raise click.UsageError("give only one of --at and --timestamp")
    found = ix.open_view(source, **opening(how))
    if timestamp is not None:
        return found.at(timestamp=timestamp)
    return found if at is None else found.at(at)


def _sources(how: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of `_source_options` from ``how``; return them as keyword arguments."""
    found: dict[str, Any] = {"catalog": how.pop("source_catalog"), "tables": how.pop("tables") or None}
    if "no_sources" in how:
        found["open_sources"] = not how.pop("no_sources")
    return found


def _page(title: str, body: str) -> str:
    from iceexplore.render import html_page

    return html_page(title, f'<div style="font-family:system-ui,sans-serif;font-size:13px">{body}</div>')


@view.command()
@table_options
@_version_option
@_html_option
@json_option
def show(source: str, html: str | None, as_json: bool, **how: Any) -> None:
    """Show a view's card: SQL, columns, versions, problems."""
    v = _opened(source, how)
    if html is not None:
        write_file(html, _page(v.name, v._repr_html_()))
    if not as_json:
        echo(repr(v))
        return
    version, schema = v.version, v.schema
    echo_json(
        "view show",
        view={
            "name": v.name,
            "location": v.location,
            "metadata_location": v.metadata_location,
            "format_version": v.format_version,
            "view_uuid": v.uuid,
            "version_id": None if version is None else version.version_id,
            "versions": len(v.versions),
            "sql": {} if version is None else {r.dialect: r.sql for r in reversed(version.sql)},
            "default_catalog": None if version is None else version.catalog_of(),
            "default_namespace": None if version is None else version.namespace_of(),
            "storage_table": None if version is None else version.storage_table,
            "columns": [
                {"id": f.field_id, "name": f.name, "type": str(f.type), "required": f.required, "doc": f.doc}
                for f in (() if schema is None else schema.fields)
            ],
            "properties": dict(v.properties),
        },
        problems=v.problems.to_records(),
    )


@view.command()
@table_options
@json_option
def versions(source: str, as_json: bool, **how: Any) -> None:
    """List a view's versions, and when each was current, rollbacks included."""
    v = _opened(source, how)
    found, log = v.inspect.versions.arrow().to_pylist(), v.inspect.version_log.arrow().to_pylist()
    if as_json:
        echo_json("view versions", versions=found, log=log)
        return
    echo_rows(_VERSION, found)
    click.echo()
    echo_rows(_LOG, log)


@view.command()
@table_options
@click.argument("a")
@click.argument("b", required=False)
@_html_option
@json_option
def diff(source: str, a: str, b: str | None, html: str | None, as_json: bool, **how: Any) -> None:
    """Compare version A of a view with version B (by default the current version): SQL, columns, properties."""
    v = _opened(source, how)
    found = v.diff(a, b)
    if html is not None:
        write_file(html, _page(f"{v.name}: {a} and {b or 'current'}", found._repr_html_()))
    if not as_json:
        echo(repr(found))
        return
    echo_json(
        "view diff",
        empty=found.is_empty,
        same_query=found.same_query,
        dialects=found.dialects,
        changes=[
            {"kind": c.kind, "clause": c.clause, "old": c.old, "new": c.new, "text": c.text} for c in found.changes
        ],
        schema=found.schema,
        defaults=found.defaults,
        properties=found.properties,
    )


@view.command()
@table_options
@_version_option
@click.argument("dialect", required=False)
@click.option("--stored", is_flag=True, help="Print only SQL that the view stores; never translate.")
@json_option
def sql(source: str, dialect: str | None, stored: bool, as_json: bool, **how: Any) -> None:
    """Print the query in DIALECT: as stored, or translated by sqlglot, with notes on what may differ."""
    found = _opened(source, how).sql(dialect, translate=not stored)
    if as_json:
        translated = found.translated_from
        echo_json(
            "view sql", dialect=found.dialect, translated_from=translated, notes=list(found.notes), sql=str(found)
        )
    else:
        echo(repr(found))


@view.command()
@table_options
@_version_option
@click.argument("a", required=False)
@click.argument("b", required=False)
@json_option
def dialects(source: str, a: str | None, b: str | None, as_json: bool, **how: Any) -> None:
    """Check whether two stored dialects of a version have the same query.

    The exit status is 1 if they differ, 2 if that is unknown.
    """
    found = _opened(source, how).compare_dialects(a, b)
    if as_json:
        changes = [{"kind": c.kind, "clause": c.clause, "text": c.text} for c in found.changes]
        echo_json(
            "view dialects", a=found.a, b=found.b, same_query=found.same_query, changes=changes, note=found.note or None
        )
    else:
        echo(repr(found))
    leave(1 if found.same_query is False else 2 if found.same_query is None else 0)


@view.command()
@table_options
@_version_option
@_dialect_option
@_source_options
@_no_sources
@_html_option
@json_option
def lineage(source: str, dialect: str | None, html: str | None, as_json: bool, **how: Any) -> None:
    """List the tables, views and columns that the query reads."""
    given = _sources(how)
    v = _opened(source, how)
    found = v.lineage(dialect, **given)
    if html is not None:
        write_file(html, _page(f"Lineage of {v.name}", found._repr_html_()))
    if as_json:
        echo_json(
            "view lineage",
            dialect=found.dialect,
            tables=found.tables_arrow.to_pylist(),
            columns=found.columns_arrow.to_pylist(),
            problems=list(found.problems),
        )
    else:
        echo(repr(found))


@view.command()
@table_options
@_version_option
@_source_options
@_no_sources
@click.option("--versions", "which", type=click.Choice(["shown", "all"]), default="shown", show_default=True)
@click.option("--max-nodes", type=click.IntRange(min=8), default=120, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", show_default=True)
def tree(source: str, which: str, max_nodes: int, form: str, **how: Any) -> None:
    """Draw the view as a tree: its versions, their SQL, and the tables and views that the SQL reads."""
    given = _sources(how)
    drawn = _opened(source, how).tree(versions=None if which == "shown" else "all", max_nodes=max_nodes, **given)
    # click.echo prints the picture as it is: the renderers have already escaped control characters in names.
    click.echo({"text": drawn.to_text, "mermaid": drawn.to_mermaid, "svg": drawn.to_svg}[form]())


@view.command()
@table_options
@_version_option
@_source_options
@_no_sources
@click.option("--only", multiple=True, metavar="CODE", help="Report only this problem code. Repeatable.")
@click.option("--skip", multiple=True, metavar="CODE", help="Leave out this problem code. Repeatable.")
@click.option("--baseline", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="An earlier report, from --json, whose findings are left out.")  # fmt: skip
@_html_option
@click.option("--junit", metavar="FILE", help="Also write the report as JUnit XML.")
@json_option
def check(
    source: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    baseline: str | None,
    html: str | None,
    junit: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Find what is broken in a view, and where it does not fit the tables that it reads."""
    known = None if baseline is None else read_baseline(baseline)
    given = _sources(how)
    report = _opened(source, how).check(only=only or None, skip=skip, baseline=known, **given)
    write_report(report, html, junit)
    if as_json:
        echo_json("view check", report=report.to_dict())
    else:
        echo(repr(report), coloured)
    leave(report.exit_code)


@view.command()
@table_options
@_version_option
@_source_options
@_html_option
@json_option
def freshness(source: str, html: str | None, as_json: bool, **how: Any) -> None:
    """Judge whether a materialized view (a proposal) is fresh.

    The exit status is 0 if the view is fresh, 1 if it is stale, and 2 if that cannot be determined.
    """
    given = _sources(how)
    found = _opened(source, how).freshness(**given)
    if html is not None:
        write_file(html, _page(f"Freshness of {found.state.name}", found._repr_html_()))
    if as_json:
        echo_json(
            "view freshness",
            status=found.status,
            rule=found.rule,
            storage_table=found.storage_table,
            snapshot_id=found.snapshot_id,
            refresh_started_ms=None if found.refresh is None else found.refresh.started_ms,
            sources=found.sources_arrow.to_pylist(),
        )
    else:
        echo(repr(found))
    leave({"fresh": 0, "stale": 1, "unknowable": 2}[found.status])


def _tables_at(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> object:
    """Parse --tables-at: return one time for all tables, or a state for each table name."""
    if not values:
        return None
    if len(values) == 1 and "=" not in values[0]:
        return values[0]
    return {name: reference(state) for name, state in pairs(ctx, option, values).items()}


@view.command()
@table_options
@_version_option
@_dialect_option
@_source_options
@click.option("--tables-at", multiple=True, metavar="TIME|NAME=STATE", callback=_tables_at,
              help="All tables at a time, or one at a snapshot id, branch, tag or time. Repeatable.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), help="Rows to print; 50 by default, all with --json.")
@json_option
def rows(source: str, dialect: str | None, tables_at: object, limit: int | None, as_json: bool, **how: Any) -> None:
    """Run the query with DataFusion over any state of its tables, and print its rows."""
    given = _sources(how)
    most = limit if as_json or limit is not None else 50
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        v = _opened(source, how)
        found = v.to_arrow(dialect, limit=None if most is None else most + 1, tables_at=tables_at, **given)
    notes = list(dict.fromkeys(str(one.message) for one in caught))
    shown = found if most is None else found.slice(0, most)
    complete = len(shown) == len(found)
    if as_json:
        echo_json(
            "view rows", columns=shown.column_names, rows=shown.to_pylist(), complete=complete, notes=notes
        )  # fmt: skip
        return
    echo_rows(shown.column_names, shown.to_pylist())
    if not complete:
        echo("… and more rows; use --limit to show them")
    for note in notes:
        echo(f"ℹ {note}")
