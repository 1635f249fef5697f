"""Histories step by step: what may be done next, and to what, chosen at random."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from iceexplore.errors import OptionError, RuleError
from tests.helpers.history_view import view
from tests.simulation import history_model as m
from tests.simulation.history_model import Op
from tests.simulation.history_table import History

__all__ = ["STEPS", "play"]

FIELDS = {"kind": "kind", "id_bucket_3": "bucket(3, id)", "ts_day": "day(ts)", "kind_trunc_2": "truncate(2, kind)"}
#: Operations by weight.
STEPS = [
    *["append"] * 5, *["delete"] * 3, *["overwrite"] * 2, *["vectors"] * 5, *["equality"] * 2, *["delta"] * 2,
    *["where"] * 2, *["compact"] * 2, *["manifests"] * 2, "position_deletes", *["race"] * 5, *["branch"] * 2, "tag",
    "rollback", "expire", "pick", "forward", "schema", "spec", "properties", "upgrade", "upgrade", "relayout",
]  # fmt: skip
PROPERTIES = [
    {"write.delete.granularity": "partition"},
    {"write.summary.partition-limit": "10"},
    {"write.metadata.compression-codec": "gzip"},
    {"commit.manifest.min-count-to-merge": "2"},
]


class Play:
    """A history, step by step."""

    def __init__(self, seed: int, version: int, spec: tuple[str, ...], layout: dict[str, Any]) -> None:
        self.r = Random(seed)
        self.h = History(self.r, version, spec, layout)
        self.columns = 0

    @property
    def takes_equality(self) -> bool:
        """Whether equality deletes can be added to all simulations: the V4 draft takes none."""
        return not any(t.sim.format_version == 4 and self.h.layout.get("dialect") == "v4-draft" for t in self.h.twins)

    # What there is to choose from -------------------------------------------------------------------------------------

    def branch(self) -> str:
        """Mostly main."""
        names = sorted(n for n in self.h.refs if n.startswith("side"))
        return self.r.choice(names) if names and self.r.random() < 0.3 else "main"

    def files(self, ref: str, most: int, *, rows_left: bool = False) -> list[str]:
        """Some live files."""
        state = self.h.head(ref)
        names = sorted(n for n, f in state.files.items() if not rows_left or f.rows > len(f.gone))
        return self.r.sample(names, min(len(names), self.r.randint(1, most)))

    def positions(self, ref: str, names: list[str]) -> dict[str, list[int]]:
        """Positions in files, some of them deleted already."""
        state, out = self.h.head(ref), {}
        for name in names:
            file = state.files[name]
            fresh = self.r.choice(sorted(set(range(file.rows)) - file.gone))
            out[name] = sorted({fresh, *(self.r.randrange(file.rows) for _ in range(self.r.randrange(3)))})
        return out

    def equal(self, ref: str) -> tuple[m.Place, bool]:
        """Where equality deletes apply: everywhere in an unpartitioned spec, else in a partition of the default one."""
        spec = self.h.spec
        if not spec[1]:
            return (spec[0], ()), True
        places = [p for p in self.h.head(ref).places() if p[0] == spec[0]]
        return (self.r.choice(places) if places else self.h.fresh.place(spec)), False

    # Steps ------------------------------------------------------------------------------------------------------------

    def step(self, name: str) -> None:
        """One step; some have nothing to do."""
        getattr(self, f"do_{name}")()

    def do_append(self) -> None:
        self.h.commit(m.append(self.h.fresh, self.h.spec, self.r.choice((1, 1, 2, 3, 7))), self.branch())

    def do_delete(self) -> None:
        ref = self.branch()
        if names := self.files(ref, 3):
            self.h.commit(m.delete(names), ref)

    def do_overwrite(self) -> None:
        ref = self.branch()
        if names := self.files(ref, 2):
            self.h.commit(m.overwrite(self.h.fresh, self.h.spec, names, self.r.randint(1, 2)), ref)

    def do_vectors(self) -> None:
        ref = self.branch()
        if names := self.files(ref, 4, rows_left=True):
            self.h.commit(m.row_delta(self.h.fresh, self.h.spec, self.positions(ref, names)), ref)

    def do_equality(self) -> None:
        ref = self.branch()
        place, wide = self.equal(ref)
        op = m.row_delta(self.h.fresh, self.h.spec, {}, equal=place, wide=wide)
        if self.takes_equality:
            self.h.commit(op, ref)
            return
        with pytest.raises(RuleError) as caught:
            op.run(self.h.sim, self.h.twins[0].at, ref)
        assert caught.value.rule == "no-new-equality-deletes"

    def do_delta(self) -> None:
        ref = self.branch()
        place, wide = self.equal(ref) if self.takes_equality else (None, False)
        if names := self.files(ref, 2, rows_left=True):
            at = self.positions(ref, names)
            self.h.commit(m.row_delta(self.h.fresh, self.h.spec, at, add=2, equal=place, wide=wide), ref)

    def do_where(self) -> None:
        ref, specs = self.branch(), self.h.specs()
        if not self.h.spec[1]:
            return
        number, name, _ = self.r.choice(self.h.spec[1])
        values = [dict(p[1])[number] for p in self.h.head(ref).places() if number in dict(p[1])]
        op, refused = m.delete_where(self.h.head(ref), specs, name, self.r.choice(values) if values else None)
        if refused is None:
            self.h.commit(op, ref)
            return
        self.h.log.append(f"{op.what} {refused}")
        for twin in self.h.twins:
            with pytest.raises((OptionError, RuleError)) as caught:
                op.run(twin.sim, twin.at, ref)
            assert getattr(caught.value, "rule", "nothing") == refused, self.h.log

    def do_compact(self) -> None:
        ref = self.branch()
        if names := self.files(ref, 5):
            self.h.commit(self.compact(names, ref), ref)

    def compact(self, names: list[str], ref: str = "main") -> Op:
        """A compaction as the branch is now."""
        return m.compact(self.h.fresh, self.h.head(ref), names, self.h.seqs[self.h.refs[ref]])

    def has_leaves(self) -> bool:
        """Whether every simulation has manifests beside its root."""
        kinds = [t.sim.state.root() for t in self.h.twins]
        return all(
            root is not None
            and any(k in (3, 4) and s != 2 for k, s in zip(
                root.entries["content_type"].to_pylist(), root.entries["status"].to_pylist(), strict=True))
            for root in kinds
        )  # fmt: skip

    @staticmethod
    def rewrite() -> Op:
        return Op("rewrite_manifests", lambda s, at, ref: s.rewrite_manifests(ref=ref), lambda state, seq, by: state)

    def do_manifests(self) -> None:
        if self.has_leaves():
            self.h.commit(self.rewrite())

    def do_position_deletes(self) -> None:
        if self.h.version < 3:
            return
        loose = [
            any(r["content_type"] == 1 and r["deletion_vector"] is None for r in self.deletes(t)) for t in self.h.twins
        ]
        if all(loose):
            op = Op("rewrite_position_deletes", lambda s, at, ref: s.rewrite_position_deletes(ref=ref),
                    lambda state, seq, by: state)  # fmt: skip
            self.h.commit(op)

    @staticmethod
    def deletes(twin: Any) -> list[dict[str, Any]]:
        return view(twin.sim, twin.sim.snapshot).deletes

    def do_race(self) -> None:
        h, r = self.h, self.r
        if len(h.head().files) < 2:
            return
        f, g = r.sample(sorted(h.head().files), 2)
        left = h.head().files[f].rows > len(h.head().files[f].gone)
        spec, fresh = h.spec, h.fresh
        place = h.head().files[f].place
        delete, more = (lambda *names: m.delete(list(names))), (lambda: m.append(fresh, spec, r.randint(1, 3)))
        scenes: list[tuple[Op | str | None, ...]] = [
            (more(), more(), None),
            (more(), delete(f), None),
            (delete(f), more(), None),
            (delete(f), delete(f), "files-exist"),
            (delete(f), delete(g), None),
            (self.compact([f, g]), delete(f), "files-exist"),
            (delete(g), self.compact([f, g]), "files-exist"),
            (more(), self.compact([f, g]), None),
            (more(), m.overwrite(fresh, spec, [f], 1), "no-new-conflicting-files"),
            (more(), m.overwrite(fresh, spec, [f], 1, "snapshot"), None),
            (self.compact([f]), m.overwrite(fresh, spec, [g], 1), None),
        ]
        if left:
            at = self.positions("main", [f])

            def delta(isolation: str = "serializable") -> Op:
                return m.row_delta(fresh, spec, at, isolation=isolation)

            # Of a file with position deletes of v2 both replace these, too.
            both: list[str | None] = [None] if h.version < 3 else ["no-concurrent-dv", "files-exist"]
            scenes += [
                (delta(), delta(), *both),
                (delta(), delete(g), None),
                (delete(f), delta(), "data-files-still-there"),
                (delta(), delete(f), None),
                (delta(), self.compact([f, g]), "no-new-deletes"),
                (self.compact([f, g]), delta(), "data-files-still-there"),
                (delta(), more(), None),
                (self.compact([g]), delta(), None),
            ]
            if place[0] == spec[0]:
                scenes.append((m.append(fresh, spec, 1, place), delta(), "no-new-conflicting-files"))
                scenes.append((m.append(fresh, spec, 1, place), delta("snapshot"), None))
            if self.has_leaves():
                scenes += [(self.rewrite(), delta(), None), (delta(), self.rewrite(), None)]
        if place[0] == spec[0] and self.takes_equality:
            equality = m.row_delta(fresh, spec, {}, equal=place, wide=not spec[1])
            scenes.append((equality, self.compact([f]), None))
            scenes.append((equality, m.overwrite(fresh, spec, [f], 1, "snapshot"), "no-new-deletes"))
        if spec[1]:
            number, name, _ = r.choice(spec[1])
            op, refused = m.delete_where(h.head(), h.specs(), name, dict(place[1]).get(number))
            if refused is None:
                scenes += [(m.append(fresh, spec, 2), op, None), (op, more(), None), (delete(f), op, None)]
        h.race(*r.choice(scenes))  # type: ignore[arg-type]

    def do_branch(self) -> None:
        name = self.h.fresh.name("side")
        key = self.r.choice([k for k in self.h.states if k] or [0])
        if key:
            self.h.document(f"branch {name} {key}", lambda s: None)
            for twin in self.h.twins:
                twin.sim.branch(name, twin.ids[key])
            self.h.refs[name] = key
            self.h.check_now()

    def do_tag(self) -> None:
        if self.h.refs["main"]:
            name = self.h.fresh.name("tag")
            self.h.document(f"tag {name}", lambda s: s.tag(name))
            self.h.refs[name] = self.h.refs["main"]
            self.h.check_now()

    def line(self, key: int) -> list[int]:
        """A snapshot's ancestors that are still there, itself first."""
        out = []
        while key in self.h.states and key:
            out.append(key)
            key = self.h.parents[key]
        return out

    def do_rollback(self) -> None:
        line = self.line(self.h.refs["main"])[1:]
        if line:
            key = self.r.choice(line)
            self.h.log.append(f"rollback {key}")
            for twin in self.h.twins:
                twin.sim.rollback(twin.ids[key])
            self.h.refs["main"] = key
            self.h.check_now()

    def do_forward(self) -> None:
        ahead = [n for n, k in self.h.refs.items() if n.startswith("side") and self.h.refs["main"] in self.line(k)]
        if ahead:
            name = self.r.choice(ahead)
            self.h.document(f"forward {name}", lambda s: s.fast_forward("main", name))
            self.h.refs["main"] = self.h.refs[name]
            self.h.check_now()

    def do_pick(self) -> None:
        """Something is appended on a branch, and picked; main may have gone on meanwhile."""
        h, head = self.h, self.h.refs["main"]
        if not head:
            return
        name = h.fresh.name("pick")
        h.document(f"branch {name}", lambda s: s.branch(name))
        h.refs[name] = head
        picked = h.commit(m.append(h.fresh, h.spec, self.r.randint(1, 3)), name)
        new = {n: f for n, f in h.states[picked].files.items() if n not in h.states[head].files}
        if self.r.random() < 0.3:
            h.document(f"pick {name}", lambda s: s.cherry_pick(name))
            h.refs["main"] = picked
            h.check_now()
            return
        h.commit(m.append(h.fresh, h.spec, 1))
        h.commit(Op(f"pick {name}", lambda s, at, ref: s.cherry_pick(name),
                    lambda state, seq, by: m.with_files(state, new, seq, by)))  # fmt: skip

    def do_expire(self) -> None:
        h = self.h
        free = sorted(set(h.states) - set(h.refs.values()) - {0})
        gone = self.r.sample(free, self.r.randint(0, len(free)))
        if not gone:
            return
        h.log.append(f"expire {gone}")
        for twin in h.twins:
            ids = [twin.ids[k] for k in gone]
            assert set(twin.sim.expire_snapshots(ids)) == set(ids), h.log
        for key in gone:
            del h.states[key]
        h.check_now()

    def type_of(self, column: str) -> str:
        """A column's type."""
        return next(str(f.type) for f in self.h.sim.schema.fields if f.name == column)

    def do_schema(self) -> None:
        self.columns += 1
        name, old = f"c{self.columns}", f"c{self.columns - 1}"
        has_old = any(f.name == old for f in self.h.sim.schema.fields)
        change: dict[str, Any] = {"add": {name: self.r.choice(["string", "double", "list<int>"])}}
        if has_old:
            change |= self.r.choice([{"drop": [old]}, {"rename": {old: f"{old}x"}}])
        elif self.r.random() < 0.5 and self.type_of("n") == "int":
            change = {"update": {"n": "long"}}
        self.h.document(f"schema {change}", lambda s: s.evolve_schema(**change))
        self.h.check_now()

    def do_spec(self) -> None:
        there = [name for _, name, _ in self.h.spec[1]]
        other = [text for name, text in FIELDS.items() if name not in there]
        change: dict[str, Any] = {}
        if there and self.r.random() < 0.5:
            change["remove"] = [self.r.choice(there)]
        if other and (not change or self.r.random() < 0.5):
            change["add"] = [self.r.choice(other)]
        self.h.document(f"spec {change}", lambda s: s.evolve_spec(**change))
        self.h.check_now()

    def do_properties(self) -> None:
        chosen = self.r.choice(PROPERTIES)
        self.h.document(f"properties {chosen}", lambda s: s.set_properties(chosen))

    def do_upgrade(self) -> None:
        one, two = self.h.twins
        version = one.sim.format_version
        if version == 4:
            return
        self.h.log.append(f"upgrade to {version + 1}")
        one.sim.upgrade(version + 1, **(self.h.layout if version == 3 else {}))
        if version == 2:
            two.sim.upgrade(3)
        self.h.check_now()

    def do_relayout(self) -> None:
        if self.h.sim.format_version == 4:
            new = {"flush_data_files": self.r.randrange(6), "flush_delete_files": self.r.randrange(6),
                   "leaf_entries": self.r.randint(1, 5), "compact_leaves": self.r.choice((0, 2)),
                   "affinity": self.r.choice(("all", "some", "none"))}  # fmt: skip
            if not self.takes_equality:  # the draft leaves no choice of affinity
                del new["affinity"]
            self.h.log.append(f"relayout {new}")
            self.h.sim.set_layout(**new)


def play(seed: int, version: int, spec: tuple[str, ...], layout: dict[str, Any], steps: list[str]) -> None:
    """A history from its beginning to the last look back."""
    game = Play(seed, version, spec, layout)
    try:
        game.step("append")
        for step in steps:
            game.step(step)
        game.h.check_all()
    finally:
        game.h.close()
