"""Random tables: schemas, specs and both evolved, files, deletes of three kinds, compaction, statistics left out."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.errors import OptionError, RuleError
from iceexplore.manifests import ContentType, live
from iceexplore.metadata import StructType, type_base
from iceexplore.writing._parquet import file_schema
from tests.helpers.oracle_filters import value_of

#: Columns beside ``id`` and ``s``; each table has some of them.
COLUMNS = {
    "i": "int", "l": "long", "f": "float", "d": "double", "dec": "decimal(9,2)", "day": "date", "ts": "timestamp",
    "tz": "timestamptz", "t": "time", "b": "boolean", "bin": "binary", "fx": "fixed[3]", "u": "uuid",
    "st": "struct<a: int, b: string>",
}  # fmt: skip
PROMOTED = {"int": "long", "float": "double", "decimal": "decimal(18,2)"}
TRANSFORMS = {
    "int": ["{}", "bucket(2, {})", "truncate(3, {})"], "long": ["{}", "bucket(3, {})", "truncate(10, {})"],
    "decimal": ["{}", "bucket(2, {})", "truncate(50, {})"], "string": ["{}", "bucket(2, {})", "truncate(19, {})"],
    "date": ["{}", "year({})", "month({})", "day({})", "bucket(2, {})"],
    "timestamp": ["year({})", "month({})", "day({})", "hour({})", "bucket(2, {})", "{}"],
    "timestamptz": ["year({})", "month({})", "day({})", "hour({})"],
    "time": ["bucket(2, {})", "{}"], "boolean": ["{}"], "binary": ["truncate(1, {})", "bucket(2, {})"],
    "fixed": ["bucket(2, {})"], "uuid": ["bucket(2, {})", "{}"], "float": ["{}"], "double": ["{}"],
}  # fmt: skip
MODES = ["none", "counts", "truncate(4)", "truncate(16)", "full"]
STEPS = ["append", "append", "positions", "positions", "equality", "add", "rename", "drop", "promote", "spec", "spec",
         "compact", "delete", "metrics", "manifests"]  # fmt: skip
ALL: dict[str, Any] = {
    "v2": (2, {}),
    "v3": (3, {}),
    "v4": (4, {}),
    "v4 leaves": (4, {"flush_data_files": 1, "flush_delete_files": 0}),
    "v4 java": (4, {"dialect": "v4-java"}),
}


@contextmanager
def small_row_groups() -> Iterator[None]:
    """Data files get row groups of two rows, with Bloom filters wherever Parquet has them."""
    import pyarrow.parquet as pq

    def parquet(table: pa.Table, codec: str, with_nan: object) -> tuple[bytes, Any]:
        out = io.BytesIO()
        plain = [f.name for f in table.schema if not pa.types.is_boolean(f.type) and not pa.types.is_nested(f.type)]
        pq.write_table(
            table, out, row_group_size=2, store_schema=False, store_decimal_as_integer=len(table) % 2 == 0,
            bloom_filter_options={name: {"ndv": 8, "fpp": 0.05} for name in plain},
        )  # fmt: skip
        return out.getvalue(), pq.read_metadata(io.BytesIO(out.getvalue()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("iceexplore.writing._parquet._parquet", parquet)
        yield


def random_table(draw: Any, version: str, names: Sequence[str] = ()) -> ix.Simulation:
    """A table after some commits, of columns of these names. What the format refuses is left out."""
    number, layout = ALL[version]
    chosen = draw(st.lists(st.sampled_from(sorted(names or COLUMNS)), min_size=1, max_size=4, unique=True))
    columns = {"id": "long", "s": "string", **{name: COLUMNS[name] for name in chosen}}
    table = ix.empty(columns, format_version=number, seed=1, **layout)
    for step in ["spec", "append", *draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=7)), "append"]:
        try:
            _STEPS[step](table, draw)
        except (OptionError, RuleError):
            continue  # a spec that has the field already, a version without this kind of delete
    return table


def locations(table: ix.Simulation) -> list[tuple[str, int]]:
    """Live data files, and how many rows each has."""
    out = []
    for leaf in table._state.leaves():
        mine = leaf.entries.filter(live(leaf.entries)).to_pylist()
        out += [(e["location"], e["record_count"]) for e in mine if e["content_type"] == ContentType.DATA]
    return sorted(out)


def _append(table: ix.Simulation, draw: Any) -> None:
    schema = table._state.schema
    rows = draw(
        st.lists(st.fixed_dictionaries({f.name: value_of(f.type) for f in schema.fields}), min_size=1, max_size=7)
    )
    if draw(st.booleans()):
        rows.sort(key=lambda row: (row["id"] is not None, row["id"] or 0))
    fields = [pa.field(f.name, _plain(f.type)) for f in file_schema(schema)]
    table.append(pa.table({f.name: pa.array([row[f.name] for row in rows], f.type) for f in fields}))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _positions(table: ix.Simulation, draw: Any) -> None:
    files = locations(table)
    chosen = draw(st.lists(st.sampled_from(files), min_size=1, max_size=2, unique=True)) if files else []
    table.row_delta(deletes={at: [draw(st.integers(0, rows - 1))] for at, rows in chosen})


def _equality(table: ix.Simulation, draw: Any) -> None:
    fields = {f.name: f for f in table._state.schema.fields}
    names = ["id"] + [n for n in ("s", "day", "dec", "i") if n in fields and draw(st.booleans())]
    count = draw(st.integers(1, 2))
    values = {n: [draw(value_of(fields[n].type)) for _ in range(count)] for n in names}
    stored = {f.name: f.type for f in file_schema(table._state.schema)}
    table.row_delta(equality={n: pa.array(v, stored[n]) for n, v in values.items()})


def _add(table: ix.Simulation, draw: Any) -> None:
    name = f"added{draw(st.integers(0, 3))}"
    kind = draw(st.sampled_from(["int", "string", "date", "double"]))
    defaults = {"int": 5, "string": "a common prefix of b", "date": "2024-01-01", "double": 1.5}
    default = {name: defaults[kind]} if table._state.metadata.format_version >= 3 and draw(st.booleans()) else None
    table.evolve_schema(add={name: kind}, initial_default=default)


def _rename(table: ix.Simulation, draw: Any) -> None:
    names = [f.name for f in table._state.schema.fields if f.name not in ("id", "s")]
    if names:
        table.evolve_schema(rename={draw(st.sampled_from(names)): f"renamed{draw(st.integers(0, 3))}"})


def _drop(table: ix.Simulation, draw: Any) -> None:
    names = [f.name for f in table._state.schema.fields if f.name != "id"]
    if names:
        table.evolve_schema(drop=[draw(st.sampled_from(names))])


def _promote(table: ix.Simulation, draw: Any) -> None:
    able = [(f.name, PROMOTED[type_base(f.type)]) for f in table._state.schema.fields if type_base(f.type) in PROMOTED]
    if able:
        table.evolve_schema(update=dict([draw(st.sampled_from(able))]))


def _spec(table: ix.Simulation, draw: Any) -> None:
    state = table._state
    spec = state.metadata.spec()
    present = [] if spec is None else [f.name for f in spec.fields if f.transform != "void"]
    if present and draw(st.booleans()):
        table.evolve_spec(remove=[draw(st.sampled_from(present))])
        return
    able = [
        (f.name, t) for f in state.schema.fields if not isinstance(f.type, StructType)
        for t in TRANSFORMS.get(type_base(f.type), ())
    ]  # fmt: skip
    if able:
        name, transform = draw(st.sampled_from(able))
        table.evolve_spec(add=[transform.format(name)])


def _compact(table: ix.Simulation, draw: Any) -> None:
    chosen = [at for at, _ in locations(table) if draw(st.booleans())]
    table.compact(chosen or None)


def _delete(table: ix.Simulation, draw: Any) -> None:
    files = locations(table)
    if files:
        table.delete_files([draw(st.sampled_from(files))[0]])


def _metrics(table: ix.Simulation, draw: Any) -> None:
    names = [f.name for f in table._state.schema.fields]
    key = draw(st.sampled_from(["default", *(f"column.{name}" for name in names)]))
    table.set_properties({f"write.metadata.metrics.{key}": draw(st.sampled_from(MODES))})


_STEPS = {
    "append": _append, "positions": _positions, "equality": _equality, "add": _add, "rename": _rename, "drop": _drop,
    "promote": _promote, "spec": _spec, "compact": _compact, "delete": _delete, "metrics": _metrics,
    "manifests": lambda table, draw: table.rewrite_manifests(),
}  # fmt: skip
