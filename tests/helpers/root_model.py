"""Random histories on the V4 layout beside a plain model: dictionaries of what must be live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from iceexplore.commits import Change, check_rules, rules_violated_by
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from tests.helpers.tables.root_table import RootLab, data_file, dv, entries, equality, live_files, path

KINDS = ("a", "b", None)
#: What a file keeps for as long as it lives, wherever its entry goes.
KEPT = ("content_type", "location", "record_count", "file_size_in_bytes", "referenced_file", "deletion_vector",
        "equality_ids", "partition_spec_id", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id",
        "tuple", "bounds")  # fmt: skip
OF_FILES = ("file_size_in_bytes", "sequence_number", "file_sequence_number", "bounds")


@dataclass
class History:
    """A lab, and what must be live in it: data files by name, the DV of a data file, equality deletes."""

    lab: RootLab
    random: Random
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    dvs: dict[str, str] = field(default_factory=dict)
    equality: set[str] = field(default_factory=set)
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    count: int = 0
    version: int = 4
    log: list[str] = field(default_factory=list)

    def name(self, letter: str) -> str:
        """A new name."""
        self.count += 1
        return f"{letter}{self.count}"

    @property
    def in_draft(self) -> bool:
        """Whether commits now write the V4 draft, which takes no new equality deletes."""
        return self.version == 4 and self.lab.box.options.dialect == "v4-draft"

    def change(self) -> Change:
        """A random change; the model follows it."""
        r = self.random
        add: list[dict[str, Any]] = []
        kinds = ["append", "delete"] + ["equality", "drop"] * (self.version > 1) + ["vectors"] * (self.version > 2)
        if self.in_draft:
            kinds.remove("equality")
        parts = {part for part in kinds if r.random() < 0.4}
        gone = r.sample(sorted(self.data), min(len(self.data), r.randrange(4))) if "delete" in parts else []
        dropped = r.sample(sorted(self.equality), min(len(self.equality), r.randrange(3))) if "drop" in parts else []
        staying = sorted(set(self.data) - set(gone))
        targets = r.sample(staying, min(len(staying), r.randrange(6))) if "vectors" in parts else []
        replaced = [t for t in targets if t in self.dvs]
        bare = [t for t in staying if t in self.dvs and t not in targets and r.random() < 0.1]
        for t in gone:
            del self.data[t]
            self.dvs.pop(t, None)
        for t in targets:
            row = self.data[t]
            name = self.name("V")
            add.append(dv(name, t, rows=r.randrange(1, row["record_count"] + 1), kind=row["kind"]))
            self.dvs[t] = name
        for t in bare:
            del self.dvs[t]
        if "append" in parts:
            for _ in range(r.choice((1, 2, 3, 4, 9))):
                name = self.name("D")
                row = data_file(name, rows=r.randrange(1, 20), kind=r.choice(KINDS), low=r.randrange(100))
                add.append(row)
                self.data[name] = row
        if "equality" in parts:
            for _ in range(r.choice((1, 2, 5))):
                name = self.name("Q")
                add.append(equality(name, kind=r.choice(KINDS)))
                self.equality.add(name)
        self.equality -= set(dropped)
        r.shuffle(add)
        self.log.append(f"add {len(add)} remove {gone} drop {dropped} replace {replaced} bare {bare}")
        return Change(
            "overwrite",
            added=entries(add) if add else EntryBatch.empty(),
            remove_data=path(*gone),
            remove_deletes=path(*dropped),
            replace_dvs=path(*replaced, *bare),
            rewrite_manifests=self.rewrites(),
        )

    def rewrites(self) -> tuple[str, ...] | bool:
        """Leaves to rewrite: mostly none."""
        root = self.lab.state.root()
        if root is None or self.version < 4 or self.random.random() < 0.6:
            return ()
        if self.random.random() < 0.5:
            return True
        names = [
            row["location"] for row in root.entries.to_pylist() if row["content_type"] in (3, 4) and row["status"] < 2
        ]
        return tuple(self.random.sample(names, min(len(names), 2)))

    def upgrade(self, lab: RootLab) -> None:
        """Go on with the same table as V4: row ids that files lack below v3 are given by the first commit."""
        self.lab, self.version = lab, 4
        for kept in self.known.values():
            if kept["first_row_id"] is None:
                del kept["first_row_id"]

    def commit(self) -> TableState:
        """One commit, checked."""
        change = self.change()
        self.lab.box.commit(lambda writer: change)
        state = self.lab.state
        self.check(state)
        return state

    def check(self, state: TableState) -> None:
        """What is live, what each file keeps, the rules, the totals."""
        found = live_files(state)
        if self.version < 4:  # deletes that apply to nothing any more are dropped there, as in Java
            self.equality &= set(found)
        assert set(found) == set(self.data) | set(self.dvs.values()) | self.equality, self.log
        for name, row in found.items():
            # In the draft, a vector has the sequence numbers of its data file, and neither file size nor bounds.
            kept = {
                key: row[key] for key in KEPT if not (self.in_draft and row["content_type"] == 1 and key in OF_FILES)
            }
            before = self.known.setdefault(name, kept)
            assert kept == {**kept, **{key: before[key] for key in before if key in kept}}, (name, self.log)
            before.update(kept)
            if self.version == 4 and row["content_type"] == 0:
                assert row["first_row_id"] is not None, (name, self.log)
        for target, name in self.dvs.items():
            assert found[name]["referenced_file"] == path(target)[0]
        breaks = check_rules(state, relaxed=rules_violated_by(self.lab.box.options))
        assert not breaks, (breaks, self.log)
        assert not [p for p in state.problems if p.severity == "error"], list(state.problems)
        assert state.snapshot is not None
        summary = state.snapshot.summary or {}
        assert int(summary["total-data-files"]) == len(self.data)
        assert int(summary["total-records"]) == sum(row["record_count"] for row in self.data.values())
        assert int(summary["total-delete-files"]) == len(self.dvs) + len(self.equality)


def run(lab: RootLab, seed: int, commits: int, after: Callable[[History], None] | None = None) -> History:
    """A history of so many commits."""
    history = History(lab, Random(seed))
    for _ in range(commits):
        history.commit()
        if after is not None:
            after(history)
    return history
