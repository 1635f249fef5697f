"""A short run of `scripts.fuzz`, and numbers that it found."""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.commits import start_sandbox
from iceexplore.doctor import RepairPlan, Report
from iceexplore.errors import FormatError
from scripts import fuzz
from scripts.fuzz.changes import change, read_thrift, thrift_values, write_thrift
from scripts.fuzz.doctor import DoctorCases
from tests.doctor.damages import DAMAGES
from tests.doctor.v4_damages import V4_DAMAGES


def run(folder: Path, cases: int, first: int = 0, *, doctor: bool = False) -> None:
    found = fuzz.run(folder, 1, first, cases, 60.0, doctor=doctor)
    assert found["done"] == cases
    bad = [f"{one['case']} {one['file']} {one['change']}: {one['what']}" for one in found["bad"]]
    assert not bad, "\n".join(bad)
    assert found["peak"] < fuzz.RESIDENT


def test_damaged_tables_raise_errors_of_ours_alone(tmp_path: Path) -> None:
    run(tmp_path, 15)


def test_the_doctor_keeps_its_promises_of_damaged_tables(tmp_path: Path) -> None:
    run(tmp_path, 6, doctor=True)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("doctor", [False, True])
def test_many_damaged_tables(tmp_path: Path, doctor: bool) -> None:
    run(tmp_path, 10_000, 10_000, doctor=doctor)


def test_a_broken_promise_of_the_doctor_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = DoctorCases(tmp_path, everything=False)
    assert {d.name for d in (*DAMAGES, *V4_DAMAGES)} <= {seed.name for seed in cases.seeds}
    cases.seeds = [seed for seed in cases.seeds if seed.name == "data_file_gone"]
    monkeypatch.setattr("scripts.fuzz.doctor._DAMAGES", {1: 1.0})
    monkeypatch.setattr("scripts.fuzz.doctor._CHANGED", {1: 0.0})

    def kinds() -> list[str]:
        with cases.case(random.Random(1)) as case:
            return [kind for kind, _ in case.look()["faults"]]

    def written(report: Report) -> RepairPlan:
        (cases.place / "t" / "new").touch()
        return plan(report)

    def refused(report: Report) -> RepairPlan:
        raise FormatError("no plan")

    def silent(report: Report) -> RepairPlan:
        made = plan(report)
        return replace(made, _sandbox=start_sandbox(made._damaged), unrepaired=())

    plan = Report.repair
    assert kinds() == []
    for broken, found in (
        ((RepairPlan, "rows_after", 99), "a plan states other rows than its table has"),
        ((RepairPlan, "_repr_html_", lambda self: 1 / 0), "ZeroDivisionError outside the package"),
        ((Report, "repair", refused), "repair raises FormatError"),
        ((Report, "repair", written), "the table was written to"),
        ((Report, "repair", silent), "a plan is silent about what remains"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(*broken)
            assert found in kinds()


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
