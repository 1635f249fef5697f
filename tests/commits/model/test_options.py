"""Layout options: flush thresholds for a storage's round trip."""

from __future__ import annotations

from typing import Any

import pytest

from iceexplore.commits import LayoutOptions
from iceexplore.errors import OptionError
from iceexplore.simulation import empty


def test_the_default_thresholds_are_those_of_fifty_milliseconds() -> None:
    assert LayoutOptions.of(4) == LayoutOptions.of(4, round_trip_ms=50)


def test_a_longer_round_trip_allows_more_files_in_the_root() -> None:
    found = [LayoutOptions.of(4, round_trip_ms=ms) for ms in (10, 50, 100)]
    assert [o.flush_data_files * 10 for o in found] == [o * 10 for o in (f.flush_data_files for f in found)]
    assert [o.flush_data_files / found[0].flush_data_files for o in found] == [1, 5, 10]
    assert [o.flush_delete_files / found[0].flush_delete_files for o in found] == [1, 5, 10]
    assert all(o.flush_delete_files > o.flush_data_files > 0 for o in found)


def test_what_is_given_itself_counts() -> None:
    options = LayoutOptions.of(4, round_trip_ms=10, flush_data_files=7)
    assert options.flush_data_files == 7
    assert options.flush_delete_files == LayoutOptions.for_round_trip(10)["flush_delete_files"]


def test_options_that_are_changed_take_the_new_thresholds() -> None:
    options = LayoutOptions.of(4, flush_data_files=7, leaf_entries=3).replace(round_trip_ms=100)
    assert options == LayoutOptions.of(4, round_trip_ms=100, leaf_entries=3)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "50", None])
def test_round_trips_that_make_no_sense_are_refused(wrong: object) -> None:
    with pytest.raises(OptionError, match="round_trip_ms"):
        LayoutOptions.of(4, round_trip_ms=wrong)


@pytest.mark.parametrize(
    "option",
    [
        {"affinity": "all"}, {"unaffiliated_manifests": 1}, {"affiliated_manifests": 1}, {"inline_dv_bytes": 0},
        {"dv_encoding": "delta"}, {"dv_attached": True}, {"partition_storage": "tuple"}, {"compact_leaves": 2},
        {"rewrite_leaf_at": 0.5}, {"relaxed": ("root-first",)},
    ],
    ids=str,
)  # fmt: skip
def test_options_of_roots_are_refused_for_manifest_lists(option: dict[str, Any]) -> None:
    (name,) = option
    with pytest.raises(OptionError, match=f"{name}= is an option of root manifests: 'v4-java' has manifest lists"):
        LayoutOptions.of(4, dialect="v4-java", **option)
    with pytest.raises(OptionError, match=f"{name}= "):
        LayoutOptions.of(4, **option).replace(dialect="v4-java")
    assert LayoutOptions.of(4, dialect="v4-java", round_trip_ms=10, leaf_entries=3).leaf_entries == 3


def test_a_commit_above_the_threshold_writes_a_leaf() -> None:
    most = LayoutOptions.for_round_trip(1)["flush_data_files"]
    for files, leaves in ((most, 0), (most + 1, 1)):
        simulation = empty({"id": "long", "name": "string"}, round_trip_ms=1)
        simulation.append(files, rows=10)
        assert [w.kind for w in simulation.writes].count("manifest") == leaves
        simulation.close()
