"""Where many files are is the same as where each one is."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from iceexplore.doctor.checks import _real_locations
from iceexplore.doctor.checks._real_locations import real_locations
from iceexplore.errors import IceexploreError, OutsideRootsError
from iceexplore.storage import Storage, open_source
from tests.storage.tables_on_disk import document, make_table


def opened(folder: Path) -> Storage:
    return open_source(make_table(folder, {"v1.metadata.json": document(str(folder))})).storage


@pytest.mark.parametrize("at_once", [1, 5, 1 << 16])
def test_many_locations_are_where_each_is(tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_real_locations, "_AT_ONCE", at_once)
    folder, secret = tmp_path / "t", tmp_path / "outside" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("secret")
    storage = opened(folder)
    data = folder / "data"
    data.mkdir()
    (data / "plain").write_text("x")
    (data / "inside").symlink_to(data / "plain")
    (data / "outside").symlink_to(secret)
    os.symlink(secret, os.fsencode(data) + b"/not\xfftext")
    (folder / "away").symlink_to(secret.parent)
    names = ["plain", "gone", "outside", "inside", "", ".", "..", "../outside/secret.txt", "x/y", "x/z", "ü"]
    locations = [f"{data}/{name}" for name in names]
    locations += [f"file:{data}/{name}" for name in names]
    locations += [str(secret), f"{folder}/away/secret.txt", f"{folder}/away/other", f"{folder}/away/inside"]
    locations += ["data/plain", "data/gone", "plain", "", "/", "s3://b", "s3://b/x", "s3://b/y", "http://localhost:1/x"]

    def alone(location: str) -> bytes | type[Exception]:
        try:
            return opened(folder).resolve(location).encode()
        except IceexploreError as error:
            return type(error)

    for _ in range(2):  # unknown folders, then known ones
        found, errors = real_locations(storage, pa.array(locations))
        made = [
            type(errors[name]) if name in errors else real
            for name, real in zip(locations, found.to_pylist(), strict=True)
        ]
        assert made == [alone(one) for one in locations]
        assert list(errors) == [one for one in locations if one in errors], "in the order of the locations"
    assert OutsideRootsError in map(type, errors.values())


def test_no_locations(tmp_path: Path) -> None:
    assert real_locations(opened(tmp_path), pa.array([], pa.string())) == (pa.array([], pa.binary()), {})


def test_a_folder_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = opened(tmp_path)
    resolve = Mock(wraps=storage.resolve)
    monkeypatch.setattr(storage, "resolve", resolve)
    locations = [f"{tmp_path}/data/k={k}/{i}.parquet" for k in range(3) for i in range(1_000)]
    found, errors = real_locations(storage, pa.array(locations))
    assert found.to_pylist() == [one.encode() for one in locations] and not errors
    assert resolve.call_count == 3
