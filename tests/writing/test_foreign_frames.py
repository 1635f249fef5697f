"""Frames of other libraries go in, and tables come out, by Arrow's C stream alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build

DATA = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["Oslo", "Bonn", None], "km": [1.5, 2.5, None]})


class Frame:
    """A frame of some library: it has nothing but the stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Lazy:
    """A frame that is yet to be computed."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.times = 0

    def collect(self) -> Frame:
        self.times += 1
        return Frame(self.table)

    def collect_schema(self) -> pa.Schema:
        return self.table.schema


def polars(lazy: bool) -> Any:
    pl = pytest.importorskip("polars")

    def make(table: pa.Table) -> Any:
        found = pl.from_arrow(table)
        return found.lazy() if lazy else found

    return make


@pytest.fixture(params=["stream", "lazy", "polars", "polars lazy", "iceexplore"])
def made(request: pytest.FixtureRequest) -> Any:
    """Makes a frame of an Arrow table."""
    if request.param.startswith("polars"):
        return polars("lazy" in request.param)
    return {"stream": Frame, "lazy": Lazy, "iceexplore": of_ours}[request.param]


def of_ours(table: pa.Table) -> ix.Table:
    """Rows as a table of ours."""
    s = ix.empty(table.schema, format_version=2)
    s.append(table)
    return s


def rows(t: ix.Table) -> list[dict[str, Any]]:
    return sorted(t.to_arrow().to_pylist(), key=lambda row: (row["id"], str(row["city"])))


def test_wherever_rows_are_taken(made: Any, tmp_path: Path) -> None:
    lab = ix.create(str(tmp_path / "t"), made(DATA), format_version=2)
    assert [(f.name, str(f.type)) for f in lab.schema.fields] == [("id", "long"), ("city", "string"), ("km", "double")]
    lab.append(made(DATA))
    assert rows(lab) == DATA.to_pylist()
    lab.merge(made(DATA.slice(1, 1).set_column(2, "km", pa.array([9.0]))), on="id")
    assert lab.to_arrow("id = 2")["km"].to_pylist() == [9.0]
    lab.overwrite(made(DATA.slice(0, 1)), "id > 1")
    assert lab.count() == 2
    s = lab.simulate()
    s.append(made(DATA))
    assert s.count() == 5
    paths = s.inspect.data_files.arrow().select(["file_path"]).slice(0, 1)
    s.delete_files(made(paths))
    assert len(s.inspect.data_files.arrow()) == len(lab.inspect.data_files.arrow())


def test_a_lazy_frame_is_computed_once_and_not_for_its_schema(tmp_path: Path) -> None:
    lazy = Lazy(DATA)
    lab = ix.create(str(tmp_path / "t"), lazy)
    assert lazy.times == 0
    lab.append(lazy)
    assert lazy.times == 1 and lab.count() == 3


def test_a_lazy_frame_that_cannot_be_computed(tmp_path: Path) -> None:
    class Broken(Lazy):
        def collect(self) -> Frame:
            raise KeyError("no column x")

    lab = ix.create(str(tmp_path / "t"), DATA)
    for take in (lab.append, lab.simulate().append):
        with pytest.raises(ix.OptionError, match=r"cannot be computed: Broken.collect\(\) failed: 'no column x'"):
            take(Broken(DATA))


def test_what_gives_no_arrow_is_refused(tmp_path: Path) -> None:
    class Bad(Frame):
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise ValueError("of no use")

    lab = ix.create(str(tmp_path / "t"), DATA)
    for take in (lab.append, lab.simulate().append):
        with pytest.raises(ix.OptionError, match="the rows cannot be converted to an Arrow table: of no use"):
            take(Bad(DATA))


def test_tables_are_streams() -> None:
    t = ix.sample("trips")
    assert pa.table(t).equals(t.to_arrow())
    assert pa.table(t.inspect.files).equals(t.inspect.files.arrow())
    plan = t.plan("rider = 'guest'")
    assert pa.table(plan).equals(plan.tasks_arrow)
    assert pa.RecordBatchReader.from_stream(t).schema == t.to_arrow().schema
    for ref in t.refs:
        assert pa.table(t.at(ref=ref)).num_rows == t.at(ref=ref).count()
    empty = ix.empty({"id": "long"})
    assert pa.table(empty).schema == empty.to_arrow().schema


def test_rows_are_read_as_they_are_taken(tmp_path: Path) -> None:
    lab = ix.create(str(tmp_path / "t"), DATA)
    for _ in range(40):
        lab.append(DATA)
    t = ix.open(tmp_path / "t")
    reader = pa.RecordBatchReader.from_stream(t)
    reader.read_next_batch()
    data = {r.location for r in t.reads if r.kind == "data-file"}
    assert 0 < len(data) < 40
    reader.close()


def test_damage_in_a_stream_is_reported(tmp_path: Path) -> None:
    lab = ix.create(str(tmp_path / "t"), DATA)
    lab.append(DATA)
    (file,) = (tmp_path / "t" / "data").rglob("*.parquet")
    file.write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(Exception, match=file.name):
        pa.table(ix.open(tmp_path / "t"))
    (manifest,) = build.to_pylist(ix.open(tmp_path / "t").inspect.manifests.arrow()["path"])
    Path(manifest.removeprefix("file://")).unlink()
    with pytest.raises(ix.FormatError, match="cannot be read in full"):
        pa.table(ix.open(tmp_path / "t"))


def test_polars_takes_tables() -> None:
    pl = pytest.importorskip("polars")
    t = ix.sample("trips")
    assert pl.DataFrame(t).height == t.count() == pl.from_arrow(pa.table(t)).height
    assert pl.DataFrame(t.inspect.files).height == len(t.inspect.files.arrow())
    assert pl.DataFrame(t.plan()).height == len(t.plan().tasks)
