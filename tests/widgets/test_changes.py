"""The tab Changes: counted as everywhere else, by partition, with links, and honest about what cannot be counted."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.graph import diff, snapshot_change, travel
from iceexplore.widgets import Explorer
from iceexplore.widgets.changes._counted import count_changes, recorded_otherwise
from tests.helpers.hostile import HOSTILE

Show = Callable[[Any], Explorer]


@pytest.fixture
def show() -> Iterator[Show]:
    made: list[Explorer] = []

    def make(table: Any) -> Explorer:
        made.append(Explorer(table))
        assert made[-1].settle(60) and made[-1].error == {}
        return made[-1]

    yield make
    for widget in made:
        widget.close()


def page(widget: Explorer) -> dict[str, Any]:
    assert widget.settle(60) and widget.error == {}
    return dict(widget.pages["detail"])


def texts(blocks: list[Any]) -> str:
    return json.dumps(blocks, ensure_ascii=False)


def headline(widget: Explorer) -> str:
    (block,) = page(widget)["above"][:1]
    return "".join(part if isinstance(part, str) else part[1] for part in block[1])


def tables_of_corpus(corpus: Path) -> Iterator[ix.Table]:
    for folder in sorted(path.parent for path in corpus.rglob("metadata") if path.is_dir()):
        if any(path.name.endswith("metadata.json") for path in (folder / "metadata").iterdir()):
            try:
                yield ix.open(folder)
            except ix.IceexploreError:
                continue  # another test's


_KEYS = {"data_files": "data-files", "delete_files": "delete-files", "rows": "records", "bytes": "files-size"}


def agree(table: ix.Table) -> list[list[tuple[str, str]]]:
    """Assert that card, timeline, diff and tab agree; return for each commit what its summary records otherwise."""
    out = []
    for one in table.metadata.snapshots:
        before = None if one.parent_snapshot_id is None else table.metadata.snapshot(one.parent_snapshot_id)
        if before is None and one.parent_snapshot_id is not None:
            continue
        counted = count_changes(table.state, one.snapshot_id)
        now = travel(table.state, snapshot=one.snapshot_id)
        assert diff(table.state.showing(before, now.schema, ref=None, travel=None), now).change == counted.change
        recorded = snapshot_change(one.operation, one.summary)  # the card's, the tree's and the timeline's
        otherwise = [(measure, side) for measure, side, _, _ in recorded_otherwise(counted)]
        out.append(otherwise)
        if otherwise or counted.unread:
            continue
        for measure, key in _KEYS.items():
            if {f"added-{key}", f"deleted-{key}"} & set(one.summary or ()):
                assert getattr(recorded, measure) == getattr(counted.change, measure), (one.summary, counted.change)
    return out


def test_every_place_counts_a_commit_in_one_way() -> None:
    assert agree(ix.sample("trips")) == [[]] * 12


@pytest.mark.corpus
def test_every_place_counts_a_commit_of_real_tables_in_one_way(corpus: Path) -> None:
    found = {(table.name, i): one for table in tables_of_corpus(corpus) for i, one in enumerate(agree(table))}
    assert len(found) > 150
    # Its summary adds up the sizes of other files than its manifests list.
    odd = {at: one for at, one in found.items() if one}
    assert odd == {("iceberg_legacy_partition_schema_evolution_orc", 0): [("bytes", "added")]}


def test_a_commit_s_changes_are_shown_first(show: Show) -> None:
    table = ix.sample("trips")
    widget = show(table)
    assert [tab["title"] for tab in widget.detail["tables"]][:2] == ["Changes", "Manifests"]
    assert page(widget)["table"] == "changes"
    assert headline(widget) == "delete by spark 4.1.4 · −1 data file · −58 rows · −1 delete file · −2.4 KiB"
    sums = texts(page(widget)["above"])
    assert '["b", "live rows"]' in sums and "2 rows of the removed files had been deleted before." in sums
    assert '["value", "started_at_day=2024-03-01"]' in sums
    # of a commit that changed the schema, by field id
    third = table.snapshots[2]
    widget.select(f"snapshot:{third.snapshot_id}", snapshot=third)
    assert page(widget)["table"] == "changes", "the tab stays when another snapshot is selected"
    assert "station renamed to start_station (field id 3)" in texts(page(widget)["above"])
    # and of one that took rows by deletes
    ninth = table.snapshots[8]
    widget.select(f"snapshot:{ninth.snapshot_id}", snapshot=ninth)
    assert "Deletes removed 18 rows of files that stay." in texts(page(widget)["above"])
    assert "property" in texts(page_of(widget, table.snapshots[7])["above"])


def page_of(widget: Explorer, snapshot: Any) -> dict[str, Any]:
    widget.select(f"snapshot:{snapshot.snapshot_id}", snapshot=snapshot)
    return page(widget)


def test_a_commit_that_moved_files_between_manifests_changed_none(show: Show) -> None:
    table = ix.sample("trips")
    found = page_of(show(table), table.snapshots[10])
    assert (found["total"], found["none"]) == (0, "No files were added or removed.")
    assert "Manifests: +1 −3, 4 carried over" in texts(found["above"])


@pytest.mark.parametrize("version", [3, 4])
def test_each_file_leads_to_its_node_and_back(version: int, show: Show) -> None:
    table: Any = ix.sample("trips")
    if version == 4:
        table = table.simulate(format_version=4)
        table.append(files=2, rows=10)
        table.delete_files(table.inspect.files()["file_path"].tolist()[:1])
    widget = show(table)
    met = set()
    for one in table.snapshots[-4:]:
        found = page_of(widget, one)
        for row, node in zip(found["rows"], found["nodes"], strict=True):
            change, location = row[found["shown"].index(1)], row[found["shown"].index(0)]
            of = one.snapshot_id if change == "added" else one.parent_snapshot_id
            assert node is not None and node.startswith(f"file:{of}:")
            met.add(change)
            there = travel(table.state, snapshot=of)
            assert location is not None
            tree = ix.graph.build_tree(there, depth="snapshots")
            assert str(tree.node(node).location).endswith(location.strip("…")[-30:])
    assert met == {"added", "removed"}
    # opening a row keeps the list beside the file's own tables
    node = found["nodes"][0]
    widget.query = {"detail": {"of": found["of"], "table": "changes", "node": node, "n": found["n"] + 1}}
    widget.select(node, snapshot=node.split(":")[1])
    assert page(widget)["table"] == "changes"
    assert {"key": "changes", "title": "↑ Changes", "of": found["of"]} in widget.detail["tables"]


def test_two_snapshots_are_compared_from_the_older_to_the_newer(show: Show) -> None:
    table = ix.sample("trips")
    widget = show(table)
    first, last = table.snapshots[3], table.snapshots[-1]
    widget.select(against=first)
    found = page(widget)
    assert [tab["title"] for tab in widget.detail["tables"]][:3] == ["Compared", "Changes", "Manifests"]
    assert found["table"] == f"compared:{first.snapshot_id}"
    assert headline(widget) == "+6 −1 data files · +358 −125 rows · +10 −7 delete files · +19.0 KiB −13.0 KiB"
    assert "7 commits (3 delete, 1 replace, 2 append, 1 overwrite)" in texts(found["above"])
    counts = dict(zip(("data_files", "rows", "delete_files", "bytes"), widget.comparison["rows"], strict=True))
    change = table.diff(first.snapshot_id, last.snapshot_id).change
    assert {name: (more, less) for name, (_, more, less) in counts.items()} == {
        name: getattr(change, name) for name in counts
    }
    # swapped, the other snapshot is in the tree, and the change is the same
    widget.selection = {"snapshot": str(first.snapshot_id), "against": str(last.snapshot_id),
                        "node": f"snapshot:{first.snapshot_id}"}  # fmt: skip
    swapped = page(widget)
    assert swapped["table"] == f"compared:{last.snapshot_id}"
    assert (swapped["above"], swapped["rows"]) == (found["above"], found["rows"])
    # a removed file is that of the older snapshot
    assert {node.split(":")[1] for node in found["nodes"] if node} == {str(first.snapshot_id), str(last.snapshot_id)}
    widget.select(against="")
    assert page(widget)["table"] == "changes"
    assert [tab["title"] for tab in widget.detail["tables"]][:2] == ["Changes", "Manifests"]


def test_metadata_changes_are_those_since_the_parent(show: Show) -> None:
    s = ix.sample("trips").simulate()
    s.append(files=1, rows=10)
    s.set_properties({"x.level": "1"})
    s.set_sort_order("km")
    s.branch("audit")
    s.append(files=1, rows=10)
    found = texts(page(show(s))["above"])
    assert '["property ", ["code", "x.level"], " set to ", ["value", "1"]]' in found
    assert "sort order changed from unsorted to km" in found
    assert '["branch ", ["code", "audit"], " created at ", ["go"' in found
    assert "main" not in found, "that a branch moved to the commit is no news"


def test_numbers_that_cannot_be_counted_say_so(show: Show, tmp_path: Path) -> None:
    folder = tmp_path / "trips"
    shutil.copytree(Path(sample_path("trips")), folder)
    table = ix.open(folder)
    assert table.snapshot is not None and table.snapshot.parent_snapshot_id is not None
    manifests = table.diff(table.snapshot.parent_snapshot_id).manifests
    gone = manifests.loc[manifests["change"] == "added", "location"].iloc[0]
    next(folder.rglob(gone.rpartition("/")[2])).unlink()
    widget = show(ix.open(folder))
    found = page(widget)
    above = texts(found["above"])
    assert "▲ These numbers are not exact: a file that lists changes cannot be read" in above
    assert f'"manifest:{table.snapshot.snapshot_id}:' in above, "with a link to it"
    assert "▲" in texts(found["above"][3]), "where the numbers are"
    assert found["lacks"] == "Rows may be missing: 1 of the files that list them cannot be read."


def test_a_summary_that_records_something_else_is_contradicted(show: Show, tmp_path: Path) -> None:
    folder = tmp_path / "trips"
    shutil.copytree(Path(sample_path("trips")), folder)
    table = ix.open(folder)
    file = next(folder.rglob(table.metadata_location.rpartition("/")[2]))
    document = json.loads(gzip.decompress(file.read_bytes()))
    document["snapshots"][-1]["summary"]["deleted-data-files"] = "3"
    file.write_bytes(gzip.compress(json.dumps(document).encode()))
    words = texts(page(show(ix.open(folder)))["above"])
    assert "The snapshot's summary records 3 data files removed; counted: 1." in words


def test_without_its_parent_a_commit_is_counted_by_statuses(show: Show) -> None:
    s = ix.sample("trips").simulate()
    s.append(files=2, rows=10)
    s.append(files=3, rows=10)
    last = s.table.snapshot
    assert last is not None
    s.expire_snapshots(older_than=last.timestamp_ms + 1, retain_last=1)
    assert s.table.metadata.snapshot(last.parent_snapshot_id or 0) is None
    found = page_of(show(s), last)
    assert found["total"] == 3
    assert "The parent snapshot has expired" in texts(found["above"])


def test_hostile_names_are_harmless(show: Show) -> None:
    s = ix.sample("trips").simulate()
    names = {name: text for name, text in HOSTILE.items() if text and "\x00" not in text and "\ud800" not in text}
    s.append(files=1, rows=1)
    s.set_properties({f"p.{name}": text[:500] for name, text in names.items()})
    s.append(files=1, rows=1)
    sent = json.dumps(page(show(s)), ensure_ascii=False)
    sent.encode()
    for sign in ("\u202e", "\x1b", "\u200b", "\u2066"):
        assert sign not in sent


def saved(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8").partition('id="ice-data">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_saved_page_has_the_changes_and_the_comparison(show: Show, tmp_path: Path) -> None:
    table = ix.sample("trips")
    widget = show(table)
    first, last = (str(table.snapshots[i].snapshot_id) for i in (3, -1))
    live = page(widget)["above"]
    widget.select(against=first)
    compared = page(widget)["above"]
    made = widget.save_html(tmp_path / "trips.html")
    found = saved(made.path)
    assert found["traits"]["selection"]["against"] == first
    of_last = found["tables"][f"snapshot:{last}"]
    assert list(of_last)[:2] == [f"compared:{first}", "changes"]
    assert of_last["changes"]["above"] == live
    assert of_last[f"compared:{first}"]["above"] == compared
    assert len(of_last[f"compared:{first}"]["rows"]) == 24 and any(of_last[f"compared:{first}"]["nodes"])
    assert f"compared:{last}" in found["tables"][f"snapshot:{first}"], "swapped"
    assert (
        "+358 −125 rows" in made.path.read_text(encoding="utf-8").partition("<noscript>")[2].partition("</noscript>")[0]
    )


@pytest.mark.parametrize("kinds", [("values",), ("names",), True])
def test_a_redacted_page_has_no_values_names_and_secrets_of_changes(show: Show, tmp_path: Path, kinds: Any) -> None:
    s = ix.create(tmp_path / "t", {"id": "long", "animal": "string"}, partition_by="animal")
    s.append({"id": [1], "animal": ["walruszq"]})
    s.set_properties({"badgerzq.note": "otterzq", "s3.secret-access-key": "hunter2zq"})
    s.append({"id": [2], "animal": ["walruszq"]})
    widget = show(ix.open(tmp_path / "t"))
    plain = texts(page(widget)["above"])
    assert "animal=walruszq" in plain and "otterzq" in plain
    widget.select(against=s.snapshots[0])
    words = saved(widget.save_html(tmp_path / "page.html", redact=kinds).path)
    of = words["tables"][f"snapshot:{s.snapshots[-1].snapshot_id}"]
    assert {"changes", f"compared:{s.snapshots[0].snapshot_id}"} <= set(of)
    sent = json.dumps(of)
    assert "+1 data file" in sent and "otterzq" not in sent and "hunter2zq" not in sent
    if kinds != ("names",):
        assert "walruszq" not in sent
    if kinds != ("values",):
        assert "badgerzq" not in sent and "animal" not in sent


def test_column_files_are_neither_data_nor_delete_files(show: Show) -> None:
    s = ix.empty({"id": "long", "kind": "string", "x": "long"}, partition_by=["kind"], seed=1, format_version=4,
                 dialect="v4-draft")  # fmt: skip
    s.append(pa.table({"id": [1, 2, 3], "kind": ["a", "a", "b"], "x": [1, 2, 3]}))
    s.update_columns({"x": 0})
    widget = show(s)
    assert headline(widget).startswith("overwrite · +2 column files · +")
    sums, partitions = (block for block in page(widget)["above"] if block[0] == "table")
    assert [row[0] for row in sums[2]] == [["column files"], [["b", "live rows"]]]
    assert texts(sums[2][1]).count("no change") == 1
    for row in partitions[2]:
        assert [row[1], row[2]] == [[""], [""]], "no data file and no delete file changed"
        assert texts(row[4]).startswith('["+')


def test_a_version_of_a_delta_table_has_no_metadata_files_to_compare(show: Show) -> None:
    widget = show(ix.sample("delta"))
    assert "metadata file" not in texts(page(widget)["above"])
