"""What people see of rows: tables, sentences, stories, pictures; and what each of these costs to read."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.storage import CACHE
from tests.helpers.tables.rows_table import Lab


@pytest.fixture(scope="module")
def lab() -> Lab:
    """A row that is deleted, one that is updated, one that is compacted."""
    made = Lab.start(3)
    made.append([(1, "a"), (2, "b"), (7, "c")])
    made.delete([(made.files()[0], 0)])
    made.delete_equal([(7, "c")], [(7, "new")])
    made.compact()
    return made


def test_a_table_of_places(lab: Lab) -> None:
    found = lab.table.rows("id = 7", columns=["x"], history=True)
    frame = found.to_pandas()
    assert list(frame.columns[:6]) == ["id", "x", "_file", "_pos", "_row_id", "_last_updated_sequence_number"]
    assert frame["_fate"].tolist() == ["deleted", "moved", "live"]
    assert frame["_fate_snapshot_id"].tolist()[:2] == [lab.commits[2].snapshot_id, lab.commits[3].snapshot_id]
    assert frame["_delete_kind"].tolist()[0] == "equality-delete"
    assert frame["_moved_to_file"].tolist()[1] == frame["_file"].tolist()[2]
    assert frame["_moved_to_guess"].tolist()[1] is False
    assert str(frame["_added_at"].dtype).startswith(("timestamp", "datetime64"))
    text = repr(found)
    assert "Deleted" in text and "deleted in snapshot" in text and "history in the metadata" in text
    assert "<table" in found._repr_html_() and "moved by compaction" in found[1].fate.text
    assert lab.table.rows("id = 99").to_pandas().empty and "none was found" in repr(lab.table.rows("id = 99").story())


def test_a_story_in_order_of_time_and_its_picture(lab: Lab) -> None:
    story = lab.table.rows("id in (1, 7)", history=True).story()
    text = story.to_text()
    dead, old, new = text.split("\n\n")[1:]
    assert "no longer live" in dead and "by deletion vector" in dead
    assert "by equality delete file" in old and old.rstrip().endswith("no longer live")
    assert "the same _row_id" in new and "now" in new and "live in data/" in new
    times = [line.strip()[:23] for line in new.splitlines()[1:-1]]
    assert times == sorted(times) and lab.table.location not in text
    root = ET.fromstring(story.to_svg())
    assert root.tag.endswith("svg")
    scene = story.scene()
    assert Counter(n.kind for n in scene.nodes)["data-file"] == 4
    assert [e.label for e in scene.edges] == ["same _row_id"]
    assert story.to_mermaid().startswith("flowchart")
    bundle = story._repr_mimebundle_()
    assert bundle["text/plain"] == text and "<img" in bundle["text/html"] and "<svg" not in bundle["text/html"]


def test_hostile_values_do_not_reach_the_page() -> None:
    made = Lab.start(2)
    made.append([(1, "<script>alert(1)</script>\x1b[31m")])
    found = made.table.rows("id = 1", columns=["x"])
    for text in (found._repr_html_(), found.story()._repr_mimebundle_()["text/html"], found.story().to_svg()):
        assert "<script>" not in text
    assert "\x1b" not in repr(found) + found.story().to_text()
    made.table.close()


def test_a_limit_is_reported(lab: Lab) -> None:
    made = Lab.start(2)
    for i in range(3):
        made.append([(i, "a"), (i + 10, "a")])
    found = made.table.rows("x = 'a'", limit=2)
    assert len(found) == 2 and not found.complete and "limit=" in repr(found)
    assert made.table.rows("x = 'a'", limit=None).complete
    for wrong in (0, -1):
        with pytest.raises(OptionError, match="limit"):
            made.table.rows("x = 'a'", limit=wrong)
    with pytest.raises(OptionError, match="history='all'"):
        made.table.rows("id = 1", history="all")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no column 'idd'"):
        made.table.rows("id = 1", columns=["idd"])
    made.table.close()


def test_a_partition_alone() -> None:
    made = Lab.start(3, partitioned=True)
    made.append([(1, "a"), (1, "b")])
    found = made.table.rows("id = 1", partition={"x": "b"}, columns=["x"])
    assert [p.values for p in found] == [{"id": 1, "x": "b"}]
    made.table.close()


def test_each_file_is_read_once_and_pruned_ones_never() -> None:
    made = Lab.start(2)
    for i in range(4):
        made.append([(10 * i, "a"), (10 * i + 1, "a")])
    made.delete([next(p for p, life in made.lives.items() if life.values[0] == 20)])
    t = made.table.table
    CACHE.clear()
    t.reads.clear()
    found = t.rows("id = 20", columns=["x"], history=True)
    assert [p.fate.kind for p in found] == ["deleted"] and found.candidates == 1
    opened = Counter(r.location for r in t.reads if r.kind == "data-file" and r.offset == 0)
    assert list(opened) == [found[0].file]
    manifests = Counter(r.location for r in t.reads if r.kind in ("manifest", "manifest-list"))
    assert set(manifests.values()) == {1}
    deletes = {r.location for r in t.reads if r.kind == "delete-file"}
    assert deletes == {found[0].fate.deletes[0].location}
    made.table.close()


def test_identifier_fields_are_shown_and_link_updates_below_version_3(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "x": "string"}, format_version=2, seed=3)
    s.append(pd.DataFrame({"id": [1, 2], "x": ["a", "b"]}))
    path = s.inspect.data_files()["file_path"].iloc[0]
    s.row_delta(pd.DataFrame({"id": [1], "x": ["c"]}), deletes={path: [0]})
    s.save(tmp_path / "t", data="copy")
    s.close()
    _identify(tmp_path / "t", "id")
    t = ix.open(tmp_path / "t")
    found = t.rows("x in ('a', 'c')")
    assert [p.values for p in found] == [{"id": 1, "x": "a"}, {"id": 1, "x": "c"}]
    move = found[0].fate.moved_to
    assert move is not None and (move.file, move.guess, move.changed) == (found[1].file, True, True)
    assert "continues in" in found[0].fate.text and "a guess: equal identifiers" in found[0].fate.text
    assert len(found.story().rows) == 1
    changes = t.changes(rows=True, compute_updates=True)
    assert changes["_change_type"].to_pylist() == ["UPDATE_BEFORE", "UPDATE_AFTER"]


def _identify(folder: Path, name: str) -> None:
    """Make a column required and the identifier, as Java does when a table is created."""
    newest = max((folder / "metadata").glob("*.metadata.json"), key=lambda p: int(re.findall(r"\d+", p.name)[0]))
    document = json.loads(newest.read_text())
    for schema in document["schemas"]:
        for column in schema["fields"]:
            if column["name"] == name:
                column["required"] = True
                schema["identifier-field-ids"] = [column["id"]]
    newest.write_text(json.dumps(document))


def test_a_limit_ends_within_a_file() -> None:
    made = Lab.start(2)
    made.append([(i, "a") for i in range(50)])
    found = made.table.rows("x = 'a'", limit=7)
    assert (len(found), found.complete) == (7, False)
    assert [place.position for place in found] == list(range(7))
    assert made.table.rows("x = 'a'", limit=50).complete
    made.table.close()
