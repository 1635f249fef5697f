"""Loose V4 manifests: root or leaf, by what that is known, and the manifest deletion vectors of a root."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyroaring import BitMap, BitMap64

import iceexplore as ix
from iceexplore.deletes import encode_deletion_vector, encode_mumbling
from iceexplore.errors import OptionError
from iceexplore.graph import table_card
from iceexplore.inspect import open_file
from iceexplore.inspect.loose import _vectors
from iceexplore.manifests import encode_manifest_dv
from tests.helpers import v4_files as v4
from tests.manifests.test_v4_draft import manifest, tracked, vector
from tests.manifests.test_v4_proposal import Table

WRITERS = pytest.mark.parametrize("writer", ["avro", "parquet"])


def loose(path: Path, fields: list[v4.F], rows: list[Any], writer: str = "parquet", **keys: str) -> Any:
    path.write_bytes(v4.WRITERS[writer](fields, rows, **keys))
    return open_file(path)


@WRITERS
@pytest.mark.parametrize(("name", "keys", "kind", "why"), [
    ("x.bin", {"content": "root"}, "root manifest", "content = root"),
    ("root-1.bin", {"content": "data"}, "manifest", "content = data"),
    ("root-7222.parquet", {}, "root manifest", "its name only"),
    ("leaf-7222.parquet", {}, "manifest", "its name only"),
    ("9c12-m0.avro", {}, "manifest", "its name only"),
    ("rootless.parquet", {}, "manifest", "nothing in the file or its name"),
])  # fmt: skip
def test_a_manifest_of_data_files_alone(
    tmp_path: Path, writer: str, name: str, keys: dict[str, str], kind: str, why: str
) -> None:
    """The draft's vectors are part of data files' entries, in leaves, too."""
    for fields, rows in (
        (v4.draft(), [tracked(0, deletion_vector=vector(2)), tracked(1)]),
        (v4.proposal(), [v4.data_row(0), v4.data_row(1)]),
    ):
        file = loose(tmp_path / name, fields, rows, writer, **keys)
        assert file.kind == kind
        assert why in file.header["known by"]
        assert f"[{kind}]" in repr(file)
        assert file.content_entries()["location"].to_pylist()[-1].endswith("data/00001.parquet")
        if kind == "root manifest":
            assert file.manifest_deletion_vectors().num_rows == 0
        else:
            with pytest.raises(OptionError, match="no manifest deletion vectors"):
                file.manifest_deletion_vectors()


@WRITERS
def test_a_root_is_known_by_its_entries(tmp_path: Path, writer: str) -> None:
    file = loose(tmp_path / "x", v4.draft(), [tracked(0), manifest("a", 5)], writer, content="data")
    assert (file.kind, file.header["known by"]) == ("root manifest", "its entries list manifests (134 content_type)")
    rows = [tracked(0), tracked(1, content_type=2, equality_ids=[1])]
    file = loose(tmp_path / "x", v4.draft(), rows, writer)
    assert file.kind == "root manifest"
    assert "data files and deletes" in file.header["known by"]
    assert loose(tmp_path / "x", v4.draft(), rows[1:], writer).kind == "manifest"


def test_older_manifests_say_by_what_they_are_known(trips: Path) -> None:
    for path in (trips / "metadata").glob("*.avro"):
        expected = "field 500 manifest_path" if path.name.startswith("snap-") else "field 2 data_file"
        assert open_file(path).header["known by"] == expected


@WRITERS
def test_a_table_names_its_root(tmp_path: Path, writer: str) -> None:
    """A file that does not say what it is, is the root all the same where a snapshot names it."""
    table = Table(tmp_path, writer)
    table.root([tracked(0), tracked(1)], v4.draft())
    rows = [tracked(0), tracked(1)]
    table.document["snapshots"][0]["root-manifest"] = table.put("seven", v4.WRITERS[writer](v4.draft(), rows))
    (table.folder / "metadata" / "v1.metadata.json").write_text(json.dumps(table.document))
    assert open_file(table.folder / "metadata" / "seven").kind == "manifest"
    t = ix.open(table.folder)
    assert dict(table_card(t.state).facts)["Root manifest"].startswith("2 data files, ")
    assert [n.label for n in t.tree().nodes if n.kind.startswith("root")] == ["Root manifest"]


FORMS = {
    "Mumbling": encode_mumbling(BitMap([0, 2])),
    "portable roaring": encode_manifest_dv(BitMap([0, 2])),
    "deletion-vector-v1": encode_deletion_vector(BitMap64([0, 2])),
    "deletion-vector-v1 without length and checksum": encode_deletion_vector(BitMap64([0, 2]))[4:-4],
}


@WRITERS
@pytest.mark.parametrize("form", FORMS)
def test_field_522_is_decoded(tmp_path: Path, writer: str, form: str) -> None:
    data = FORMS[form]
    rows = [manifest("metadata/leaf-a", 5, dv=data, removed=2), manifest("metadata/leaf-b", 5)]
    file = loose(tmp_path / "x", v4.draft(), rows, writer)
    assert file.manifest_deletion_vectors().to_pylist() == [
        {"ordinal": 0, "manifest": "metadata/leaf-a", "status": 1, "form": form, "size_in_bytes": len(data),
         "cardinality": 2, "stated_cardinality": 2, "positions": [0, 2], "file_path": None, "offset": None,
         "fault": None},
    ]  # fmt: skip
    assert file.arrow()["manifest_info"].to_pylist()[0]["dv"] == data  # as written
    for text in (repr(file), file._repr_html_()):
        assert "Manifest deletion vectors" in text
        assert "0, 2" in text and form in text


def test_vectors_of_the_proposal(tmp_path: Path) -> None:
    """Inline, in a Puffin file, which is not read, and on the manifest's own entry."""
    data, leaf = encode_manifest_dv(BitMap([1])), {"content_type": 3, "location": "l", "record_count": 9}
    rows = [
        v4.data_row(0) | leaf,
        v4.data_row(0) | {"content_type": 5, "location": "", "referenced_file": "l", "record_count": 1,
                          "deletion_vector": {"inline_content": data}},
        v4.data_row(0) | {"content_type": 5, "location": "d.puffin", "referenced_file": "l", "record_count": 3,
                          "deletion_vector": {"offset": 4, "size_in_bytes": 30}},
        v4.data_row(0) | leaf | {"deletion_vector": {"inline_content": data}},
    ]  # fmt: skip
    found = loose(tmp_path / "x", v4.proposal(), rows).manifest_deletion_vectors()
    names = ["ordinal", "manifest", "positions", "stated_cardinality", "file_path", "offset"]
    assert found.select(names).to_pylist() == [
        {"ordinal": 1, "manifest": "l", "positions": [1], "stated_cardinality": 1, "file_path": None, "offset": None},
        {"ordinal": 2, "manifest": "l", "positions": None, "stated_cardinality": 3, "file_path": "d.puffin",
         "offset": 4},
        {"ordinal": 3, "manifest": "l", "positions": [1], "stated_cardinality": None, "file_path": None,
         "offset": None},
    ]  # fmt: skip


def test_damaged_and_huge_vectors_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not decode has its fault; what a few bytes claim is counted and not listed."""
    huge = BitMap()
    huge.add_range(0, 1 << 32)
    monkeypatch.setattr(_vectors, "MAX_LISTED", 3)
    vectors = [b"", b"\x00" * 7, FORMS["Mumbling"][:-1], encode_manifest_dv(huge), *FORMS.values()]
    file = loose(tmp_path / "x", v4.draft(), [manifest(f"leaf-{i}", 5, dv=v) for i, v in enumerate(vectors)])
    found = file.manifest_deletion_vectors().to_pylist()
    assert [bool(r["fault"]) for r in found] == [True] * 3 + [False] * (1 + len(FORMS))
    assert [r["cardinality"] for r in found[3:]] == [1 << 32, *[2] * len(FORMS)]
    assert [r["positions"] for r in found] == [None] * 4 + [[0, 2]] + [None] * (len(FORMS) - 1)
    assert "4294967296" in repr(file)
    random = np.random.default_rng(1)
    for _ in range(60):
        data = bytearray(FORMS[list(FORMS)[random.integers(len(FORMS))]])
        data[random.integers(len(data))] ^= 1 << int(random.integers(8))
        again = loose(tmp_path / "y", v4.draft(), [manifest("<img src=x>", 5, dv=bytes(data))])
        assert again.manifest_deletion_vectors().num_rows == 1
        assert "<img" not in again._repr_html_()
