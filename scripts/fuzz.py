"""Damage small tables at random and look at them in every way: only errors of iceexplore's own may come.

Each case takes a table made by the project, changes one of its files, reads and draws the table, and puts the file
back. Each case counts the rows in two ways, and looks through some of the other doors; those that take longer come
less often. A case repeats from its number alone: ``python -m scripts.fuzz --seed 7 --first 120 --cases 1``
(``--all`` looks through every door).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import queue
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from scripts.fuzz_changes import change

#: Bytes that a child may address, and may really use at once.
ADDRESSED = 3 << 30
RESIDENT = 1536 << 20
#: Cases that one child looks at, before another one takes over.
A_CHILD = 500
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


def make(folder: Path) -> list[Path]:
    """Make the tables: the sample, and a lab of each version with an evolved schema, deletes and a compaction.

    Names, ids and times are the same in each run, so that a case finds the same bytes again.
    """
    import iceexplore as ix

    shutil.copytree(Path(ix.__file__).parent / "data" / "trips", folder / "trips")
    rng = random.Random(1)
    with (
        mock.patch("uuid.uuid4", side_effect=lambda: uuid.UUID(int=rng.getrandbits(128), version=4)),
        mock.patch("secrets.randbits", side_effect=rng.getrandbits),
        mock.patch("time.time_ns", return_value=1_750_000_000_000_000_000),
    ):
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


class Look:
    """What one case shows: foreign errors by kind, what is refused, rows that differ without a word."""

    def __init__(self) -> None:
        self.faults: list[tuple[str, str]] = []
        self.refused = 0
        self.slow = ("", 0.0)

    def go(self, name: str, way: Callable[[], Any]) -> Any:
        """Go one way; give its result, or None where it fails."""
        import iceexplore as ix

        began = time.monotonic()
        try:
            return way()
        except ix.IceexploreError:
            self.refused += 1
        except Exception as error:
            self.faults.append((_kind(error), f"{name}: {traceback.format_exc()}"))
        finally:
            took = time.monotonic() - began
            self.slow = max(self.slow, (name, took), key=lambda one: one[1])


def _kind(error: BaseException) -> str:
    """Name an error by its type and the innermost frame of the package."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}iceexplore{os.sep}" in f.filename]
    if not frames:
        return f"{type(error).__name__} outside the package"
    file = frames[-1].filename.rsplit(f"{os.sep}iceexplore{os.sep}", 1)[1]
    return f"{type(error).__name__} in {file}:{frames[-1].name}"


def look(
    table: Path, file: Path, out: Path, rows: int, rng: random.Random, *, everything: bool = False
) -> dict[str, Any]:
    """Look at a damaged table in some ways.

    Returns
    -------
    dict
        The foreign errors; how often the table was refused; the rows where they differ from the undamaged table's and
        no problem says so (``silent``); the slowest way.
    """
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
    return {"faults": seen.faults, "refused": seen.refused, "silent": silent, "slow": seen.slow}


def _peak() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) << 10


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


def child(folder: Path, seed: int, first: int, cases: int, *, everything: bool = False) -> None:
    """Run cases, one line of JSON each (after one with what is changed)."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSED, ADDRESSED))
    warnings.simplefilter("ignore")
    tables = {table: _files(table) for table in sorted((folder / "tables").iterdir())}
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for case in range(first, first + cases):
        rng = random.Random(f"{seed}:{case}")
        table = rng.choices(list(tables), [TABLES[table.name] for table in tables])[0]
        rows, metadata, live, every = tables[table]
        # What the newest version reads: most other files are of history alone.
        file = rng.choice(rng.choices(([metadata], live, every), (30, 50, 20))[0])
        data = file.read_bytes()
        changed, what = change(file, data, rng)
        print(json.dumps({"case": case, "file": str(file.relative_to(folder)), "change": what[:300]}), flush=True)
        if case % 20 == 0:
            gc.collect()
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        file.write_bytes(changed)
        try:
            result = look(table, file, out, rows, rng, everything=everything)
        finally:
            file.write_bytes(data)
        print(json.dumps({"case": case, "peak": _peak(), **result}), flush=True)


def run(
    folder: Path,
    seed: int,
    first: int,
    cases: int,
    seconds: float,
    *,
    until: float | None = None,
    everything: bool = False,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run cases in children and gather what goes wrong.

    Parameters
    ----------
    seconds
        The limit of one case; a child that takes longer is killed, and the case counts as a hang.
    until
        `time.monotonic` after which no further child begins.
    everything
        Go every way in each case.
    say
        Takes a line for each hundred cases, and the first example of each kind of failure.

    Returns
    -------
    dict
        The cases done, the failures (``bad``), how many of each kind (``kinds``), the largest resident memory and the
        slowest way.
    """
    pristine, tables = folder / "pristine", folder / "tables"
    if not tables.exists():
        tables.mkdir(parents=True)
        make(tables)
        shutil.copytree(tables, pristine)
    total: dict[str, Any] = {"done": 0, "bad": [], "kinds": Counter(), "peak": 0, "slow": ("", 0.0)}

    def failed(begun: dict[str, Any], kind: str, what: str) -> None:
        total["bad"].append({**begun, "kind": kind, "what": what})
        total["kinds"][kind] += 1
        if say and total["kinds"][kind] == 1:
            say(f"--- {kind}: seed {seed} case {begun['case']}: {begun['file']}: {begun['change']}\n{what}")

    at, end = first, first + cases
    while at < end and (until is None or time.monotonic() < until):
        begun: dict[str, Any] = {"case": at, "file": "", "change": "before the first"}
        finished = False
        for found in _child_lines(folder, seed, at, min(A_CHILD, end - at), seconds, everything=everything):
            if "file" in found:
                begun = found
            elif "ended" in found:
                finished = not found["ended"]
                if found["ended"]:
                    failed(begun, found["ended"], found["text"])
                if not begun["file"]:
                    return total
            else:
                at = found["case"] + 1
                total["done"] += 1
                total["peak"] = max(total["peak"], found["peak"])
                total["slow"] = max(total["slow"], (*found["slow"], found["case"]), key=lambda one: one[1])
                for kind, text in found["faults"]:
                    failed(begun, kind, text)
                if found["silent"]:
                    kind = f"silent: {_format_of(begun['file'])}"
                    failed(begun, kind, "{} rows became {}, and there is no problem".format(*found["silent"]))
                if found["peak"] > RESIDENT:
                    failed(begun, "memory", f"{found['peak'] >> 20} MB")
                if say and total["done"] % 100 == 0:
                    kinds = ", ".join(f"{times} {kind}" for kind, times in total["kinds"].items()) or "no failure"
                    say(f"{total['done']} cases: {kinds}; peak {total['peak'] >> 20} MB, slowest {total['slow']}")
        if not finished:
            at = begun["case"] + 1
            shutil.rmtree(tables)
            shutil.copytree(pristine, tables)
    return total


def _format_of(file: str) -> str:
    name = Path(file).name
    end = next((e for e in (".metadata.json", ".avro", ".puffin") if name.endswith(e)), Path(file).suffix)
    return f"{Path(file).parts[-2] if 'metadata' in file else 'data'} {end}"


def _child_lines(
    folder: Path, seed: int, at: int, cases: int, seconds: float, *, everything: bool
) -> Iterator[dict[str, Any]]:
    """Run a child and give what it writes; at last how it ended: ``{"ended": "", "text": ""}`` if well."""
    command = [sys.executable, "-m", "scripts.fuzz", "--child", str(folder), "--seed", str(seed)]
    command += ["--first", str(at), "--cases", str(cases), *(["--all"] if everything else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=Path(__file__).parent.parent)  # fmt: skip
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []
    threading.Thread(target=_lines, args=(process.stdout, lines), daemon=True).start()
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    limit = 60.0
    try:
        while True:
            try:
                line = lines.get(timeout=limit)
            except queue.Empty:
                yield {"ended": "hang", "text": f"over {limit:.0f} s"}
                return
            if line is None:
                code = process.wait()
                reader.join(10)
                yield {"ended": f"the process ended: {code}" if code else "", "text": "".join(errors)[-4000:]}
                return
            limit = seconds
            yield json.loads(line)
    finally:
        process.kill()
        process.wait()
        reader.join(10)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _lines(stream: Any, into: queue.Queue[str | None]) -> None:
    with stream:
        for line in stream:
            into.put(line)
    into.put(None)


@contextlib.contextmanager
def _folder(where: Path | None) -> Iterator[Path]:
    """Make the folder of a run: of the same name in each, as it is in the files, unless another run has it."""
    path = Path(where or tempfile.gettempdir()) / "iceexplore-fuzz"
    try:
        path.mkdir()
    except FileExistsError:
        path = Path(tempfile.mkdtemp(prefix="iceexplore-fuzz-", dir=where))
        print(f"{path.parent}/iceexplore-fuzz is there already: cases differ a little from those of its run")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="the limit of one case")
    parser.add_argument("--stop-after", type=float, help="begin no further child after these seconds")
    parser.add_argument("--all", action="store_true", help="go every way in each case")
    parser.add_argument("--list", action="store_true", help="list all failures at the end, not one of each kind")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.seed, given.first, given.cases, everything=given.all)
        return 0
    until = None if given.stop_after is None else time.monotonic() + given.stop_after
    # In memory where there is such a place: a case writes a file twice and reads some twenty.
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    began = time.monotonic()
    with _folder(where) as folder:
        found = run(folder, given.seed, given.first, given.cases, given.seconds, until=until,
                    everything=given.all, say=partial(print, flush=True))  # fmt: skip
    took = time.monotonic() - began
    if given.list:
        for one in found["bad"]:
            print(f"{one['kind']}: case {one['case']}: {one['file']}: {one['change']}: {one['what'].splitlines()[-1]}")
    for kind, times in found["kinds"].most_common():
        print(f"{times:6} {kind}")
    print(f"{found['done']} cases in {took:.0f} s, {len(found['bad'])} failures, peak {found['peak'] >> 20} MB, "
          f"slowest {found['slow']}")  # fmt: skip
    return 1 if found["bad"] or not found["done"] else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    sys.exit(main())
