"""Many writers to one lab, and writers that are killed: no commit is lost, none is half made.

With ``--hypothesis-profile=long`` (``make test-long``) in the numbers of the project's goals.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from tests.helpers.folders import local
from tests.helpers.sampling import one_of
from tests.labs.writers import TWIN, append, context, go_on, mix, new_lab

pytestmark = pytest.mark.timeout(3600)


def is_long() -> bool:
    """Whether the numbers are those of the goals."""
    return hypothesis.settings.get_current_profile_name() == "long"


@pytest.mark.parametrize(("protocol", "version"), one_of(2, [("check-and-put", 4), ("rename", 2)]))
def test_of_many_writers_no_commit_is_lost(tmp_path: Path, protocol: str, version: int) -> None:
    writers, commits = (8, 50) if is_long() else (4, 5)
    lab, place = new_lab(tmp_path, protocol, format_version=version)
    made = context()
    processes = [made.Process(target=append, args=(place, n, commits)) for n in range(writers)]
    start = time.perf_counter()
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    print(f"\n{protocol}: {writers * commits} commits in {time.perf_counter() - start:.1f} s")
    assert [p.exitcode for p in processes] == [0] * writers
    lab.refresh()
    assert len(lab.snapshots) == len(lab.history()) == writers * commits
    expected = {n * 1_000_000 + i for n in range(writers) for i in range(commits)}
    ids = lab.to_arrow()["id"].to_pylist()
    assert len(ids) == len(expected) and set(ids) == expected
    # A line: each snapshot's parent is the one before.
    parents = [s.parent_snapshot_id for s in lab.snapshots]
    assert parents == [None, *(s.snapshot_id for s in list(lab.snapshots)[:-1])]
    assert not check_rules(lab.state)


@pytest.mark.parametrize(("protocol", "version"), one_of(2, [("rename", 2), ("check-and-put", 3)]))
def test_writers_killed_at_any_point(tmp_path: Path, protocol: str, version: int) -> None:
    kills = 100 if is_long() else 5
    rng = random.Random(7)
    how = {"write.delete.mode": "merge-on-read"}
    lab, place = new_lab(tmp_path, protocol, format_version=version)
    lab.set_properties(how)
    logs = [tmp_path / f"{n}.log" for n in range(kills + 2)]
    made = context()
    processes = {n: made.Process(target=mix, args=(place, n, str(logs[n]))) for n in range(3)}
    for p in processes.values():
        p.start()
    for n in range(3, kills + 3):
        victim = rng.choice(list(processes))
        wait_for(logs[victim])
        time.sleep(rng.uniform(0, 0.4))
        process = processes.pop(victim)
        process.kill()
        process.join()
        assert process.exitcode == -9, logs[victim].read_text()
        if n < kills + 2:
            processes[n] = made.Process(target=mix, args=(place, n, str(logs[n])))
            processes[n].start()
    for process in processes.values():
        process.kill()
        process.join()
    lab = go_on(place)
    assert not lab.problems and not check_rules(lab.state)
    check_rows(set(build.to_pylist(lab.to_arrow()["id"])), [log.read_text() for log in logs if log.exists()])
    for snapshot in list(lab.snapshots)[:: 1 if len(lab.snapshots) < 20 else 20]:
        lab.at(snapshot=snapshot.snapshot_id).to_arrow()
    left = lab.orphan_files()
    assert {str(local(location)) for location in left["location"]} == unnamed(lab)
    assert not len(lab.remove_orphan_files())  # none is three days old
    rows = lab.to_arrow().sort_by("id")
    assert len(lab.remove_orphan_files(0)) == len(left) and not len(lab.orphan_files())
    assert go_on(place).to_arrow().sort_by("id").equals(rows)
    print(f"\n{protocol}: {kills + 2} kills, {len(lab.snapshots)} snapshots, {dict(left['kind'].value_counts())} left")
    lab.append({"id": [-1], "writer": [0]})
    assert go_on(place).count("id = -1") == 1


def wait_for(log: Path) -> None:
    """Wait until a writer has begun."""
    end = time.monotonic() + 120
    while not log.exists() or not log.stat().st_size:
        assert time.monotonic() < end, "the writer does not begin"
        time.sleep(0.005)


def check_rows(ids: set[int], logs: list[str]) -> None:
    """Check that all logged commits are there, nothing else than what was begun, and all or nothing of each commit."""
    by_mark: dict[str, set[int]] = {c: set() for c in "?+!-"}
    for log in logs:
        for line in log.splitlines():
            by_mark[line[0]].add(int(line[1:]))
    assert by_mark["+"] <= ids and {n for n in ids if n % 1_000_000 < TWIN} <= by_mark["?"]
    for n in by_mark["?"]:
        if n + TWIN in ids:
            assert n in ids and n not in by_mark["-"]
        elif n in ids:
            assert n in by_mark["!"]
    assert len(by_mark["+"]) > 3


def unnamed(lab: ix.Lab) -> set[str]:
    """The files of a lab that no metadata names, by PyIceberg."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(lab.metadata_location)
    named: set[str] = set()
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots:
        named.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                named |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    named |= seen
    folder = local(lab.location) / "metadata"
    named |= {str(folder / "version-hint.text")}
    # v<N> are all of the history; of a catalog those that a log names.
    file: Any = lab.metadata_location
    while file:
        named.add(file)
        if Path(file).name.startswith("v"):
            number = int(Path(file).name[1:].partition(".")[0])
            named |= {str(folder / f"v{n}.metadata.json") for n in range(1, number)}
            break
        log = ix.open(file).metadata.metadata_log
        named |= {entry.metadata_file for entry in log}
        file = log[0].metadata_file if log and log[0].metadata_file != file else None
    held = {path for path in local(lab.location).rglob("*") if path.is_file()}
    return {str(path) for path in held - {local(name) for name in named}}
