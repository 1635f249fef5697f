"""Damage small tables at random and look at them in every way: only errors of iceexplore's own may come.

Each case takes a table made by the project, changes one of its files, reads and draws the table, and puts the file
back. A case repeats from its number alone: ``python -m scripts.fuzz --seed 7 --first 120 --cases 1``.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
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
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

#: Bytes that a child may address, and may really use at once.
ADDRESSED = 3 << 30
RESIDENT = 1536 << 20
#: Cases that one child looks at, before another one takes over.
A_CHILD = 25
#: Whole numbers that have broken readers: edges of 32, 63 and 64 bits, and beyond.
NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30)
#: In the place of a JSON value: each type of JSON, nested and empty ones too.
VALUES: tuple[Any, ...] = (*NUMBERS, None, True, "", "x", "a\0b", "\ud800", 1.5, 1e308, [], {}, [[]], [None], {"x": []})


def make(folder: Path) -> list[Path]:
    """Make the tables: the sample, and a lab of each version with an evolved schema, deletes and a compaction."""
    import pyarrow as pa

    import iceexplore as ix

    shutil.copytree(Path(ix.__file__).parent / "data" / "trips", folder / "trips")
    tables = [folder / "trips"]
    for version in (1, 2, 3, 4):
        where = folder / f"v{version}"
        how = {"write.delete.mode": "merge-on-read"} if version > 1 else {}
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
        tables.append(where)
    return tables


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the path of every value in a JSON document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*path, key)
        yield from _places(inner, (*path, key))


def change_json(text: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Replace, or remove, one value of a JSON document."""
    document = json.loads(text)
    path = rng.choice(list(_places(document)) or [()])
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    if not path:
        return b"null", "the document = null"
    if rng.random() < 0.15:
        del holder[path[-1]]
        said = f"{path} removed"
    else:
        holder[path[-1]] = rng.choice(VALUES)
        said = f"{path} = {holder[path[-1]]!r}"
    return json.dumps(document).encode(), said


def change_bytes(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change some bytes, cut the file, or double or remove a piece."""
    if not data:
        return b"\0", "a byte"
    at = rng.randrange(len(data))
    match rng.randrange(5):
        case 0:
            return data[:at], f"cut at {at}"
        case 1:
            end = min(len(data), at + rng.randrange(1, 64))
            return data[:at] + data[end:], f"without {at}:{end}"
        case 2:
            end = min(len(data), at + rng.randrange(1, 64))
            return data[:end] + data[at:], f"{at}:{end} twice"
        case _:
            changed = bytearray(data)
            # The ends hold lengths, magics and footers: half of the changes go there.
            near = rng.choice((0, max(0, len(data) - 200), at))
            spots = [min(len(data) - 1, near + rng.randrange(200)) for _ in range(rng.choice((1, 1, 2, 8)))]
            for spot in spots:
                changed[spot] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            return bytes(changed), f"bytes {spots}"


def change_avro(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Write the records of an Avro file anew with one value changed, or one record removed."""
    import fastavro

    reader = fastavro.reader(io.BytesIO(data))
    schema, header = reader.writer_schema, dict(reader.metadata)
    records: list[Any] = list(reader)
    if not isinstance(schema, dict) or not records:
        return change_bytes(data, rng)
    at = rng.randrange(len(records))
    if rng.random() < 0.1:
        del records[at]
        said = f"record {at} removed"
    else:
        path = rng.choice(list(_places(records[at])))
        holder = records[at]
        for step in path[:-1]:
            holder = holder[step]
        longs = [n for n in NUMBERS if -(2**63) <= n < 2**63]
        value: Any = rng.choice([*longs, None, "", "a\0b", b"", b"\xff" * 40, [], 1e308])
        holder[path[-1]] = value
        said = f"record {at} {path} = {value!r}"
    out = io.BytesIO()
    kept = {k: v for k, v in header.items() if not k.startswith("avro.")}
    try:
        fastavro.writer(out, schema, records, metadata=kept)
    except Exception:  # the value is none of the field's type: bytes are changed instead
        return change_bytes(data, rng)
    return out.getvalue(), said


def change_puffin(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change one field of a Puffin footer; the blobs stay."""
    size = int.from_bytes(data[-12:-8], "little")
    start = len(data) - 12 - size
    if data[-4:] != b"PFA1" or data[-8] & 1 or start < 8:
        return change_bytes(data, rng)
    footer, said = change_json(data[start:-12], rng)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + data[-8:], said


def change(path: Path, data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change a file as fits its format, or its bytes alone."""
    if rng.random() < 0.3:
        return change_bytes(data, rng)
    name = path.name
    if name.endswith(".json"):
        if data[:2] == b"\x1f\x8b":
            text, said = change_json(gzip.decompress(data), rng)
            return gzip.compress(text), said
        return change_json(data, rng)
    if name.endswith(".avro"):
        return change_avro(data, rng)
    if data[:4] == b"PFA1" and rng.random() < 0.6:
        return change_puffin(data, rng)
    return change_bytes(data, rng)


def ways(table: Path, file: Path, out: Path) -> dict[str, Callable[[Any], Any]]:
    """List every public way of reading and drawing a table, by name."""
    import iceexplore as ix

    found: dict[str, Callable[[Any], Any]] = {
        "card": lambda t: (repr(t), t._repr_html_()),
        "count": lambda t: t.count(),
        "head": lambda t: t.head(5),
        "to_arrow": lambda t: t.to_arrow(),
        "plan": lambda t: repr(t.plan("id > 3" if table.name != "trips" else None, row_groups=True)),
        "verify": lambda t: t.verify(level="data"),
        "history": lambda t: t.history(),
        "diff": lambda t: repr(t.diff(t.snapshots[0].snapshot_id)),
        "changes": lambda t: [repr(t.changes(t.snapshots[-2].snapshot_id, rows=rows)) for rows in (False, True)],
        "at": lambda t: [repr(t.at(snapshot=s.snapshot_id)) for s in t.snapshots],
        "problems": lambda t: repr(t.problems),
        "bundle": lambda t: t.bundle(out / "b.zip", overwrite=True),
        "save_html": lambda t: t.explore().save_html(out / "e.html", overwrite=True),
        "open_file": lambda t: (lambda f: (repr(f), f._repr_html_()))(ix.open_file(file)),
        "simulate": _simulate,
    }
    for style in ("tree", "seed"):
        for kind in ("text", "svg", "mermaid", "graphviz"):
            found[f"tree {style} {kind}"] = partial(_tree, style=style, kind=kind)
    for name in (n for n in dir(ix.sample("trips").inspect) if not n.startswith("_")):
        found[f"inspect.{name}"] = partial(_inspect, name=name)
    return found


def _inspect(table: Any, name: str) -> str:
    return repr(getattr(table.inspect, name)())


def _tree(table: Any, style: str, kind: str) -> Any:
    tree = table.tree(snapshots="all", depth="files", style=style)
    return getattr(tree, f"to_{kind}")()


def _simulate(table: Any) -> None:
    with contextlib.closing(table.simulate()) as simulation:
        simulation.append(1, rows=10)


#: Ways that take half a second and more: one case in four goes each of them.
COSTLY = {"verify", "save_html", "bundle", "simulate", "changes", "inspect.column_stats"}


def look(table: Path, file: Path, out: Path, rows: int | None, rng: random.Random) -> dict[str, Any]:
    """Look at a table in every way; give the foreign errors and whether its rows changed without a word."""
    import iceexplore as ix

    faults: list[str] = []
    refused, slow, counted, opened = 0, ("", 0.0), None, None
    for name, way in ways(table, file, out).items():
        if name in COSTLY and rng.random() < 0.75:
            continue
        began = time.monotonic()
        try:
            # A table of its own for each, so that an error of one cannot hide in what another has kept.
            if opened is None or name in ("to_arrow", "verify", "save_html"):
                opened = ix.open(table)
            result = way(opened)
            if name == "count":
                counted = int(result)
        except ix.IceexploreError:
            refused += 1
        except IndexError as error:
            # Too few snapshots for what this script asks for is its own fault.
            if "scripts" not in traceback.extract_tb(error.__traceback__)[-1].filename:
                faults.append(f"{name}: {traceback.format_exc()}")
        except Exception:
            faults.append(f"{name}: {traceback.format_exc()}")
        took = time.monotonic() - began
        slow = max(slow, (name, took), key=lambda one: one[1])
    silent = None
    if rows is not None and counted is not None and counted != rows and opened is not None:
        with contextlib.suppress(ix.IceexploreError):
            if not list(opened.problems):
                silent = [rows, counted]
    return {"faults": faults, "refused": refused, "silent": silent, "slow": slow}


def _peak() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) << 10


def child(folder: Path, seed: int, first: int, cases: int) -> None:
    """Run cases, one line of JSON each (after one with what is changed)."""
    import iceexplore as ix

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSED, ADDRESSED))
    warnings.simplefilter("ignore")
    tables = sorted(p for p in (folder / "tables").iterdir())
    rows = {table: int(ix.open(table).count()) for table in tables if table.name != "trips"}
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for case in range(first, first + cases):
        rng = random.Random(f"{seed}:{case}")
        table = rng.choice(tables)
        file = rng.choice(sorted(p for p in table.rglob("*") if p.is_file()))
        if rng.random() < 0.4:
            # What the newest version reads first: most other files are of history alone.
            file = table / "metadata" / ix.open(table).metadata_location.rsplit("/", 1)[-1]
        data = file.read_bytes()
        changed, said = change(file, data, rng)
        print(json.dumps({"case": case, "file": str(file.relative_to(folder)), "said": said[:300]}), flush=True)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        file.write_bytes(changed)
        try:
            result = look(table, file, out, rows.get(table), rng)
        finally:
            file.write_bytes(data)
        print(json.dumps({"case": case, "peak": _peak(), **result}), flush=True)


def run(
    folder: Path, seed: int, first: int, cases: int, seconds: float, *, until: float | None = None
) -> dict[str, Any]:
    """Run cases in children and gather what went wrong.

    Parameters
    ----------
    seconds
        The limit of one case; a child that takes longer is killed, and the case counts as a hang.
    until
        `time.monotonic` after which no further child begins.
    """
    pristine, tables = folder / "pristine", folder / "tables"
    if not tables.exists():
        tables.mkdir(parents=True)
        make(tables)
        shutil.copytree(tables, pristine)
    done, bad = 0, []
    peak, slow = 0, ("", 0.0)
    at, end = first, first + cases
    while at < end and (until is None or time.monotonic() < until):
        command = [sys.executable, "-m", "scripts.fuzz", "--child", str(folder), "--seed", str(seed)]
        command += ["--first", str(at), "--cases", str(min(A_CHILD, end - at))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=Path(__file__).parent.parent)  # fmt: skip
        lines: queue.Queue[str | None] = queue.Queue()
        errors: list[str] = []
        threading.Thread(target=_lines, args=(process.stdout, lines), daemon=True).start()
        reader = threading.Thread(target=lambda p=process, e=errors: e.append(p.stderr.read()), daemon=True)
        reader.start()
        begun: dict[str, Any] = {"case": at, "file": "", "said": "before the first"}
        finished, limit = True, 60.0
        while True:
            try:
                line = lines.get(timeout=limit)
            except queue.Empty:
                process.kill()
                bad.append({**begun, "what": f"hang: over {limit:.0f} s"})
                finished = False
                break
            if line is None:
                finished = process.wait() == 0
                reader.join(10)
                if not finished:
                    bad.append({**begun, "what": f"the process ended: {process.returncode} {''.join(errors)[-2000:]}"})
                break
            found = json.loads(line)
            if "file" in found:
                begun, limit = found, seconds
                continue
            if done % 10 == 9 or found["faults"] or found["silent"]:
                failed = (*found["faults"][:1], found["silent"] or "")
                print(f"case {found['case']}: {len(bad)} failures", *failed, begun, file=sys.stderr, flush=True)
            at, done, peak = found["case"] + 1, done + 1, max(peak, found["peak"])
            slow = max(slow, tuple(found["slow"]), key=lambda one: one[1])
            bad += [{**begun, "what": fault} for fault in found["faults"]]
            if found["silent"]:
                bad.append({**begun, "what": "silent: {} rows became {}".format(*found["silent"])})
            if found["peak"] > RESIDENT:
                bad.append({**begun, "what": f"memory: {found['peak'] >> 20} MB"})
        process.wait()
        if not finished:
            at = begun["case"] + 1
            shutil.rmtree(tables)
            shutil.copytree(pristine, tables)
    return {"done": done, "bad": bad, "peak": peak, "slow": slow}


def _lines(stream: Any, into: queue.Queue[str | None]) -> None:
    with stream:
        for line in stream:
            into.put(line)
    into.put(None)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="the limit of one case")
    parser.add_argument("--stop-after", type=float, help="begin no further child after these seconds")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.seed, given.first, given.cases)
        return 0
    until = None if given.stop_after is None else time.monotonic() + given.stop_after
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), given.seed, given.first, given.cases, given.seconds, until=until)
    kinds: Counter[str] = Counter()
    for one in found["bad"]:
        last = one["what"].strip().splitlines()[-1][:160]
        if not kinds[last]:
            print(f"--- seed {given.seed} case {one['case']}: {one['file']}: {one['said']}\n{one['what']}")
        kinds[last] += 1
    for last, times in kinds.most_common():
        print(f"{times:6} {last}")
    peak, slow = found["peak"] >> 20, found["slow"]
    print(f"{found['done']} cases, {len(found['bad'])} failures, peak {peak} MB, slowest {slow}")
    return 1 if found["bad"] or not found["done"] else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    sys.exit(main())
