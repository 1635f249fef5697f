"""Small files that expand to gigabytes are refused or read within 1.5 GB and 30 s, and the error is one of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.storage import VARIABLE, Budget, allowed
from tests.helpers.bombs import BOMBS, DOORS
from tests.helpers.sampling import one_of

ROOT = Path(__file__).resolve().parent.parent
_SECONDS = 30
_MIB = 1500

#: Of each bomb the doors behind which it went off; the long run goes through all of them.
_QUICK = [
    ("gzip_brackets", "open"),
    ("gzip_brackets", "file"),
    ("gzip_snapshots", "open"),
    ("sparse_hint", "open"),
    ("sparse_metadata", "open"),
    ("sparse_manifest", "inspect"),
    ("avro_offsets", "save"),
    ("avro_offsets", "bundle"),
    ("avro_offsets_60", "save"),
    ("avro_offsets_60", "inspect"),
    ("avro_again", "again"),
    ("avro_again", "bundle"),
    ("avro_faults", "inspect"),
    ("avro_offsets_60", "redacted"),
    ("avro_again", "redacted"),
    ("parquet_manifest", "redacted"),
    ("avro_header", "tree"),
    ("avro_data", "head"),
    ("parquet_strings", "head"),
    ("parquet_strings", "arrow"),
    ("parquet_list", "arrow"),
    ("parquet_manifest", "tree"),
    ("orc_list", "head"),
    ("delete_runs", "count"),
    ("puffin_footer", "file"),
]


@pytest.fixture(scope="module")
def bombs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The bombs of the chosen tests, made by one child, whose memory is not this process's."""
    items: list[Any] = request.session.items
    names = sorted({item.callspec.params["name"] for item in items if _takes_bombs(item)})
    return dict(zip(names, _made(names, tmp_path_factory.mktemp("bombs")), strict=True))


def _takes_bombs(item: Any) -> bool:
    return item.path == Path(__file__) and "bombs" in item.fixturenames


def _made(names: list[str], folder: Path) -> list[str]:
    code = _MAKE, str(folder), *names
    done = subprocess.run(
        [sys.executable, "-c", *code], env=_env(), cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def _through(name: str, bomb: str, door: str) -> dict[str, Any]:
    """Open a bomb in a child, and return what that has measured."""
    done = subprocess.run(
        [sys.executable, "-c", _CONFINED, name, bomb, door],
        env=_env(), cwd=ROOT, capture_output=True, text=True, timeout=4 * _SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _env() -> dict[str, str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    env.pop(VARIABLE, None)
    return env


_MAKE = """
import sys
from pathlib import Path
from tests.helpers.bombs import BOMBS
for name in sys.argv[2:]:
    print(BOMBS[name](Path(sys.argv[1], name)))
"""
#: The machine is spared where the package fails. What Arrow's threads do while the interpreter ends, without the
#: memory for another thread, is no part of the test: it has been seen to abort, and not to end.
_CONFINED = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (5 << 30, 5 << 30))
from tests.helpers.bombs import main
print(json.dumps(main(*sys.argv[1:4])), flush=True)
os._exit(0)
"""


def _check(found: dict[str, Any]) -> None:
    assert not found["outcome"].startswith("foreign"), found
    assert found["seconds"] < _SECONDS, found
    assert found["mib"] < _MIB, found
    assert found["helper_mib"] < _MIB, found


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss and sparse files are counted as on Linux")
@pytest.mark.parametrize(("name", "door"), one_of(3, _QUICK))
def test_a_bomb_does_not_go_off(bombs: dict[str, str], name: str, door: str) -> None:
    _check(_through(name, bombs[name], door))


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss and sparse files are counted as on Linux")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", BOMBS)
def test_no_bomb_goes_off_behind_any_door(tmp_path: Path, name: str, door: str) -> None:
    (bomb,) = _made([name], tmp_path)
    _check(_through(name, bomb, door))


def test_the_limit_is_a_part_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("iceexplore.storage._budget._given", None)
    monkeypatch.setattr("iceexplore.storage._budget._found", None)
    monkeypatch.setattr("iceexplore.storage._budget._machine", lambda: [64 << 30])
    monkeypatch.setattr("iceexplore.storage._budget._containers", lambda: [8 << 30, 1 << 62])
    assert ix.memory_limit() == 2 << 30
    assert allowed(1000) == 512 << 20  # a small file
    assert allowed(10 << 20) == 640 << 20  # 64 times as much
    assert allowed(1 << 30) == 2 << 30


def test_a_limit_that_is_set_alone_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.storage._budget._given", None)
    monkeypatch.setenv(VARIABLE, "3 GiB")
    assert ix.memory_limit() == allowed(10) == 3 << 30
    assert ix.memory_limit("1.5 GiB") == allowed(10) == 3 << 29
    assert ix.memory_limit(200_000_000) == ix.memory_limit() == 200_000_000
    for wrong in ("much", "8 XB", -5, 1000, True, 1.5, "1 MiB"):
        with pytest.raises(ix.OptionError, match="limit="):
            ix.memory_limit(wrong)  # type: ignore[arg-type]
    monkeypatch.setattr("iceexplore.storage._budget._given", None)
    monkeypatch.setenv(VARIABLE, "plenty")
    with pytest.raises(ix.OptionError, match=VARIABLE):
        ix.memory_limit()


def test_the_error_says_how_much_and_how_to_allow_more() -> None:
    budget = Budget("s3://b/m.avro", 1000)
    budget.reserve(100 << 20, "the entries")
    with pytest.raises(
        ix.MemoryLimitError, match=r"the entries .* 512 MiB .*memory_limit\('8 GiB'\) · in s3://b/m.avro"
    ):
        budget.reserve(500 << 20, "the entries")
    assert issubclass(ix.MemoryLimitError, (MemoryError, ix.UnsupportedError))


def test_metadata_of_many_snapshots_is_read(tmp_path: Path) -> None:
    """Ten thousand snapshots are no bomb."""
    lab = ix.create(tmp_path / "t", {"id": "long"})
    lab.append({"id": [1]})
    path = tmp_path / "t" / "metadata" / "v2.metadata.json"
    document = json.loads(path.read_text())
    one = document["snapshots"][0]
    first = int(one["snapshot-id"])
    document["snapshots"] = [one] + [
        {**one, "snapshot-id": first + i, "summary": {**one["summary"], "note": "x" * 9000}} for i in range(1, 10_000)
    ]
    path.write_text(json.dumps(document))
    assert path.stat().st_size > 90_000_000
    assert len(ix.open(tmp_path / "t").snapshots) == 10_000


def test_batches_have_as_many_rows_as_their_longest_value_allows(tmp_path: Path) -> None:
    """A long string among short ones: the same rows, in smaller batches."""
    import pandas as pd

    from iceexplore.reading import TaskReader, outputs_of

    lab = ix.create(tmp_path / "t", {"id": "long", "s": "string"})
    texts = ["short", "x" * 20_000, "other"] * 20_000
    lab.append(pd.DataFrame({"id": range(len(texts)), "s": texts}))
    t = ix.open(tmp_path / "t")
    reader = TaskReader(t.state, t.plan().files, outputs_of(t.state, None))
    parts = [part.table.num_rows for part in reader.read(0)]
    assert sum(parts) == len(texts)
    assert max(parts) <= (128 << 20) // 20_000
    found = t.to_arrow()
    assert found["s"].to_pylist() == texts
    assert found["id"].to_pylist() == list(range(len(texts)))
