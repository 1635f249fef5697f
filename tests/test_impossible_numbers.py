"""Numbers that no table can have, in each place of its metadata: simulations and labs refuse them by our own errors."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from tests.helpers.sampling import one_of

VALUES = (-1, 2**31, 2**63 - 1, 2**63, 10**30, "x", "7", 1.5)
Place = tuple[Any, ...]
Operation = Callable[[Any], Any]


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Give the path of every number in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        if isinstance(inner, int) and not isinstance(inner, bool):
            yield (*path, key)
        yield from places(inner, (*path, key))


def kind(place: Place) -> Place:
    """A place without its positions in lists: of several snapshots the last one is changed."""
    return tuple(step for step in place if isinstance(step, str))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    made = {}
    for version in (1, 2, 3, 4):
        folder = made[version] = tmp_path_factory.mktemp("numbers") / "t"
        lab = ix.create(
            folder, {"id": "long", "k": "string"}, partition_by="k", sort_by="id", format_version=version,
            properties={"write.delete.mode": "merge-on-read"} if version > 1 else {},
        )  # fmt: skip
        lab.append({"id": [1, 2, 3], "k": ["a", "b", "a"]})
        lab.append({"id": [4], "k": ["a"]})
        lab.delete("id = 1" if version > 1 else "k = 'b'")
        lab.tag("kept")
        lab.close()
    return made


def newest(folder: Path) -> Path:
    return folder / "metadata" / ix.open(folder).metadata_location.rsplit("/", 1)[-1]


def common(version: int) -> dict[str, Operation]:
    rows = pa.table({"id": pa.array([9], pa.int64()), "k": ["a"]})
    return {
        "append": lambda s: s.append(rows),
        "tag": lambda s: s.tag("more"),
        "schema": lambda s: s.evolve_schema(add={"z": "int"}),
        "expire": lambda s: s.expire_snapshots(retain_last=1),
        "spec": lambda s: s.evolve_spec(add="id"),
        "compact": lambda s: s.compact(),
        "sort": lambda s: s.set_sort_order("k"),
        "rewrite": lambda s: s.rewrite_manifests(),
        "rollback": lambda s: s.rollback(s.table.snapshots[0].snapshot_id) if s.table.snapshots else None,
        "upgrade": lambda s: s.upgrade(min(4, version + 1)),
        "properties": lambda s: s.set_properties({"a": "b"}),
    }


def look(door: str, folder: Path, operations: dict[str, Operation]) -> None:
    """Open a table for commits and try them; errors of ours are fine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(ix.IceexploreError):
            opened: Any = ix.open(folder).simulate() if door == "simulate" else ix.lab(folder)
            with contextlib.closing(opened):
                for operation in operations.values():
                    with contextlib.suppress(ix.IceexploreError):
                        operation(opened)


def cases(folder: Path, *, each: bool, first: int, step: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the documents with one number replaced: of places that differ by positions alone the last, unless each."""
    document = json.loads(newest(folder).read_text())
    found = {place if each else kind(place): place for place in places(document)}
    for place, value in list(itertools.product(found.values(), VALUES))[first::step]:
        changed = copy.deepcopy(document)
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
        yield f"{place} = {value!r}", changed


def sweep(
    door: str, table: Path, folder: Path, version: int, *, everything: bool, first: int = 0, step: int = 1
) -> None:
    path = newest(table).name
    operations = common(version)
    if door == "lab":
        operations["delete"] = lambda lab: lab.delete("id = 2")
    names = itertools.cycle(name for name in operations if name != "append")
    bad = []
    count = 0
    for change, document in cases(table, each=everything, first=first, step=step):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(table, folder)
        (folder / "metadata" / path).write_text(json.dumps(document))
        # Rows are appended in each case, beside one other commit of all that there are.
        chosen = operations if everything else {n: operations[n] for n in (next(names), "append")}
        count += 1
        try:
            look(door, folder, chosen)
        except Exception as error:
            bad.append(f"{change}: {', '.join(chosen)}: {error!r}")
    assert count > 50
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    ("first", "door", "version"), one_of(2, [(0, "lab", 2), (1, "simulate", 3), (2, "simulate", 4)])
)
def test_impossible_numbers_raise_errors_of_ours_alone(
    first: int, door: str, version: int, tables: dict[int, Path], tmp_path: Path
) -> None:
    """Each number in each place once: a third of them in each of three tables, which have the same places."""
    sweep(door, tables[version], tmp_path / "t", version, everything=False, first=first, step=3)


@pytest.mark.long
@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("door", ["lab", "simulate"])
def test_impossible_numbers_in_every_place_with_every_commit(
    door: str, version: int, tables: dict[int, Path], tmp_path: Path
) -> None:
    sweep(door, tables[version], tmp_path / "t", version, everything=True)
