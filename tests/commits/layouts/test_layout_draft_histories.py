"""Random histories in the V4 draft's layout beside a plain model; also after an upgrade."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.root_model import History, run
from tests.helpers.tables.root_table import BY_KIND, BY_KIND_AND_BUCKET, RootLab

COMMITS = 6

layouts = st.fixed_dictionaries(
    {
        "dialect": st.just("v4-draft"),
        "flush_data_files": st.sampled_from([0, 3, 6]),
        "leaf_entries": st.sampled_from([2, 4, 8]),
        "compact_leaves": st.sampled_from([0, 2, 3]),
        "rewrite_leaf_at": st.sampled_from([None, 0.5, 1.0]),
        "manifest_format": st.sampled_from(["avro", "parquet"]),
    }
)
specs = st.sampled_from([(), BY_KIND, BY_KIND_AND_BUCKET])
few = settings(max_examples=max(5, settings().max_examples // 4))


@few
@given(options=layouts, spec=specs, seed=st.integers(0, 1 << 30))
def test_a_history(options: dict[str, Any], spec: Any, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = RootLab(Path(folder) / "t", options=options, spec=spec)
        try:
            run(lab, seed, COMMITS)
        finally:
            lab.box.close()


@few
@given(version=st.integers(1, 3), options=layouts, spec=specs, seed=st.integers(0, 1 << 30))
def test_a_history_that_is_upgraded(version: int, options: dict[str, Any], spec: Any, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = RootLab(Path(folder) / "t", version=version, spec=spec)
        history = History(lab, Random(seed), version=version)
        try:
            for _ in range(COMMITS // 2):
                history.commit()
            history.upgrade(lab.upgraded(**options))
            for _ in range(COMMITS // 2 + 1):
                history.commit()
        finally:
            history.lab.box.close()
            lab.box.close()
