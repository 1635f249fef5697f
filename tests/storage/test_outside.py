"""Data outside a catalog's table, as add_files puts it there: refused at first, and read as the refusal advises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import OptionError, OutsideRootsError
from iceexplore.on_spark.data_source._reader import state_of_options
from iceexplore.storage._location import within
from iceexplore.storage._roots import _fewest, _outermost, admitting
from tests.helpers.outside_lab import outside_lab


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    from pyiceberg.catalog.sql import SqlCatalog

    made = SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/wh")
    made.create_namespace("db")
    rows = pa.table({"x": pa.array([1, 2], pa.int64())})
    table = made.create_table("db.t", rows.schema)
    places = []
    for place in ("raw/day=1", "raw/day=2", "old/more"):
        (tmp_path / place).mkdir(parents=True)
        places.append(f"file://{tmp_path}/{place}/f.parquet")
        pq.write_table(rows, tmp_path / place / "f.parquet")
    table.add_files(places)
    yield made
    made.engine.dispose()


def test_the_refusal_says_what_admits_every_file(catalog: Any, tmp_path: Path) -> None:
    t = ix.open("db.t", catalog=catalog)
    with pytest.raises(OutsideRootsError, match=r"3 of the 3 files") as error:
        t.to_arrow()
    assert error.value.allow == (f"{tmp_path}/old/more", f"{tmp_path}/raw")
    assert str(error.value).endswith(f"moved={{...}}. To admit all of them: allow={list(error.value.allow)!r}.")
    assert set(t.verify()["code"]) == {"outside-roots"}

    allowed = ix.open("db.t", catalog=catalog, allow=error.value.allow)
    again = allowed.refresh()
    for table in (allowed, again, allowed.at(version=allowed.state.opened.version)):
        assert sorted(build.to_pylist(table.to_arrow()["x"])) == [1, 1, 1, 2, 2, 2]
        assert table.count("x = 1") == 3
        assert table.verify().empty
    assert len(allowed.plan("x = 1").files) == 3
    assert ix.open(catalog.load_table("db.t"), allow=list(error.value.allow)).count("x = 2") == 3


def test_what_is_advised_is_no_wider_than_it_must_be() -> None:
    assert admitting("s3://lake/raw/a=1/b=2/f") == "s3://lake/raw"
    assert admitting("s3://lake/f") == "s3://lake"
    assert admitting("/etc/passwd") == "/etc"
    assert admitting("/passwd") == "/passwd"
    assert admitting("/a=1/f") == "/a=1/f"
    assert _fewest(["s3://b/x/y", "s3://b/x", "/z"]) == ("/z", "s3://b/x")
    assert _fewest(f"s3://b/x/{i}" for i in range(100)) == ("s3://b/x",)


#: Canonical places: relative and absolute ones, of stores too, with names that sort before "/" as text.
_PLACES = strategies.builds(
    lambda start, parts: "/".join(parts) if not start else start + "/".join(parts),
    strategies.sampled_from(["", "/", "../", "s3://b/", "s3://b-c/"]),
    strategies.lists(strategies.sampled_from(["a", "a-b", "a b", "a.b", "+", "b"]), min_size=1, max_size=4),
)


@given(strategies.lists(_PLACES | strategies.sampled_from([".", "/", "s3://b", "..", "!"]), max_size=12))
def test_places_inside_others_are_left_out(places: list[str]) -> None:
    expected = [p for p in places if not any(p != other and within(p, other) for other in places)]
    assert _outermost(places) == sorted(set(expected))


@pytest.mark.parametrize("given", ["", "a\0b", 1, True, [None]])
def test_what_names_no_place_is_refused(given: Any) -> None:
    with pytest.raises(OptionError, match="allow="):
        ix.open(".", allow=given)


def test_a_lab_reads_what_is_allowed_and_writes_nothing_there(tmp_path: Path) -> None:
    folder, other = outside_lab(tmp_path)
    before = {path: path.read_bytes() for path in other.iterdir()}
    with closing(ix.lab(folder)) as refused, pytest.raises(OutsideRootsError) as error:
        refused.to_arrow()
    assert error.value.allow == (str(other),)
    with closing(ix.lab(folder, allow=str(other))) as lab:
        assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [1, 2, 3]
        lab.append({"id": [4]})
        lab.delete("id = 2")
        assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [1, 3, 4]
    assert {path: path.read_bytes() for path in other.iterdir()} == before
    with pytest.raises(OptionError, match="allow"):
        ix.lab(folder, allow=5)  # type: ignore[arg-type]


def test_the_option_allow_of_the_spark_reader(tmp_path: Path) -> None:
    folder, other = outside_lab(tmp_path)
    for place in (str(other), json.dumps([str(other), "/nowhere"])):
        state = state_of_options({"path": str(folder), "allow": place})
        assert ix.Table(state).count() == ix.Table(state).to_arrow().num_rows == 3
    with pytest.raises(OutsideRootsError):
        ix.Table(state_of_options({"path": str(folder)})).to_arrow()
    for wrong in ("[1]", "[", '["x", null]'):
        with pytest.raises(OptionError, match="allow="):
            state_of_options({"path": str(folder), "allow": wrong})
