"""`v.at`: by version id and by time; what is not there is named."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.views.view_documents import HOUR, START, log, version, view, without, write_view


@pytest.fixture
def v(tmp_path: Path) -> ix.View:
    """A view that was rolled back, and of which version 2 has expired."""
    made = view([version(1), version(3, "SELECT 3"), version(4, "SELECT 4")], 1, 2, 3, 4, 3)
    return ix.open_view(write_view(tmp_path / "v", made))


@pytest.mark.parametrize(("when", "found"), [(1, 1), (1.5, 1), (3, 3), (4, 4), (5, 3), (9, 3)])
def test_by_time(v: ix.View, when: float, found: int) -> None:
    ms = START + int(when * HOUR)
    for given in (ms, datetime.fromtimestamp(ms / 1000, UTC), datetime.fromtimestamp(ms / 1000, UTC).isoformat()):
        then = v.at(timestamp=given)
        assert then.version is not None and then.version.version_id == found
    assert "[as of 2019-11-12" in repr(then) and f"▶ {found}" in repr(then)


def test_by_id(v: ix.View) -> None:
    for given in (3, "3"):
        assert v.at(given).sql() == v.at(version=given).sql() == "SELECT 3"
    assert "[version 3]" in repr(v.at(3))
    assert v.at(4).at(1).version == v.versions[0], "travelling starts from the metadata file, not from the version"


def test_what_is_not_there(v: ix.View, tmp_path: Path) -> None:
    with pytest.raises(
        ix.SnapshotNotFoundError, match=r"no version 2 \(it was current from 2019-11-12 02.* has expired"
    ):
        v.at(2)
    with pytest.raises(ix.SnapshotNotFoundError, match=r"no version 9; the nearest of its 3: 1, 3, 4"):
        v.at(9)
    with pytest.raises(ix.SnapshotNotFoundError, match=r"version 2 was current .* nearest that still exist: 1 \(from"):
        v.at(timestamp=START + 2 * HOUR)
    with pytest.raises(
        ix.SnapshotNotFoundError, match=r"had no version at 2019-11-12 00:27.*begins at .*\(version 1\)"
    ):
        v.at(timestamp=START)
    empty = ix.open_view(write_view(tmp_path / "e", {**view(), "versions": [], "version-log": []}))
    for how in ({"version": 1}, {"timestamp": START}):
        with pytest.raises(ix.SnapshotNotFoundError, match="it has no versions"):
            empty.at(**how)


@pytest.mark.parametrize(
    "how",
    [{}, {"version": 1, "timestamp": 1}, {"version": "one"}, {"version": True}, {"version": 1.5}, {"version": "9" * 99},
     {"timestamp": "soon"}, {"timestamp": True}, {"version": [1]}],
)  # fmt: skip
def test_wrong_arguments(v: ix.View, how: dict[str, Any]) -> None:
    with pytest.raises(ix.OptionError):
        v.at(**how)


def test_a_view_without_a_log_uses_the_times_of_creation(tmp_path: Path) -> None:
    made = without(view([version(2), version(1)]), "version-log")
    v = ix.open_view(write_view(tmp_path / "v", {**made, "current-version-id": 2}))
    then = v.at(timestamp=START + HOUR).version
    assert then is not None and then.version_id == 1
    assert "The view has no version-log: at(timestamp=) uses" in repr(v)


def test_times_and_ids_of_any_size(tmp_path: Path) -> None:
    huge = version(2**31 - 1, **{"timestamp-ms": 2**63 - 1})
    v = ix.open_view(write_view(tmp_path / "v", view([huge, version(1)], **{"version-log": [
        *log(1), {"timestamp-ms": 2**63 - 1, "version-id": 2**31 - 1}]})))  # fmt: skip
    assert f"{2**63 - 1} ms" in repr(v) + v._repr_html_()
    assert v.inspect.version_log.arrow()["made_current_at"].null_count == 1
    then = v.at(timestamp=2**63).version
    assert then is not None and then.version_id == 2**31 - 1
