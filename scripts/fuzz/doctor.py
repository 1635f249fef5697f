"""Check and repair tables that are damaged in known ways, after one more change of a file at random.

A case starts from a damage of ``tests/doctor``, at times from two or from a sound table, and mostly changes one of the
table's files. It goes the way of a user: open, check, the report in each form, the repair plan, the repaired table; at
times it also saves that table or makes the plans of ``t.maintenance()``. Afterwards the table must have the same bytes.

What the doctor promises is required: `ix.check` and ``t.check()`` return a report whatever the table is, a plan's table
has the rows that the plan states, and findings that remain are in ``plan.unrepaired``.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from scripts.fuzz.changes import MARKUP, change, change_bytes
from scripts.fuzz.look import Case, Look
from scripts.fuzz.tables import repeatable

if TYPE_CHECKING:
    import iceexplore as ix

__all__ = ["DoctorCases", "Seed", "seeds"]

#: The shares of cases that start from one damage, two, none; and of those that then change a file at random.
_DAMAGES = {1: 0.7, 2: 0.22, 0: 0.08}
_CHANGED = {1: 0.92, 2: 0.4, 0: 1.0}
#: The shares of cases that change one file, two, three; and of changes that replace or remove a file.
_CHANGES = (0.8, 0.15, 0.05)
_MISPLACED = 0.12
#: The shares of levels, of checks of all snapshots, of cases that save the repaired table, that plan maintenance.
_LEVELS = {"metadata": 0.8, "files": 0.1, "rows": 0.1}
_ALL_SNAPSHOTS = 0.3
_SAVED = 0.08
_MAINTENANCE = 0.15
#: Of the report's forms, each case takes so many.
_FORMS = 3
#: Damages that make files of 17 MB, and their weight; others have 1.
_LARGE = {"metadata_file_large": 0.05, "metadata_file_large_when_unpacked": 0.05}
#: Trees of V4 come from simulations, whose synthetic data files are nowhere.
_NOWHERE = ("outside-roots",)
#: Files are that much older than their tables' cases, so that orphan files are old enough to be removed.
_AGE_NS = 30 * 86_400 * 10**9


@dataclass(frozen=True)
class Seed:
    """A sound table, and a known damage of it.

    Attributes
    ----------
    base
        The name of the sound table (`_bases`).
    damage
        Damages it in place; None leaves it sound.
    opens
        What is opened, from the table's folder.
    """

    name: str
    base: str
    damage: Callable[[Path], Any] | None = None
    opens: str = ""

    @property
    def weight(self) -> float:
        """How often it is chosen."""
        return _LARGE.get(self.name, 1.0)


@dataclass(frozen=True)
class Image:
    """A table's files, relative to the folder of a case, and those that readers of its newest version need."""

    files: Mapping[str, bytes]
    metadata: str
    live: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """Write the files into an empty folder."""
        then = time.time_ns() - _AGE_NS  # not the same for two cases: caches know a file by its time
        for name, data in self.files.items():
            path = folder / name
            try:
                path.write_bytes(data)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            os.utime(path, ns=(then, then))


def _read(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _inside(file: str) -> str:
    """Return a file's path in the folder of its table, which a damage may have renamed."""
    return file.partition("/")[2]


def _v1(folder: Path) -> Path:
    import iceexplore as ix

    lab = ix.create(folder / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=1)
    lab.append({"id": [1, 2, 3], "k": ["a", "b", "a"]})
    lab.delete("id = 3")
    lab.close()
    return folder / "t"


def _bases() -> dict[str, Callable[[Path], Path]]:
    """Return the makers of sound tables, which make one in a folder, by name."""
    from tests.doctor import v4_damages as v4
    from tests.doctor.damages import healthy

    trees = (v4.healthy_v4, v4.appended_v4, v4.affiliated_v4, v4.draft_v4)
    labs = {f"v{version}": partial(healthy, version=version) for version in (2, 3, 4)}
    return {"v1": _v1, **labs, **{tree.__name__: tree for tree in trees}}


def seeds() -> list[Seed]:
    """Return the sound tables, and every registered damage."""
    from tests.doctor import file_damages, manifest_damages  # noqa: F401  (they register their damages)
    from tests.doctor.damages import DAMAGES
    from tests.doctor.v4_damages import V4_DAMAGES

    found = [Seed(name, name) for name in _bases()]
    found += [Seed(d.name, f"v{d.version}", d.damage, d.opens) for d in DAMAGES]
    found += [Seed(d.name, d.healthy.__name__, d.damage) for d in V4_DAMAGES]
    return list({(seed.base, seed.name): seed for seed in found}.values())


def _change(files: dict[str, bytes], file: str, rng: random.Random) -> str:
    """Change the content of a file, or put something else in its place; return what was done."""
    if rng.random() >= _MISPLACED:
        try:
            files[file], what = change(Path(file), files[file], rng)
        except Exception:  # it is damaged already, so that it cannot be taken apart
            files[file], what = change_bytes(files[file], rng)
        return what
    match rng.randrange(4):
        case 0:
            del files[file]
            return "removed"
        case 1:
            files[file] = b""
            return "empty"
        case 2:
            del files[file]
            files[f"{file}/inside"] = b""
            return "a folder"
        case _:
            other = rng.choice(list(files))
            files[file] = files[other]
            return f"as {Path(other).name}"


class DoctorCases:
    """Cases of tables with known damages; each damaged table is made once, by the first child that needs it."""

    def __init__(self, folder: Path, *, everything: bool) -> None:
        self.everything = everything
        self.place = folder / "case"
        self.out = folder / "out"
        self.store = folder / "images"
        self.store.mkdir(exist_ok=True)
        self.bases = _bases()
        self.seeds = seeds()
        self.images: dict[tuple[str, str], Image] = {}

    @contextlib.contextmanager
    def case(self, rng: random.Random) -> Iterator[Case]:
        """Choose damages, write the table, and change one of its files, or none."""
        count = rng.choices(list(_DAMAGES), list(_DAMAGES.values()))[0]
        first = self._choose(rng, [s for s in self.seeds if bool(s.damage) == bool(count)])
        image, text, opens = self.image(first), first.name, first.opens
        if count == 2:
            # of the same table, whose folder has not moved, and which is opened in the same way
            other = self._choose(rng, [s for s in self.seeds if s.base == first.base and s.damage and not s.opens])
            text += f", then {other.name}"
            with contextlib.suppress(Exception):  # it comes as far as what the first one left allows
                self._damage(image, other)
            image = self._after(image)
        files = dict(image.files)
        file = image.metadata
        times = rng.choices((1, 2, 3), _CHANGES)[0] if rng.random() < _CHANGED[count] else 0
        for _ in range(times):
            file = rng.choice(rng.choices(([image.metadata], image.live, list(files)), (35, 50, 15))[0])
            if file in files:
                text += f"; {Path(file).name}: {_change(files, file, rng)}"
        self._begin(Image(files, "", ()))
        table = self.place / "t" / opens
        look = partial(examine, table, self.out, rng, tree=first.base not in ("v1", "v2", "v3", "v4"),
                       everything=self.everything)  # fmt: skip
        try:
            yield Case(file, text, lambda: self._unchanged(look(), files).result())
        finally:
            shutil.rmtree(self.out, ignore_errors=True)

    def image(self, seed: Seed) -> Image:
        """Return a damaged table, made or from the store."""
        key = seed.base, seed.name
        if key not in self.images:
            path = self.store / f"{seed.base}-{seed.name}"
            try:
                self.images[key] = pickle.loads(zlib.decompress(path.read_bytes()))
            except FileNotFoundError:
                made = self.images[key] = self._make(seed)
                kept = path.with_suffix(".new")
                kept.write_bytes(zlib.compress(pickle.dumps(made), 1))
                kept.rename(path)
        return self.images[key]

    def _choose(self, rng: random.Random, among: list[Seed]) -> Seed:
        return rng.choices(among, [seed.weight for seed in among])[0]

    def _begin(self, image: Image) -> None:
        for folder in (self.place, self.out):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        image.write(self.place)

    def _sound(self, seed: Seed) -> Image:
        import iceexplore as ix

        self._begin(Image({}, "", ()))
        with repeatable(seed.name):
            t = ix.open(self.bases[seed.base](self.place))
        files = _read(self.place)
        by_name = {Path(file).name: file for file in files}
        paths = [t.metadata.snapshots[-1].root_location, *t.inspect.manifests()["path"].tolist()]
        paths += t.inspect.files()["file_path"].tolist()
        live = dict.fromkeys(by_name[name] for p in paths if p and (name := p.rpartition("/")[2]) in by_name)
        return Image(files, by_name[t.metadata_location.rpartition("/")[2]], tuple(live))

    def _make(self, seed: Seed) -> Image:
        if seed.damage is None:
            return self._sound(seed)
        sound = self.image(Seed(seed.base, seed.base))
        self._damage(sound, seed)
        return self._after(sound)

    def _damage(self, image: Image, seed: Seed) -> None:
        """Write a table, and damage it in place."""
        assert seed.damage is not None
        self._begin(image)
        with repeatable(seed.name):
            seed.damage(self.place / "t")

    def _after(self, image: Image) -> Image:
        """Return what a damage has made of a table."""
        files = _read(self.place)
        old = {_inside(file) for file in image.files}
        live = {_inside(file) for file in image.live}
        documents = [f for f in files if f.endswith(".metadata.json")] or list(files)
        metadata = [f for f in documents if _inside(f) == _inside(image.metadata)] or documents[-1:]
        needed = [f for f in files if _inside(f) in live or _inside(f) not in old]
        return Image(files, metadata[0], tuple(needed or files))

    def _unchanged(self, seen: Look, files: Mapping[str, bytes]) -> Look:
        now = _read(self.place)
        if now != files:
            names = sorted(name for name in {*now, *files} if now.get(name) != files.get(name))
            seen.faults.append(("the table was written to", ", ".join(names)))
        return seen


# Looking --------------------------------------------------------------------------------------------------------------


def examine(source: Path, out: Path, rng: random.Random, *, tree: bool, everything: bool) -> Look:
    """Open, check and repair a table, and look at the results in every form."""
    import iceexplore as ix

    seen = Look()
    options: dict[str, Any] = {
        "level": rng.choices(list(_LEVELS), list(_LEVELS.values()))[0],
        "snapshots": "all" if rng.random() < _ALL_SNAPSHOTS else "current",
        "skip": _NOWHERE if tree and rng.random() < 0.9 else (),
    }
    chance = {name: everything or rng.random() < share for name, share in (("save", _SAVED), ("plans", _MAINTENANCE))}
    table = seen.go("open", lambda: ix.open(source))
    # what cannot be opened is a finding, too
    report = seen.go("check", lambda: ix.check(source, **options) if table is None else table.check(**options), may=())
    if report is None:
        return seen
    forms = _forms(report)
    for name in forms if everything else rng.sample(list(forms), _FORMS):
        seen.go(name, forms[name], may=())
    may = (ix.errors.UnsupportedError,) if report.opened else (ix.errors.OptionError,)
    plan = seen.go("repair", report.repair, may=may)
    if plan is not None:
        _look_at_plan(seen, plan, report, options)
        if chance["save"]:
            _save(seen, plan, out, rng, options)
    if table is not None and chance["plans"]:
        _plan_maintenance(seen, table, rng)
    return seen


def _forms(report: ix.doctor.Report) -> dict[str, Callable[[], Any]]:
    """Return every form of a report, by name."""
    return {
        "html": lambda: _escaped(report.to_html()),
        "html redacted": lambda: _escaped(report.to_html(redact=True)),
        "json": lambda: _same_from_json(report),
        "junit": lambda: ElementTree.fromstring(report.to_junit()),
        "repr": lambda: repr(report),
        "card": lambda: _escaped(report._repr_html_()),
        "pandas": lambda: repr(report.to_pandas()),
        "timeline": lambda: repr(report.timeline()),
    }


def _escaped(page: str) -> None:
    assert MARKUP not in page, "markup of the table is in the page"


def _same_from_json(report: ix.doctor.Report) -> None:
    from iceexplore.doctor import Report

    again = Report.from_dict(json.loads(report.to_json()))
    assert again.to_json() == report.to_json(), "a report is not the same after JSON"


def _look_at_plan(seen: Look, plan: Any, report: Any, options: dict[str, Any]) -> None:
    """Look at a repair plan and its table, and require what it promises."""
    seen.go("plan: repr", plan.__repr__, may=())
    seen.go("plan: card", lambda: _escaped(plan._repr_html_()), may=())
    seen.go("plan: pandas", plan.to_pandas, may=())
    seen.go("plan: json", lambda: json.dumps(plan.to_dict()), may=())
    repaired = seen.go("plan: table", lambda: plan.table, may=())
    if repaired is None:
        return
    counted = seen.go("plan: count", lambda: int(repaired.count()))
    seen.require(counted == plan.rows_after, "a plan states other rows than its table has",
                 f"rows_after is {plan.rows_after}, count() gives {counted}")  # fmt: skip
    if plan.steps:  # else its table is the one that was just checked
        report = seen.go("plan: check", lambda: repaired.check(**options), may=())
    if report is None:
        return
    listed = {(u.finding.code, u.finding.where) for u in plan.unrepaired}
    forgotten = [f for f in report if f.severity != "untidy" and (f.code, f.where) not in listed and not _copied(f)]
    seen.require(not forgotten, "a plan is silent about what remains", "\n".join(map(str, forgotten)))
    if plan.is_complete and options["level"] == "rows" and not options["skip"] and not report.unknown:
        rows = seen.go("plan: rows", lambda: repaired.to_arrow().num_rows, may=())
        seen.require(rows is None or rows == counted, "a complete plan's table has other rows than it counts",
                     f"count() gives {counted}, to_arrow() {rows}")  # fmt: skip


def _copied(finding: Any) -> bool:
    """Return whether the simulated table has a fault of the folder, which a saved copy does not have."""
    from iceexplore.doctor.repair._registry import COPIED, is_unreadable_metadata

    return finding.code in COPIED or is_unreadable_metadata(finding)


def _save(seen: Look, plan: Any, out: Path, rng: random.Random, options: dict[str, Any]) -> None:
    """Save the repaired table; what was saved must open, with the rows that the plan states and no other faults."""
    import iceexplore as ix

    data = rng.choices(("copy", "refer", "none"), (8, 1, 1))[0]
    if seen.go("save", lambda: plan.save(out / "saved", data=data)) is not None:
        saved = seen.go("save: open", lambda: ix.open(out / "saved"), may=())
        if saved is not None and data == "copy":
            counted = seen.go("save: count", lambda: int(saved.count()))
            seen.require(counted == plan.rows_after, "a saved table has other rows than the plan states",
                         f"rows_after is {plan.rows_after}, count() gives {counted}")  # fmt: skip
            report = seen.go("save: check", lambda: saved.check(**options), may=())
            codes = {one.code for u in plan.unrepaired for one in (u.finding, *u.finding.follows)}
            new = [f for f in report or () if f.severity != "untidy" and f.code not in codes]
            seen.require(not new, "a saved table has faults that the plan does not list", "\n".join(map(str, new)))


def _plan_maintenance(seen: Look, table: Any, rng: random.Random) -> None:
    """Make every maintenance plan; the table after one of them must have the same rows."""
    plans = table.maintenance()
    seen.go("maintenance: repr", plans.__repr__, may=())
    seen.go("maintenance: card", lambda: _escaped(plans._repr_html_()), may=())
    seen.go("maintenance: json", plans.to_json, may=())
    made = seen.go("maintenance: plans", lambda: list(plans), may=())
    if made:
        one = rng.choice(made)
        (seen.go("maintenance: plan", partial(repr, one), may=()), seen.go("maintenance: rows", one.to_pandas, may=()))
        after = seen.go(f"maintenance: table after {one.procedure}", lambda: int(one.table.count()))
        before = seen.go("count", lambda: int(table.count()))
        if after is not None and before is not None and not list(table.problems):
            seen.require(after == before, "maintenance changes the number of rows",
                         f"{one.procedure}: {before} rows become {after}")  # fmt: skip
