"""Functions shared by the commands that check: read a baseline, write the report to files, set the exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import iceexplore as ix
from iceexplore.cli._output import write_file

if TYPE_CHECKING:
    from iceexplore.doctor import CatalogReport, Report

__all__ = ["leave", "read_baseline", "write_report"]


def read_baseline(path: str) -> Report:
    """Read an earlier report, written by ``check --json``.

    Raises
    ------
    OptionError
        The file is not such a report.
    """
    import json

    from iceexplore.doctor import Report

    try:
        with open(path, "rb") as file:
            values = json.load(file)
        return Report.from_dict(values.get("report", values))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ix.OptionError(f"--baseline {path} is not a report written by check --json: {error}") from error


def write_report(report: Report | CatalogReport, html: str | None, junit: str | None) -> None:
    """Write a report as an HTML page, as JUnit XML, or both; None as a path means no such file."""
    if html is not None:
        write_file(html, report.to_html())
    if junit is not None:
        write_file(junit, report.to_junit())


def leave(status: int) -> None:
    """End the command with an exit status other than 0."""
    if status:
        click.get_current_context().exit(status)
