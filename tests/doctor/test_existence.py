"""Files that do not exist, also so many that their folders are looked up before them."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.doctor.checks import _existence as existence
from tests.doctor.damages import healthy


def found(table: ix.Table) -> list[Any]:
    return [(f.code, f.where, f.found, f.count) for f in table.check()]


@pytest.mark.parametrize("lost", ["data", "data/k=a"])
def test_a_lost_folder_is_found_as_its_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    folder = healthy(tmp_path)
    shutil.rmtree(folder / lost)
    one_by_one = found(ix.open(folder))
    monkeypatch.setattr(existence, "_MANY_ABSENT", 1)
    lacks = Mock(wraps=existence._lacks)
    monkeypatch.setattr(existence, "_lacks", lacks)
    assert found(ix.open(folder)) == one_by_one
    assert one_by_one[0][0] == "file-missing" and not lacks.called


def test_only_folders_of_the_table_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = healthy(tmp_path)
    state = ix.open(folder).state
    (folder / "data" / "there").mkdir()
    (folder / "linked").symlink_to(folder / "data", target_is_directory=True)
    monkeypatch.setattr(existence, "_MANY_ABSENT", 1)
    entries = Mock(wraps=state.storage.entries)
    monkeypatch.setattr(state.storage, "entries", entries)
    root = state.storage.folder
    places = [
        *(f"{root}/gone/{k}/{i}.parquet" for k in range(50) for i in range(20)),
        *(f"{root}/data/there/{i}.parquet" for i in range(20)),
        f"{root}/linked/k=a/1.parquet",
        f"{root}/linked/x/1.parquet",
        f"{root}/data",  # in the table's own folder
        "/elsewhere/1.parquet",
        f"{root}/{'a/' * 5_000}1.parquet",
    ]
    made = existence._without_folder(
        SimpleNamespace(state=state),  # type: ignore[arg-type]
        existence._Folders.holding(pa.array([place.encode() for place in places], pa.binary())),
    )
    assert np.flatnonzero(made).tolist() == [*range(1000), 1021]
    assert sorted(call.args[0] for call in entries.call_args_list) == sorted(f"{root}/{name}" for name in (
        "gone", "data", "data/there", "linked", "linked/k=a", "linked/x",
    ))  # fmt: skip
