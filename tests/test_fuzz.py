"""A short run of `scripts.fuzz`, and numbers that it found."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.errors import FormatError
from scripts import fuzz
from scripts.fuzz.changes import change, read_thrift, thrift_values, write_thrift


def run(folder: Path, cases: int, first: int = 0) -> None:
    found = fuzz.run(folder, 1, first, cases, 60.0)
    assert found["done"] == cases
    bad = [f"{one['case']} {one['file']} {one['change']}: {one['what']}" for one in found["bad"]]
    assert not bad, "\n".join(bad)
    assert found["peak"] < fuzz.RESIDENT


def test_damaged_tables_raise_errors_of_ours_alone(tmp_path: Path) -> None:
    run(tmp_path, 25)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_damaged_tables(tmp_path: Path) -> None:
    run(tmp_path, 10_000, 10_000)


def test_a_case_repeats_from_its_number() -> None:
    data = json.dumps({"a": [1, {"b": None}], "c": "x"}).encode()
    path = Path("v1.metadata.json")
    changes = [change(path, data, random.Random(f"1:{n}")) for n in range(50)]
    assert changes == [change(path, data, random.Random(f"1:{n}")) for n in range(50)]
    assert len({text for _, text in changes}) > 20


@pytest.mark.parametrize(
    ("field", "value"),
    [("last-sequence-number", 2**63 - 1), ("next-row-id", 2**63 - 1), ("next-row-id", 2**63 - 5)],
)
def test_a_simulation_has_no_number_left(tmp_path: Path, field: str, value: int) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=3)
    lab.close()
    path = tmp_path / "t" / "metadata" / ix.open(tmp_path / "t").metadata_location.rsplit("/", 1)[-1]
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with closing(ix.open(tmp_path / "t").simulate()) as simulation, pytest.raises(FormatError, match=field):
        simulation.append(1, rows=10)


def test_a_negative_record_count_with_a_vector_is_ours() -> None:
    from pyroaring import BitMap64

    from iceexplore.deletes import PositionSet

    positions = PositionSet(BitMap64([1, 2]))
    assert (positions.count(-1), positions.count(2), positions.count(9)) == (0, 1, 2)


def test_lone_surrogates_of_a_puffin_footer_are_shown(tmp_path: Path) -> None:
    blob = {"type": "\ud800", "fields": [], "snapshot-id": 1, "sequence-number": 1, "offset": 4, "length": 0}
    text = json.dumps({"blobs": [blob | {"properties": {"\udfff": "x\ud800"}}]}).encode()
    path = tmp_path / "f.puffin"
    path.write_bytes(b"PFA1" + b"PFA1" + text + len(text).to_bytes(4, "little") + bytes(4) + b"PFA1")
    loose = ix.open_file(path)
    assert "\ufffd" in loose._repr_html_()
    assert "Traceback" not in repr(loose)


@pytest.mark.parametrize("field", ["3.16.2", "3.16.3"])
def test_chunks_that_contradict_themselves_do_not_end_the_process(tmp_path: Path, field: str) -> None:
    """Size statistics with a histogram of another length, of a column in a list."""
    lab = ix.create(tmp_path / "t", {"id": "long", "more": "list<long>"})
    lab.append({"id": [1, 2, 3], "more": [[1, 2], [], None]})
    (path,) = (tmp_path / "t").rglob("*-data.parquet")
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = read_thrift(data[start:-8])
    holder, at, _, _ = next(one for one in thrift_values(footer) if one[2] == f".4[0].1[1].{field}")
    kind, histogram = holder[at]
    assert len(histogram) > 1
    holder[at] = [kind, histogram[:-1]]
    text = write_thrift(footer)
    path.write_bytes(data[:start] + text + len(text).to_bytes(4, "little") + b"PAR1")
    for use in ("head", "to_arrow"):
        with pytest.raises(FormatError, match="histogram"):
            getattr(ix.open(tmp_path / "t"), use)()
