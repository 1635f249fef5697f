"""The same history on several simulations and in a plain model, compared after each commit."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules, rules_violated_by
from iceexplore.errors import CommitConflictError
from tests.helpers.history_view import Seen, view
from tests.simulation.history_model import Fresh, Op, Spec, State, made

__all__ = ["History", "Twin"]

SCHEMA = {"id": "long", "kind": "string", "ts": "timestamp", "n": "int"}


class Twin:
    """One simulation; ``at`` says where the model's files are in it, ``ids`` which snapshot a commit made."""

    def __init__(self, sim: ix.Simulation) -> None:
        self.sim = sim
        self.at: dict[str, str] = {}
        self.ids: dict[int, int] = {}

    def check(self, model: State, before: State, key: int, step: Any) -> None:
        """A snapshot is what the model has."""
        snapshot = self.sim.metadata.snapshot(self.ids[key])
        assert snapshot is not None
        seen = view(self.sim, snapshot)
        self._learn(model, seen)
        names = {location: name for name, location in self.at.items()}
        found = {names.get(location, location): row for location, row in seen.data.items()}
        assert set(found) == set(model.files), step
        for name, file in model.files.items():
            row = found[name]
            got = (row["place"], row["record_count"], row["bounds"], row["sequence_number"], row["snapshot_id"])
            assert got == (file.place, file.rows, file.bounds, file.seq, self.ids[file.by]), (name, step)
        gone = {names[location]: positions for location, positions in seen.gone.items()}
        assert gone == {n: f.gone for n, f in model.files.items() if f.gone}, step
        assert {names.get(e, e) for e in seen.equality} <= set(model.equality), step
        assert {(names[e], names[f]) for e, f in seen.applies} == model.applies(), step
        self._check_summary(snapshot.summary or {}, model, before, seen, step)
        self._check_row_ids(seen, step)

    def _learn(self, model: State, seen: Seen) -> None:
        known = set(self.at.values())
        for name, file in model.files.items():
            if name in self.at:
                continue
            given = made(self.sim.location, name)
            like = [given] if given in seen.data else [
                location
                for location, row in seen.data.items()
                if location not in known and (row["place"], row["record_count"]) == (file.place, file.rows)
            ]  # fmt: skip
            assert len(like) == 1, (name, like)
            self.at[name] = like[0]
        for location, row in seen.equality.items():
            if location not in known:
                (name,) = [n for n, e in model.equality.items() if e.seq == row["sequence_number"] and n not in self.at]
                assert row["place"] == model.equality[name].place
                self.at[name] = location

    def _check_summary(self, summary: Any, model: State, before: State, seen: Seen, step: Any) -> None:
        kinds = [row["content_type"] for row in seen.deletes]
        sizes = {(row["location"], str(row["deletion_vector"])): row for row in [*seen.data.values(), *seen.deletes]}
        new, old = model.files.items() - before.files.items(), before.files
        want = {
            "total-data-files": len(model.files),
            "total-records": sum(f.rows for f in model.files.values()),
            "total-delete-files": len(kinds),
            "total-position-deletes": sum(r["record_count"] for r in seen.deletes if r["content_type"] == 1),
            "total-equality-deletes": sum(r["record_count"] for r in seen.deletes if r["content_type"] == 2),
            "added-data-files": len([n for n, _ in new if n not in old]),
            "deleted-data-files": len(set(old) - set(model.files)),
        }
        assert {k: int(summary.get(k, 0)) for k in want} == want, step
        total = sum(
            row["file_size_in_bytes"] if row["deletion_vector"] is None else row["deletion_vector"]["size_in_bytes"]
            for row in sizes.values()
        )
        assert int(summary["total-files-size"]) == total, step

    def _check_row_ids(self, seen: Seen, step: Any) -> None:
        if self.sim.format_version < 3:
            return
        ranges = sorted(
            (row["first_row_id"], row["record_count"]) for row in seen.data.values() if row["first_row_id"] is not None
        )
        ends = [start + rows for start, rows in ranges]
        assert all(end <= start for end, (start, _) in zip(ends, ranges[1:], strict=False)), step
        assert not ends or ends[-1] <= (self.sim.metadata.next_row_id or 0), step


class History:
    """The model, and the simulations that must agree with it.

    Attributes
    ----------
    states, parents
        By number of the commit; 0 is the empty table.
    refs
        Branches and tags by name, to numbers of commits.
    """

    def __init__(self, random: Random, version: int, spec: tuple[str, ...], layout: dict[str, Any]) -> None:
        self.random = random
        self.fresh = Fresh(random)
        self.layout = layout
        self.log: list[str] = [f"v{version} {spec} {layout}"]
        seed = random.randrange(1 << 30)

        def simulation(version: int, **options: Any) -> Twin:
            return Twin(ix.empty(SCHEMA, partition_by=spec, format_version=version, seed=seed, **options))

        self.twins = [simulation(version, **(layout if version == 4 else {})), simulation(min(version, 3))]
        self.states: dict[int, State] = {0: State()}
        self.parents: dict[int, int] = {}
        self.seqs: dict[int, int] = {0: 0}
        self.appended: set[int] = set()
        self.refs: dict[str, int] = {"main": 0}
        self.count = 0
        self.seq = 0

    @property
    def sim(self) -> ix.Simulation:
        """The first of the simulations."""
        return self.twins[0].sim

    @property
    def version(self) -> int:
        """The lowest format version of the simulations: what an operation may do is the same for all."""
        return min(t.sim.format_version for t in self.twins)

    def head(self, ref: str = "main") -> State:
        """What a branch holds."""
        return self.states[self.refs[ref]]

    def specs(self) -> dict[int, Spec]:
        """The specs of the table by id."""
        return {
            s.spec_id: (s.spec_id, tuple((str(f.field_id), f.name, f.transform) for f in s.fields))
            for s in self.sim.metadata.partition_specs
        }

    @property
    def spec(self) -> Spec:
        """The default spec."""
        return self.specs()[self.sim.metadata.default_spec_id]

    def close(self) -> None:
        """Remove the simulations' folders."""
        for twin in self.twins:
            twin.sim.close()

    def commit(self, op: Op, ref: str = "main") -> int:
        """One commit, made and compared; its number."""
        self.log.append(f"{ref}: {op.what}")
        for twin in self.twins:
            self._note(twin, op.run(twin.sim, twin.at, ref), self.count + 1)
        return self._committed(op, ref)

    def race(self, first: Op, second: Op, *rules: str | None) -> None:
        """Two writers: the second commits on what it saw before the first one's commit; one of ``rules`` forbids it."""
        rule = rules[0]
        self.log.append(f"race: {first.what} | {second.what} -> {rules}")
        forks = [twin.sim.fork() for twin in self.twins]
        for twin in self.twins:
            self._note(twin, first.run(twin.sim, twin.at, "main"), self.count + 1)
        self._committed(first, "main")
        for twin, fork in zip(self.twins, forks, strict=True):
            if rule is None:
                self._note(twin, second.run(fork, twin.at, "main"), self.count + 1)
            else:
                with pytest.raises(CommitConflictError) as refused:
                    second.run(fork, twin.at, "main")
                assert refused.value.rule in rules, self.log
            twin.sim.refresh()
        if rule is None:
            self._committed(second, "main")

    def _note(self, twin: Twin, snapshot: Any, key: int) -> None:
        twin.ids[key] = snapshot.snapshot_id
        assert snapshot.sequence_number == self.seq + 1, self.log

    def _committed(self, op: Op, ref: str) -> int:
        self.count += 1
        self.seq += 1
        key, base = self.count, self.refs[ref]
        self.states[key] = op.change(self.states[base], self.seq, key)
        self.parents[key], self.seqs[key] = base, self.seq
        if op.what.startswith("append"):
            self.appended.add(key)
        self.refs[ref] = key
        self.check(key, base)
        return key

    def document(self, what: str, act: Callable[[ix.Simulation], Any]) -> None:
        """A commit of metadata alone; what it does to the model is the caller's."""
        self.log.append(what)
        for twin in self.twins:
            act(twin.sim)

    def check(self, key: int, base: int) -> None:
        """The commit in every simulation."""
        for twin in self.twins:
            twin.check(self.states[key], self.states[base], key, self.log)
        self.check_now()

    def check_now(self) -> None:
        """The rules, the refs, and that the simulations agree about what is not files."""
        for twin in self.twins:
            state = twin.sim.state
            breaks = check_rules(state, relaxed=rules_violated_by(twin.sim.options))
            assert not breaks, (breaks, self.log)
            assert not list(state.problems), (list(state.problems), self.log)
            refs = {r.name: r.snapshot_id for r in twin.sim.metadata.refs.values()}
            assert refs == {n: twin.ids[k] for n, k in self.refs.items() if k}, self.log
            assert {s.snapshot_id for s in twin.sim.metadata.snapshots} == {twin.ids[k] for k in self.states if k}
        one, two = (t.sim.metadata for t in self.twins)
        # Ids differ: in V4 expressions take theirs from those of columns.
        columns = [[(f.name, str(f.type)) for f in t.schema().fields] for t in (one, two)]
        assert columns[0] == columns[1], self.log
        assert one.default_spec_id == two.default_spec_id

    def check_all(self) -> None:
        """Every snapshot is still what it was; diffs tell what changed."""
        for twin in self.twins:
            for key in self.states:
                if key:
                    before = self.states.get(self.parents[key])
                    if before is not None:
                        twin.check(self.states[key], before, key, self.log)
            self._check_diff(twin)
            for name, key in self.refs.items():
                if key:
                    frame = twin.sim.at(ref=name).inspect.data_files.arrow()
                    want = sorted(twin.at[n] for n in self.states[key].files)
                    assert sorted(build.to_pylist(frame["file_path"])) == want, self.log
            assert not list(twin.sim.problems), self.log

    def _check_diff(self, twin: Twin) -> None:
        keys = [k for k in self.states if k]
        if len(keys) < 2:
            return
        a, b = self.random.sample(keys, 2)
        counts = twin.sim.diff(twin.ids[a], twin.ids[b]).counts.set_index("content")
        old, new = set(self.states[a].files), set(self.states[b].files)
        row = counts.loc["data file"]
        assert (row["added_files"], row["removed_files"]) == (len(new - old), len(old - new)), (a, b, self.log)
