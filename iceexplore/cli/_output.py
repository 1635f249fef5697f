"""Write results: text for people, JSON for programs, files for others; errors become exit statuses."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import iceexplore as ix

if TYPE_CHECKING:
    from iceexplore.arrow import PlainValue
    from iceexplore.storage import JsonValue

__all__ = ["Commands", "JSON_VERSION", "coloured", "echo", "echo_json", "echo_rows", "plain", "write_file"]

#: The version of the commands' JSON, which docs/cli.md describes; it changes when a key is renamed or removed.
JSON_VERSION = 1
#: The exit status that shells report for a program killed by writing to a closed pipe (128 + SIGPIPE).
_PIPE_CLOSED = 141
_MOST_CELL = 60
_BY_SIGN = {"✖": "red", "▲": "yellow"}


class Commands(click.Group):
    """A command group: errors become a message and exit status 2, and a closed pipe ends the command quietly."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Otherwise Python would flush stdout again at exit, and print an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(_PIPE_CLOSED) from None
        except ix.IceexploreError as error:
            if _asked_for_json(ctx):
                name = ctx.find_root().meta.get("iceexplore.command", ctx.invoked_subcommand)
                echo_json(name, error={"kind": type(error).__name__, "message": str(error)})
            click.echo(f"Error: {error}", err=True)  # control characters are already escaped in its message
            ctx.exit(2)
        return done


def _asked_for_json(ctx: click.Context) -> bool:
    return bool(ctx.find_root().meta.get("iceexplore.json"))


def echo(text: object, colour: Callable[[str], str] | None = None) -> None:
    """Print text line by line with control characters made visible: names in tables come from strangers."""
    from iceexplore.render import escape

    lines = [escape.text(line) for line in str(text).split("\n")]
    click.echo("\n".join(lines if colour is None else map(colour, lines)))


def coloured(line: str) -> str:
    """Return a line of a report in the colour of its severity; click removes the colour where there is no terminal."""
    colour = _BY_SIGN.get(line.lstrip()[:1])
    return line if colour is None else click.style(line, fg=colour)


def echo_json(command: str | None, **content: Any) -> None:
    """Print JSON in the envelope that all commands share, in ASCII."""
    values = {"command": command, "version": JSON_VERSION, "iceexplore": ix.__version__, **content}
    click.echo(json.dumps(plain(values), indent=2, allow_nan=False))


def plain(value: PlainValue) -> JsonValue:
    """Convert a value for JSON: times as ISO text, bytes as hex, decimals and UUIDs as text, NaN as null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def echo_rows(names: Sequence[str], rows: Sequence[Mapping[str, Any]], more: int = 0) -> None:
    """Print rows as a table with a line per row; long values are shortened in the middle."""
    from iceexplore.render import escape

    table = [[_cell(row.get(name)) for name in names] for row in rows]
    shown = [[escape.shorten(escape.text(cell), _MOST_CELL) for cell in line] for line in [list(names), *table]]
    widths = [max(len(line[i]) for line in shown) for i in range(len(names))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in shown]
    lines.insert(1, "  ".join("─" * width for width in widths))
    if more > 0:
        lines.append(f"… {more:,} more rows; use --limit to show them")
    click.echo("\n".join(lines))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(plain(value))


def write_file(path: str, text: str) -> None:
    """Write a file completely or not at all; an existing file is replaced. Raises the same errors as `whole_file`."""
    from iceexplore.storage import whole_file

    with whole_file(path, overwrite=True) as file:
        file.write(text.encode())
