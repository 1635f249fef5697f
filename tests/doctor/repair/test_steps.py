"""Examinations in steps: the same report, progress in words, and an end when nobody waits for it."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import iceexplore as ix
from iceexplore.doctor import examine_in_steps, verify_here


def two_snapshots(folder: Path) -> ix.Table:
    lab = ix.create(folder / "t", {"id": "long"})
    lab.append({"id": [1, 2]})
    lab.append({"id": [3]})
    return ix.open(folder / "t")


def test_an_examination_tells_its_progress(tmp_path: Path) -> None:
    table = two_snapshots(tmp_path)
    steps = examine_in_steps(table.state, level="files", verify=verify_here(), snapshots="all")
    texts = []
    while True:
        try:
            texts.append(next(steps))
        except StopIteration as end:
            report = end.value
            break
    assert texts[0] == "Check 1 of 9: the metadata file …"
    assert [text for text in texts if text.startswith("Check 9 of 9: ")]
    opening = [re.fullmatch(r"Opening files, snapshot (\d+) of 2: (\d+) % …", text) for text in texts]
    seen = [(int(found[1]), int(found[2])) for found in opening if found]
    assert seen == sorted(seen) and seen[-1] == (2, 100)
    assert report.findings == table.check("files", snapshots="all").findings


def test_an_examination_that_is_closed_stops(tmp_path: Path) -> None:
    steps = examine_in_steps(two_snapshots(tmp_path).state, level="files", verify=verify_here())
    for text in steps:
        if text.startswith("Opening files"):
            break
    steps.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("iceexplore-verify")]
