"""Options that several commands share: those of `iceexplore.open`, and the state to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from iceexplore.table import Table

__all__ = ["json_option", "open_table", "opening", "pairs", "reference", "state_option", "table_options"]

F = TypeVar("F", bound=Callable[..., Any])
_OPENING = ("catalog", "moved", "version", "allow", "properties")


def pairs(ctx: click.Context, option: click.Parameter, values: Iterable[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` options as a dictionary."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r}: give NAME=VALUE", ctx, option)
        found[name] = rest
    return found


def table_options(command: F) -> F:
    """Add the argument SOURCE and the options of `iceexplore.open`."""
    for add in (
        click.option("--properties", multiple=True, metavar="NAME=VALUE", callback=pairs,
                     help="An option of the catalog or the storage. Repeatable."),
        click.option("--allow", multiple=True, metavar="PLACE", help="Another location that may be read. Repeatable."),
        click.option("--version", metavar="VERSION", help="A metadata file, by number, name or location."),
        click.option("--moved", multiple=True, metavar="OLD=NEW", callback=pairs,
                     help="OLD: a location prefix in the metadata; NEW: where its files are now. Repeatable."),
        click.option("--catalog", metavar="NAME", help="A PyIceberg catalog, in which SOURCE is the name of a table."),
        click.argument("source"),
    ):  # fmt: skip
        command = add(command)
    return command


def json_option(command: F) -> F:
    """Add the option ``--json``."""

    def remember(ctx: click.Context, option: click.Parameter, value: bool) -> bool:
        if value:
            ctx.find_root().meta["iceexplore.json"] = True
        return value

    return click.option(
        "--json", "as_json", is_flag=True, callback=remember, is_eager=True, help="Print JSON instead of text."
    )(command)


def state_option(command: F) -> F:
    """Add the option ``--at``."""
    return click.option("--at", metavar="STATE", help="A snapshot id, branch or tag; by default the current state.")(
        command
    )


def opening(how: dict[str, Any]) -> dict[str, Any]:
    """Remove the options for `iceexplore.open` from ``how``; return them as keyword arguments for that function."""
    taken = {name: how.pop(name) for name in _OPENING}
    version = taken["version"]
    taken["version"] = int(version) if version is not None and version.isdecimal() else version
    return {**taken, "moved": taken["moved"] or None, "properties": taken["properties"] or None}


def open_table(source: str, how: dict[str, Any], at: str | None = None) -> Table:
    """Open a command's table in the state that ``--at`` names; the options for opening are removed from ``how``."""
    import iceexplore as ix

    table = ix.open(source, **opening(how))
    return table if at is None else table.at(reference(at))


def reference(text: str) -> int | str:
    """Return a snapshot id as a number; branches and tags stay text."""
    return int(text) if text.lstrip("-").isdecimal() else text
