"""Places of rows in damaged tables: what is known is shown, and what is missing is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import iceexplore as ix
from tests.helpers.tables.rows_table import Lab

Damage = Callable[[ix.Table], str | None]


def saved(tmp_path: Path, version: int = 3) -> tuple[ix.Table, list[int]]:
    """Two rows; one deleted, then the other; both compacted with a third one."""
    lab = Lab.start(version)
    lab.append([(1, "a"), (2, "a"), (3, "a")])
    path = lab.files()[0]
    lab.delete([(path, 0)])
    lab.append([(4, "b")])
    lab.delete([(path, 1)])
    lab.compact()
    lab.table.save(tmp_path / "t", data="copy")
    lab.table.close()
    return ix.open(tmp_path / "t"), [s.snapshot_id for s in lab.commits]


def destroy(location: str | None) -> None:
    assert location is not None
    Path(location).write_bytes(b"Obj\x01 this was a file")


def test_a_data_file_that_is_gone_is_named(tmp_path: Path) -> None:
    t, _ = saved(tmp_path)
    old = t.at(snapshot=t.snapshots[0].snapshot_id).inspect.data_files()["file_path"].iloc[0]
    Path(old).unlink()
    t = ix.open(tmp_path / "t")
    found = t.rows("id = 3", history=True)
    assert [p.fate.kind for p in found] == ["live"]
    assert list(found.unread) == [old] and "does not exist" in found.unread[old]
    assert [p.code for p in t.problems] == ["file-missing"]
    assert "could not be read" in repr(found) and old in found._repr_html_()
    with pytest.raises(ix.FileMissingError):
        ix.open(tmp_path / "t", strict=True).rows("id = 3", history=True)


def test_a_root_that_is_gone_leaves_the_rest_of_the_history(tmp_path: Path) -> None:
    t, ids = saved(tmp_path)
    destroy(t.snapshots[2].manifest_list)
    t = ix.open(tmp_path / "t")
    first, second = (t.rows(f"id = {i}", history=True)[0] for i in (1, 2))
    assert (first.fate.kind, first.fate.by and first.fate.by.snapshot_id) == ("deleted", ids[1])
    assert (second.fate.kind, second.fate.by and second.fate.by.snapshot_id) == ("deleted", ids[3])
    assert t.problems


def test_the_snapshot_of_a_delete_comes_from_its_entry_if_its_root_is_missing(tmp_path: Path) -> None:
    t, ids = saved(tmp_path)
    destroy(t.snapshots[1].manifest_list)
    t = ix.open(tmp_path / "t")
    first = t.rows("id = 1", history=True)[0]
    assert (first.fate.kind, first.fate.by and first.fate.by.snapshot_id) == ("deleted", ids[1])


def test_a_removal_in_a_root_that_is_gone_is_not_certain(tmp_path: Path) -> None:
    lab = Lab.start(2)
    lab.append([(1, "a")])
    lab.append([(2, "a")])
    lab.remove(next(place[0] for place, life in lab.lives.items() if life.values[0] == 1))
    lab.append([(3, "a")])
    lab.table.save(tmp_path / "t", data="copy")
    lab.table.close()
    t = ix.open(tmp_path / "t")
    destroy(t.snapshots[2].manifest_list)
    t = ix.open(tmp_path / "t")
    place = t.rows("id = 1", history=True)[0]
    assert place.fate.kind == "removed" and not place.fate.sure
    assert f"removed with its file in or before snapshot {lab.commits[3].snapshot_id}" in place.fate.text


def test_a_vector_that_cannot_be_read_leaves_the_fate_open(tmp_path: Path) -> None:
    t, ids = saved(tmp_path)
    at = t.at(snapshot=ids[3])
    vector = at.inspect.delete_files()["file_path"].iloc[0]
    destroy(vector)
    t = ix.open(tmp_path / "t").at(snapshot=ids[3])
    kinds = {p.values["id"]: p.fate.kind for p in t.rows("id < 5", columns=["id"])}
    assert kinds == {1: "unknown", 2: "unknown", 3: "unknown", 4: "live"}
    assert "cannot be read" in t.rows("id = 1")[0].fate.text
    assert t.problems


def test_a_manifest_of_deletes_that_cannot_be_read_leaves_the_fate_open(tmp_path: Path) -> None:
    t, ids = saved(tmp_path)
    manifests = t.at(snapshot=ids[1]).inspect.manifests()
    destroy(manifests[manifests["content"] == 1]["path"].iloc[0])
    t = ix.open(tmp_path / "t").at(snapshot=ids[1])
    found = t.rows("id = 1", history=True)
    assert [p.fate.kind for p in found] == ["unknown"] and "is partly unreadable" in found[0].fate.text


def test_a_manifest_of_data_that_cannot_be_read_says_nothing_of_removal(tmp_path: Path) -> None:
    lab = Lab.start(2)
    lab.append([(1, "a")])
    lab.append([(2, "a")])
    lab.table.rewrite_manifests()
    lab.table.save(tmp_path / "t", data="copy")
    lab.table.close()
    t = ix.open(tmp_path / "t")
    destroy(t.inspect.manifests()["path"].iloc[0])
    t = ix.open(tmp_path / "t")
    assert [p.fate.kind for p in t.rows("id = 1", history=True)] == ["unknown"]


def test_expired_snapshots_are_reported_as_missing() -> None:
    lab = Lab.start(3)
    lab.append([(1, "a"), (2, "b")])
    lab.delete([(lab.files()[0], 0)])
    lab.append([(3, "c")])
    first, second, _ = (s.snapshot_id for s in lab.commits)
    lab.table.expire_snapshots([first, second])
    for history in (False, True):
        place = lab.table.rows("id = 1", history=history)[0]
        assert (place.added.snapshot_id, place.added.known) == (first, False)
        assert place.fate.kind == "deleted" and place.fate.by is not None and place.fate.by.snapshot_id == second
        assert f"snapshot {second} (no longer in the metadata)" in place.fate.text
    assert "no longer in the metadata" in lab.table.rows("id = 1").story().to_text()
    lab.table.close()


def test_a_struct_whose_fields_are_gone_from_the_schema_keeps_its_rows(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "more": "struct<a: long>"})
    lab.append({"id": [1, 2, 3], "more": [{"a": 1}, None, {"a": 3}]})
    lab.append({"id": [4], "more": [{"a": 4}]})
    path = tmp_path / "t" / "metadata" / ix.open(tmp_path / "t").metadata_location.rsplit("/", 1)[-1]
    document = json.loads(path.read_text())
    document["schemas"][0]["fields"][1]["type"]["fields"] = 2147483647
    path.write_text(json.dumps(document))
    found = ix.open(tmp_path / "t").to_arrow()
    assert found["id"].to_pylist() == [4, 1, 2, 3]
    assert found["more"].to_pylist() == [{}, {}, None, {}]
