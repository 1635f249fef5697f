"""The tables, made by iceexplore, and the rows that each must have, computed in plain Python.

Nothing of iceexplore says what a table should hold: a `Model` is a list of dictionaries that the same operations
change by plain Python predicates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

import iceexplore as ix

from .canonical import plain, to_json_value
from .values import NESTED, TRANSFORMS, V3_VALUES, VALUES

__all__ = ["Case", "build"]

Row = dict[str, Any]
Keep = Callable[[Row], bool]


@dataclass
class Case:
    """A table that was made, what it must hold, and what it is an example of."""

    name: str
    features: set[str]
    folder: Path
    metadata: str
    columns: list[list[Any]]
    rows: list[str]
    #: Column, operator, value, and the rows that match.
    filters: list[tuple[str, str, Any, list[str]]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return it for the readers, without the answers."""
        filters = [(column, operator, to_json_value(value), None) for column, operator, value, _ in self.filters]
        return {
            "name": self.name, "folder": str(self.folder), "metadata": self.metadata, "columns": self.columns,
            "filters": filters,
        }  # fmt: skip


class Model:
    """A lab or a simulation, and its rows in plain Python."""

    def __init__(self, table: Any, columns: list[list[Any]]) -> None:
        self.table = table
        self.columns = columns
        self.rows: list[Row] = []

    def append(self, rows: list[Row], **how: Any) -> None:
        # dictionaries given to a simulation describe files, not rows
        simulated = isinstance(self.table, ix.Simulation)
        self.table.append(pa.Table.from_pylist(rows) if simulated else rows, **how)
        if "ref" not in how:
            names = [name for name, _ in self.columns]
            self.rows += [{name: row.get(name) for name in names} for row in rows]

    def delete(self, where: str, gone: Keep) -> None:
        self.table.delete(where)
        self.rows = [row for row in self.rows if not gone(row)]

    def update(self, values: Row, where: str, hit: Keep) -> None:
        self.table.update(values, where)
        self.rows = [{**row, **values} if hit(row) else row for row in self.rows]

    def merge(self, rows: list[Row], key: str) -> None:
        self.table.merge(rows, on=key)
        given = {row[key]: row for row in rows}
        there = {row[key] for row in self.rows}
        self.rows = [{**row, **given.get(row[key], {})} for row in self.rows]
        self.rows += [row for row in rows if row[key] not in there]

    def case(self, name: str, features: set[str], folder: Path, filters: list[tuple[str, str, Any]]) -> Case:
        table = ix.open(folder)
        return Case(
            name, features, folder, str(folder / "metadata" / table.metadata_location.rpartition("/")[2]),
            self.columns, self._texts(lambda row: True),
            [(column, op, value, self._texts(_test(column, op, value))) for column, op, value in filters],
        )  # fmt: skip

    def _texts(self, keep: Keep) -> list[str]:
        return sorted(json.dumps([plain(t, row[name]) for name, t in self.columns]) for row in self.rows if keep(row))


def _test(column: str, operator: str, value: Any) -> Keep:
    if operator == "null":
        return lambda row: row[column] is None
    if operator == "=":
        return lambda row: row[column] == value
    if operator == ">=":
        return lambda row: row[column] is not None and row[column] >= value
    return lambda row: row[column] is not None and row[column] < value


#: Version and mode: version 1 has no row-level deletes.
_MODES = [(1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]


def _properties(mode: str, **more: str) -> dict[str, str]:
    return {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")} | more


def _rows(values: list[Any], start: int = 0) -> list[Row]:
    return [{"id": start + number, "v": value} for number, value in enumerate([*values, None])]


def _filters(type_: str, values: list[Any]) -> list[tuple[str, str, Any]]:
    """What is asked of a column: only literals that every reader can be given as they are."""
    found: list[tuple[str, str, Any]] = [("id", "<", 3)]
    if type_ in ("int", "long", "string", "date"):
        found += [("v", "=", values[1]), ("v", ">=", values[2]), ("v", "<", values[0])]
    if type_ in ("int", "long", "double", "string", "date", "timestamp", "boolean"):
        found.append(("v", "null", None))
    return found


def _folder(root: Path, name: str) -> Path:
    return root / "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


def _mode_features(version: int, mode: str) -> set[str]:
    kind = {1: set(), 2: {"position deletes"}, 3: {"deletion vectors"}}[version] if mode == "merge-on-read" else set()
    return {f"v{version}", mode, *kind}


def _typed(root: Path, version: int, mode: str, type_: str, tag: Any, values: list[Any], transform: str) -> Case:
    name = f"v{version}-{mode}-{type_}-{transform}".replace("/", "_")
    folder = _folder(root, name)
    by = [transform.format("v")] if transform else []
    lab = ix.create(
        folder, {"id": "long", "v": type_}, format_version=version, partition_by=by, properties=_properties(mode)
    )
    model = Model(lab, [["id", "long"], ["v", tag]])
    model.append(_rows(values))
    model.append(_rows(values, 100))
    model.delete("id = 1", lambda row: row["id"] == 1)
    model.delete("id >= 102 and id < 103", lambda row: row["id"] == 102)
    features = {*_mode_features(version, mode), f"type {type_.partition('(')[0].partition('[')[0].partition('<')[0]}"}
    if transform:
        features.add("transform " + transform.partition("(")[0].replace("{}", "identity"))
    return model.case(name, features, folder, _filters(type_, values))


def _types(root: Path) -> Iterator[Case]:
    for version, mode in _MODES:
        for type_, values in {**VALUES, **(V3_VALUES if version == 3 else {})}.items():
            yield _typed(root, version, mode, type_, type_, values, "")
        for type_, tag, nested in NESTED:
            yield _typed(root, version, mode, type_, tag, nested, "")


def _transforms(root: Path) -> Iterator[Case]:
    for version, mode in ((1, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")):
        for transform, takes in TRANSFORMS.items():
            for type_, values in {**VALUES, **(V3_VALUES if version == 3 else {})}.items():
                if takes(type_):
                    yield _typed(root, version, mode, type_, type_, values, transform)


_COLUMNS: list[list[Any]] = [["id", "long"], ["city", "string"], ["km", "double"], ["day", "date"]]
_SCHEMA: dict[str, str] = {name: type_ for name, type_ in _COLUMNS}  # noqa: C416 (pairs are lists)
_ASKED: list[tuple[str, str, Any]] = [
    ("id", "<", 7), ("city", "=", "Oslo"), ("city", "null", None), ("day", ">=", date(1970, 1, 1)), ("km", "<", 2.0),
]  # fmt: skip


def _trips(start: int, many: int) -> list[Row]:
    cities = ["Oslo", "Bonn", None, "Łódź", "a/b c"]
    days = [date(1969, 12, 30), date(1970, 1, 1), date(2024, 2, 29), None]
    return [
        {"id": number, "city": cities[number % 5], "km": number / 4 if number % 7 else None, "day": days[number % 4]}
        for number in range(start, start + many)
    ]


def _history(lab: Any) -> Model:
    """Every operation on rows, one after another."""
    model = Model(lab, _COLUMNS)
    model.append(_trips(0, 12))
    model.append(_trips(12, 8))
    model.delete(
        "km > 3.5 and city = 'Oslo'", lambda row: row["km"] is not None and row["km"] > 3.5 and row["city"] == "Oslo"
    )
    model.update({"km": -1.5}, "city = 'Bonn'", lambda row: row["city"] == "Bonn")
    model.merge(
        [
            {"id": 3, "city": "Rome", "km": 0.25, "day": None},
            {"id": 50, "city": None, "km": None, "day": date(2000, 1, 1)},
        ],
        "id",
    )
    model.delete("id = 13", lambda row: row["id"] == 13)
    return model


def _evolved(model: Model) -> None:
    """Add, widen, rename, drop and move columns."""
    model.table.evolve_schema(
        add={"note": "string", "n": "int"}, rename={"city": "town"}, drop=["km"], move={"note": "first"}
    )
    model.columns = [["id", "long"], ["town", "string"], ["day", "date"], ["note", "string"], ["n", "int"]]
    model.rows = [
        {"id": row["id"], "town": row["city"], "day": row["day"], "note": None, "n": None} for row in model.rows
    ]
    model.append([{"id": 90, "town": "Oslo", "day": date(1960, 1, 1), "note": "x", "n": 7}])
    model.table.evolve_schema(update={"n": "long"})
    model.columns[-1] = ["n", "long"]
    model.append([{"id": 91, "town": "Bonn", "day": None, "note": None, "n": 2**40}])


def _start(root: Path, version: int, mode: str, by: list[str], what: str, **more: Any) -> tuple[Any, Path, str]:
    """Return a new lab, its folder and the case's name."""
    name = f"{what}-v{version}-{mode}-{'-'.join(by) or 'flat'}"
    folder = _folder(root, name)
    lab = ix.create(folder, _SCHEMA, format_version=version, partition_by=by, properties=_properties(mode), **more)
    return lab, folder, name


def _histories(root: Path) -> Iterator[Case]:
    specs: list[list[str]] = [[], ["city"], ["day(day)", "bucket(4, id)"], ["truncate(2, city)", "month(day)"]]
    for (version, mode), by in product(_MODES, specs):
        features = _mode_features(version, mode) | ({"partitioned"} if by else set())

        lab, folder, name = _start(root, version, mode, by, "operations", sort_by=["km desc"])
        yield _history(lab).case(name, features | {"operations"}, folder, _ASKED)

        lab, folder, name = _start(root, version, mode, by, "compacted")
        model = _history(lab)
        lab.compact()
        lab.rewrite_manifests()
        yield model.case(name, features | {"compacted"}, folder, _ASKED)

        lab, folder, name = _start(root, version, mode, by, "expired")
        model = _history(lab)
        lab.branch("audit")
        model.append(_trips(200, 2), ref="audit")
        lab.tag("now")
        lab.expire_snapshots(older_than=datetime(2100, 1, 1).isoformat(), retain_last=1)
        yield model.case(name, features | {"branches"}, folder, _ASKED)

        lab, folder, name = _start(root, version, mode, by, "evolved")
        model = _history(lab)
        _evolved(model)
        yield model.case(name, features | {"evolved schema"}, folder, [("id", "<", 7), ("n", ">=", 8)])

        lab, folder, name = _start(root, version, mode, by, "respecced")
        model = _history(lab)
        lab.evolve_spec(add=["bucket(3, city)"])
        model.append(_trips(60, 5))
        model.delete("id = 61 or id = 2", lambda row: row["id"] in (61, 2))
        yield model.case(name, features | {"evolved spec"}, folder, _ASKED)


def _upgrades(root: Path) -> Iterator[Case]:
    for steps in ((1, 2), (1, 3), (2, 3), (1, 2, 3)):
        for by in ([], ["city"], ["day(day)"]):
            name = f"upgraded-{'-'.join(map(str, steps))}-{'-'.join(by) or 'flat'}"
            folder = _folder(root, name)
            mode = "copy-on-write" if steps[0] == 1 else "merge-on-read"
            lab = ix.create(folder, _SCHEMA, format_version=steps[0], partition_by=by, properties=_properties(mode))
            model = _history(lab)
            for step, version in enumerate(steps[1:]):
                lab.upgrade(version)
                lab.set_properties(_properties("merge-on-read"))
                model.append(_trips(70 + 10 * step, 4))
                gone = {4, 71 + 10 * step}
                model.delete(f"id in (4, {71 + 10 * step})", lambda row, gone=gone: row["id"] in gone)  # type: ignore[misc]
            yield model.case(name, {f"v{steps[-1]}", "upgraded", "merge-on-read"}, folder, _ASKED)


def _defaults(root: Path) -> Iterator[Case]:
    for by in ([], ["city"]):
        name = f"defaults-{'-'.join(by) or 'flat'}"
        folder = root / name
        lab = ix.create(folder, _SCHEMA, format_version=3, partition_by=by, properties=_properties("merge-on-read"))
        model = _history(lab)
        lab.evolve_schema(add={"grade": "int", "kind": "string"}, initial_default={"grade": 7, "kind": "old"})
        model.columns = [*_COLUMNS, ["grade", "int"], ["kind", "string"]]
        model.rows = [{**row, "grade": 7, "kind": "old"} for row in model.rows]
        model.append([{**row, "grade": None, "kind": "new"} for row in _trips(80, 3)])
        yield model.case(name, {"v3", "initial defaults"}, folder, [*_ASKED, ("grade", "=", 7)])


def _saved(root: Path) -> Iterator[Case]:
    """Simulations of labs, saved with their data."""
    for version in (1, 2, 3):
        for by in ([], ["city"], ["day(day)", "bucket(4, id)"]):
            what = f"saved-v{version}-{'-'.join(by) or 'flat'}"
            name = "".join(c if c.isalnum() or c in "-_" else "_" for c in what)
            mode = "copy-on-write" if version == 1 else "merge-on-read"
            lab = ix.create(
                root / "origins" / name, _SCHEMA, format_version=version, partition_by=by, properties=_properties(mode)
            )
            model = _history(lab)
            with closing(lab.simulate()) as simulation:
                model.table = simulation
                model.append(_trips(300, 6))
                if version > 1:
                    [row] = simulation.to_arrow("id = 301", columns=["_file", "_pos"]).to_pylist()
                    simulation.row_delta(deletes={row["_file"]: [row["_pos"]]})
                    model.rows = [row for row in model.rows if row["id"] != 301]
                simulation.compact()
                simulation.save(root / name, data="copy")
            yield model.case(what, {f"v{version}", "saved simulation"}, root / name, _ASKED)


def build(root: Path) -> Iterator[Case]:
    """Make every table under a folder."""
    for make in (_types, _transforms, _histories, _upgrades, _defaults, _saved):
        yield from make(root)
