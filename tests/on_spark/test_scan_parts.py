"""How files are sorted for a scan on Spark, without Spark: footers, groups, bits, links."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import FileMissingError, FormatError, UnsupportedError
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans import _groups as groups
from iceexplore.on_spark.scans._file_schemas import Footer, footers_of, orc_nodes
from iceexplore.on_spark.scans._groups import ScanParts, scan_parts
from iceexplore.on_spark.scans._lookups import link_options, read_options, spark_reads
from iceexplore.on_spark.scans._nodes import read_type
from iceexplore.on_spark.scans._projection import Unreadable, identified_nodes, project
from iceexplore.on_spark.transport._splits import read_share, shares
from iceexplore.planning import SplitOptions, plan_scan
from iceexplore.reading import PositionDeletes, TaskReader, outputs_of
from iceexplore.storage import CACHE
from tests.helpers.tables import column_files_table
from tests.helpers.tables.data_table import field, put, stored, struct, table_of

pytest.importorskip("pyspark")

VERSION = (4, 1)


def footer(t: ix.Table, location: str) -> Footer:
    found = footers_of(t.state, [location])[0]
    assert isinstance(found, Footer)
    return found


def parts_of(t: ix.Table, columns: Any = None, where: Any = None) -> tuple[ScanParts, TaskReader]:
    outputs = outputs_of(t.state, columns)
    reader = TaskReader(t.state, plan_scan(t.state, where).files, outputs)
    return scan_parts(t.state, reader, outputs, VERSION), reader


def one(folder: Path, kind: pa.DataType, values: Any = (None,), **how: Any) -> Any:
    """The only column of a file."""
    t = table_of(folder, [field(1, "c", "long")])
    schema = pa.schema([stored(1, "c", kind)])
    nodes = footer(t, put(folder, pa.Table.from_arrays([pa.array(values, kind)], schema=schema), **how)).nodes
    return None if nodes is None else nodes[0]


KINDS = {
    pa.int8(): "int", pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float", pa.string(): "string",
    pa.large_string(): "string", pa.dictionary(pa.int32(), pa.string()): "string", pa.binary(4): "binary",
    pa.decimal128(20, 3): "decimal(20,3)", pa.date32(): "date", pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("ms", "Europe/Oslo"): "timestamp", pa.timestamp("ns"): "bigint", pa.time64("us"): "bigint",
    pa.uint64(): None, pa.float16(): None, pa.time32("ms"): None, pa.duration("us"): None,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_types_that_are_read_by_name(tmp_path: Path, kind: pa.DataType) -> None:
    found = read_type(one(tmp_path, kind))
    assert (None if found is None else found.simpleString()) == KINDS[kind]


def test_int96_and_old_sparks_days_are_not(tmp_path: Path) -> None:
    assert read_type(one(tmp_path, pa.timestamp("us"), [5], use_deprecated_int96_timestamps=True)) is None
    t = table_of(tmp_path / "t", [field(1, "c", "date")])
    for about in ({"org.apache.spark.version": "2.4.8"}, {"org.apache.spark.legacyDateTime": ""}):
        schema = build.schema([stored(1, "c", pa.date32())], metadata=about)
        location = put(tmp_path / "t", pa.Table.from_arrays([pa.array([1], pa.date32())], schema=schema))
        assert footer(t, location).nodes is None


def test_lists_of_an_older_build_are_not(tmp_path: Path) -> None:
    kind = pa.list_(pa.int64())
    assert one(tmp_path, kind, [[1]]).children[0].name == "element"
    assert one(tmp_path, kind, [[1]], use_compliant_nested_type=False) is None


def test_schemas_that_differ_in_the_id_of_a_struct_are_two(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "c", "long")])
    names = []
    for number in (1, 2):
        schema = pa.schema([stored(number, "s", pa.struct([stored(9, "x", pa.int64())]))])
        names.append(put(tmp_path, pa.Table.from_pylist([{"s": {"x": 1}}], schema=schema), f"{number}.parquet"))
    found = footers_of(t.state, names)
    assert [f.nodes[0].number for f in found if isinstance(f, Footer) and f.nodes] == [1, 2]


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "c", "long")])
    (tmp_path / "data" / "torn.parquet").write_bytes(b"PAR1 and no more")
    names = [str(tmp_path / "data" / n) for n in ("torn.parquet", "gone.parquet")]
    torn, gone = footers_of(t.state, names)
    assert isinstance(torn, FormatError)
    assert isinstance(gone, FileMissingError)


def test_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "a", "long"), field(2, "b", "long")])
    schema = pa.schema([stored(1, "a", pa.int64()), stored(3, "A", pa.int64()), stored(2, "b", pa.int64())])
    nodes = footer(t, put(tmp_path, pa.Table.from_pylist([{"a": 1}], schema=schema))).nodes
    assert nodes is not None
    mine = identified_nodes(nodes, [n.field() for n in nodes])
    a, b = t.state.schema.fields
    assert project(mine, b, VERSION) is not None
    with pytest.raises(Unreadable):
        project(mine, a, VERSION)


@given(
    st.text("ab _.%=~é:*?[]{}\\", min_size=1, max_size=8),
    st.sampled_from(["/w/t", "s3://b/t", "gs://b/t", "memory://t"]),
)
def test_names_that_spark_takes_for_what_they_are(name: str, folder: str) -> None:
    reads = spark_reads(f"{folder}/{name}")
    if set(name) & set("é:*?[]{}\\") or name[0] in "._" or folder.startswith("memory"):
        assert not reads
    elif "/" not in name:
        assert reads


def session_of(hadoop: str) -> Any:
    """As much of a session as links need."""
    jvm = SimpleNamespace(org=Mock(**{"apache.hadoop.util.VersionInfo.getVersion.return_value": hadoop}))
    conf = SimpleNamespace(get=lambda key, default=None: default)
    return SimpleNamespace(conf=conf, sparkContext=SimpleNamespace(_jvm=jvm))


def info_of(connect: bool = False) -> SessionInfo:
    return SessionInfo(VERSION, connect, True, None)


def test_links_lead_to_the_files() -> None:
    reals = ["/w/a b%20c.parquet", "s3://bucket/x=1/$y.parquet", "gs://b/z.parquet"]
    session = session_of("3.4.2")
    options, paths = link_options(session, info_of(), reals, ["n=0", "n=1/m=5", "n=2"])
    base = options.pop("basePath")
    targets = [unquote(v) for v in options.values()]
    assert targets == ["file:///w/a b%20c.parquet", "s3a://bucket/x=1/$y.parquet", "gs://b/z.parquet"]
    mount = base.removeprefix("viewfs://").rstrip("/")
    assert list(options) == [f"fs.viewfs.mounttable.{mount}.link./{p.removeprefix(base)}" for p in paths]
    assert paths[1].endswith("/n=1/m=5/1.parquet")
    again, _ = link_options(session, info_of(), reals, ["n=0", "n=1/m=6", "n=2"])
    assert again["basePath"] != base


def test_files_of_few_folders_share_their_links() -> None:
    # A link for each of 2,000 files made 2 GB of garbage: Spark copies all options for each file that it opens.
    reals = [f"/w/{'a=1 %2F' if i % 3 else 'b'}/{i}.parquet" for i in range(12)]
    values = [f"n={i}" for i in range(12)]
    options, paths = link_options(session_of("3.4.2"), info_of(), reals, values)
    base = options.pop("basePath")
    links = {key.partition(".linkRegex.")[2]: unquote(target) for key, target in options.items()}
    assert links == {"^/.*/f0/": "file:///w/b", "^/.*/f1/": "file:///w/a=1 %2F"}
    for path, real, value in zip(paths, reals, values, strict=True):
        assert path.startswith(f"{base}{value}/")
        (link,) = [link for link in links if re.match(link, "/" + path.removeprefix(base))]
        assert links[link] + "/" + re.sub(link, "", "/" + path.removeprefix(base)) == f"file://{real}"
    for session, info in ((session_of("3.3.4"), info_of()), (session_of("3.4.2"), info_of(connect=True))):
        single, _ = link_options(session, info, reals, values)
        assert len(single) == 12 + 1
        assert single["basePath"] != base  # Java keeps what it knows under a name: other links need another


def test_local_files_are_read_without_large_buffers() -> None:
    # Java keeps them for each thread: 58 MB of 20 million rows. Of object stores they spare requests.
    vectored = "parquet.hadoop.vectored.io.enabled"
    assert read_options(["/w/a.parquet", "/w/b.parquet"])[vectored] == "false"
    assert vectored not in read_options(["/w/a.parquet", "s3://bucket/b.parquet"])
    assert read_options(["/w/a"])["parquet.page.verify-checksum.enabled"] == "true"


def deleted(version: int = 3) -> ix.Simulation:
    s = ix.empty({"id": "long", "kind": "string"}, format_version=version)
    for _ in range(3):
        s.append(pd.DataFrame({"id": range(200), "kind": ["x"] * 200}))
    files = s.inspect.files()["file_path"].tolist()
    s.row_delta(deletes={files[0]: [0, 63, 64, 199], files[1]: list(range(0, 200, 3))})
    return s


@pytest.mark.parametrize("version", [2, 3, 4])
def test_bits_are_the_positions(version: int) -> None:
    parts, reader = parts_of(deleted(version))
    deletes = PositionDeletes(reader.state, reader.tasks.files, reader.tasks.matched)
    assert sorted(len(g.rows) for g in parts.groups) == [1, 2]
    assert parts.workers == []
    for group in parts.groups:
        for row in group.rows:
            expected = sorted({p for _, some in deletes.of(row) for p in some.bitmap()})
            words = group.words.get(row)
            bits = [] if words is None else np.unpackbits(words.view(np.uint8), bitorder="little").nonzero()[0].tolist()
            assert bits == expected


def test_what_is_beyond_the_budget_goes_to_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    s = deleted()
    monkeypatch.setattr(groups, "_MOST_WORDS", 4)
    parts, _ = parts_of(s)
    assert [len(g.rows) for g in parts.groups] == [1, 1]
    assert len(parts.workers) == 1
    monkeypatch.setattr(groups, "_MOST_GROUPS", 1)
    parts, _ = parts_of(s)
    assert len(parts.workers) == 2


def test_groups_of_many_files_with_constants_are_cut() -> None:
    s = deleted()
    outputs = outputs_of(s.state, None)
    reader = TaskReader(s.state, plan_scan(s.state, None).files, outputs)
    whole = scan_parts(s.state, reader, outputs, VERSION)
    parts = scan_parts(s.state, reader, outputs, VERSION, links=1)
    assert [len(g.rows) for g in parts.groups] == [1, 1, 1]
    assert {r: w.tolist() for g in parts.groups for r, w in g.words.items()} == {
        r: w.tolist() for g in whole.groups for r, w in g.words.items()
    }


def test_deleted_rows_that_are_wanted_go_to_workers() -> None:
    parts, _ = parts_of(deleted(), ["id", "_deleted"])
    assert len(parts.workers) == 2
    assert [len(g.rows) for g in parts.groups] == [1]


def test_groups_are_by_the_columns_that_are_needed(tmp_path: Path) -> None:
    s = table_of(tmp_path, [field(1, "a", "long"), field(2, "b", struct(field(3, "c", "int")))]).simulate()
    wide = pa.struct([stored(3, "c", pa.int32()), stored(4, "d", pa.int32())])
    narrow = pa.struct([stored(3, "c", pa.int32())])
    for name, kind in (("w.parquet", wide), ("n.parquet", narrow)):
        schema = pa.schema([stored(1, "a", pa.int64()), stored(2, "b", kind)])
        location = put(tmp_path, pa.Table.from_pylist([{"a": 1, "b": {"c": 1}}], schema=schema), name)
        s.append([{"location": location, "record_count": 1, "file_size_in_bytes": Path(location).stat().st_size}])
    assert [len(g.rows) for g in parts_of(s, "a")[0].groups] == [2]
    assert [len(g.rows) for g in parts_of(s)[0].groups] == [1, 1]


def test_missing_deletes_take_their_files_along(tmp_path: Path) -> None:
    s = deleted(2)
    s.save(tmp_path / "t", data="copy")
    t = ix.open(tmp_path / "t")
    path = t.state.storage.resolve(t.inspect.delete_files()["file_path"].tolist()[0])
    Path(path).unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts, reader = parts_of(t)
    assert len(parts.lost) == 1 + len(reader.tasks) - sum(len(g.rows) for g in parts.groups)
    assert all(isinstance(e, FileMissingError) for _, e in parts.lost)


def test_made_up_files_are_refused() -> None:
    s = ix.empty({"id": "long"})
    s.append(files=1, rows=10)
    with pytest.raises(UnsupportedError, match="synthetic"):
        parts_of(s)


def test_arrow_reads_the_schema_of_a_footer_as_of_a_file(tmp_path: Path) -> None:
    """Ids and zones are there, without Arrow's own schema in the file, too."""
    schema = pa.schema([stored(1, "c", pa.timestamp("us", "UTC")), stored(2, "d", pa.map_(pa.string(), pa.int32()))])
    rows = pa.Table.from_pylist([{"c": 1, "d": [("k", 1)]}], schema=schema)
    for own in (True, False):
        path = tmp_path / f"{own}.parquet"
        pq.write_table(rows, path, store_schema=own)
        assert pq.read_metadata(path).schema.to_arrow_schema().equals(pq.ParquetFile(path).schema_arrow, True)


def orc_file(folder: Path, rows: pa.Table, name: str = "a.orc") -> dict[str, Any]:
    """An ORC file's entry; without ids, which Arrow does not write: found by the schema's names or a mapping."""
    path = folder / "data" / name
    orc.write_table(rows, str(path))
    return {
        "location": str(path),
        "file_format": "orc",
        "record_count": rows.num_rows,
        "file_size_in_bytes": path.stat().st_size,
    }


MAPPING = '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b"]}]'


def test_orc_files_without_places(tmp_path: Path) -> None:
    fields = [field(1, "a", "long"), field(2, "b", "timestamp")]
    s = table_of(tmp_path, fields, properties={"schema.name-mapping.default": MAPPING}).simulate()
    days = pa.array([1, 2], pa.timestamp("us"))
    s.append([orc_file(tmp_path, pa.table({"a": pa.array([1, 2]), "b": days}))])
    (group,) = parts_of(s, "a")[0].groups
    assert group.format == "orc"
    assert parts_of(s)[0].workers == [0]  # a timestamp without zone is moved by the reader's
    assert parts_of(s, ["a", "_pos"])[0].workers == [0]
    zoned = pa.table({"a": pa.array([3]), "b": days[:1].cast(pa.timestamp("us", "UTC"))})
    s.append([orc_file(tmp_path, zoned, "z.orc")])
    parts, reader = parts_of(s, "a")
    assert len(parts.groups[0].rows) == 1
    assert len(parts.workers) == 1
    assert reader.tasks.files.entries["location"][parts.workers[0]].as_py().endswith("z.orc")
    s.row_delta(deletes={str(tmp_path / "data" / "a.orc"): [0]})
    assert len(parts_of(s, "a")[0].workers) == 2


def test_orc_columns_that_go_by_their_place_or_odd_names_are_not_read_by_spark() -> None:
    one = pa.int64()
    assert orc_nodes(pa.schema([("_col0", one), ("_col1", one)])) is None
    assert orc_nodes(pa.schema([("_col0", one), ("b", one)])) is not None
    assert orc_nodes(pa.schema([])) is None
    assert orc_nodes(pa.schema([("a b", one)])) is None
    assert orc_nodes(pa.schema([("l", pa.list_(pa.timestamp("ns", "UTC")))])) is None


def test_a_footer_takes_one_request_where_the_size_is_true(tmp_path: Path) -> None:
    t = table_of(tmp_path, [field(1, "c", "long")])
    schema = pa.schema([stored(1, "c", pa.int64())])
    rows = pa.Table.from_arrays([pa.array(range(100_000))], schema=schema)
    location = put(tmp_path, rows, compression="none", use_dictionary=False)
    size = Path(location).stat().st_size
    expected = footer(t, location)
    for stated in (size, size - 1, size + 1, 3, None):
        fresh = ix.open(tmp_path)
        CACHE.clear()
        assert footers_of(fresh.state, [location], [stated]) == [expected]
        assert (sum(r.kind == "footer" for r in fresh.reads) == 1) == (stated == size)


# Column files ---------------------------------------------------------------------------------------------------------


def test_workers_read_files_with_column_files(tmp_path: Path) -> None:
    """In the ranges of any splits, which the column files, read whole, are cut to by position."""
    place, rows = column_files_table.make(tmp_path / "t")
    t = ix.open(place)
    names = ["id", "name", "price"]
    parts, reader = parts_of(t, names, "price < 20")
    assert [g.rows for g in parts.groups] == [[0]] and parts.workers == [1, 2] and not parts.lost
    for size in (1, 10_000_000):
        options = SplitOptions.of({}, size=size)
        mine = reader.tasks.take(pa.array(parts.workers, pa.int64()))
        found = shares(mine, options)
        assert (len(found) > len(mine)) == (size == 1)
        tables = [table for share in found for table in read_share(t.state, share, reader.outputs)]
        expected = [{n: r[n] for n in names} for r in rows[column_files_table.ROWS :] if r["price"] < 20]
        assert column_files_table.rows_of(pa.concat_tables(tables)) == expected


def test_a_missing_column_file_loses_the_rows_that_need_it(tmp_path: Path) -> None:
    place, _ = column_files_table.make(tmp_path / "t")
    (tmp_path / "t" / "data" / "column-1.parquet").unlink()  # the newer one of file 1, with name
    t = ix.open(place)
    parts, _ = parts_of(t, ["id", "name"])
    assert parts.workers == [2]
    ((location, error),) = parts.lost
    assert location.endswith("file-1.parquet") and "its column file" in str(error) and "column-1.parquet" in str(error)
    parts, _ = parts_of(t, ["id", "price"])
    assert parts.workers == [1, 2] and not parts.lost
