"""Examinations in steps: the same report, progress in words, and an end when nobody waits for it."""

from __future__ import annotations

import re
import threading

import iceexplore as ix
from iceexplore.doctor import examine_in_steps, verify_here


def test_an_examination_tells_its_progress() -> None:
    table = ix.sample("trips")
    some = table.snapshots[-2:]
    steps = examine_in_steps(table.state, level="files", verify=verify_here(), snapshots=some)
    told = []
    while True:
        try:
            told.append(next(steps))
        except StopIteration as end:
            report = end.value
            break
    assert told[0] == "Check 1 of 8: the metadata file …"
    assert [text for text in told if text.startswith("Check 8 of 8: ")]
    opening = [re.fullmatch(r"Opening files, snapshot (\d+) of 2: (\d+)% …", text) for text in told]
    seen = [(int(found[1]), int(found[2])) for found in opening if found]
    assert seen == sorted(seen) and seen[-1] == (2, 100)
    assert report.findings == table.check("files", snapshots=some).findings


def test_an_examination_that_is_closed_stops() -> None:
    steps = examine_in_steps(ix.sample("trips").state, level="files", verify=verify_here())
    for text in steps:
        if text.startswith("Opening files"):
            break
    steps.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("iceexplore-verify")]
