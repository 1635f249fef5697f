"""Every metadata table of every real table: valid Arrow, of the columns it says, and in accord with the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import iceexplore as ix
from iceexplore.inspect import DEFINITIONS

pytestmark = pytest.mark.corpus

#: One in so many metadata tables is also asked for flat; the next real table, another one.
EACH = 1 if hypothesis.settings().max_examples > 1_000 else 5
#: One in so many real tables is read.
SOME = 1 if EACH == 1 else 2


def _tables(corpus: Path) -> list[tuple[str, Any]]:
    out = []
    for name, row in json.loads((corpus / "expected.json").read_text()).items():
        try:
            out.append((name, ix.open(corpus / name / str(row["metadata"]))))
        except ix.IceexploreError:
            continue  # tests/test_corpus.py says which and why
    assert len(out) > 100
    return out


def test_every_table_of_every_table(corpus: Path) -> None:
    for i, (name, t) in enumerate(_tables(corpus)[::SOME]):
        made = {}
        for j, table in enumerate(DEFINITIONS):
            found = t.inspect[table].arrow()
            found.validate(full=True)
            assert found.schema.equals(t.inspect[table].schema), (name, table)
            if (i + j) % EACH == 0:  # it is made once more for that
                assert t.inspect[table](flat=True).shape[0] == found.num_rows
            made[table] = found
        assert made["files"].num_rows == made["data_files"].num_rows + made["delete_files"].num_rows, name
        live = made["entries"].filter(~_is(made["entries"].column("status"), 2))
        assert live.num_rows == made["files"].num_rows, name
        counts = made["partitions"].select(["file_count", "position_delete_file_count", "equality_delete_file_count"])
        assert sum(sum(column.to_pylist()) for column in counts.columns) == made["files"].num_rows, name
        rows = sum(n or 0 for n in made["data_files"].column("record_count").to_pylist())
        assert sum(made["partitions"].column("record_count").to_pylist()) == rows, name
        assert made["content_entries"].num_rows == made["entries"].num_rows + made["manifests"].num_rows, name


def _is(column: Any, value: int) -> Any:
    import numpy as np

    return np.array([v == value for v in column.to_pylist()], dtype=bool)


def test_two_partition_fields_of_one_name(corpus: Path) -> None:
    t = ix.open(corpus / "trino" / "conflict_truncate")
    kinds = t.inspect.partitions.schema.field("partition").type
    assert [kinds.field(i).name for i in range(kinds.num_fields)] == ["a_trunc", "a_trunc_1001"]
    assert t.inspect.partitions.arrow().column("partition").to_pylist()
