"""Statistics of expressions that no spec uses, such as lower(x): used for a filter by that very expression only."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import compute as pc
from iceexplore.commits import new_table_document
from iceexplore.errors import Problems
from iceexplore.expressions import expression_from_json
from iceexplore.manifests import EntryBatch, stats_type, write_manifest
from iceexplore.metadata import TableMetadata, apply_function, parse_table_metadata
from iceexplore.planning import evaluate, make_filter

WORDS = ["a", "A", "ab", "Ab", "aB", "b", "B", "zz", "Z", "é", "É", "日本", "", "c" * 9]
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "s", "type": "string", "required": False},
        {"id": 2, "name": "i", "type": "int", "required": False},
    ],
}
#: By expression id: the function, its source, and the function in a filter.
EXPRESSIONS = {
    101: ("lower", 1, ("sql_functions", "lower")),
    102: ("upper", 1, ("sql_functions", "upper")),
    103: ("char_length", 1, ("sql_functions", "char_length")),
    104: ("bucket[4]", 1, ("iceberg_functions", "bucket", 4)),
    105: ("truncate[10]", 2, ("iceberg_functions", "truncate", 10)),
}


def _document() -> dict[str, Any]:
    document = dict(new_table_document(format_version=4, location="/t", schema=SCHEMA, timestamp_ms=1))
    document["expressions"] = [
        {"expr-id": i, "name": f"v{i}", "expr": {"function" if i < 104 else "transform": f, "source-id": source}}
        for i, (f, source, _) in EXPRESSIONS.items()
    ]
    return document


METADATA: TableMetadata = parse_table_metadata(_document(), "", Problems())


def _rows(seed: int) -> list[pa.Table]:
    """The rows of some files."""
    random = Random(seed)
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(i)})
        for i, name, kind in ((1, "s", pa.string()), (2, "i", pa.int32()))
    ]
    out = []
    for _ in range(6):
        some = random.sample(WORDS, random.randint(1, 3))
        numbers = random.sample([-(2**31), -11, -1, 0, 5, 10, 99, 2**31 - 1], 2)
        rows = [(random.choice([*some, None]), random.choice([*numbers, None])) for _ in range(random.randint(1, 6))]
        columns = [pa.array([r[at] for r in rows], f.type) for at, f in enumerate(fields)]
        out.append(pa.Table.from_arrays(columns, schema=pa.schema(fields)))
    return out


def _stats(values: list[pa.Array]) -> pa.Array:
    kind = stats_type(values[0].type)
    rows = []
    for v in values:
        there = [x for x in v.to_pylist() if x is not None]
        low, high = (min(there), max(there)) if there else (None, None)
        rows.append({"lower": low, "upper": high, "value_count": len(v), "null_count": v.null_count})
    return pa.array(rows, kind)


def _batch(tables: list[pa.Table], ids: list[int]) -> EntryBatch:
    rows = [{"content_type": 0, "location": f"f{n}", "record_count": t.num_rows} for n, t in enumerate(tables)]
    stats = {}
    for number in ids:
        function, source, _ = EXPRESSIONS.get(number, ("", number, ()))
        kind = METADATA.schema().find(source).type  # type: ignore[union-attr]
        columns = [t.column(source - 1).combine_chunks() for t in tables]
        stats[number] = _stats([apply_function(function, [kind], [c]) for c in columns] if function else columns)
    return EntryBatch.of_rows(rows, stats=stats)


def _call(number: int) -> Any:
    _, source, (catalog, name, *parameters) = EXPRESSIONS[number]
    arguments = [*parameters, {"type": "reference", "id": source}]
    return {"type": "apply", "function": {"catalog": catalog, "identifier": [name]}, "arguments": arguments}


@given(
    seed=st.integers(0, 10_000),
    number=st.sampled_from(list(EXPRESSIONS)),
    op=st.sampled_from(["eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq"]),
    negated=st.booleans(),
    at=st.integers(0, 20),
    given_ids=st.sampled_from([[1, 2], list(EXPRESSIONS), [1, 2, *EXPRESSIONS]]),
)
def test_no_file_with_matching_rows_is_pruned(
    seed: int, number: int, op: str, negated: bool, at: int, given_ids: list[int]
) -> None:
    text = number < 103
    constant: Any = WORDS[at % len(WORDS)] if text else [0, 1, 3, -10, 90, 2**31 - 2][at % 6]
    where: Any = {"type": op, "left": _call(number), "right": constant}
    where = {"type": "not", "child": where} if negated else where
    tables = _rows(seed)
    wanted = make_filter(METADATA, METADATA.schema(), where)
    assert number in wanted.stats_ids
    may, must = wanted.evaluate(_batch(tables, given_ids), METADATA)
    for table, some, every in zip(tables, may.to_pylist(), must.to_pylist(), strict=True):
        matching = evaluate(wanted.expression, table)
        assert some or not matching.true_count
        assert not every or matching.true_count == table.num_rows


def test_statistics_of_the_expression_prune_what_those_of_the_column_cannot() -> None:
    table = _rows(1)[0]
    tables = [table.set_column(0, table.schema.field(0), pa.array([w] * table.num_rows)) for w in ("Apple", "BANANA")]
    where = {"type": "eq", "left": _call(101), "right": "banana"}
    wanted = make_filter(METADATA, METADATA.schema(), where)
    assert wanted.evaluate(_batch(tables, [1, 2]), METADATA)[0].to_pylist() == [True, True]
    assert wanted.evaluate(_batch(tables, [101]), METADATA)[0].to_pylist() == [False, True]
    # The same statistics say nothing about another function, or without the expression in the metadata.
    other = make_filter(METADATA, METADATA.schema(), {"type": "eq", "left": _call(102), "right": "banana"})
    assert other.evaluate(_batch(tables, [101]), METADATA)[0].to_pylist() == [True, True]
    bare = replace(METADATA, expressions=())
    unknown = make_filter(bare, bare.schema(), where)
    assert unknown.evaluate(_batch(tables, [101]), bare)[0].to_pylist() == [True, True]


@pytest.mark.parametrize("number", list(EXPRESSIONS))
def test_filters_name_their_expression(number: int) -> None:
    expression = expression_from_json(METADATA.schema(), {"type": "is-null", "child": _call(number)})
    found = make_filter(METADATA, METADATA.schema(), {"type": "is-null", "child": _call(number)})
    assert found.field_ids == [EXPRESSIONS[number][1]]
    assert found.stats_ids == sorted([EXPRESSIONS[number][1], number])
    assert found.expression != expression  # it has the id
    assert isinstance(np.asarray(evaluate(expression, _rows(2)[0])), np.ndarray)


@pytest.mark.parametrize("manifest_format", ["avro", "parquet"])
def test_manifests_keep_them_with_the_type_of_the_result(tmp_path: Path, manifest_format: str) -> None:
    tables = _rows(3)
    batch = _batch(tables, list(EXPRESSIONS)).with_columns(
        status=pa.array([1] * len(tables), pa.int32()),
        file_format=pa.array(["parquet"] * len(tables)),
        file_size_in_bytes=pa.array([9] * len(tables), pa.int64()),
        partition_spec_id=pa.array([0] * len(tables), pa.int32()),
    )
    written = write_manifest(
        batch, content="root", metadata=METADATA, spec_id=None, dialect="v4-proposal", manifest_format=manifest_format
    )
    place = tmp_path / "root"
    place.write_bytes(written)
    snapshot = {"snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 2, "root-manifest": str(place), "summary": {}}
    (tmp_path / "v1.metadata.json").write_text(
        json.dumps(_document() | {"location": str(tmp_path), "snapshots": [snapshot], "current-snapshot-id": 1})
    )
    found = ix.open(tmp_path / "v1.metadata.json").state.root()
    assert found is not None
    for number, kind in ((101, "string"), (103, "int"), (104, "int"), (105, "int")):
        stats = found.stats(number)
        assert str(stats.type) == kind
        assert stats.lower.to_pylist() == pc.struct_field(batch.stats[number], "lower").to_pylist()
