"""Zips on a worker's path: read again when they changed, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
import zipimport
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from iceexplore.on_spark.environment._worker_imports import in_worker, read_zips_once


def write(path: Path, **modules: str) -> None:
    with ZipFile(path, "w") as file:
        for name, text in modules.items():
            file.writestr(f"{name}.py", text)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python reads no zip before something is looked for")
def test_a_zip_is_read_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Importer(zipimport.zipimporter):
        pass

    read: list[str] = []
    plain: Any = vars(zipimport)["_read_directory"]

    def reading(path: str) -> Any:
        read.append(path)
        return plain(path)

    monkeypatch.setitem(vars(zipimport), "_read_directory", reading)
    read_zips_once(Importer)
    path = tmp_path / "a.zip"
    write(path, one="x = 1")
    first, second = Importer(str(path)), Importer(str(path))
    read.clear()
    for _ in range(3):
        for importer in (first, second):
            importer.invalidate_caches()
            assert importer.find_spec("one") and not importer.find_spec("two")
    assert read == [str(path)]
    write(path, one="x = 1", two="y = 2")
    assert not second.find_spec("two")
    for importer in (second, first):
        importer.invalidate_caches()
        assert importer.find_spec("two")
    assert read == [str(path)] * 2
    path.unlink()
    first.invalidate_caches()
    assert not first.find_spec("one")
    write(path, three="z = 3")
    for importer in (first, second):
        importer.invalidate_caches()
        assert importer.find_spec("three") and not importer.find_spec("one")


def test_nobodys_notebook_is_changed() -> None:
    asks = "import zipimport; before = zipimport.zipimporter.invalidate_caches; import iceexplore.on_spark; "
    asks += "print(zipimport.zipimporter.invalidate_caches is before)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "True\n"
    assert not in_worker()
