"""Processes that write to one lab at the same time, and processes that are killed while they do."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet  # noqa: F401  (what a writer needs is loaded once, before its processes are made)

import iceexplore as ix

#: Tried again until it is committed: a test asks whether commits are lost, not how patient writers are.
PATIENT = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "200",
}
#: Rows come in pairs, in one commit: a number, and the one so much above it.
TWIN = 500_000
_MODULE = "tests.labs.writers"


def context() -> Any:
    """How processes are made: from one that has loaded everything already, and has no threads."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([_MODULE])
    return made


def sql_catalog(folder: Path) -> Any:
    """A SQLite catalog with a warehouse, both under a folder."""
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("here", uri=f"sqlite:///{folder}/catalog.db?timeout=60", warehouse=str(folder / "warehouse"))


def new_lab(folder: Path, protocol: str, **how: Any) -> tuple[ix.Lab, str]:
    """A lab of numbers, and its place for `go_on`."""
    schema = {"id": "long", "writer": "int"}
    if protocol == "rename":
        return ix.create(folder / "t", schema, properties=PATIENT, **how), str(folder / "t")
    catalog = sql_catalog(folder)
    catalog.create_namespace("db")
    return ix.create("db.t", schema, properties=PATIENT, catalog=catalog, **how), f"catalog:{folder}"


def go_on(place: str) -> ix.Lab:
    """The lab in a folder, or ``catalog:<folder>`` for ``db.t`` of the catalog there."""
    folder = place.removeprefix("catalog:")
    return ix.lab("db.t", catalog=sql_catalog(Path(folder))) if folder != place else ix.lab(place)


def append(place: str, writer: int, commits: int) -> None:
    """Append one row a commit, each with a number of its own."""
    lab = go_on(place)
    for i in range(commits):
        lab.append({"id": [writer * 1_000_000 + i], "writer": [writer]})


def mix(place: str, writer: int, log: str) -> None:
    """Append, delete and compact without end.

    The log has, line by line: ``?n`` before the pair of ``n`` is appended and ``+n`` after, ``!n`` before the twin of
    ``n`` is deleted and ``-n`` after.
    """
    with Path(log).open("a", encoding="utf-8", buffering=1) as file:
        lab = go_on(place)
        i = 0
        while True:
            number = writer * 1_000_000 + i
            i += 1
            try:
                file.write(f"?{number}\n")
                lab.append({"id": [number, number + TWIN], "writer": [writer] * 2})
                file.write(f"+{number}\n")
                if i % 3 == 0:
                    file.write(f"!{number}\n")
                    lab.delete(f"id = {number + TWIN}")
                    file.write(f"-{number}\n")
                if i % 4 == 0:
                    lab.compact()
            except (ix.CommitConflictError, ix.OptionError):
                time.sleep(0.01)  # another one was first
