"""Bundles: what is in the zip opens again and tells the same; what was to be blanked is nowhere in it."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from pathlib import Path

import fastavro
import pytest

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.errors import IceexploreError, OptionError, StorageError
from tests.helpers.full_disk import little_room


def test_bundle_opens_again_and_tells_the_same(tmp_path: Path) -> None:
    t = ix.sample("trips")
    made = t.bundle(tmp_path / "x.zip")
    again = ix.open(tmp_path / "x.zip")
    assert not made.missing
    assert again.inspect.all_entries.arrow().num_rows == t.inspect.all_entries.arrow().num_rows
    assert again.inspect.files.arrow().equals(t.inspect.files.arrow())
    assert not list(again.problems)
    assert not any("/data/" in n for n in zipfile.ZipFile(tmp_path / "x.zip").namelist())
    again.close()


def test_deletes_go_in_on_request(tmp_path: Path) -> None:
    t = ix.sample("trips")
    t.bundle(tmp_path / "x.zip", deletes=True)
    again = ix.open(tmp_path / "x.zip")
    assert again.inspect.position_deletes.arrow().num_rows == t.inspect.position_deletes.arrow().num_rows > 0
    with pytest.raises(OptionError, match="contain values"):
        t.bundle(tmp_path / "y.zip", deletes=True, redact="values")


def test_nothing_is_overwritten_unless_asked(tmp_path: Path) -> None:
    t = ix.sample("trips")
    (tmp_path / "x.zip").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        t.bundle(tmp_path / "x.zip")
    assert (tmp_path / "x.zip").read_bytes() == b"mine"
    t.bundle(tmp_path / "x.zip", overwrite=True)
    assert zipfile.is_zipfile(tmp_path / "x.zip")


def test_what_cannot_be_written_is_explained(tmp_path: Path) -> None:
    t = ix.sample("trips")
    for path, why in ((tmp_path / "none" / "b.zip", "does not exist"), (tmp_path, "is a folder")):
        with pytest.raises(OptionError, match=why):
            t.bundle(path, overwrite=True)
    with pytest.raises(OptionError, match="True, False, or any of credentials"):
        t.bundle(tmp_path / "x.zip", redact=None)  # type: ignore[arg-type]
    t.bundle(tmp_path / "x.zip")
    with pytest.raises(IceexploreError, match="overwrite=True replaces it"):
        t.bundle(tmp_path / "x.zip")
    before = (tmp_path / "x.zip").read_bytes()
    with little_room(), pytest.raises(StorageError, match="nothing was changed"):
        t.bundle(tmp_path / "x.zip", overwrite=True)
    assert (tmp_path / "x.zip").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]


def test_credentials_are_blanked_by_default(tmp_path: Path) -> None:
    path = tmp_path / "trips"
    shutil.copytree(sample_path("trips"), path)
    for file in (path / "metadata").glob("*.metadata.json"):
        data = file.read_bytes()
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        document["properties"] |= {
            "s3.secret-access-key": "hunter2-a",
            "adls.sas-token.x": "hunter2-b",
            "jdbc.uri": "postgres://me:hunter2-c@host/db?password=hunter2-d&x=1",
            "owner": "me",
        }
        text = json.dumps(document).encode()
        file.write_bytes(gzip.compress(text) if data[:2] == b"\x1f\x8b" else text)
    t = ix.open(path)
    t.bundle(tmp_path / "x.zip")
    assert b"hunter2" not in _everything(tmp_path / "x.zip")
    assert ix.open(tmp_path / "x.zip").properties["owner"] == "me"
    t.bundle(tmp_path / "y.zip", redact=())
    assert b"hunter2-a" in _everything(tmp_path / "y.zip")
    with pytest.raises(OptionError, match="credentials, values, paths, names"):
        t.bundle(tmp_path / "z.zip", redact="everything")


def test_bounds_and_partitions_are_blanked_and_counts_stay(tmp_path: Path) -> None:
    t = ix.sample("trips")
    t.bundle(tmp_path / "x.zip", redact=True)
    entries = 0
    with zipfile.ZipFile(tmp_path / "x.zip") as z:
        for name in z.namelist():
            if not name.endswith(".avro"):
                continue
            for record in fastavro.reader(io.BytesIO(z.read(name))):
                for summary in record.get("partitions") or ():
                    assert summary["lower_bound"] is None and summary["upper_bound"] is None
                if "data_file" in record:
                    entries += 1
                    for name in ("lower_bounds", "upper_bounds"):
                        for bound in record["data_file"].get(name) or ():
                            assert bound["key"] == 2147483546, "the path of a data file, which is redacted as such"
                            assert b"/data/x" in bound["value"]
                    for value in record["data_file"]["partition"].values():
                        assert value is None or value in range(20) or value.year == 1970, "a placeholder"
    assert entries
    again = ix.open(tmp_path / "x.zip")
    mine, theirs = again.inspect.all_entries.arrow(), t.inspect.all_entries.arrow()
    assert mine.num_rows == theirs.num_rows
    assert not list(again.problems)
    assert again.inspect.snapshots()["snapshot_id"].tolist() == t.inspect.snapshots()["snapshot_id"].tolist()


@pytest.mark.parametrize("redact", [False, True])
def test_a_broken_table_is_bundled_too(tmp_path: Path, redact: bool) -> None:
    path = tmp_path / "trips"
    shutil.copytree(sample_path("trips"), path)
    whole = ix.open(path)
    places = [Path(p).name for p in whole.inspect.manifests()["path"]]
    (path / "metadata" / places[0]).unlink()
    broken = path / "metadata" / places[1]
    broken.write_bytes(broken.read_bytes()[:-100])
    made = ix.open(path).bundle(tmp_path / "x.zip", redact=redact)
    left_out = {Path(p).name for p in made.missing}
    assert left_out == ({places[0], places[1]} if redact else {places[0]})
    again = ix.open(tmp_path / "x.zip")
    again.inspect.files()
    missing = {Path(p.where).name for p in again.problems}
    assert len(missing) >= 2 if redact else missing >= {places[0], places[1]}


def _everything(path: Path) -> bytes:
    out = b""
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            data = z.read(name)
            out += gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return out


@pytest.mark.parametrize("former", ["bounds", "partitions"])
def test_former_words_mean_values(tmp_path: Path, former: str) -> None:
    t = ix.sample("trips")
    with pytest.warns(DeprecationWarning, match=f"{former}.*values") as warned:
        t.bundle(tmp_path / "former.zip", redact=[former])
    assert warned[0].filename == __file__
    held = _everything(tmp_path / "former.zip")
    t.bundle(tmp_path / "whole.zip", redact=())
    bound = b"guest"  # of the column rider; its name is no value
    assert bound in _everything(tmp_path / "whole.zip") and bound not in held
    assert b"rider" in held
