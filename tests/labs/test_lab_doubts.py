"""Where rows may be missing a lab refuses to write anew what is left; adding rows goes on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

import iceexplore as ix
from iceexplore.arrow import build

Rewrite = Callable[[ix.Lab], Any]

REWRITES: dict[str, Rewrite] = {
    "delete": lambda lab: lab.delete("id = 1"),
    "delete of no row": lambda lab: lab.delete("id = 11"),  # of the manifest that is missing
    "update": lambda lab: lab.update({"k": "c"}, "id = 1"),
    "merge": lambda lab: lab.merge({"id": [11], "k": ["c"]}, on="id"),
    "overwrite": lambda lab: lab.overwrite({"id": [1], "k": ["c"]}, "id = 1"),
    "compact": lambda lab: lab.compact(),
    "rewrite_manifests": lambda lab: lab.rewrite_manifests(),
    "rewrite_position_deletes": lambda lab: lab.rewrite_position_deletes(),
}


def _lab(folder: Path) -> ix.Lab:
    properties = {"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
    lab = ix.create(folder, {"id": "long", "k": "string"}, partition_by="k", properties=properties)
    lab.append({"id": [1, 2, 3], "k": ["a"] * 3})
    lab.append({"id": [4, 5, 6], "k": ["a"] * 3})
    lab.delete("id = 2")
    lab.append({"id": [11, 12], "k": ["b"] * 2})
    return lab


def _change_list(lab: ix.Lab, change: Callable[[list[Any]], None]) -> None:
    assert lab.snapshot is not None
    path = Path(str(lab.snapshot.root_location).removeprefix("file://"))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema: Any = reader.writer_schema
    change(rows)
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=header)


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_nothing_is_written_anew_where_rows_may_be_missing(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    _change_list(_lab(folder), lambda rows: rows.pop(0))  # the newest manifest's record: two rows
    before = _files(folder)
    for name, rewrite in REWRITES.items():
        lab = ix.lab(folder)
        with pytest.raises(ix.FormatError, match=r"Rows may be missing.*summary has.*rollback.*on_error='skip'"):
            rewrite(lab)
        assert _files(folder) == before, f"{name} left files behind"
    lab = ix.lab(folder)
    assert lab.append({"id": [20], "k": ["a"]}) is not None
    with pytest.raises(ix.FormatError, match="Rows may be missing"):
        lab.fork().delete("id = 1")


def test_a_lab_continues_with_what_is_there_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    _change_list(_lab(folder), lambda rows: rows.pop(0))
    lab = ix.lab(folder, on_error="skip")
    with pytest.warns(UserWarning, match="summary has"):
        lab.delete("id = 1")
    with pytest.warns(UserWarning, match="summary has"):
        assert lab.fork().delete("id = 11") is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [3, 4, 5, 6]
    with pytest.raises(ix.OptionError, match="'raise' or 'skip'"):
        ix.lab(folder, on_error="ignore")  # type: ignore[arg-type]


def test_a_rollback_ends_the_doubt(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    lab = _lab(folder)
    older = lab.snapshots[-2].snapshot_id
    _change_list(lab, lambda rows: rows.pop(0))
    lab = ix.lab(folder)
    with pytest.raises(ix.FormatError, match="Rows may be missing"):
        lab.delete("id = 1")
    lab.rollback(older)
    assert lab.delete("id = 1") is not None
    assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [3, 4, 5, 6]


def test_rows_that_a_claim_hides_are_not_taken_for_absent(tmp_path: Path) -> None:
    folder = tmp_path / "t"

    def untrue(rows: list[Any]) -> None:
        for row in rows:  # of every manifest: that of the rows asked for is left out, and the other one is read
            if row["content"] == 0:
                row["partitions"][0].update(lower_bound=b"b", upper_bound=b"b")

    lab = _lab(folder)
    lab.append({"id": [7], "k": ["b"]})
    _change_list(lab, untrue)
    assert ix.lab(folder).delete("k = 'a'") is None  # nothing is read, so that nothing can show: see the Limits
    lab = ix.lab(folder)
    lab.to_arrow()
    with pytest.raises(ix.FormatError, match=r"Rows may be missing.*[Tt]he manifest list claims"):
        lab.delete("k = 'a' and id = 1")
    assert lab.rewrite_manifests() is not None, "which mends the list"
    assert ix.lab(folder).delete("k = 'a' and id = 1") is not None
