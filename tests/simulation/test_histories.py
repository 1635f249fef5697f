"""Random histories through the face: the V4 proposal in every layout, version 3 and a plain model agree throughout.

A history may begin as version 2 (position delete files) or 3 and be upgraded on the way; then both simulations begin
alike, and one of them goes on to version 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from iceexplore.errors import RuleError
from tests.simulation.history_play import STEPS, play

LAYOUTS = st.fixed_dictionaries(
    {
        "dv_encoding": st.sampled_from(["removed", "replace", "delta"]),
        "affinity": st.sampled_from(["all", "some", "none"]),
        "unaffiliated_manifests": st.integers(0, 2),
        "affiliated_manifests": st.integers(0, 2),
        "flush_data_files": st.integers(0, 5),
        "flush_delete_files": st.integers(0, 5),
        "leaf_entries": st.integers(1, 6),
        "inline_dv_bytes": st.sampled_from([0, 4096]),
        "compact_leaves": st.sampled_from([0, 2, 3]),
        "rewrite_leaf_at": st.sampled_from([None, 0.3, 1.0]),
        "manifest_format": st.sampled_from(["avro", "parquet"]),
        "partition_storage": st.sampled_from(["derived", "source", "tuple"]),
        "dv_attached": st.sampled_from([False, False, False, True]),
    }
)
SPECS = st.sampled_from([(), ("kind",), ("bucket(3, id)",), ("kind", "day(ts)")])


# What fails says its whole history; shrinking one takes many minutes.
@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long), 4])
@settings(
    max_examples=max(5, settings().max_examples // 12),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(
    seed=st.integers(0, 2**30),
    spec=SPECS,
    layout=LAYOUTS,
    steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=14),
)
def test_a_history(version: int, seed: int, spec: tuple[str, ...], layout: dict[str, Any], steps: list[str]) -> None:
    play(seed, version, spec, layout, steps)


DRAFT_LAYOUTS = st.fixed_dictionaries(
    {
        "dialect": st.just("v4-draft"),
        "flush_data_files": st.integers(0, 5),
        "leaf_entries": st.integers(1, 6),
        "compact_leaves": st.sampled_from([0, 2, 3]),
        "rewrite_leaf_at": st.sampled_from([None, 0.3, 1.0]),
        "manifest_format": st.sampled_from(["avro", "parquet"]),
    }
)


@pytest.mark.parametrize(
    "version", [3, pytest.param(2, marks=pytest.mark.long), pytest.param(4, marks=pytest.mark.long)]
)
@settings(max_examples=max(5, settings().max_examples // 12), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    seed=st.integers(0, 2**30),
    spec=SPECS,
    layout=DRAFT_LAYOUTS,
    before=st.lists(st.sampled_from(STEPS), max_size=4),
    steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=10),
)
def test_a_history_in_the_draft(
    version: int, seed: int, spec: tuple[str, ...], layout: dict[str, Any], before: list[str], steps: list[str]
) -> None:
    play(seed, version, spec, layout, [*before, *["upgrade"] * (4 - version), *steps])


# What histories have found ------------------------------------------------------------------------------------------


def test_a_compaction_that_leaves_nothing_does_not_mind_equality_deletes() -> None:
    s = ix.empty({"id": "long"}, format_version=4)
    s.append(1, rows=2)
    (path,) = s.inspect.data_files.arrow()["file_path"].to_pylist()
    s.row_delta(deletes={path: [0, 1]})
    other = s.fork()
    s.row_delta(equality={"id": [7]})
    snapshot = other.compact([path])
    assert snapshot is not None and snapshot.operation == "replace"
    assert s.refresh().inspect.data_files.arrow().num_rows == 0


@pytest.mark.parametrize("storage", ["derived", "source", "tuple"])
@pytest.mark.parametrize("flush", [0, 5])
def test_an_identity_beside_another_transform_of_its_column(storage: str, flush: int) -> None:
    by = ("kind", "truncate(2, kind)")
    s = ix.empty(
        {"kind": "string"}, partition_by=by, format_version=4, partition_storage=storage, flush_data_files=flush
    )
    s.append(pa.table({"kind": ["abc", "ab", None]}))
    found = build.to_pylist(s.inspect.data_files.arrow()["partition"])
    want = [("ab", "ab"), ("abc", "ab"), (None, None)]
    assert sorted(((p["kind"], p["kind_trunc_2"]) for p in found), key=str) == want


def test_rows_of_files_newer_than_the_table_cannot_be_deleted(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=3)
    s.append(1, rows=2)
    s.append(1, rows=2)
    saved = s.save(tmp_path / "t")
    path = Path(saved.metadata_location)
    path.write_text(path.read_text().replace('sequence-number": 2', 'sequence-number": 0'))
    broken = ix.open(path).simulate()
    newest = broken.inspect.entries.arrow().to_pylist()[0]
    assert newest["sequence_number"] == 2
    with pytest.raises(RuleError, match="sequence-order"):
        broken.row_delta(deletes={newest["data_file"]["file_path"]: [0]})
    assert len(broken.writes) == 0


def test_a_seed_gives_other_names_on_top_of_what_it_made(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=4, seed=1)
    s.append(1, rows=2)
    again = ix.open(s.save(tmp_path / "t").metadata_location).simulate(seed=1)
    again.append(1, rows=2)
    assert again.inspect.data_files.arrow().num_rows == 2


def test_what_java_wrote_as_version_4_goes_on_as_the_proposal(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "kind": "string"}, partition_by=["kind", "bucket(4, id)"], format_version=3)
    s.append(3, rows=5)
    s.upgrade(4, dialect="v4-java")
    s.append(1, rows=5)
    java = ix.open(s.save(tmp_path / "t").metadata_location)
    assert "expressions" not in java.metadata.raw
    on = java.simulate(dialect="v4-proposal")
    on.append(2, rows=5)
    assert [e["expr"]["transform"] for e in on.metadata.raw["expressions"]] == ["bucket[4]"]
    assert check_rules(on.state) == []
    assert on.inspect.data_files.arrow().num_rows == 6


def test_avro_manifests_for_java_4_have_a_partition_record_without_partitions() -> None:
    s = ix.empty({"id": "long"}, format_version=4, dialect="v4-java")
    s.append(1, rows=2)
    (manifest,) = build.to_pylist(s.inspect.manifests.arrow()["path"])
    schema = fastavro.reader(s.state.storage.open(manifest, kind="manifest")).writer_schema
    assert isinstance(schema, dict)
    (file,) = [f["type"] for f in schema["fields"] if f["name"] == "data_file"]
    assert [f["type"]["fields"] for f in file["fields"] if f["name"] == "partition"] == [[]]
