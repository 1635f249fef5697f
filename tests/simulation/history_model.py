"""Histories of a table in plain Python: dictionaries of live files, and what each operation makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

__all__ = ["Equality", "File", "Fresh", "Op", "Place", "State", "Spec", "made"]

#: Spec id, and the tuple by field id.
Place = tuple[int, tuple[tuple[str, Any], ...]]
#: Field id, name, transform.
Spec = tuple[int, tuple[tuple[str, str, str], ...]]


@dataclass(frozen=True)
class File:
    """A live data file; ``by`` is the commit that added it, ``seq`` its data sequence number."""

    place: Place
    rows: int
    bounds: tuple[int | None, int | None]
    seq: int = 0
    by: int = 0
    gone: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Equality:
    """A live equality delete; ``wide`` applies everywhere."""

    place: Place
    wide: bool
    seq: int = 0


@dataclass(frozen=True)
class State:
    """What a snapshot holds, by name."""

    files: dict[str, File] = field(default_factory=dict)
    equality: dict[str, Equality] = field(default_factory=dict)

    def applies(self) -> set[tuple[str, str]]:
        """Which equality delete applies to which file."""
        return {
            (e, f)
            for e, deletes in self.equality.items()
            for f, file in self.files.items()
            if file.seq < deletes.seq and (deletes.wide or deletes.place == file.place)
        }

    def places(self) -> list[Place]:
        """The partitions that have files."""
        return sorted({f.place for f in self.files.values()}, key=repr)


@dataclass(frozen=True)
class Fresh:
    """Names and values that nobody had before."""

    random: Random
    count: list[int] = field(default_factory=lambda: [0])

    def name(self, letter: str) -> str:
        """A new name."""
        self.count[0] += 1
        return f"{letter}{self.count[0]}"

    def place(self, spec: Spec) -> Place:
        """A partition of a spec."""
        return spec[0], tuple(sorted((number, self._value(transform)) for number, _, transform in spec[1]))

    def _value(self, transform: str) -> Any:
        from datetime import date

        if self.random.random() < 0.15:
            return None
        if transform.startswith("bucket"):
            return self.random.randrange(3)
        if transform == "day":
            return date(2026, 1, self.random.randrange(1, 4))
        return self.random.choice(["a", "b", "ab"])

    def file(self, place: Place) -> File:
        """A file of a partition."""
        low = self.random.randrange(100)
        bounds = (None, None) if self.random.random() < 0.2 else (low, low + self.random.randrange(50))
        return File(place, self.random.randrange(1, 20), bounds)


#: How a commit changes a state: (state, sequence number, number of the commit).
Change = Callable[[State, int, int], State]


@dataclass(frozen=True)
class Op:
    """One commit: how to ask a simulation for it, and what it makes of the model.

    Attributes
    ----------
    run
        (simulation, names to locations, branch) -> snapshot.
    change
        What becomes of the files.
    drops
        Whether files go or come: names that the simulation chooses are learned afterwards.
    """

    what: str
    run: Callable[[Any, dict[str, str], str], Any]
    change: Change


def record(name: str, file: File, spec: Spec, location: str) -> dict[str, Any]:
    """A file as `append` takes it."""
    names = {number: field_name for number, field_name, _ in spec[1]}
    out: dict[str, Any] = {"location": location, "record_count": file.rows, "file_size_in_bytes": 100 + file.rows}
    if names:
        out["partition"] = {names[k]: v for k, v in file.place[1]}
    if file.bounds[0] is not None:
        out |= {"lower_bounds": {"id": file.bounds[0]}, "upper_bounds": {"id": file.bounds[1]}}
    return out


def with_files(state: State, files: dict[str, File], seq: int, by: int) -> State:
    """Files come."""
    return replace(state, files={**state.files, **{n: replace(f, seq=seq, by=by) for n, f in files.items()}})


def without(state: State, names: Any) -> State:
    """Files go."""
    return replace(state, files={n: f for n, f in state.files.items() if n not in set(names)})


def made(location: str, name: str) -> str:
    """Where a file of the model is."""
    return f"{location}/data/{name}.parquet"


def append(fresh: Fresh, spec: Spec, count: int, place: Place | None = None) -> Op:
    """Files described by records."""
    files = {fresh.name("D"): fresh.file(place or fresh.place(spec)) for _ in range(count)}
    return Op(
        f"append {list(files)}",
        lambda s, names, ref: s.append(_records(s, files, spec), ref=ref),
        lambda state, seq, by: with_files(state, files, seq, by),
    )


def _records(s: Any, files: dict[str, File], spec: Spec) -> list[dict[str, Any]]:
    return [record(n, f, spec, made(s.location, n)) for n, f in files.items()]


def delete(names: list[str]) -> Op:
    """Whole files."""
    return Op(
        f"delete {names}",
        lambda s, at, ref: s.delete_files([at[n] for n in names], ref=ref),
        lambda state, seq, by: without(state, names),
    )


def overwrite(fresh: Fresh, spec: Spec, names: list[str], count: int, isolation: str = "serializable") -> Op:
    """Files go, others come."""
    files = {fresh.name("D"): fresh.file(fresh.place(spec)) for _ in range(count)}
    return Op(
        f"overwrite {names} {list(files)}",
        lambda s, at, ref: s.overwrite(
            _records(s, files, spec), delete=[at[n] for n in names], isolation=isolation, ref=ref
        ),
        lambda state, seq, by: with_files(without(state, names), files, seq, by),
    )


def row_delta(
    fresh: Fresh,
    spec: Spec,
    positions: dict[str, list[int]],
    *,
    add: int = 0,
    equal: Place | None = None,
    wide: bool = False,
    isolation: str = "serializable",
) -> Op:
    """Positions, an equality delete (of a partition, or everywhere), and files."""
    files = {fresh.name("D"): fresh.file(fresh.place(spec)) for _ in range(add)}
    deletes = fresh.name("E")
    values = [fresh.random.randrange(50)]
    how: dict[str, Any] = {}
    if equal is not None:
        how["equality"] = {"id": values}
        if not wide:
            fields = {number: name for number, name, _ in spec[1]}
            how["equality_partition"] = {fields[k]: v for k, v in equal[1]}

    def run(s: Any, at: dict[str, str], ref: str) -> Any:
        more = dict(how)
        if positions:
            more["deletes"] = {at[n]: p for n, p in positions.items()}
        return s.row_delta(_records(s, files, spec) if files else None, isolation=isolation, ref=ref, **more)

    def change(state: State, seq: int, by: int) -> State:
        kept = {
            n: replace(f, gone=f.gone | frozenset(positions[n])) if n in positions else f
            for n, f in state.files.items()
        }
        known = dict(state.equality)
        if equal is not None:
            known[deletes] = Equality(equal, wide, seq)
        return with_files(State(kept, known), files, seq, by)

    return Op(f"row_delta {positions} add {list(files)} equal {equal} {deletes}", run, change)


def compact(fresh: Fresh, state: State, names: list[str], seen_seq: int) -> Op:
    """One file for each partition of some files; there is no data, so counts and bounds are put together."""
    groups: dict[Place, list[str]] = {}
    for name in names:
        groups.setdefault(state.files[name].place, []).append(name)
    files: dict[str, File] = {}
    for place, members in groups.items():
        old = [state.files[n] for n in members]
        rows = sum(f.rows - len(f.gone) for f in old)
        if rows:
            known = all(f.bounds[0] is not None for f in old)
            bounds: Any = (min(f.bounds[0] for f in old), max(f.bounds[1] for f in old)) if known else (None, None)  # type: ignore[type-var]
            files[fresh.name("C")] = File(place, rows, bounds)

    def change(now: State, seq: int, by: int) -> State:
        return with_files(without(now, names), {n: replace(f, by=by) for n, f in files.items()}, seen_seq, by)

    return Op(f"compact {names} {list(files)}", lambda s, at, ref: s.compact([at[n] for n in names], ref=ref), change)


def delete_where(state: State, specs: dict[int, Spec], name: str, value: Any) -> tuple[Op, str | None]:
    """Files of a partition; also the rule that forbids it, or ``"nothing"``."""
    of = {i: {n: number for number, n, _ in spec[1]} for i, spec in specs.items()}

    def hit(file: File) -> bool | None:
        number = of[file.place[0]].get(name)
        return None if number is None else dict(file.place[1])[number] == value

    def gone(now: State) -> list[str]:
        return [n for n, f in now.files.items() if hit(f)]

    refused = "whole-files" if any(hit(f) is None for f in state.files.values()) else None if gone(state) else "nothing"
    return Op(
        f"delete_where {name}={value!r}",
        lambda s, at, ref: s.delete_where(partition={name: value}, ref=ref),
        lambda now, seq, by: without(now, gone(now)),
    ), refused
