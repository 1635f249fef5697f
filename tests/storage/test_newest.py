"""The choice of a folder's current metadata file, and the reason that is given for it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from iceexplore.errors import FileMissingError, FormatError, MetadataNotFoundError, SnapshotNotFoundError
from iceexplore.storage import Opened, list_versions, open_source, open_version, reopen
from tests.storage.tables_on_disk import document, log, make_table, name_of


def table(folder: Path, names: dict[str, Any], hint: str | None = None) -> Path:
    """A table whose metadata files tell themselves apart by last-updated-ms (or are given whole)."""
    made = {n: document(str(folder), **{"last-updated-ms": v}) if isinstance(v, int) else v for n, v in names.items()}
    return make_table(folder, made if hint is None else {**made, "version-hint.text": hint})


def codes(opened: Opened) -> list[str]:
    return [f"{p.severity}:{p.code}" for p in opened.problems]


def test_the_hint_is_followed(tmp_path: Path) -> None:
    opened = open_source(table(tmp_path / "t", {"v1.metadata.json": 1, "v2.metadata.json": 2}, "2\n"))
    assert (name_of(opened), opened.version, opened.name) == ("v2.metadata.json", 2, "t")
    assert opened.notes == ("Metadata: v2.metadata.json, from version-hint.text.",)
    assert not opened.problems


def test_a_stale_hint_leads_forward_as_in_java(tmp_path: Path) -> None:
    # HadoopTableOperations.refresh goes on while the next version exists, so the gap at v5 ends it.
    names = {f"v{n}.metadata.json": n for n in (1, 2, 3, 5)}
    made = table(tmp_path, {**names, "v4.gz.metadata.json": document(str(tmp_path))}, "2")
    opened = open_source(made)
    assert opened.version == 5 and not opened.problems
    (made / "metadata" / "v4.gz.metadata.json").unlink()
    opened = open_source(made)
    assert opened.version == 3 and "version 2 in version-hint.text" in opened.notes[0]


@pytest.mark.parametrize("hint", ["00001-b", "00001-b.metadata.json"])
def test_a_hint_may_name_a_file(tmp_path: Path, hint: str) -> None:
    made = table(tmp_path, {"00000-a.metadata.json": 1, "00001-b.metadata.json": 2, "00002-c.metadata.json": 3}, hint)
    opened = open_source(made)
    assert name_of(opened) == "00001-b.metadata.json"
    assert "00002-c.metadata.json" in opened.notes[0]


@pytest.mark.parametrize("hint", ["9", "00009-gone"])
def test_a_hint_to_nothing_is_a_problem(tmp_path: Path, hint: str) -> None:
    opened = open_source(table(tmp_path, {"v1.metadata.json": 1, "v2.metadata.json": 2}, hint))
    assert opened.version == 2
    assert codes(opened) == ["warning:file-missing"] and hint in opened.notes[1]


@pytest.mark.parametrize("hint", ["", "\n3", "../../v1", "\x00"])
def test_a_hint_that_says_nothing_is_only_noted(tmp_path: Path, hint: str) -> None:
    opened = open_source(table(tmp_path, {"v1.metadata.json": 1, "v2.metadata.json": 2}, hint))
    assert opened.version == 2 and not opened.problems and "version-hint.text" in opened.notes[1]


def test_a_hint_that_is_a_folder_is_no_hint(tmp_path: Path) -> None:
    made = table(tmp_path, {"v1.metadata.json": 1, "v2.metadata.json": 2})
    (Path(made) / "metadata" / "version-hint.text").mkdir()
    opened = open_source(made)
    assert opened.version == 2 and "is a folder" in opened.notes[1]


def test_no_hint_takes_the_largest_number_not_the_last_name(tmp_path: Path) -> None:
    names = {"9-a.metadata.json": 9, "00010-b.metadata.json": 10, ".v11.metadata.json.crc": b"crc", "11.txt": b""}
    opened = open_source(table(tmp_path, names))
    assert opened.version == 10 and opened.notes == (
        "Metadata: 00010-b.metadata.json, the largest number of 2 metadata files.",
    )


@pytest.mark.parametrize("name", ["v3.gz.metadata.json", "v3.metadata.json.gz", "v3.metadata.json"])
@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_gzip_by_content_never_by_name(tmp_path: Path, name: str, pack: Any) -> None:
    import json

    data = pack(json.dumps(document(str(tmp_path))).encode())
    for hint in (None, "3"):
        assert open_source(table(tmp_path, {name: data}, hint)).version == 3


def test_a_tie_takes_the_last_written_and_says_so(tmp_path: Path) -> None:
    opened = open_source(table(tmp_path, {"00003-a.metadata.json": 20, "00003-b.metadata.json": 10}))
    assert name_of(opened) == "00003-a.metadata.json"
    assert codes(opened) == ["warning:metadata-ambiguous"]
    assert "last-updated-ms" in opened.notes[0] and "00003-b.metadata.json" in opened.notes[0]


def test_no_tie_where_one_names_the_other(tmp_path: Path) -> None:
    # Both namings: a catalog registered a file-system table and went on from it.
    newer = document(str(tmp_path), **{"last-updated-ms": 1}, **log(f"{tmp_path}/metadata/v7.metadata.json"))
    opened = open_source(table(tmp_path, {"v7.metadata.json": 5, "00008-x.metadata.json": newer}))
    assert name_of(opened) == "00008-x.metadata.json" and not opened.problems
    opened = open_source(table(tmp_path, {"00008-x.metadata.json": 4, "v7.metadata.json": 5}))
    assert name_of(opened) == "v7.metadata.json"  # nothing says that 8 follows 7, and 7 was written later
    assert codes(opened) == ["warning:metadata-ambiguous"]


def test_a_failed_commits_leftover_is_no_tie(tmp_path: Path) -> None:
    two, three = (document(str(tmp_path), **{"last-updated-ms": n}) for n in (2, 3))
    three |= log(f"{tmp_path}/metadata/00001-a.metadata.json", f"{tmp_path}/metadata/00002-a.metadata.json")
    names = {"00001-a.metadata.json": 1, "00002-a.metadata.json": two, "00002-x.metadata.json": 2}
    opened = open_source(table(tmp_path, {**names, "00003-a.metadata.json": three}))
    assert opened.version == 3 and not opened.problems


def test_a_table_dropped_and_created_again(tmp_path: Path) -> None:
    new = document(str(tmp_path), **{"last-updated-ms": 50, "table-uuid": "new"})
    names = {"00000-a.metadata.json": 1, "00001-a.metadata.json": 2, "00000-b.metadata.json": new}
    opened = open_source(table(tmp_path, names))
    assert name_of(opened) == "00000-b.metadata.json"
    assert "2 table-uuids" in opened.problems[0].text


def test_a_file_of_another_name_may_be_the_newest_but_no_uncommitted_one(tmp_path: Path) -> None:
    opened = open_source(table(tmp_path / "a", {"00001-a.metadata.json": 1, "vfinal.metadata.json": 2}))
    assert name_of(opened) == "vfinal.metadata.json" and opened.version is None
    uncommitted = "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94.metadata.json"
    opened = open_source(table(tmp_path / "b", {"v1.metadata.json": 1, uncommitted: 2}))
    assert opened.version == 1 and not opened.problems


def test_a_broken_newest_file_gives_way_and_is_a_problem(tmp_path: Path) -> None:
    names = {"v1.metadata.json": 1, "v2.metadata.json": 2, "v3.metadata.json": b'{"format-version": 2, '}
    for hint in (None, "3", "2"):
        opened = open_source(table(tmp_path / str(hint), names, hint))
        assert opened.version == 2 and codes(opened) == ["error:file-truncated"]
        assert opened.problems[0].where.endswith("v3.metadata.json") and "cannot be read" in opened.notes[0]
        with pytest.raises(FormatError, match=r"v3.metadata.json"):
            open_source(tmp_path / str(hint), strict=True)


def test_nothing_readable_raises_what_is_wrong_with_the_newest(tmp_path: Path) -> None:
    names = {"v1.metadata.json": b"{", "v2.metadata.json": b'{"a": }'}
    with pytest.raises(FormatError, match="line 1, column 7"):
        open_source(table(tmp_path, names))


def test_version_picks_another(tmp_path: Path) -> None:
    made = table(tmp_path, {f"v{n}.metadata.json": n for n in range(1, 6)}, "5")
    for version in (
        3,
        "3",
        "v3",
        "v3.metadata.json",
        f"{tmp_path}/metadata/v3.metadata.json",
        f"file:{tmp_path}/metadata/v3.metadata.json",
    ):
        assert open_source(made, version=version).version == 3
    with pytest.raises(SnapshotNotFoundError, match=r"version 9 .*nearest: v5.metadata.json, v4"):
        open_source(made, version=9)
    with pytest.raises(SnapshotNotFoundError, match=r"nearest: v4"):
        open_source(made, version="v4.metadata.jsn")
    assert open_source(made / "metadata" / "v1.metadata.json", version=2).version == 2


def test_version_of_a_tie(tmp_path: Path) -> None:
    made = table(tmp_path, {"00003-a.metadata.json": 20, "00003-b.metadata.json": 10, "00004-c.metadata.json": 30})
    opened = open_source(made, version=3)
    assert name_of(opened) == "00003-a.metadata.json" and codes(opened) == ["warning:metadata-ambiguous"]
    assert name_of(open_source(made, version="00003-b")) == "00003-b.metadata.json"


def test_the_folder_may_be_the_metadata_folder_or_hold_json_itself(tmp_path: Path) -> None:
    made = table(tmp_path / "t", {"v1.metadata.json": 1})
    for path in (made, made / "metadata", made / "metadata" / "v1.metadata.json"):
        opened = open_source(path)
        assert opened.storage.folder == str(made) and opened.name == "t" and not opened.storage.moved
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "00002-x.metadata.json").write_bytes((made / "metadata" / "v1.metadata.json").read_bytes())
    assert open_source(flat).version == 2 and open_source(flat).storage.folder == str(flat)
    (flat / "00002-x.metadata.json").rename(flat / "any.json")
    opened = open_source(flat)
    assert name_of(opened) == "any.json" and opened.version is None


def test_loose_json_of_several_tables_is_an_error(tmp_path: Path) -> None:
    import json

    for name in "ab":
        (tmp_path / f"{name}.json").write_text(json.dumps(document(f"/{name}", **{"table-uuid": name})))
    with pytest.raises(MetadataNotFoundError, match=r"2 tables.*a.json, b.json"):
        open_source(tmp_path)


def test_list_versions_and_open_version(tmp_path: Path) -> None:
    old = "s3://old/t"
    files = log(f"{old}/metadata/v1.metadata.json", f"{old}/metadata/v2.metadata.json", "s3://other/m/v0.metadata.json")
    made = make_table(
        tmp_path / "t",
        {"v2.metadata.json": document(old), "v3.metadata.json": document(old, **files), "snap-1.avro": b"x"},
    )
    opened = open_source(made)
    versions = list_versions(opened)
    # v1 was removed from the folder; the one elsewhere is known by the log alone
    assert [(v.number, v.location) for v in versions] == [
        (0, "s3://other/m/v0.metadata.json"),
        (2, f"{old}/metadata/v2.metadata.json"),
        (3, f"{old}/metadata/v3.metadata.json"),
    ]
    assert versions[0].size is None and versions[1].size and versions[1].modified_ms
    again = open_version(opened, 2)
    assert again.version == 2 and again.storage is opened.storage and again.source is opened.source
    assert open_version(opened, f"{old}/metadata/v2.metadata.json").version == 2
    with pytest.raises(SnapshotNotFoundError, match=r"v2.metadata.json"):
        open_version(opened, 1)


def test_reopen_asks_again(tmp_path: Path) -> None:
    made = table(tmp_path, {"v1.metadata.json": 1}, "1")
    opened = open_source(made)
    table(tmp_path, {"v2.metadata.json": 2})
    new = reopen(opened.source)
    assert (opened.version, new.version) == (1, 2)
    assert new.storage.identity == opened.storage.identity


def test_opening_reads_one_json_file(tmp_path: Path) -> None:
    made = table(tmp_path, {f"v{n}.metadata.json": n for n in range(1, 50)}, "49")
    opened = open_source(made)
    read = [r.location.rpartition("/")[2] for r in opened.storage.reads.of_kind("metadata")]
    assert read == ["version-hint.text", "v49.metadata.json"]
    with pytest.raises(FileMissingError):
        opened.storage.read(str(tmp_path / "metadata" / "gone.avro"), kind="manifest")
