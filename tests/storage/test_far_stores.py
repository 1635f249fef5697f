"""What tables in a far store cost: requests are counted by the store, and may not become more."""

from __future__ import annotations

import importlib
import io
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.storage import CACHE, in_order
from tests.helpers.sampling import one_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MANIFESTS, FILES = 6, 12
ARROW, FSSPEC = "pyiceberg.io.pyarrow.PyArrowFileIO", "pyiceberg.io.fsspec.FsspecFileIO"


@dataclass
class Far:
    """A store in this process, with a table that PyIceberg has written into it."""

    stores: Any
    store: Any
    port: int
    folder: str
    metadata: str

    def ours(self, line: str, file_io: str = ARROW) -> dict[str, int]:
        """Requests of a line of the benchmark, with nothing read before."""
        tool = self.stores.Ours(self.port, self.folder, self.metadata)
        tool.properties = {**tool.properties, "py-io-impl": file_io}
        return self.asked(getattr(tool, line))

    def theirs(self, line: str) -> dict[str, int] | None:
        """The same by PyIceberg."""
        tool = self.stores.Theirs(self.port, self.folder, self.metadata)
        return self.asked(getattr(tool, line)) if hasattr(tool, line) else None

    def asked(self, work: Any) -> dict[str, int]:
        """The requests that some work makes."""
        CACHE.clear()
        self.store.reset()
        work()
        return dict(self.store.counts.methods)

    def open(self, location: str, **more: Any) -> ix.Table:
        """A table of the store."""
        properties = {**self.stores.properties(self.port), **more.pop("properties", {})}
        return ix.open(location, properties=properties, **more)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        for name in ("stores", "_store_server"):
            sys.modules.pop(name, None)
        stores = importlib.import_module("stores")
        server = sys.modules["_store_server"]
        patch.setattr(stores, "COMMITS", MANIFESTS)
        folder = str(tmp_path_factory.mktemp("far"))
        store = server.Store()
        with server.running(store) as port:
            metadata = stores.make_table(port, folder)
            yield Far(stores, store, port, folder, metadata)


# One GET for each file that is needed: the metadata file, the list, manifests, data files.
GETS = {
    "open_file": 1,
    "open_catalog": 1,
    "refresh": 2,
    "tree": 2,
    "files": 2 + MANIFESTS,
    "count": 2,
    "count_where": 2 + MANIFESTS + FILES,
    "head": 4,
    "to_arrow": 2 + MANIFESTS + FILES,
    "one_column": 2 + MANIFESTS + FILES,
    "all_files": 1 + 2 * MANIFESTS,
    "verify": 2 + MANIFESTS + FILES,
}


@pytest.mark.parametrize("line", GETS)
def test_arrow_asks_for_each_file_once(far: Far, line: str) -> None:
    """Arrow's file systems ask for a file's size (HEAD) with each that they open: so each is opened once."""
    found = far.ours(line)
    assert found["GET"] <= GETS[line] and found["HEAD"] == found["GET"]
    assert set(found) == {"GET", "HEAD"}
    theirs = far.theirs(line)
    assert theirs is None or sum(found.values()) <= sum(theirs.values())


@pytest.mark.parametrize("line", sorted(set(GETS) - {"verify", "open_catalog", "refresh"}))
def test_fsspec_is_asked_for_no_size(far: Far, line: str) -> None:
    found = far.ours(line, FSSPEC)
    assert set(found) == {"GET"} and found["GET"] <= GETS[line]


def test_verify_asks_for_sizes_which_it_holds_against_the_entries(far: Far) -> None:
    assert far.ours("verify", FSSPEC) == {"GET": GETS["verify"], "HEAD": FILES}


def test_a_folder_is_listed_once(far: Far) -> None:
    assert far.ours("open_folder") == {"GET": 1, "HEAD": 2, "LIST": 1}  # the hint, which is not there


def test_a_filter_reads_the_manifests_that_are_left(far: Far) -> None:
    assert far.asked(lambda: far.open(far.metadata).plan("part = 3").tasks) == {"GET": 3, "HEAD": 3}


def test_more_rows_than_the_first_manifest_has(far: Far) -> None:
    found: list[Any] = []
    asked = far.asked(lambda: found.append(far.open(far.metadata).head(250)))
    assert len(found[0]) == 250 and asked["GET"] == 2 + 3 + 5  # 100 rows a manifest, 50 a file
    every = far.open(far.metadata).to_arrow()
    assert found[0]["number"].tolist() == every["number"].to_pylist()[:250]
    assert len(far.open(far.metadata).head(250, "text like 'row 1%'")) == len(
        [t for t in build.to_pylist(every["text"]) if t.startswith("row 1")]
    )
    assert far.open(far.metadata).head(0).empty


# Counts of the list -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"total-records": "1"},
        {"total-data-files": "1"},
        {"total-delete-files": "1"},
        {"total-records": None},
        {"total-delete-files": None},
        {"total-records": "many"},
    ],
    ids=str,
)
def test_a_list_that_the_summary_contradicts_is_not_believed(far: Far, change: dict[str, str | None]) -> None:
    key = far.metadata.removeprefix("s3://")
    document = json.loads(far.store.objects[key])
    (snapshot,) = [s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"]]
    snapshot["summary"] = {k: v for k, v in {**snapshot["summary"], **change}.items() if v is not None}
    other = key.replace(".metadata.json", "-other.metadata.json")
    far.store.objects[other] = json.dumps(document).encode()
    counted: list[Any] = []
    try:
        asked = far.asked(lambda: counted.append(far.open(f"s3://{other}").count()))
    finally:
        del far.store.objects[other]
    assert counted == [100 * MANIFESTS] and asked["GET"] == 2 + MANIFESTS and not counted[0].by_list


def test_a_count_of_the_list_says_so(far: Far) -> None:
    found = far.open(far.metadata).count()
    assert found.by_list and found.files == FILES == found.from_metadata
    assert found.explain() == "600 rows in 12 data files: counted from the manifest list alone"
    strict = far.open(far.metadata, strict=True).count()
    assert strict == found and not strict.by_list


# Deletes, large files, wrong sizes -----------------------------------------------------------------------------------


LARGE = 80_000


@pytest.fixture(scope="module", params=[2, 3])
def lab(request: pytest.FixtureRequest, far: Far, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A lab with deletes by position and a large file, and the same in the store: two places."""
    here = tmp_path_factory.mktemp("lab") / "t"
    made = ix.create(
        str(here),
        {"id": "long", "x": "double", "part": "string"},
        partition_by=["part"],
        format_version=request.param,
        properties={"write.delete.mode": "merge-on-read", "write.parquet.compression-codec": "uncompressed"},
    )
    for part in "abc":
        made.append({"id": list(range(20)), "x": [i / 7 for i in range(20)], "part": [part] * 20})
    made.append({"id": list(range(LARGE)), "x": [i / 7 for i in range(LARGE)], "part": ["large"] * LARGE})
    made.delete("id = 3")
    place = f"s3://bucket/lab{request.param}"
    put(far, here, place)
    return str(here), place


def put(far: Far, folder: Path, place: str) -> None:
    """A folder's files into the store."""
    for file in folder.rglob("*"):
        if file.is_file():
            far.store.objects[f"{place.removeprefix('s3://')}/{file.relative_to(folder)}"] = file.read_bytes()


def opened(far: Far, lab: tuple[str, str], **properties: str) -> ix.Table:
    here, place = lab
    return far.open(place, moved={here: place, f"file://{here}": place}, properties=properties)


@pytest.mark.parametrize("file_io", [ARROW, FSSPEC])
def test_deletes_and_large_files(far: Far, lab: tuple[str, str], file_io: str) -> None:
    here = ix.open(lab[0])
    t = opened(far, lab, **{"py-io-impl": file_io})
    t.plan().tasks
    found: list[Any] = []
    far.store.reset()
    found.append(t.to_arrow())
    asked = dict(far.store.counts.methods)
    assert found[0].equals(here.to_arrow())
    # four data files, of which the large one takes its end and its columns; and a delete for each, each of its own
    assert asked.pop("GET") == 5 + 4
    assert asked == ({"HEAD": 4 + 4} if file_io == ARROW else {})
    CACHE.clear()
    assert t.count() == here.count()
    one = t.to_arrow("part = 'large' and id > 5", columns=["x"])
    assert one.equals(here.to_arrow("part = 'large' and id > 5", columns=["x"]))
    assert t.verify().empty and here.verify().empty


def test_columns_that_lie_close_together_are_one_request(far: Far, lab: tuple[str, str]) -> None:
    t = opened(far, lab)
    t.plan().tasks
    t.count("part = 'large'")
    far.store.reset()
    t.to_arrow("part = 'large'", columns=["id"])
    (large,) = [key for key, n in far.store.counts.keys.items() if key[0] == "GET" and "part=large" in key[1]
                and "delete" not in key[1] and key[1].endswith(".parquet")]  # fmt: skip
    assert far.store.counts.keys[large] == 2
    assert far.store.counts.received < 64 * 1024 + LARGE * 8 + 200_000


def wrong(data: bytes, how: str) -> bytes:
    """A data file of another size than its entry says, with the same rows, or with others after them."""
    table = pq.read_table(io.BytesIO(data))
    out = io.BytesIO()
    if how == "larger":
        rows = max(7, table.num_rows // 10)
        pq.write_table(table, out, compression="none", use_dictionary=False, row_group_size=rows)
    elif how == "smaller":
        pq.write_table(table, out, compression="zstd", compression_level=9, store_schema=False)
    elif how == "another after it":
        out.write(data)
        out.write(b"\0" * 1000)
    elif how == "cut":
        out.write(data[:-5])
    return out.getvalue()


@pytest.mark.parametrize("how", ["larger", "smaller", "another after it", "cut", "empty"])
@pytest.mark.parametrize("file_io", one_of(2, [ARROW, FSSPEC]))
def test_a_wrong_size_gives_what_it_gives_on_a_disk(
    far: Far, lab: tuple[str, str], how: str, file_io: str, tmp_path: Path
) -> None:
    import shutil

    here = tmp_path / "t"
    shutil.copytree(lab[0], here)
    for part in ("part=a", "part=large"):
        (file,) = [f for f in (here / "data").rglob("*.parquet") if part in str(f) and "delete" not in f.name]
        file.write_bytes(wrong(file.read_bytes(), how))
    place = f"s3://bucket/{tmp_path.name}-{len(far.store.objects)}"
    put(far, here, place)
    moved = {lab[0]: place, f"file://{lab[0]}": place}
    there = far.open(place, moved=moved, properties={"py-io-impl": file_io})
    local = ix.open(here, moved={lab[0]: str(here), f"file://{lab[0]}": str(here)})

    def results(t: ix.Table) -> Any:
        try:
            return t.to_arrow()
        except ix.IceexploreError as error:
            return type(error), getattr(error, "code", None)

    assert results(there) == results(local)
    assert {p.code for p in there.problems} == {p.code for p in local.problems}
    found, expected = (
        sorted(t.verify()[["code", "field", "found", "expected"]].astype(str).itertuples(index=False, name=None))
        for t in (there, local)
    )
    assert found == expected and found


# How many at once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 3, 32])
def test_as_many_requests_at_once_as_are_asked_for(far: Far, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Requests that may all be under way must take longer than a busy machine needs to start them.
    monkeypatch.setattr(far.store, "delay", 0.02 if most < 32 else 0.2)
    for work in (lambda t: t.to_arrow(), lambda t: t.inspect.all_files(), lambda t: t.verify()):
        t = far.open(far.metadata, properties={"iceexplore.parallel-reads": str(most)})
        CACHE.clear()
        far.store.reset()
        work(t)
        assert far.store.counts.most <= most
        assert most < 32 or far.store.counts.most >= MANIFESTS


def test_far_stores_are_read_by_more_threads_than_a_disk(far: Far, tmp_path: Path) -> None:
    assert far.open(far.metadata).state.storage.readers == 24
    assert ix.sample("trips").state.storage.readers <= 4
    assert far.open(far.metadata).simulate().state.storage.readers == 24
    for given in ("0", "-1", "many", "257", "1.5"):
        with pytest.raises(ix.OptionError, match=r"iceexplore.parallel-reads must be a number of reads from 1 to 256"):
            far.open(far.metadata, properties={"iceexplore.parallel-reads": given})


def test_large_files_are_not_read_ahead_in_numbers(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by bytes: of files that would not fit, a few are under way."""
    monkeypatch.setattr("iceexplore.reading._scan._AHEAD_BYTES", 1)
    monkeypatch.setattr(far.store, "delay", 0.02)
    t = far.open(far.metadata)
    t.plan().tasks
    far.store.reset()
    assert t.to_arrow().num_rows == 100 * MANIFESTS
    assert 1 < far.store.counts.most <= 4


def test_work_in_order_is_bounded_by_weight() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def work(item: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.002)
        with lock:
            now -= 1
        return item * 2

    assert list(in_order(work, range(60), width=16)) == [i * 2 for i in range(60)]
    assert 4 < most <= 16
    most = 0
    found = in_order(work, range(60), width=16, weigh=lambda _: 200 << 20)
    assert list(found) == [i * 2 for i in range(60)] and most <= 5
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda i: 1 // i, range(3), width=4))
    started: list[int] = []
    some = in_order(started.append, range(1000), width=2)
    next(some)
    some.close()
    assert len(started) < 10


def test_a_storage_goes_to_another_process_with_what_was_asked_for(far: Far) -> None:
    import pickle

    t = far.open(far.metadata, properties={"iceexplore.parallel-reads": "5"})
    t.count()
    storage = pickle.loads(pickle.dumps(t.state.storage))
    assert storage.readers == 5 and storage.read(far.metadata, kind="metadata")
