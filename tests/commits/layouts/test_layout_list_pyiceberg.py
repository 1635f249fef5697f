"""PyIceberg reads the tables that we commit to: after every commit of a history the rows, and the entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.real_history import RealHistory, Row, play, rows_of
from tests.helpers.tables.list_table import ListLab, live_rows


def scanned(lab: ListLab, version: int | None = None) -> list[Row]:
    """The rows as PyIceberg has them."""
    from pyiceberg.table import StaticTable

    path = lab.folder / "metadata" / f"v{version or lab.version}.metadata.json"
    table = StaticTable.from_metadata(str(path)).scan().to_arrow()
    return sorted(zip(*(table[n].to_pylist() for n in ("id", "kind", "x")), strict=True), key=str)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_finds_the_rows_after_every_commit(tmp_path: Path, version: int) -> None:
    history, states = play(tmp_path / "t", version, equality=False)
    for i, expected in enumerate(states):
        if expected:
            assert scanned(history.lab, i + 1) == expected, i


def test_a_table_is_read_after_its_upgrades(tmp_path: Path) -> None:
    history = RealHistory(ListLab(tmp_path / "t", 1))
    one, _ = history.append(rows_of(0, 5, "a"), rows_of(5, 5, "b"))
    history.lab.upgrade(2)
    history.delete_rows({one: [1]})
    history.append(rows_of(10, 5, None))
    history.lab.upgrade(3)
    (two,) = history.append(rows_of(20, 5, "a"))
    history.delete_rows({two: [0, 1]})
    assert scanned(history.lab) == history.expected()
    history.delete_files(one)
    history.rewrite_manifests()
    assert scanned(history.lab) == history.expected()


@pytest.mark.parametrize("version", [2, 3])
def test_pyicebergs_entries_are_ours(tmp_path: Path, version: int) -> None:
    from pyiceberg.table import StaticTable

    history, _ = play(tmp_path / "t", version, equality=True)
    table = StaticTable.from_metadata(str(history.lab.metadata_path))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    theirs = [e for m in snapshot.manifests(table.io) for e in m.fetch_manifest_entry(table.io)]
    keys = ("snapshot_id", "sequence_number", "file_sequence_number")
    found = sorted(
        (e.data_file.file_path, e.data_file.record_count, int(e.status), *(getattr(e, k) for k in keys)) for e in theirs
    )
    ours = sorted(
        (r["location"], r["record_count"], r["status"], *(r[k] for k in keys)) for r in live_rows(history.lab.state)
    )
    assert found == ours
