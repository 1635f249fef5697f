"""Check many tables: several at once in threads, each with a time limit, resumable from a JSON file."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iceexplore.doctor.report._catalog_report import CatalogReport, TableCheck
from iceexplore.doctor.report._report import Report
from iceexplore.errors import OptionError, seconds_of, whole_number
from iceexplore.storage import ListedTable, Listing, place_to_write, progress, whole_file

__all__ = ["check_tables"]

#: Seconds between two writes of the resume file, because each write replaces the whole file.
_BETWEEN_WRITES = 2.0


def check_tables(
    listing: Listing,
    check: Callable[[ListedTable], Report],
    *,
    options: Mapping[str, Any],
    time_limit: float | None = None,
    listing_limit: float | None = None,
    resume: str | os.PathLike[str] | None = None,
    workers: int = 8,
    show_progress: bool = True,
) -> CatalogReport:
    """List the tables of a catalog or folder, check them, and return a report with a row for each table, worst first.

    Parameters
    ----------
    listing
        The object that lists the tables. If it has listed some of them already, it continues with the others.
    check
        A function that checks one table. It is called in worker threads, or in the calling thread if no other thread
        can load the tables.
    options
        The options with which ``check`` examines tables, such as ``level``, as values that JSON can store. They are
        written to the resume file. A resume file with other options is refused.
    time_limit
        Seconds per table; None for no limit. A table that takes longer gets a row with an error, and its thread is
        abandoned. Tables that are checked in the calling thread have no limit.
    listing_limit
        Seconds for listing; None for no limit. Only the tables that were listed within this time are checked.
    resume
        The path of a JSON file to which the results are written while tables are checked. If the file exists, tables
        that it lists without an error are not checked again. If None, no file is written.
    workers
        The number of tables that are checked at the same time.
    show_progress
        Whether to show a progress bar.

    Raises
    ------
    OptionError
        An argument is invalid, or the resume file cannot be read, was not written by this function, or was written for
        another catalog or folder or with other options.
    CatalogError, StorageError, AccessDeniedError
        The tables cannot be listed, or the resume file cannot be written.
    """
    time_limit = None if time_limit is None else seconds_of("time_limit", time_limit)
    listing_limit = None if listing_limit is None else seconds_of("listing_limit", listing_limit)
    workers = whole_number("workers", workers, least=1)
    begun = time.perf_counter()
    plain = {"source": listing.name, **options}
    known = {} if resume is None else _resumed(resume, plain)
    listing.run(listing_limit)
    listed, unlisted, all_listed = listing.tables, listing.failed, listing.complete
    names = {table.name for table in listed}
    # Leave out checked tables that are no longer listed, because they were dropped. If the listing ended early, keep
    # them: it may not have reached them.
    checks = {name: one for name, one in known.items() if name in names or not all_listed}
    waiting = [table for table in listed if table.name not in checks]

    def result() -> CatalogReport:
        return CatalogReport(
            source=listing.name,
            options=plain,
            tables=tuple(checks.values()),
            unlisted=unlisted,
            complete=all_listed and names <= checks.keys(),
            seconds=time.perf_counter() - begun,
        )

    written = time.perf_counter()
    try:
        bar = progress(len(waiting), "tables") if show_progress else nullcontext(lambda: None)
        with bar as step:
            for one in (
                _checked_here(waiting, check)
                if listing.is_thread_bound
                else _checked(waiting, check, time_limit, workers)
            ):
                checks[one.table] = one
                step()
                if resume is not None and time.perf_counter() - written > _BETWEEN_WRITES:
                    _write(resume, result())
                    written = time.perf_counter()
    finally:  # also after a KeyboardInterrupt
        done = result()
        if resume is not None:
            _write(resume, done)
    return done


def _checked_here(tables: Sequence[ListedTable], check: Callable[[ListedTable], Report]) -> Iterator[TableCheck]:
    """Check the tables one after the other in the calling thread; yield each result."""
    for table in tables:
        since = time.monotonic()
        try:
            outcome: Report | Exception = check(table)
        except Exception as error:  # record the failure, as in worker threads
            outcome = error
        yield _row(table, outcome, time.monotonic() - since)


def _row(table: ListedTable, outcome: Report | Exception, seconds: float) -> TableCheck:
    if isinstance(outcome, Report):
        return TableCheck.of(table.name, outcome, seconds)
    return TableCheck.failed(table.name, f"{type(outcome).__name__}: {outcome}", seconds)


@dataclass(frozen=True)
class _Running:
    table: ListedTable
    since: float


def _checked(
    tables: Sequence[ListedTable], check: Callable[[ListedTable], Report], time_limit: float | None, workers: int
) -> Iterator[TableCheck]:
    """Yield the result for each table when its check is done or has taken too long.

    The threads are daemons, not those of an executor: a thread that hangs cannot be ended, and Python must not wait
    for it at exit.
    """
    waiting = deque(enumerate(tables))
    running: dict[int, _Running] = {}
    done: queue.SimpleQueue[tuple[int, Report | Exception]] = queue.SimpleQueue()

    def work(number: int, table: ListedTable) -> None:
        try:
            done.put((number, check(table)))
        except Exception as error:  # one table's failure, even by a bug, must not affect the others
            done.put((number, error))

    while waiting or running:
        while waiting and len(running) < workers:
            number, table = waiting.popleft()
            running[number] = _Running(table, time.monotonic())
            threading.Thread(target=work, args=(number, table), name=f"check {table.name}", daemon=True).start()
        patience = None
        if time_limit is not None:
            patience = max(0.0, min(r.since for r in running.values()) + time_limit - time.monotonic())
        try:
            number, outcome = done.get(timeout=patience)
        except queue.Empty:
            now = time.monotonic()
            for number in [n for n, r in running.items() if time_limit is not None and now - r.since >= time_limit]:
                late = running.pop(number)
                yield TableCheck.failed(late.table.name, f"took longer than {time_limit:g} s", now - late.since)
            continue
        if number not in running:
            continue  # this check ended after its time limit: a row with an error has been yielded for the table
        one = running.pop(number)
        yield _row(one.table, outcome, time.monotonic() - one.since)


# The resume file ------------------------------------------------------------------------------------------------------


def _write(path: str | os.PathLike[str], result: CatalogReport) -> None:
    with whole_file(path, overwrite=True) as file:
        file.write(result.to_json(indent=None).encode())


def _resumed(path: str | os.PathLike[str], options: Mapping[str, Any]) -> dict[str, TableCheck]:
    """Return the rows without an error in a resume file, by the table's name; empty if the file does not exist yet.

    Parameters
    ----------
    options
        The options of this call, including ``source``, the name of the catalog or folder. They must be equal to the
        options in the file.

    Raises
    ------
    OptionError
        The path is invalid, the file cannot be read or is not a result of `check_catalog`, or the options differ.
    """
    target: Path = place_to_write(path, overwrite=True)
    if not target.exists():
        return {}
    try:
        found = CatalogReport.from_dict(json.loads(target.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OptionError(f"resume={str(path)!r} is not a result of check_catalog: {error}") from error
    if dict(found.options) != dict(options):
        raise OptionError(
            f"resume={str(path)!r} was made with other options ({_shown(found.options)}, not {_shown(options)}): "
            "pass the same options, or another file"
        )
    return {one.table: one for one in found.tables if one.error is None}


def _shown(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
