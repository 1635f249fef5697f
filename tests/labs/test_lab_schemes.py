"""Labs spell their files with the scheme that was given, and apply deletes whose paths are spelled otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import iceexplore as ix


@pytest.mark.parametrize(
    ("scheme", "version", "name"),
    [("file://", 2, "with space"), ("file:", 3, "zäh"), ("file://", 4, "a%2Fb"), ("", 2, "t")],
)
def test_the_given_scheme_is_kept(tmp_path: Path, scheme: str, version: int, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()  # so that a percent sign in the URI is the folder's own
    prefix = f"{scheme}{folder}"
    lab = ix.create(
        prefix, {"id": "long"}, format_version=version, properties={"write.delete.mode": "merge-on-read"}
    )
    assert lab.metadata.location == prefix
    lab.append({"id": [1, 2, 3]})
    lab.delete("id = 2")
    assert lab.to_arrow()["id"].to_pylist() == [1, 3]
    newest = max((folder / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    document = json.loads(newest.read_text())
    named = [v for s in document["snapshots"] for v in s.values() if isinstance(v, str) and "/" in v]
    assert len(named) == 2
    assert all(place.startswith(prefix + "/") for place in named)
    assert all(e["metadata-file"].startswith(prefix + "/") for e in document["metadata-log"])
    for paths in (lab.inspect.files.arrow()["file_path"], lab.inspect.manifests.arrow()["path"]):
        assert all(path.startswith(prefix + "/") for path in paths.to_pylist())
    again = ix.lab(folder)
    again.append({"id": [4]})
    assert again.metadata.location == prefix
    assert sorted(again.to_arrow()["id"].to_pylist()) == [1, 3, 4]
    assert again.leftovers().empty
    assert again.compact() is not None
    assert sorted(ix.open(prefix).to_arrow()["id"].to_pylist()) == [1, 3, 4]
    again.expire(retain_last=1, older_than="2100-01-01")
    assert sorted(ix.lab(folder).to_arrow()["id"].to_pylist()) == [1, 3, 4]
    assert again.leftovers().empty
