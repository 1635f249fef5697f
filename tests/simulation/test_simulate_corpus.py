"""Every real table as a base of simulations: as its own version, as version 3 and as the V4 proposal.

Every third table as one of them, the next as the next; in long runs each table as all.
Of each operation it is known what must be live afterwards, from the table itself. Damaged tables work, or are refused
with one of our errors; those are listed with the reason, so that a table which begins to work fails here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import iceexplore as ix
from iceexplore.commits import check_rules
from iceexplore.errors import RuleError
from tests.helpers.history_view import Seen, view
from tests.helpers.sampling import one_of

_NO_LIST = r"append: (FileMissingError|FormatError): .*does not exist"
#: What cannot be a base, and why. Keys are tables, or a table and the version that it is tried as.
REFUSED = {
    # The metadata file alone is there, without the manifest list.
    "altinity/ice_cli": _NO_LIST,
    "duckdb/table_partition_statistics": _NO_LIST,
    "duckdb/table_partition_statistics_bad_size": _NO_LIST,
    "duckdb/table_statistics": _NO_LIST,
    "duckdb/table_statistics_bad_footer": _NO_LIST,
    "iceberg-rust/datafusion_testdata": r"append: (OutsideRootsError|FormatError): .*s3://a/b/2\.avro is outside",
    "iceberg-rust/testdata": _NO_LIST,
    "icescope/warehouse/analytics/events": _NO_LIST,
    "icescope/warehouse/analytics/users": _NO_LIST,
    # Its list is at a relative location, which is not below the table's: in V4 relative locations begin there.
    "duckdb/big_query_error v4": _NO_LIST,
    "duckdb/large_partitioned_table v4": _NO_LIST,
    # Its last-sequence-number was set to 3 by hand, and its files have 3516: deletes would not apply to them.
    "duckdb/large_partitioned_table": r"row_delta: RuleError: .*deletes do not apply to newer files",
    # Manifests without live files were removed; below V4 a commit drops them unread, a V4 root keeps them.
    "trino/materialized_view_expired_snapshots__source_table v4": r"append: FormatError: rules .*m2\.avro",
}
#: Rules that a simulation breaks, since its base is wrong.
BREAKS = {
    # Its list says that a manifest has one row where there are five: row ids are given by what lists say.
    "impala/iceberg_v2_null_delete_record": {"row-ids"},
}


def _expected() -> dict[str, dict[str, Any]]:
    folder = os.environ.get("ICEEXPLORE_CORPUS")
    if not folder:
        return {}
    return json.loads((Path(folder) / "expected.json").read_text())  # type: ignore[no-any-return]


@dataclass
class CommitAttempts:
    """A simulation on a table, and what must be live in it."""

    sim: ix.Simulation
    data: dict[str, tuple[Any, ...]]
    gone: dict[str, frozenset[int]] | None
    applies: set[tuple[str, str]] | None
    errors: set[tuple[str, str]] = field(default_factory=set)
    breaks: Set[str] = frozenset()
    step: str = ""

    @classmethod
    def of(cls, t: ix.Table, version: int, broken: Set[str] = frozenset()) -> CommitAttempts:
        """Start on a table."""
        seen = _seen(t, deletes=True)
        sim = t.simulate(version, seed=1, **({"dialect": "v4-proposal"} if version == 4 else {}))
        with contextlib.suppress(ix.IceexploreError):  # a manifest is missing: commits that need it say so
            broken = {*broken, *(b.rule for b in check_rules(t.state))}
        return cls(
            sim, _data(_seen(t, deletes=False)), seen.gone if seen else None, seen.applies if seen else None,
            _errors(t), broken,
        )  # fmt: skip

    def check(self) -> None:
        """What is live is what must be; nothing is broken that was not."""
        readable = self.gone is not None
        seen = _seen(self.sim, deletes=readable)
        assert seen is not None
        assert _data(seen) == self.data, self.step
        if readable:
            assert seen.gone == {n: p for n, p in (self.gone or {}).items() if n in self.data}, self.step
            assert seen.applies == {(e, f) for e, f in self.applies or () if f in self.data}, self.step
        assert _errors(self.sim) <= self.errors, self.step
        breaks = [b for b in check_rules(self.sim.state) if b.rule not in self.breaks]
        assert not breaks, (self.step, breaks)

    def run(self) -> None:
        """Every operation that the table allows."""
        self.append()
        self.delete_files()
        self.row_delta()
        self.rewrite()
        self.delete_where()
        self.append()

    def append(self) -> None:
        self.step = "append"
        before = set(self.data)
        self.sim.append(2, rows=10)
        new = {n: r for n, r in _data(_seen(self.sim, deletes=False)).items() if n not in before}
        assert len(new) == 2 and all(r[1] == 10 for r in new.values())
        self.data |= new
        self.check()

    def delete_files(self) -> None:
        self.step = "delete_files"
        for name in self._old()[:1]:
            self.sim.delete_files([name])
            del self.data[name]
            self.check()

    def row_delta(self) -> None:
        self.step = "row_delta"
        if self.sim.format_version < 2:
            return
        for name in self._old()[:1] or sorted(self.data)[:1]:
            rows = self.data[name][1]
            old = (self.gone or {}).get(name, frozenset())
            free = [i for i in (0, rows - 1, rows // 2) if 0 <= i < rows and i not in old]
            if free:
                self.sim.row_delta(deletes={name: free[:1]})
                if self.gone is not None:
                    self.gone = {**self.gone, name: old | {free[0]}}
                self.check()

    def rewrite(self) -> None:
        self.step = "rewrite_manifests"
        root = self.sim.state.root()
        assert root is not None
        if any(k in (3, 4) for k in root.entries["content_type"].to_pylist()):
            self.sim.rewrite_manifests()
            self.check()

    def delete_where(self) -> None:
        self.step = "delete_where"
        spec = self.sim.spec
        fields = [] if spec is None else [f for f in spec.fields if f.transform != "void"]
        if spec is None or not fields:
            return
        mine = {n: dict(r[0][1]) for n, r in self.data.items() if r[0][0] == spec.spec_id}
        others = [n for n, r in self.data.items() if r[0][0] != spec.spec_id and r[1]]
        if not mine:
            return
        number, name = str(fields[0].field_id), fields[0].name
        value = sorted(mine.items())[0][1][number]
        gone = [n for n, place in mine.items() if place[number] == value and self.data[n][1]]
        refused = None
        try:
            self.sim.delete_where(partition={name: value})
        except RuleError as error:
            refused = error
        if refused is not None:  # of files of other specs it is not known
            assert refused.rule == "whole-files" and others, (self.step, refused)
            self.check()
            return
        for n in list(self.data):
            spec_of, place = self.data[n][0]
            other = self.sim.metadata.spec(spec_of)
            key = next((str(f.field_id) for f in other.fields if f.name == name), None) if other else None
            if n in gone or (n in others and key and dict(place).get(key) == value):
                del self.data[n]
        self.check()

    def _old(self) -> list[str]:
        return sorted(n for n in self.data if "made-up" not in n)


def _seen(t: ix.Table, *, deletes: bool) -> Seen | None:
    """What is live; None where delete files cannot be read."""
    try:
        return view(t, t.snapshot, deletes=deletes)
    except ix.IceexploreError:
        if not deletes:
            raise
        return None


def _errors(t: ix.Table) -> set[tuple[str, str]]:
    return {(p.code, p.text) for p in t.problems if p.severity == "error"}


def _data(seen: Seen | None) -> dict[str, tuple[Any, ...]]:
    assert seen is not None
    return {n: (row["place"], row["record_count"], row["file_size_in_bytes"]) for n, row in seen.data.items()}


def _hashes(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def outcome(path: Path, version: int | None, broken: Set[str] = frozenset()) -> str:
    """Nothing if every operation worked, or else how it was refused."""
    trial = None
    try:
        t = ix.open(path)
        trial = CommitAttempts.of(t, version or t.format_version, broken)
        trial.run()
    except ix.IceexploreError as error:
        return f"{trial.step if trial else 'open'}: {type(error).__name__}: {error}"
    finally:
        if trial is not None:
            trial.sim.close()
    return ""


def _versions(path: Path) -> list[int | None]:
    try:
        own = ix.open(path).format_version
    except ix.IceexploreError:
        return [None]
    return [None, *(v for v in (3, 4) if v > own or (v == own == 4))]


def _held_against(name: str, path: Path, folder: Path) -> None:
    before = _hashes(folder)
    versions = _versions(path)
    if settings().max_examples < 1_000:
        at = sorted(_expected()).index(name) if name in _expected() else 0
        versions = versions[at % len(versions) :][:1]
    for version in versions:
        failure = outcome(path, version, BREAKS.get(name, frozenset()))
        reason = REFUSED.get(f"{name} v{version}", REFUSED.get(name))
        if reason is None:
            assert not failure, f"{name} as {version or 'itself'}: {failure}"
        else:
            assert re.search(reason, failure), (
                f"{name} as {version or 'itself'}: {failure or 'works: take it off the list'}"
            )
    assert _hashes(folder) == before


@pytest.mark.corpus
@pytest.mark.parametrize("name", one_of(3, sorted(_expected())))
def test_a_real_table(corpus: Path, name: str) -> None:
    _held_against(name, corpus / name / str(_expected()[name]["metadata"]), corpus / name)


def test_the_sample(trips: Path) -> None:
    _held_against("trips", trips, trips)
