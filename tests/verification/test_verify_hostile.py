"""Whatever bytes a table's files hold, verification ends with findings, and the check itself never fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import iceexplore as ix
from iceexplore.errors import PROBLEM_KINDS


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table of version 3 with deletion vectors, and one of version 2 with both kinds of delete files."""
    folder = tmp_path_factory.mktemp("hostile")
    for version in (2, 3):
        s = ix.empty({"id": "long", "kind": "string"}, format_version=version, location=f"/warehouse/v{version}")
        s.append(pd.DataFrame({"id": range(20), "kind": ["a", "b"] * 10}))
        path = s.inspect.data_files()["file_path"][0]
        s.row_delta(deletes={path: [0, 2]})
        if version == 2:
            s.row_delta(equality=pd.DataFrame({"id": [7]}))
        s.save(folder / f"v{version}", data="copy")
    return folder


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(data=st.data())
def test_changed_bytes_become_findings(table: Path, tmp_path: Path, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(["v2", "v3"]))
    copy = tmp_path / version
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table / version, copy)
    files = [f for f in sorted((copy / "data").rglob("*")) if f.is_file()]
    files += sorted((copy / "metadata").glob("*.avro"))
    file = files[data.draw(st.integers(0, len(files) - 1), label="file")]
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content[: data.draw(st.sampled_from([len(content), len(content) * 2 // 3]))]))
    found = ix.open(copy).verify(level="data")
    assert set(found["code"]) <= set(PROBLEM_KINDS)
    assert not found["text"].str.contains("The check failed").any(), found.to_string()


def test_a_count_of_billions_makes_no_list_of_slices() -> None:
    from iceexplore.verification import _verify

    found = _verify._cut(1, 2**31 - 1, "data")
    assert len(found) <= _verify._MOST_SLICES and found[0].start == 0 and found[-1].stop is None
