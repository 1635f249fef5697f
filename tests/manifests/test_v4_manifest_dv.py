"""Manifest deletion vectors: every form, where they are stored, what they remove, and what is wrong with them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from pyroaring import BitMap, BitMap64

from iceexplore.deletes import encode_deletion_vector, encode_mumbling
from iceexplore.errors import FileMissingError, FormatError, Problems
from iceexplore.manifests import CONTENT_NAMES, ManifestReader, encode_manifest_dv, live, read_manifest_dv
from iceexplore.manifests._manifest_dv import decode_manifest_dv
from tests.helpers import v4_files as v4
from tests.manifests.conftest import avro as v3_avro
from tests.manifests.conftest import entry, entry_schema
from tests.manifests.test_v4_proposal import Table, root_of

ROARING = lambda *p: encode_manifest_dv(BitMap(p))  # noqa: E731


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path, "parquet")


def leaf_of(table: Table, *vectors: Any, rows: int = 5) -> tuple[ManifestReader, Any, Any]:
    leaf, length = table.write("a", v4.proposal(), [v4.data_row(i) for i in range(rows)], "data")
    made = [v(leaf) if callable(v) else v for v in vectors]
    reader = table.root([v4.manifest_row(leaf, length, rows), *made])
    root = root_of(reader)
    return reader, root, reader.leaf(root, 0)


FORMS = {
    "roaring": ROARING(1, 3),
    "mumbling": encode_mumbling(BitMap([1, 3])),
    "deletion-vector-v1": encode_deletion_vector(BitMap64([1, 3])),
    "the same without length and checksum": encode_deletion_vector(BitMap64([1, 3]))[4:-4],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["inline", "puffin"])
def test_forms_and_places(table: Table, form: str, place: str) -> None:
    content = FORMS[form]
    if place == "inline":
        vector: Any = lambda leaf: v4.dv_row(leaf, content, record_count=2)  # noqa: E731
    else:
        file = table.put("dv.puffin", b"PFA1" + content + b"rest")
        at = {"offset": 4, "size_in_bytes": len(content)}
        vector = lambda leaf: v4.dv_row(leaf, None, location=file, deletion_vector=at, record_count=2)  # noqa: E731
    reader, root, leaf = leaf_of(table, vector)
    assert leaf.entries["manifest_dv"].to_pylist() == [None, 1, None, 1, None]
    assert live(leaf.entries).to_pylist() == [True, False, True, False, True]
    assert leaf.entries["status"].to_pylist() == [1] * 5  # as written
    assert list(reader.problems) == []
    assert read_manifest_dv(reader.storage, root, 1) == BitMap([1, 3])


def test_two_with_different_status_both_apply(table: Table) -> None:
    old = lambda leaf: v4.dv_row(leaf, ROARING(0, 2), status=0, record_count=2)  # noqa: E731
    new = lambda leaf: v4.dv_row(leaf, ROARING(2, 4), status=1, record_count=2)  # noqa: E731
    gone = lambda leaf: v4.dv_row(leaf, ROARING(1), status=2)  # noqa: E731
    reader, _, leaf = leaf_of(table, new, gone, old)
    assert leaf.entries["manifest_dv"].to_pylist() == [3, None, 3, None, 1]
    assert list(reader.problems) == []


def test_two_with_one_status_are_a_problem(table: Table) -> None:
    one = lambda leaf: v4.dv_row(leaf, ROARING(0))  # noqa: E731
    two = lambda leaf: v4.dv_row(leaf, ROARING(4))  # noqa: E731
    reader, _, leaf = leaf_of(table, one, two)
    assert [p.code for p in reader.problems] == ["manifest-dv-invalid"]
    assert [v is None for v in leaf.entries["manifest_dv"].to_pylist()] == [False, True, True, True, False]


def test_positions_past_the_leaf(table: Table) -> None:
    past = encode_manifest_dv(BitMap(range(4, 1 << 24)))
    reader, root, leaf = leaf_of(table, lambda leaf: v4.dv_row(leaf, past, record_count=(1 << 24) - 4))
    assert leaf.entries["manifest_dv"].to_pylist() == [None] * 4 + [1]
    (item,) = reader.problems
    assert (item.code, item.where) == ("manifest-dv-invalid", f"{root.location}#entry 1")
    assert (item.found, item.expected) == (str((1 << 24) - 1), "5")


def test_one_that_counts_other_entries_than_it_removes(table: Table) -> None:
    reader, root, leaf = leaf_of(table, lambda leaf: v4.dv_row(leaf, ROARING(1, 3), record_count=3))
    assert leaf.entries["manifest_dv"].to_pylist() == [None, 1, None, 1, None]
    (item,) = reader.problems
    assert (item.code, item.where, item.severity) == ("count-mismatch", f"{root.location}#entry 1", "warning")
    assert (item.field, item.found, item.expected) == ("103 record_count", "3", "2")


AT = {"offset": 4, "size_in_bytes": 9}


@pytest.mark.parametrize(
    ("row", "field", "found", "text"),
    [
        (v4.dv_row("leaf", ROARING(1)) | {"deletion_vector": {"inline_content": ROARING(1), **AT}}, "147", 5, "both"),
        (v4.dv_row("leaf", ROARING(1)) | {"referenced_file": None}, "143", 5, "it is unknown what"),
        (v4.data_row(8, content_type=1, referenced_file="x"), "147", 1, "must have"),
        (v4.data_row(8, content_type=1, deletion_vector=AT), "143", 1, "it is unknown what"),
        (
            v4.data_row(8, content_type=1, referenced_file="x", deletion_vector={"inline_content": ROARING(1)}),
            "147", 1, "inline",
        ),
        (v4.data_row(8, deletion_vector=AT), "147", 0, "that is not applied"),
        (v4.manifest_row("d", 9, 1, kind=4, manifest_stats=None), "521", 4, "which manifests must have"),
        (v4.data_row(8, manifest_stats={"added_files_count": 1}), "521", 0, "only manifests"),
        (v4.data_row(8, referenced_file="x"), "143", 0, "one-way"),
        (v4.manifest_row("d", 9, 1, referenced_file="x"), "143", 3, "one-way"),
    ],
)  # fmt: skip
def test_an_entry_of_the_root_that_breaks_the_rules_of_its_type(
    table: Table, row: dict[str, Any], field: str, found: int, text: str
) -> None:
    def made(leaf: str) -> dict[str, Any]:
        return row | {"referenced_file": leaf} if row["referenced_file"] == "leaf" else row

    row = {"referenced_file": None, **row}
    _, root, _ = leaf_of(table, made)
    (item,) = root.problems
    assert (item.code, item.where, item.severity) == ("entry-invalid", f"{root.location}#entry 1", "warning")
    assert (str(item.field)[:3], item.found) == (field, CONTENT_NAMES[found])
    assert text in item.text
    assert not leaf_of(table, lambda leaf: made(leaf) | {"version_info": v4.versions(2)})[1].problems


def test_a_delete_manifest_that_is_affiliated_to_none(table: Table) -> None:
    _, root, _ = leaf_of(
        table,
        lambda leaf: v4.manifest_row("d", 9, 1, kind=4, referenced_file=f"file:{leaf}"),
        *(v4.manifest_row(name, 9, 1, kind=4, referenced_file="/gone") for name in "ef"),
        v4.manifest_row("g", 9, 1, kind=4, status=2, referenced_file="/gone"),
    )
    (item,) = root.problems
    assert (item.code, item.where, item.field) == ("entry-invalid", f"{root.location}#entry 2", "143 referenced_file")
    assert item.found == "/gone"
    assert "2 delete manifests are affiliated with" in item.text


@pytest.mark.parametrize(("kind", "more"), [(3, {"content_type": 2, "equality_ids": [1]}), (4, {})])
def test_a_leaf_of_another_kind_than_its_root_says(table: Table, kind: int, more: dict[str, Any]) -> None:
    right: dict[str, Any] = {"content_type": 2, "equality_ids": [1]} if kind == 4 else {}
    rows = [v4.data_row(0, **right), v4.data_row(1, **more), v4.data_row(2, **more)]
    leaf, length = table.write("a", v4.proposal(), rows, "delete" if kind == 4 else "data")
    reader = table.root([v4.manifest_row(leaf, length, 3, kind=kind)])
    (item,) = reader.leaf(root_of(reader), 0).problems
    assert (item.code, item.where, item.field) == ("entry-invalid", f"{leaf}#entry 1", "134 content_type")
    assert f"a {'data' if kind == 3 else 'delete'} manifest, but 2 of its entries" in item.text


def test_a_file_twice_in_a_root_and_an_entry_without_numbers(table: Table) -> None:
    _, root, _ = leaf_of(table, v4.data_row(8), v4.data_row(8), v4.data_row(9, status=0))
    found = [(p.code, p.where) for p in root.problems]
    assert found == [("file-twice", root.location), ("sequence-number", f"{root.location}#entry 3")]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"deletion_vector": {"inline_content": b"nonsense"}}, "file-corrupt"),
        ({"deletion_vector": {"inline_content": b""}}, "file-corrupt"),
        ({"deletion_vector": None}, "file-corrupt"),
        ({"deletion_vector": {"offset": 4, "size_in_bytes": 40}, "location": "/nowhere.puffin"}, "outside-roots"),
        ({"deletion_vector": {"offset": -4, "size_in_bytes": 40}}, "file-corrupt"),
        ({"deletion_vector": {"offset": 4, "size_in_bytes": 1 << 40}}, "file-corrupt"),
    ],
)
def test_one_that_cannot_be_read_removes_nothing(table: Table, more: dict[str, Any], code: str) -> None:
    reader, root, leaf = leaf_of(table, lambda leaf: v4.dv_row(leaf, None, **more))
    assert leaf.entries["manifest_dv"].null_count == 5
    (item,) = reader.problems
    assert (item.code, item.where) == (code, f"{root.location}#entry 1")
    with pytest.raises((FormatError, FileMissingError, PermissionError)):
        read_manifest_dv(reader.storage, root, 1)


def test_on_a_v3_shaped_leaf(table: Table) -> None:
    data = v3_avro(entry_schema([]), [entry(i) for i in range(3)], format_version="3")
    leaf = table.put("old.avro", data)
    stats = {"added_files_count": 3, "existing_files_count": 0, "deleted_files_count": 0}
    reader = table.root(
        [
            v4.manifest_row(leaf, len(data), 3, manifest_stats=stats, version_info=v4.versions(0, 5, 3)),
            v4.dv_row(f"file://{leaf}", ROARING(0)),
        ]
    )
    root = root_of(reader)
    (made,) = reader.leaves(root)
    assert (made.dialect, made.root_row) == ("v3", 0)
    assert made.entries["manifest_dv"].to_pylist() == [1, None, None]
    assert made.entries["snapshot_id"].to_pylist() == [5] * 3
    assert made.entries["sequence_number"].to_pylist() == [3] * 3
    assert made.stats(1).lower.to_pylist() == [0, 1, 2]
    assert list(reader.problems) == []


def test_a_delete_manifest_has_one_too(table: Table) -> None:
    rows = [{**v4.data_row(i), "content_type": 2, "equality_ids": [1]} for i in range(2)]
    leaf, length = table.write("d", v4.proposal(), rows, "delete")
    reader = table.root([v4.dv_row(leaf, ROARING(1)), v4.manifest_row(leaf, length, 2, kind=4)])
    root = root_of(reader)
    assert reader.leaf(root, 1).entries["manifest_dv"].to_pylist() == [None, 0]


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_our_errors(data: bytes) -> None:
    for prefix in (b"", b"\x01", b"\x3a\x30\0\0", b"\x3b\x30\0\0", b"\0\0\0\x20\xd1\xd3\x39\x64"):
        with contextlib.suppress(FormatError):
            decode_manifest_dv(prefix + data)


@given(st.sets(st.integers(0, (1 << 32) - 1), max_size=50))
def test_round_trip(positions: set[int]) -> None:
    bitmap = BitMap(positions)
    assert decode_manifest_dv(encode_manifest_dv(bitmap)) == bitmap
    assert decode_manifest_dv(encode_deletion_vector(BitMap64(positions))) == bitmap


def test_strict_raises(table: Table) -> None:
    reader, root, _ = leaf_of(table, lambda leaf: v4.dv_row(leaf, b"nonsense"))
    strict = ManifestReader(reader.storage, reader.metadata, Problems(strict=True))
    with pytest.raises(FormatError, match="cookie"):
        strict.leaf(root, 0)
