"""A V4 table damaged anywhere: everything is shown, or one of our errors says why not; so for every commit on it.

Besides random bytes, values that a well-formed file should never have: a Parquet root with other numbers in it, or
metadata with other JSON.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from iceexplore.storage import CACHE

SMALL: dict[str, Any] = {"flush_data_files": 2, "flush_delete_files": 1, "leaf_entries": 3, "inline_dv_bytes": 0}
TABLES = ("snapshots", "files", "all_entries", "manifests", "partitions", "position_deletes", "puffin_blobs",
          "content_entries", "deletion_vectors", "column_stats", "refs")  # fmt: skip
few = hypothesis.settings(
    max_examples=max(5, hypothesis.settings().max_examples // 8), phases=(hypothesis.Phase.generate,)
)


@pytest.fixture(scope="module", params=["parquet", "avro"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved table with leaves, manifest DVs in Puffin and inline, vectors and equality deletes."""
    s = ix.empty(
        {"id": "long", "kind": "string", "ts": "timestamp"}, partition_by=["kind", "day(ts)"], seed=1,
        manifest_format=request.param, **SMALL,
    )  # fmt: skip
    places = [{"kind": k, "ts_day": d} for k in ("a", None) for d in ("2026-01-01", "2026-01-02")]
    s.append(8, rows=20, partitions=places)
    paths = s.inspect.data_files.arrow()["file_path"].to_pylist()
    s.row_delta(deletes={p: [0, 3] for p in paths[:5]})
    s.row_delta(equality={"id": [5]}, equality_partition=places[0])
    s.delete_files(paths[:2])
    s.set_layout(inline_dv_bytes=4096)
    s.delete_files(paths[6:7])
    s.append(1, rows=3, partitions=places[:1])
    s.branch("side")
    path = tmp_path_factory.mktemp("hostile") / "t"
    s.save(path)
    s.close()
    return path


def exercise(path: Path, rng: random.Random, share: float = 0.4) -> list[str]:
    """Show everything (or a share of it), and try every commit; what was refused."""
    CACHE.clear()
    refused = []

    def attempt(what: str, act: Callable[[], Any]) -> Any:
        if what not in ("open", "simulate") and rng.random() > share:
            return None
        with contextlib.suppress(ix.IceexploreError):
            return act()
        refused.append(what)
        return None

    t = attempt("open", lambda: ix.open(path))
    if t is None:
        return refused
    attempt("card", lambda: (repr(t), t._repr_html_()))
    for name in TABLES:
        attempt(name, t.inspect[name])
    attempt("tree", lambda: t.tree(snapshots="all", depth="files").to_text())
    attempt("seed", lambda: t.tree(style="proposal").to_svg())
    ids = [s.snapshot_id for s in t.snapshots]
    if len(ids) > 1:
        attempt("diff", lambda: t.diff(ids[0], ids[-1]).card())
        attempt("changes", lambda: repr(t.changes(ids[-2], ids[-1])))
    if ids:
        attempt("changes of one", lambda: repr(t.changes(ids[-1])))
    attempt("rules", lambda: check_rules(t.state))
    for version in (None, *((4,) if t.format_version < 4 else ())):
        layout = SMALL if 4 in (version, t.format_version) else {}
        s = attempt("simulate", partial(t.simulate, version, seed=1, **layout))
        if s is None:
            continue
        with contextlib.closing(s):
            for what, act in commits(s, rng):
                attempt(what, act)
            attempt("cost", partial(_cost, s))
            attempt("shown", partial(_shown, s))
    assert all(p.text and p.where for p in t.problems)
    return refused


def _cost(s: ix.Simulation) -> None:
    repr(s.cost())


def _shown(s: ix.Simulation) -> None:
    repr(s), s.tree().to_text(), s.inspect.files()


def commits(s: ix.Simulation, rng: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Commits of every kind on whatever the table seems to hold."""
    yield "append", lambda: s.append(2, rows=5)
    try:
        paths = [str(p) for p in s.inspect.data_files.arrow()["file_path"].to_pylist()]
    except ix.IceexploreError:
        paths = []
    if paths:
        first, second = rng.choice(paths[1:] or paths), paths[0]
        yield "row_delta", lambda: s.row_delta(deletes={first: [1]})
        yield "delete_files", lambda: s.delete_files([first])
        yield "compact", lambda: s.compact([second])
    yield "equality", lambda: s.row_delta(equality={"id": [1]}, equality_partition={"kind": "a", "ts_day": 20454})
    yield "overwrite", lambda: s.overwrite(1, rows=2, partition={"kind": "a"})
    yield "delete_where", lambda: s.delete_where("kind is null")
    yield "rewrite_manifests", s.rewrite_manifests
    yield "cherry_pick", lambda: s.cherry_pick("side")
    yield "evolve_spec", lambda: s.evolve_spec(add=["bucket(4, id)"])
    yield "expire", lambda: s.expire_snapshots(older_than=2**60)
    yield "delete all", lambda: s.delete_where("true")


def restored(path: Path, data: bytes | None, act: Callable[[], Any]) -> None:
    """Do something while a file has other bytes (None: is gone)."""
    before = path.read_bytes()
    try:
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
        act()
    finally:
        path.write_bytes(before)


def metadata_file(folder: Path) -> Path:
    """The table's current metadata."""
    return max(folder.glob("metadata/*.metadata.json"), key=lambda p: len(p.read_bytes()))


def test_the_undamaged_table_takes_it_all(folder: Path) -> None:
    assert set(exercise(folder, random.Random(1), 1)) <= {"cherry_pick", "delete all"}
    assert not list(ix.open(folder).problems)


@few
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_random_bytes(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    data = bytearray(path.read_bytes())
    at = rng.randrange(max(1, len(data)))
    match rng.choice(["flip", "flip", "flip", "truncate", "zero", "insert", "empty", "gone"]):
        case "flip":
            for _ in range(rng.randint(1, 8)):
                if data:
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case "truncate":
            del data[at:]
        case "zero":
            data[at : at + 64] = bytes(len(data[at : at + 64]))
        case "insert":
            data[at:at] = rng.randbytes(rng.randint(1, 100))
        case "empty":
            data.clear()
        case "gone":
            restored(path, None, lambda: exercise(folder, rng))
            return
    restored(path, bytes(data), lambda: exercise(folder, rng))


def wrong(value: Any, kind: pa.DataType, rng: random.Random) -> Any:
    """Another value of a type, one that should not be there."""
    if pa.types.is_struct(kind):
        if not isinstance(value, dict) or rng.random() < 0.2:
            return None
        field = rng.choice(list(kind))
        return {**value, field.name: wrong(value.get(field.name), field.type, rng)}
    if pa.types.is_list(kind):
        return rng.choice([None, [], [wrong(None, kind.value_type, rng)], (value or []) * 2])
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - 1) - 1
        return rng.choice([None, 0, 1, 2, 3, 4, 5, 6, 7, 100, -1, top, -top - 1, 2**31 - 1])
    if pa.types.is_binary(kind):
        return rng.choice([None, b"", rng.randbytes(5), rng.randbytes(40), (value or b"x" * 8)[:-1]])
    if pa.types.is_string(kind):
        return rng.choice([None, "", "/", "../../etc/passwd", "s3://elsewhere/x", "puffin", "\x00", str(value)[:-1]])
    if pa.types.is_floating(kind):
        return rng.choice([None, float("nan"), float("inf"), -1.0])
    if pa.types.is_boolean(kind):
        return None if value else True
    return None


def mutated(path: Path, rng: random.Random) -> bytes | None:
    """A Parquet manifest with a few other values, rows twice, or rows left out."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    for _ in range(rng.randint(1, 4)):
        row = rng.choice(rows)
        field = rng.choice(list(table.schema))
        row[field.name] = wrong(row[field.name], field.type, rng)
    if rng.random() < 0.2:
        rows.append(dict(rng.choice(rows)))
    if rng.random() < 0.2:
        rows.remove(rng.choice(rows))
    free = build.schema([f.with_nullable(True) for f in table.schema], table.schema.metadata)
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(pa.Table.from_pylist(rows, free), sink)
    except pa.ArrowInvalid:  # what Parquet itself does not take
        return None
    return bytes(sink.getvalue())


@few
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_wrong_values_in_manifests(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    manifests = sorted(folder.rglob("*.parquet"))
    manifests = [p for p in manifests if p.parent.name == "metadata"]
    if not manifests:  # Avro has no such test: its bytes are damaged above
        assert list(folder.rglob("*-root.avro"))
        return
    roots = [p for p in manifests if "root" in p.name]
    path = rng.choice(roots if rng.random() < 0.6 else manifests)
    data = mutated(path, rng)
    if data is not None:
        restored(path, data, lambda: exercise(folder, rng))


def other(value: Any, rng: random.Random) -> Any:
    """Another JSON value."""
    deep: Any = []
    for _ in range(50):
        deep = [deep]
    numbers = [None, True, -1, 0, 1, 4, 2**31, 2**63, 2**70, 1.5]
    return rng.choice([*numbers, "", "x", "../..", [], {}, [value], {"id": value}, deep])


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document: container and key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(pairs):
        yield value, key
        yield from nodes(child)


@few
@hypothesis.example(seed=7537)
@hypothesis.example(seed=29805349)
@hypothesis.example(seed=424001448)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_wrong_values_in_the_metadata(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = metadata_file(folder)
    document = json.loads(path.read_bytes())
    for _ in range(rng.randint(1, 3)):
        container, key = rng.choice(list(nodes(document)))
        if rng.random() < 0.25:
            del container[key]
        else:
            container[key] = other(container[key], rng)
    restored(path, json.dumps(document).encode(), lambda: exercise(folder, rng))
