"""Processes that commit to a lab through Spark, killed at any point, and tasks of Spark that fail once.

The kills are for ``--hypothesis-profile=long`` (``make test-long``): each starts a Spark of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.commits import check_rules
from tests.labs.test_lab_commits import unnamed
from tests.spark.labs.lab_writer import TWIN

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[3]

RETRIES = """
import collections, json, os, sys, time
import iceexplore as ix
from iceexplore.on_spark.write import _compact
folder = sys.argv[1]
spark = ix.spark(config={"spark.master": "local[2,3]", "spark.ui.enabled": "false", "spark.driver.memory": "1g"})
spark.sparkContext.setLogLevel("OFF")

def fails_once(name):
    # Of tasks that run at the same time one fails.
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    raise RuntimeError("once")

def slow(batches):
    yield from batches
    time.sleep(1)  # what came is written by now
    fails_once("append")

class Failing(_compact._Compactor):
    def __call__(self, bundle):
        made = list(super().__call__(bundle))
        fails_once("compact")
        yield from made

lab = ix.create(f"{folder}/t", {"id": "long"}, properties={"write.target-file-size-bytes": "40000"})
lab.append(spark.range(0, 60_000, 1, 2).mapInArrow(slow, "id long"))
after = [len(lab.orphan_files()), lab.count()]
lab.remove_orphan_files(0)
lab.delete("id < 1000", spark=spark)
_compact._Compactor = Failing
lab.compact(spark=spark, paths=lab.inspect.data_files()["file_path"].tolist())
ids = collections.Counter(lab.to_arrow()["id"].to_pylist())
print(json.dumps([*after, len(lab.orphan_files()), ids == collections.Counter(range(1000, 60_000)), len(lab.verify())]))
"""


def test_tasks_that_are_run_twice_neither_lose_nor_double_rows(require_java: None, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RETRIES, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lost, count, lost_later, same, findings = json.loads(done.stdout.splitlines()[-1])
    assert (count, same, findings) == (60_000, True, 0)
    assert lost > 0 and lost_later > 0  # the first attempts' files


@pytest.mark.long
def test_writers_on_spark_killed_at_any_point(require_java: None, tmp_path: Path) -> None:
    rng = random.Random(11)
    properties = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}
    ix.create(
        tmp_path / "t", {"id": "long", "writer": "int"}, partition_by="bucket(2, id)", format_version=3,
        properties=properties,
    )  # fmt: skip
    logs = [tmp_path / f"{n}.log" for n in range(5)]
    for n, log in enumerate(logs):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.labs.lab_writer", str(tmp_path / "t"), str(n * 10_000), str(log)],
            cwd=ROOT, start_new_session=True,
        )  # fmt: skip
        try:
            end = time.monotonic() + 240
            while not log.exists() or len(log.read_text().splitlines()) < 9:  # the first round takes longest
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.05)
            time.sleep(rng.uniform(0, 8))
        finally:
            # Python alone, whose Java then ends by itself, or all of them at once.
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            if n % 2:
                os.killpg(process.pid, signal.SIGKILL)
            wait_for_group(process.pid)
    check(ix.lab(tmp_path / "t"), [json.loads(line) for log in logs for line in log.read_text().splitlines()])


def wait_for_group(group: int) -> None:
    """Wait until no process of a group is left."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)


def check(lab: ix.Lab, log: list[tuple[str, str, int, int | None]]) -> None:
    """Check that every commit logged as made is there, and all or nothing of each that was begun."""
    rows = dict(zip(*(lab.to_arrow()[name].to_pylist() for name in ("id", "writer")), strict=True))
    begun = {(what, number): other for when, what, number, other in log if when == "begin"}
    ended = {(what, number) for when, what, number, _ in log if when == "end"}
    expected = set()
    for (what, number), other in begun.items():
        if what not in ("append", "merge"):
            continue
        there = number in rows
        assert there or (what, number) not in ended
        deleting = ("delete", number)
        if what == "merge":
            assert other is not None and (rows[other] == other) == there == (number + TWIN in rows)
        elif deleting not in begun:
            assert there == (number + TWIN in rows)
        elif deleting in ended:
            assert number + TWIN not in rows
        expected |= {number, number + TWIN}
    assert rows.keys() <= expected and len(ended) >= 20
    assert not lab.problems and not check_rules(lab.state) and not len(lab.verify())
    left = lab.orphan_files()
    assert set(left["location"]) == unnamed(lab)
    before = sorted(rows.items())
    assert len(lab.remove_orphan_files(0)) == len(left) and not len(lab.orphan_files())
    assert sorted(zip(*(lab.to_arrow()[name].to_pylist() for name in ("id", "writer")), strict=True)) == before
    kinds = dict(left["kind"].value_counts())
    print(
        f"\n{len(ended)} commits ended, {len(begun) - len(ended)} were killed, {len(lab.snapshots)} snapshots; {kinds}"
    )
    lab.append({"id": [-1], "writer": [0]})
    assert lab.count("id = -1") == 1
