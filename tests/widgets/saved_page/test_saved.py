"""Saved pages: one file, nothing asked for, nothing in it that was to be left out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.errors import StorageError
from iceexplore.graph import REDACTIONS
from iceexplore.widgets import Explorer
from iceexplore.widgets.saved_page._content import Collected
from iceexplore.widgets.saved_page._redact import PageRedactor
from iceexplore.widgets.saved_page._save import SavedPagePanel
from iceexplore.widgets.tree._forest import Forest, View
from tests.helpers.full_disk import little_room
from tests.helpers.hangs import ends

SECRET = "hunter2zq"
VALUE = "walruszq"
FOLDER = "badgerzq"


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def telling(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Explorer:
    """A table whose secrets, values and paths are words that nothing else has."""
    folder = tmp_path_factory.mktemp(f"v{request.param}") / FOLDER / "zoo"
    lab = ix.create(
        folder,
        {"id": "long", "animal": "string"},
        partition_by="animal",
        format_version=request.param,
        properties={"s3.secret-access-key": SECRET, "note": f"https://user:{SECRET}@example.com/x?sig={SECRET}"},
    )
    lab.append({"id": [1, 2], "animal": [VALUE, f"{VALUE}-two"]})
    lab.append({"id": [3], "animal": [f"{VALUE}-two"]})
    lab.delete("id = 1")
    return Explorer(ix.open(folder))


def data_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="ice-data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    saved: dict[str, Any] = json.loads(found[1])
    return saved


def test_a_page_holds_tree_tables_and_timeline(tmp_path: Path) -> None:
    table = ix.sample("trips")
    widget = Explorer(table)
    made = widget.save_html(tmp_path / "trips.html")
    assert made.path.stat().st_size == made.size < 5_000_000
    saved = data_of(made.path)
    assert set(saved["trees"]) == {str(s.snapshot_id) for s in table.snapshots}
    assert saved["traits"]["selection"] == widget.selection
    nodes = {i for tree in saved["trees"].values() for i, n in tree["nodes"].items() if n["kind"] != "more"}
    assert nodes == set(saved["details"])
    assert any(i.startswith("file:") for i in nodes)
    now = widget.selection["node"]
    files = saved["tables"][now]["files"]
    frame = table.inspect.files()
    assert files["total"] == len(files["rows"]) == len(frame)
    place = [c["name"] for c in files["columns"]].index("file_path")
    assert sorted(row[place] for row in files["rows"]) == sorted(frame["file_path"])


def test_files_and_the_plan_are_in_a_page(tmp_path: Path) -> None:
    """Cells of each snapshot as the widget has them, and the plan that is shown; values in neither if redacted."""
    widget = Explorer(ix.sample("trips"), scan_filter="started_at < '2024-03-02'")
    assert widget.settle(60)
    assert "scan_plan" in data_of(widget.save_html(tmp_path / "none.html").path)["traits"]
    widget.tab = "scan"
    assert widget.settle(60) and widget.scan_plan
    widget.tab = "files"
    assert widget.settle(60)
    data = data_of(widget.save_html(tmp_path / "a.html", redact=False).path)
    assert data["traits"]["parts"][:4] == [["tree", "Tree"], ["files", "Files"], ["rows", "Rows"], ["scan", "Scan"]]
    assert set(data["files"]) == set(data["trees"])
    shown = {k: v for k, v in widget.file_map.items() if k not in ("filter", "filters")}
    assert data["files"][widget.file_map["of"]] == shown
    assert data["traits"]["scan_plan"]["headline"] == widget.scan_plan["headline"]
    assert set(data["traits"]["scan_nodes"]) == set(widget.scan_nodes)
    redacted = data_of(widget.save_html(tmp_path / "b.html", redact=["values"]).path)
    assert "2024-03" not in json.dumps(redacted["files"])
    assert {group[0] for cells in redacted["files"].values() for group in cells["groups"]} == {"REDACTED"}
    assert redacted["traits"]["scan_plan"] == {}
    assert "2024-03-02" not in json.dumps(redacted["traits"]["scan_nodes"])
    widget.close()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    widget = Explorer(ix.sample("trips"))
    place = tmp_path / "trips.html"
    place.write_text("mine")
    with pytest.raises(FileExistsError):
        widget.save_html(place, max_bytes=0)
    assert place.read_text() == "mine"
    with pytest.raises(ix.OptionError, match="choose from credentials, values, paths, names"):
        widget.save_html(place, redact="everything", overwrite=True)
    widget.save_html(place, max_bytes=0, overwrite=True)
    assert place.read_text().startswith("<!DOCTYPE html>")


def test_a_full_disk_leaves_the_old_page(tmp_path: Path) -> None:
    widget = Explorer(ix.sample("trips"))
    before = widget.save_html(tmp_path / "trips.html", max_bytes=0).path.read_bytes()
    with little_room(), pytest.raises(StorageError, match="nothing was changed"):
        widget.save_html(tmp_path / "trips.html", max_bytes=0, overwrite=True)
    assert (tmp_path / "trips.html").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["trips.html"]


def test_invalid_arguments_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = Explorer(ix.sample("trips"))
    place = tmp_path / "trips.html"
    for path, why in [(None, "expected the file"), (tmp_path, "is a folder"), (tmp_path / "none" / "x", "not exist")]:
        with pytest.raises(ix.OptionError, match=why):
            widget.save_html(path, overwrite=True)  # type: ignore[arg-type]
    for options in ({"rows": "5"}, {"rows": -1}, {"rows": 0}, {"rows": True}, {"max_bytes": -1}, {"redact": None}):
        with pytest.raises(ix.OptionError, match=f"{next(iter(options))}="):
            widget.save_html(place, **options)
    assert not place.exists()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert widget.save_html("~/trips.html", max_bytes=0).path == place
    with pytest.raises(ix.IceexploreError, match="overwrite=True replaces it"):
        widget.save_html(place)


def test_what_does_not_fit_is_reported(tmp_path: Path) -> None:
    widget = Explorer(ix.sample("trips"))
    made = widget.save_html(tmp_path / "trips.html", max_bytes=20_000, rows=3)
    saved = data_of(made.path)
    assert widget.selection["snapshot"] in saved["trees"], "what is selected is always there"
    assert len(json.dumps(saved)) < 120_000
    assert any("snapshots" in line for line in made.left_out)
    for line in made.left_out:
        assert line in made.path.read_text()
    few = widget.save_html(tmp_path / "few.html", rows=3, max_bytes=300_000)
    assert any("the first 3 rows" in line for line in few.left_out)
    for tables in data_of(few.path)["tables"].values():
        assert all(len(table.get("rows", [])) <= 3 for table in tables.values())


def test_what_will_not_fit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = Explorer(ix.sample("trips"))
    read: list[tuple[str, str]] = []
    saved_table = SavedPagePanel._saved_table

    def counted(self: SavedPagePanel, of: str, key: str, rows: int) -> dict[str, Any]:
        read.append((of, key))
        return saved_table(self, of, key, rows)

    monkeypatch.setattr(SavedPagePanel, "_saved_table", counted)
    widget.save_html(tmp_path / "all.html", rows=3)
    everything = len(read)
    read.clear()
    made = widget.save_html(tmp_path / "few.html", rows=3, max_bytes=300_000)
    tables = sum(map(len, data_of(made.path)["tables"].values()))
    assert 0 < tables <= len(read) <= tables + 5 < everything
    widget.close()


def test_a_tree_makes_nodes_as_they_are_found() -> None:
    """A page takes them from its trees: looking each up takes a reading of its manifest."""
    table = ix.sample("trips")
    forest = Forest(table.state)
    for snapshot in table.snapshots:
        first = forest.start(snapshot.snapshot_id)
        inner = [i for i, node in first.nodes.items() if not node["leaf"]]
        made = forest.grow(View(snapshot.snapshot_id, (*first.expanded, *inner))).made
        assert any(node.id.startswith("file:") for node in made)
        for node in made:
            assert node == forest.node(node.id) or node.id.startswith("root:"), "which is there before it is read"


def test_the_policy_allows_what_is_in_the_page_alone(tmp_path: Path) -> None:
    text = Explorer(ix.sample("trips")).save_html(tmp_path / "trips.html", max_bytes=0).path.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy[1]
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        blocks = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(blocks) == 1
        digest = base64.b64encode(hashlib.sha256(blocks[0].encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert text.count("<script") == 2


def test_redacted(telling: Explorer, tmp_path: Path) -> None:
    whole = telling.save_html(tmp_path / "whole.html", redact=False).path.read_text()
    assert all(word in whole for word in (SECRET, VALUE, FOLDER)), "the words are where they could be seen"
    text = telling.save_html(tmp_path / "a.html").path.read_text()
    assert SECRET not in text
    assert VALUE in text
    text = telling.save_html(tmp_path / "b.html", redact=["values"]).path.read_text()
    assert VALUE not in text
    assert "record_count" in text
    text = telling.save_html(tmp_path / "d.html", redact=True).path.read_text()
    for word in (SECRET, VALUE, FOLDER):
        assert word not in text


def test_free_text_is_recognized_by_its_form(tmp_path: Path) -> None:
    """Engines count by partition in a summary's keys, and any key has any text; folders have spaces in their names."""
    folder = tmp_path / f"my {FOLDER}" / f"O'Brien {FOLDER}" / "zoo"
    lab = ix.create(folder, {"id": "long", "animal": "string"}, partition_by="animal", format_version=2)
    lab.append({"id": [1], "animal": ["ox"]})
    newest = sorted((folder / "metadata").glob("*.metadata.json"))[-1]
    document = json.loads(newest.read_bytes())
    document["properties"] |= {"note": f'see "{folder}" or {folder}/x', "write.data.path": f"{FOLDER}/data"}
    document["snapshots"][0]["summary"] |= {
        f"partitions.animal={VALUE}": "added-data-files=1",
        "user-name": VALUE,
        "total-records": VALUE,
    }
    newest.write_text(json.dumps(document))
    widget = Explorer(ix.open(folder))
    text = widget.save_html(tmp_path / "paths.html", redact=["paths"]).path.read_text()
    assert VALUE in text
    assert FOLDER not in text and "Brien" not in text
    made = widget.save_html(tmp_path / "values.html", redact=["values"])
    text = made.path.read_text()
    for word in (VALUE, FOLDER, "Brien"):
        assert word not in text
    snapshot = data_of(made.path)["details"][f"snapshot:{document['current-snapshot-id']}"]
    shown = dict(snapshot["facts"] + snapshot["more"])
    assert shown["partitions.REDACTED"] == shown["user-name"] == "REDACTED"
    assert (shown["added-records"], shown["operation"]) == ("1", "append")
    assert snapshot["help"]["added-records"][2].startswith("https://iceberg.apache.org/spec/#"), "the spec is no secret"


@pytest.mark.parametrize("text", ["a", "a.", ":", "/a", " /", "c:\\", '"/a', "\\"])
def test_redacting_takes_time_by_the_length_of_a_text(text: str) -> None:
    redactor = PageRedactor(frozenset(REDACTIONS), ())
    with ends(30):  # of a text of that length the square takes minutes
        redactor.text(text * 100_000)


def test_secrets_of_a_summary_are_nowhere(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "zoo", {"id": "long", "token": "string"}, format_version=2)
    lab.append({"id": [1], "token": ["x"]})
    lab.branch("tokens")
    newest = sorted((tmp_path / "zoo" / "metadata").glob("*.metadata.json"))[-1]
    document = json.loads(newest.read_bytes())
    document["snapshots"][0]["summary"] |= {"app.secret": SECRET, "note": f"password={SECRET}"}
    newest.write_text(json.dumps(document))
    widget = Explorer(ix.open(tmp_path / "zoo"))
    assert widget.save_html(tmp_path / "whole.html", redact=False).path.read_text().count(SECRET) > 4
    page = widget.save_html(tmp_path / "a.html")
    text = page.path.read_text()
    assert SECRET not in text
    plain = text[text.index("<noscript>") : text.index("</noscript>")]
    assert "total-records" in plain and "app.secret" in plain and "REDACTED" in plain
    refs = next(
        table for tables in data_of(page.path)["tables"].values() for key, table in tables.items() if key == "refs"
    )
    assert "REDACTED" not in json.dumps(refs), "the name of a ref is no key of a property"


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    widget = Explorer(ix.empty({"id": "long"}))
    saved = data_of(widget.save_html(tmp_path / "empty.html").path)
    assert set(saved["trees"]) == {""}
    assert "table" in saved["details"]


def test_what_is_left_out_is_counted_in_words() -> None:
    made = Collected(0, 1, PageRedactor.__new__(PageRedactor), cut=1)
    made.misses("tables")
    for _ in range(2):
        made.misses("snapshots")
    assert made.left_out() == [
        "Left out to limit the size of this page: 1 table.",
        "Left out to limit the size of this page: 2 snapshots.",
        "Only the first row is included of 1 table.",
    ]


def test_secrets_in_disguise_are_left_out_too(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "url": "string"}, partition_by="url", format_version=2)
    s.append(pd.DataFrame({"id": [1], "url": ["ftp://u:pa55word@h"]}))
    page = tmp_path / "page.html"
    widget = ix.widgets.Explorer(s.table)
    widget.save_html(page, redact=["credentials"])
    text = page.read_text(encoding="utf-8")
    widget.close()
    assert "REDACTED" in text
    for secret in ("pa55word", b"pa55word".hex()):
        assert secret not in text
    redactor = PageRedactor(frozenset({"credentials"}), ())
    token = b"ghp_abcdefgh12345678"
    encoded = [token.hex(), f"0x{token.hex()}", b64encode(token).decode(), "a/b=ftp%3A%2F%2Fu%3Apa55%40h/c.parquet"]
    assert redactor.text(" ".join(encoded)) == "REDACTED REDACTED REDACTED REDACTED"
    for plain in (b"a plain text of it".hex(), "s3://b/city=Bad%20Ems/x.parquet", "00000-11-13be5b35-cdb0-d1bf.avro"):
        assert redactor.text(plain) == plain


def test_what_the_proposal_leaves_open_is_no_secret(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=4, seed=1)
    s.append(2, rows=10)
    widget = Explorer(s.table)
    assert s.snapshot is not None
    widget.select(f"root:{s.snapshot.snapshot_id}")
    assert widget.settle(60)
    made = widget.save_html(tmp_path / "all.html", redact=True)
    root = data_of(made.path)["details"][f"root:{s.snapshot.snapshot_id}"]
    assert root["help"]["entries"][3] == ["thresholds"]
    title, says, answer = root["open"]["thresholds"]
    assert title == "When the root is flushed." and says[0].startswith("Ideally the time") and "4,000" in answer
