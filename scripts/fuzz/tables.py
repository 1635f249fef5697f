"""Sound tables, and the ways to look at them after one of their files was changed."""

from __future__ import annotations

import contextlib
import random
import shutil
import uuid
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from scripts.fuzz.changes import change
from scripts.fuzz.look import Case, Look

__all__ = ["TableCases", "make", "repeatable"]

#: Ways beyond counting the rows that each case goes.
WAYS = 3
#: Ways that take longer than others, and the share of cases that go them. A saved page takes a second.
SELDOM = {
    "save_html": 0.01,
    "verify": 0.06,
    "bundle": 0.04,
    "simulate": 0.06,
    "changes": 0.06,
    "plan": 0.1,
    "doctor": 0.06,
}
#: The shares of tables. The sample is large: its cases take three times as long as those of labs.
TABLES = {"trips": 1, "v1": 2, "v2": 4, "v3": 4, "v4": 4}


@contextlib.contextmanager
def repeatable(seed: int | str) -> Iterator[None]:
    """Give what is written in the meantime the same names, ids and times in each run."""
    rng = random.Random(seed)
    with (
        mock.patch("uuid.uuid4", side_effect=lambda: uuid.UUID(int=rng.getrandbits(128), version=4)),
        mock.patch("secrets.randbits", side_effect=rng.getrandbits),
        mock.patch("fastavro._write.urandom", side_effect=rng.randbytes),
        mock.patch("time.time_ns", return_value=1_750_000_000_000_000_000),
        mock.patch("time.time", return_value=1_750_000_000.0),
    ):
        yield


def make(folder: Path) -> list[Path]:
    """Make the tables: the sample, and a lab of each version with an evolved schema, deletes and a compaction.

    Names, ids and times are the same in each run, so that a case finds the same bytes again.
    """
    import iceexplore as ix

    shutil.copytree(Path(ix.__file__).parent / "data" / "trips", folder / "trips")
    with repeatable(1):
        return [folder / "trips", *(_lab(folder / f"v{version}", version) for version in (1, 2, 3, 4))]


def _lab(where: Path, version: int) -> Path:
    import pyarrow as pa

    import iceexplore as ix

    how = {"write.delete.mode": "merge-on-read"} if version > 1 else {}
    if version == 2:
        how["write.metadata.compression-codec"] = "gzip"
    lab = ix.create(where, {"id": "long", "name": "string", "at": "timestamp", "more": "struct<a: list<double>>"},
                    partition_by="bucket(2, id)", format_version=version, properties=how)  # fmt: skip
    for first in (0, 20):
        ids = range(first, first + 20)
        lab.append(pa.table({"id": ids, "name": [f"n{i}" for i in ids], "at": pa.array(ids, pa.timestamp("us")),
                             "more": [{"a": [i / 2]} for i in ids]}))  # fmt: skip
    lab.delete("id in (1, 2, 7)" if version > 1 else "id < 20")
    lab.tag("kept")
    lab.delete("id = 21")
    lab.close()
    return where


@cache
def _inspect_names() -> tuple[str, ...]:
    import iceexplore as ix

    return tuple(n for n in dir(ix.sample("trips").inspect) if not n.startswith("_"))


def ways(table: Path, file: Path, out: Path) -> dict[str, Callable[[Any], Any]]:
    """List every public way of reading and drawing a table, by name."""
    import iceexplore as ix

    found: dict[str, Callable[[Any], Any]] = {
        "card": lambda t: (repr(t), t._repr_html_()),
        "head": lambda t: t.head(5),
        "plan": lambda t: repr(t.plan("id > 3" if table.name != "trips" else None, row_groups=True)),
        "verify": lambda t: t.verify(level="data"),
        "history": lambda t: t.history(),
        "diff": lambda t: repr(t.diff(t.snapshots[0].snapshot_id)) if t.snapshots else None,
        "changes": _changes,
        "at": lambda t: [repr(t.at(snapshot=s.snapshot_id)) for s in t.snapshots],
        "problems": lambda t: repr(t.problems),
        "bundle": lambda t: t.bundle(out / "b.zip", overwrite=True),
        "save_html": lambda t: t.explore().save_html(out / "e.html", overwrite=True),
        "open_file": lambda t: (lambda f: (repr(f), f._repr_html_()))(ix.open_file(file)),
        "simulate": _simulate,
        "doctor": _doctor,
    }
    for style in ("tree", "seed"):
        for kind in ("text", "svg", "mermaid", "graphviz"):
            found[f"tree {style} {kind}"] = partial(_tree, style=style, kind=kind)
    for name in _inspect_names():
        found[f"inspect.{name}"] = partial(_inspect, name=name)
    return found


def _inspect(table: Any, name: str) -> str:
    return repr(getattr(table.inspect, name)())


def _tree(table: Any, style: str, kind: str) -> Any:
    tree = table.tree(snapshots="all", depth="files", style=style)
    return getattr(tree, f"to_{kind}")()


def _changes(table: Any) -> None:
    if len(table.snapshots) > 1:
        for rows in (False, True):
            repr(table.changes(table.snapshots[-2].snapshot_id, rows=rows))


def _simulate(table: Any) -> None:
    with contextlib.closing(table.simulate()) as simulation:
        simulation.append(1, rows=10)


def _doctor(table: Any) -> None:
    report = table.check("files", snapshots="all")
    (report.to_html(), report.to_json(), report.to_junit(), repr(report), report.timeline())
    mended = report.repair()
    (repr(mended), mended._repr_html_(), mended.to_dict())


def _chosen(found: dict[str, Callable[[Any], Any]], rng: random.Random) -> list[str]:
    """Choose the ways that a case goes."""
    often = [name for name in found if name not in SELDOM]
    return rng.sample(often, WAYS) + [name for name, share in SELDOM.items() if rng.random() < share]


def look(
    table: Path, file: Path, out: Path, rows: int, rng: random.Random, *, everything: bool = False
) -> dict[str, Any]:
    """Look at a damaged table in some ways; rows that differ from the undamaged table's need a problem."""
    import iceexplore as ix

    seen, silent = Look(), None
    opened = seen.go("open", lambda: ix.open(table))
    if opened is not None:
        counted = seen.go("count", lambda: int(opened.count()))
        read = seen.go("to_arrow", lambda: opened.to_arrow().num_rows)
        quiet = seen.go("problems", lambda: not list(opened.problems))
        if quiet and counted is not None and read is not None and counted != read:
            text = f"count() gives {counted} rows, to_arrow() {read}, and there is no problem"
            seen.faults.append(("count and to_arrow disagree", text))
        elif quiet and (different := [n for n in (counted, read) if n is not None and n != rows]):
            silent = [rows, different[0]]
    found = ways(table, file, out)
    for name in found if everything else _chosen(found, rng):
        if opened is not None:
            seen.go(name, partial(found[name], opened))
        elif name == "open_file":
            seen.go(name, partial(found[name], None))
    return seen.result(silent)


def _files(table: Path) -> tuple[int, Path, list[Path], list[Path]]:
    """Find a table's rows, its newest metadata, the files that its newest snapshot reads, and all files."""
    import iceexplore as ix

    opened = ix.open(table)
    every = sorted(p for p in table.rglob("*") if p.is_file())
    by_name = {p.name: p for p in every}
    assert opened.snapshot is not None, "each table has rows"
    paths = [opened.snapshot.manifest_list, *opened.inspect.manifests()["path"].tolist()]
    paths += opened.inspect.files()["file_path"].tolist()
    live = sorted({by_name[name] for name in (str(p).rsplit("/", 1)[-1] for p in paths if p) if name in by_name})
    return int(opened.count()), by_name[opened.metadata_location.rsplit("/", 1)[-1]], live, every


class TableCases:
    """Cases of sound tables, in each of which one file is changed and put back."""

    def __init__(self, folder: Path, *, everything: bool) -> None:
        self.folder, self.everything = folder, everything
        self.tables = {table: _files(table) for table in sorted((folder / "tables").iterdir())}
        self.out = folder / "out"
        self.out.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def case(self, rng: random.Random) -> Iterator[Case]:
        """Choose a table, change one of its files, and put it back at the end."""
        table = rng.choices(list(self.tables), [TABLES[table.name] for table in self.tables])[0]
        rows, metadata, live, every = self.tables[table]
        # What the newest version reads: most other files are of history alone.
        file = rng.choice(rng.choices(([metadata], live, every), (30, 50, 20))[0])
        data = file.read_bytes()
        changed, what = change(file, data, rng)
        file.write_bytes(changed)
        try:
            yield Case(
                str(file.relative_to(self.folder)), what,
                lambda: look(table, file, self.out, rows, rng, everything=self.everything),
            )  # fmt: skip
        finally:
            file.write_bytes(data)
