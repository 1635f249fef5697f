"""`open_file`: files without their table, recognized by content, shown whole, damaged or not."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc
from pyroaring import BitMap64

import iceexplore
from iceexplore.arrow import build
from iceexplore.deletes import encode_deletion_vector
from iceexplore.errors import FileMissingError, FormatError, IceexploreError, OptionError
from iceexplore.inspect import open_file
from iceexplore.metadata import parse_schema


def files_of(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.rglob(pattern))
    assert found, pattern
    return found


@pytest.fixture(scope="module")
def puffin(trips: Path) -> Path:
    return files_of(trips, "*.puffin")[0]


@pytest.fixture(scope="module")
def table(trips: Path):
    return iceexplore.open(trips)


def test_manifest_list(trips: Path) -> None:
    for path in files_of(trips / "metadata", "snap-*.avro"):
        file = open_file(path)
        assert file.kind == "manifest list"
        assert file.problems == ()
        assert file.header["dialect"] in ("v1", "v2", "v3")
        written = file.arrow()
        assert {"manifest_path", "manifest_length", "partition_spec_id"} <= set(written.schema.names)
        entries = file.content_entries()
        assert entries["location"].to_pylist() == written["manifest_path"].to_pylist()


def test_manifest(trips: Path) -> None:
    for path in (p for p in files_of(trips / "metadata", "*-m*.avro") if not p.name.startswith("snap-")):
        file = open_file(str(path))
        assert file.kind == "manifest"
        assert file.header["metadata"]["partition-spec-id"]
        written = file.arrow().to_pylist()
        assert file.content_entries()["location"].to_pylist() == [row["data_file"]["file_path"] for row in written]
        assert len(file.to_pandas()) == len(written)
        assert {f["name"] for f in file.schema["fields"]} >= {"status", "data_file"}


def test_table_metadata(trips: Path, table, tmp_path: Path) -> None:
    for path in files_of(trips / "metadata", "*.metadata.json"):
        file = open_file(path)
        assert file.kind == "table metadata"
        assert file.header["table-uuid"] == table.metadata.table_uuid
        plain = path.read_bytes()
        plain = gzip.decompress(plain) if plain[:2] == b"\x1f\x8b" else plain
        document = json.loads(plain)
        (current,) = [s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"]]
        assert file.schema == parse_schema(current)
    assert file.arrow().num_rows == len(document["snapshots"])
    # content decides, not the name
    odd = tmp_path / "what.ever"
    odd.write_bytes(gzip.compress(plain) if plain == path.read_bytes() else plain)
    assert open_file(odd).kind == "table metadata"
    assert open_file(odd).header == file.header


def test_puffin_and_its_vectors(puffin: Path) -> None:
    file = open_file(puffin)
    assert file.kind == "puffin"
    blobs = file.arrow().to_pylist()
    assert {b["type"] for b in blobs} == {"deletion-vector-v1"}
    for b in blobs:
        cut = open_file(puffin, offset=b["offset"], size=b["length"])
        assert cut.kind == "deletion vector"
        assert cut.problems == ()
        assert cut.header["cardinality"] == b["cardinality"] == cut.arrow().num_rows
        assert build.to_pylist(cut.arrow()["pos"]) == sorted(build.to_pylist(cut.arrow()["pos"]))
        assert {r.kind for r in cut.reads} == {"puffin"}


def test_bare_vector(tmp_path: Path) -> None:
    path = tmp_path / "x.puffin"
    path.write_bytes(encode_deletion_vector(BitMap64([3, 9])))
    file = open_file(path)
    assert file.kind == "deletion vector"
    assert file.arrow()["pos"].to_pylist() == [3, 9]
    assert [p.code for p in file.problems] == ["puffin-bare-vector"]


def test_a_vector_of_too_many_positions_shows_its_header(tmp_path: Path) -> None:
    bitmap = BitMap64()
    bitmap.add_range(0, 1 << 34)
    path = tmp_path / "x.puffin"
    path.write_bytes(encode_deletion_vector(bitmap))
    file = open_file(path)
    assert file.header["cardinality"] == 1 << 34
    with pytest.raises(IceexploreError, match="not listed"):
        file.arrow()
    assert "17179869184" in repr(file)
    assert "not listed" in repr(file)


def test_parquet_and_orc(tmp_path: Path) -> None:
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "2"})  # the id of data_file in manifests
    data = build.table([[1, 2, 3]], schema=build.schema([field]))
    pq.write_table(data, tmp_path / "p", row_group_size=2)
    file = open_file(tmp_path / "p")
    assert (file.kind, file.header["rows"], file.header["row_groups"]) == ("parquet", 3, 2)
    assert file.arrow().select(["row_group", "column", "field_id", "num_values"]).to_pylist() == [
        {"row_group": 0, "column": "id", "field_id": 2, "num_values": 2},
        {"row_group": 1, "column": "id", "field_id": 2, "num_values": 1},
    ]
    orc.write_table(data, tmp_path / "o")
    file = open_file(tmp_path / "o")
    assert (file.kind, file.header["rows"]) == ("orc", 3)
    assert file.arrow()["path"].to_pylist() == ["id"]
    with pytest.raises(OptionError, match="no content entries"):
        file.content_entries()


def test_a_manifest_in_parquet(tmp_path: Path) -> None:
    """What Java's main writes for format version 4."""
    inside = pa.struct(
        [
            pa.field("content", pa.int32(), metadata={"PARQUET:field_id": "134"}),
            pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "100"}),
            pa.field("file_format", pa.string(), metadata={"PARQUET:field_id": "101"}),
            pa.field("record_count", pa.int64(), metadata={"PARQUET:field_id": "103"}),
            pa.field("file_size_in_bytes", pa.int64(), metadata={"PARQUET:field_id": "104"}),
        ]
    )
    schema = pa.schema(
        [
            pa.field("status", pa.int32(), metadata={"PARQUET:field_id": "0"}),
            pa.field("snapshot_id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("data_file", inside, metadata={"PARQUET:field_id": "2"}),
        ],
        metadata={"format-version": "4", "content": "data", "partition-spec-id": "0", "partition-spec": "[]"},
    )
    row = {"content": 0, "file_path": "s3://b/a", "file_format": "PARQUET", "record_count": 1, "file_size_in_bytes": 2}
    pq.write_table(build.table([[1], [5], [row]], schema=schema), tmp_path / "x-m0.parquet")
    file = open_file(tmp_path / "x-m0.parquet")
    assert (file.kind, file.header["dialect"]) == ("manifest", "v4-java")
    assert file.content_entries()["location"].to_pylist() == ["s3://b/a"]
    assert file.arrow()["data_file"].to_pylist() == [row]


def test_other_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"view-uuid": "1", "format-version": 1, "versions": []}')
    assert open_file(path).kind == "view metadata"
    path.write_text('{"hello": {"deep": 1}}')
    file = open_file(path)
    assert (file.kind, file.header) == ("json", {"hello": {"deep": 1}})
    path.write_text('{"hello": ')
    assert [p.severity for p in open_file(path).problems] == ["error"]


def test_shown_as_text_and_html(trips: Path, tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>\x1b[31m"
    schema = pa.schema([pa.field(bad, pa.string())], metadata={"k" + bad: bad})
    pq.write_table(build.table([[bad]], schema=schema), tmp_path / "<b>.parquet")
    (tmp_path / "m").write_text(json.dumps({"a": bad, bad: {"b": bad}, "list": [bad]}))
    for path in (tmp_path / "<b>.parquet", tmp_path / "m"):
        file = open_file(path)
        bundle = file._repr_mimebundle_()
        assert bundle["text/plain"] == repr(file)
        assert bundle["text/html"] == file._repr_html_()
        assert "<img" not in bundle["text/html"]
        assert "<b>.parquet" not in bundle["text/html"]
        assert "\x1b" not in bundle["text/html"] + bundle["text/plain"]
        assert "onerror" in bundle["text/html"]
    (path, *_) = files_of(trips / "metadata", "snap-*.avro")
    assert "manifest_path" in repr(open_file(path))
    assert "[manifest list]" in repr(open_file(path))


def test_only_this_file_is_read(trips: Path, tmp_path: Path) -> None:
    (path, *_) = files_of(trips / "metadata", "snap-*.avro")
    link = tmp_path / "link.avro"
    link.symlink_to(path)
    file = open_file(link)
    assert file.kind == "manifest list"
    file.arrow()
    assert {Path(r.real).name for r in file.reads} == {path.name}


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileMissingError):
        open_file(tmp_path / "nothing")
    with pytest.raises(OptionError, match=r"ix\.open"):
        open_file(tmp_path)
    path = tmp_path / "x"
    with pytest.raises(OptionError, match="must be given together"):
        open_file(path, offset=4)
    for data, message in ((b"", "not a file of"), (b"hello", "not a file of"), (b"PK\x03\x04abc", "a zip")):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=message):
            open_file(path)
    path.write_bytes(b"PFA1" + bytes(100))
    with pytest.raises(FormatError):
        open_file(path, offset=4, size=40)


@pytest.mark.parametrize("name", ["snap", "manifest", "puffin", "metadata"])
def test_a_cut_file_is_shown_with_its_problem(trips: Path, puffin: Path, tmp_path: Path, name: str) -> None:
    source = {
        "snap": files_of(trips, "snap-*.avro")[0],
        "manifest": next(p for p in files_of(trips, "*-m*.avro") if not p.name.startswith("snap-")),
        "puffin": puffin,
        "metadata": files_of(trips, "*.metadata.json")[-1],
    }[name]
    data = source.read_bytes()
    for share in (0.3, 0.6, 0.98):
        path = tmp_path / f"cut-{share}"
        path.write_bytes(data[: int(len(data) * share)])
        file = open_file(path)
        assert file.problems, share
        assert all(p.where.startswith(str(path)) for p in file.problems)
        assert file.problems[0].text[:40] in repr(file).replace("\n", " ")


BASES: dict[str, bytes] = {}


def _bases(trips: Path) -> dict[str, bytes]:
    if not BASES:
        for pattern in ("snap-*.avro", "*-m0.avro", "*.puffin", "*.metadata.json"):
            BASES[pattern] = files_of(trips, pattern)[-1].read_bytes()
        out = io.BytesIO()
        pq.write_table(pa.table({"a": list(range(50))}), out)
        BASES["parquet"] = out.getvalue()
    return BASES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=st.sampled_from(["snap-*.avro", "*-m0.avro", "*.puffin", "*.metadata.json", "parquet"]),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=4),
)
def test_damage_raises_only_our_errors(
    trips: Path, tmp_path: Path, pattern: str, flips: list[tuple[float, int]]
) -> None:
    data = bytearray(_bases(trips)[pattern])
    for where, bit in flips:
        data[int(where * len(data))] ^= 1 << bit
    path = tmp_path / "x"
    path.write_bytes(bytes(data))
    try:
        file = open_file(path)
        repr(file)
        file._repr_html_()
        file.to_pandas()
        if file.kind.startswith("manifest"):
            file.content_entries()
    except IceexploreError:
        return


def _vectors_of_rows(rows: pa.Table) -> int:
    """How many rows have a vector, of their data file or leaf: an entry of its own (V4 draft)."""
    found = 0
    if "tracking" in rows.schema.names:
        leaves = pc.struct_field(rows["manifest_info"], "dv")
        found = 2 * len(rows) - rows["deletion_vector"].null_count - leaves.null_count
    return found


@pytest.mark.corpus
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.long)])
def test_every_real_file_is_shown(corpus: Path, half: int) -> None:
    counts: dict[str, int] = {}
    for path in sorted(corpus.rglob("*"), key=lambda p: (p.suffix, "snap-" in p.name, p))[half::2]:  # half of each kind
        if (
            path.suffix not in (".avro", ".json", ".puffin", ".stats", ".parquet", ".parq", ".orc")
            or not path.is_file()
        ):
            continue
        try:
            file = open_file(path)
        except FormatError:
            counts["refused"] = counts.get("refused", 0) + 1
            continue
        counts[file.kind] = counts.get(file.kind, 0) + 1
        repr(file)
        if not file.problems:
            try:
                rows = file.arrow().num_rows
            except IceexploreError:
                assert "bad_avro_snap" in str(path), path
                continue
            if file.kind.startswith("manifest"):
                assert file.content_entries().num_rows == rows + _vectors_of_rows(file.arrow()), path
    assert counts["manifest"] > 125
    assert counts["manifest list"] > 125
    assert counts["puffin"] >= 20
    assert counts["refused"] < 20, counts


def test_face(trips: Path, tmp_path: Path) -> None:
    (path, *_) = files_of(trips / "metadata", "snap-*.avro")
    shutil.copy(path, tmp_path / "loose.avro")
    file = iceexplore.open_file(tmp_path / "loose.avro")
    assert isinstance(file, iceexplore.LooseFile)
