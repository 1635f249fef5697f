"""A process that commits to a lab on Spark until it is killed: ``python -m tests.spark.labs.lab_writer``."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import iceexplore as ix

#: Rows come in pairs, in one commit: a number, and the one so much above it.
TWIN = 500_000


def write(place: str, first: int, log: str) -> None:
    """Append, delete, merge and compact, until killed.

    The log has a line before and after each commit: what it is, its number, and for merges the row that it changes.
    """
    session = ix.spark(config={"spark.ui.enabled": "false", "spark.driver.memory": "1g"})
    session.sparkContext.setLogLevel("OFF")
    lab = ix.lab(place)
    with Path(log).open("a", encoding="utf-8", buffering=1) as file:

        def commit(what: str, number: int, other: int | None, run: Any) -> None:
            file.write(json.dumps(["begin", what, number, other]) + "\n")
            run()
            file.write(json.dumps(["end", what, number, other]) + "\n")

        def pair(number: int) -> Any:
            return session.createDataFrame([(number, 0), (number + TWIN, 0)], "id long, writer int")

        number = first
        while True:
            number += 2
            commit("append", number, None, lambda: lab.append(pair(number)))
            commit("delete", number, None, lambda: lab.delete(f"id = {number + TWIN}", spark=session))
            changed = session.createDataFrame([(number, number)], "id long, writer int")
            rows = pair(number + 1).union(changed)
            commit("merge", number + 1, number, lambda: lab.merge(rows, "id"))
            with suppress(ix.OptionError):  # no partition has two files
                commit("compact", number, None, lambda: lab.compact(spark=session))


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), sys.argv[3])
