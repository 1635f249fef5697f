"""Labs spell their files as URIs, with the scheme that was given, and read tables that spell them in several ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build

MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def documents(folder: Path) -> list[Path]:
    """The metadata files, newest last."""
    return sorted((folder / "metadata").glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))


def places(lab: ix.Lab, folder: Path) -> list[str]:
    """Every location that the newest metadata, its manifests and delete files name."""
    document = json.loads(documents(folder)[-1].read_text(encoding="utf-8"))
    found = [document["location"], *(entry["metadata-file"] for entry in document.get("metadata-log", []))]
    for snapshot in document["snapshots"]:
        found += [value for value in snapshot.values() if isinstance(value, str) and "/" in value]
    found += build.to_pylist(lab.inspect.all_manifests.arrow()["path"])
    files = lab.inspect.all_files.arrow()
    found += build.to_pylist(files["file_path"])
    for path in build.to_pylist(files["file_path"]):
        if "delete" in path and path.endswith(".parquet"):
            found += build.to_pylist(pq.read_table(folder / path.partition(f"/{folder.name}/")[2])["file_path"])
    return found


@pytest.mark.parametrize(
    ("given", "spelled", "version", "name"),
    [
        ("", "file://", 2, "plain"),
        ("file://", "file://", 2, "with space"),
        ("file:", "file:", 3, "zäh"),
        ("file://", "file://", 4, "a%2Fb"),
        ("", "file://", 1, "a%20b"),
        ("", "", 3, "a#b"),  # PyIceberg would cut a URI there
        ("", "", 2, "a?b"),
    ],
)
def test_every_location_is_spelled_alike(tmp_path: Path, given: str, spelled: str, version: int, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()  # so that a percent sign in the URI is the folder's own
    lab = ix.create(
        f"{given}{folder}", {"id": "long"}, format_version=version, properties=MERGE_ON_READ if version > 1 else {}
    )
    assert lab.metadata.location == f"{spelled}{folder}"
    lab.append({"id": [1, 2, 3]})
    lab.delete("id = 2")
    assert lab.to_arrow()["id"].to_pylist() == [1, 3]
    assert all(place.startswith(f"{spelled}{folder}") for place in places(lab, folder))
    again = ix.lab(folder)
    again.append({"id": [4]})
    assert again.metadata.location == f"{spelled}{folder}"
    assert again.orphan_files().empty
    assert again.compact() is not None
    assert sorted(build.to_pylist(ix.open(f"{spelled}{folder}").to_arrow()["id"])) == [1, 3, 4]
    again.expire_snapshots(retain_last=1, older_than="2100-01-01")
    assert sorted(build.to_pylist(ix.lab(folder).to_arrow()["id"])) == [1, 3, 4]
    assert again.orphan_files().empty
    if version < 4:
        from pyiceberg.table import StaticTable

        theirs = StaticTable.from_metadata(str(documents(folder)[-1])).scan().to_arrow()
        assert sorted(theirs["id"].to_pylist()) == [1, 3, 4]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_lab_that_was_spelled_without_a_scheme_goes_on_so(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "lab"
    lab = ix.create(folder, {"id": "long"}, format_version=version, properties=MERGE_ON_READ)
    lab.append({"id": list(range(6))})
    lab.delete("id = 0")
    newest = documents(folder)[-1]
    newest.write_text(
        newest.read_text(encoding="utf-8").replace(f'"location":"file://{folder}"', f'"location":"{folder}"'),
        encoding="utf-8",
    )
    lab = ix.lab(folder)
    assert lab.metadata.location == str(folder)
    lab.append({"id": [6, 7]})
    lab.delete("id = 1 or id = 6")  # of one file spelled with a scheme, and of one without
    assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [2, 3, 4, 5, 7]
    assert lab.count() == 5
    spelled = {path[:5] for path in build.to_pylist(lab.inspect.data_files.arrow()["file_path"])}
    assert len(spelled) == 2
    assert lab.orphan_files().empty
    assert lab.compact() is not None
    assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [2, 3, 4, 5, 7]


@pytest.mark.parametrize("spelling", ["", "file:", "file://"])
def test_deletes_apply_however_they_spell_their_data_files(tmp_path: Path, spelling: str) -> None:
    folder = tmp_path / "lab"
    lab = ix.create(folder, {"id": "long"}, format_version=2, properties=MERGE_ON_READ)
    lab.append({"id": [1, 2, 3]})
    lab.delete("id = 2")
    [path] = build.to_pylist(lab.inspect.delete_files.arrow()["file_path"])
    file = Path(path.removeprefix("file://"))
    table: Any = pq.read_table(file)
    other = [f"{spelling}{place.removeprefix('file://')}" for place in build.to_pylist(table["file_path"])]
    table = table.set_column(0, table.schema.field(0), pa.array(other, pa.string()))
    pq.write_table(table, file, store_schema=False)
    opened = ix.open(folder)
    assert sorted(build.to_pylist(opened.to_arrow()["id"])) == [1, 3]
    assert opened.count() == 2
    assert opened.plan().tasks["deletes"].tolist() == [1]


def test_a_lab_in_a_catalog_is_spelled_as_a_uri(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("mine", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    lab = ix.create("db.t", {"id": "long"}, catalog=catalog)
    lab.append({"id": [1, 2]})
    assert lab.metadata.location.startswith(f"file://{tmp_path}/warehouse/")
    assert catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert ix.open("db.t", catalog=catalog).count() == 2
