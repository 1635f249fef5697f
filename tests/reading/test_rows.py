"""Where rows are and what became of them, against a model that lives through every commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceexplore.reading import RowPlace
from tests.helpers.tables.rows_table import Lab, Life, Place, play

KINDS = {"deletion-vector": "position", "position-delete": "position", "equality-delete": "equality"}
LAYOUTS: list[tuple[int, dict[str, Any]]] = [(2, {}), (3, {}), (4, {}), (4, {"dialect": "v4-java"})]


def how(place: RowPlace) -> str:
    if place.fate.kind == "deleted":
        assert place.fate.cause is not None
        return KINDS[place.fate.cause.kind]
    return place.fate.kind


def check(lab: Lab, place: RowPlace, life: Life) -> None:
    assert (place.values["id"], place.added.snapshot_id) == (life.values[0], life.added)
    # Of a file that was overwritten, a row that is there again is carried over, or so it looks: a guess.
    again = [
        o for o in lab.lives.values() if life.how == "removed" and (o.added, o.values) == (life.ended, life.values)
    ]
    assert how(place) == life.how or (again and how(place) == "moved" and place.row_id is None), place.text
    assert (place.fate.by.snapshot_id if place.fate.by else None) == life.ended, place.text
    if life.how in ("position", "equality"):
        assert place.fate.cause is not None
        assert place.fate.cause.by.snapshot_id == life.ended


@pytest.mark.parametrize(("version", "layout"), LAYOUTS)
@settings(max_examples=settings().max_examples // 12)
@given(data=st.data())
def test_every_place_and_every_fate(version: int, layout: dict[str, Any], data: st.DataObject) -> None:
    one_history(version, layout, lambda n: data.draw(st.integers(0, n - 1)))


def one_history(version: int, layout: dict[str, Any], draw: Callable[[int], int]) -> None:
    lab = Lab.start(version, partitioned=bool(draw(2)), **layout)
    try:
        play(lab, draw, 1 + draw(7))
        wanted = ["id < 6", "id >= 100", "x = 'a'", None][draw(4)]
        keep = {
            "id < 6": lambda v: v[0] < 6, "id >= 100": lambda v: v[0] >= 100, "x = 'a'": lambda v: v[1] == "a",
            None: lambda v: True,
        }[wanted]  # fmt: skip
        expected = {place: life for place, life in lab.lives.items() if keep(life.values)}
        found = lab.table.rows(wanted, columns=["id"], history=True, limit=None)
        assert {(p.file, p.position) for p in found} == set(expected) and len(found) == len(expected)
        for p in found:
            check(lab, p, expected[p.file, p.position])
        _check_moves(found.places, lab)
        now = lab.table.rows(wanted, columns=["id"], limit=None)
        there = {place: life for place, life in expected.items() if life.file_gone is None}
        assert {(p.file, p.position) for p in now} == set(there) and len(now) == len(there)
        for p in now:
            check(lab, p, there[p.file, p.position])
        assert not found.unread and found.complete and not lab.table.problems
    finally:
        lab.table.close()


def _check_moves(places: tuple[RowPlace, ...], lab: Lab) -> None:
    """A row that moved is where it says, with the same values; each place is the target of one row at most."""
    targets: list[Place] = []
    for p in places:
        move = p.fate.moved_to
        if move is None:
            continue
        targets.append((move.file, move.position))
        target = lab.lives[move.file, move.position]
        assert p.fate.by is not None
        assert target.added == p.fate.by.snapshot_id
        assert move.guess == (p.row_id is None)
        if p.fate.kind == "moved" and not move.changed:
            assert target.values == lab.lives[p.file, p.position].values
    assert len(targets) == len(set(targets))


def test_a_vector_that_replaces_another_leaves_the_first_as_the_cause() -> None:
    lab = Lab.start(3)
    lab.append([(1, "a"), (2, "a"), (3, "b")])
    path = lab.files()[0]
    lab.delete([(path, 0)])
    lab.delete([(path, 2)])
    for history in (False, True):
        first, second = (lab.table.rows(f"id = {i}", history=history)[0] for i in (1, 3))
        assert [d.by.snapshot_id for d in first.fate.deletes] == [s.snapshot_id for s in lab.commits[1:]]
        assert [d.live for d in first.fate.deletes] == [False, True]
        assert [d.by.snapshot_id for d in second.fate.deletes] == [lab.commits[2].snapshot_id]
        assert "(and 1 more delete" in first.fate.text and first.fate.deletes[0].location in first.fate.text
    lab.table.close()


def test_time_travel_shows_what_was_then() -> None:
    lab = Lab.start(2)
    lab.append([(1, "a"), (2, "a")])
    path = lab.files()[0]
    lab.delete([(path, 0)])
    lab.remove(path)
    kinds = [lab.table.at(snapshot=s.snapshot_id).rows("id = 1", history=True)[0].fate.kind for s in lab.commits]
    assert kinds == ["live", "deleted", "deleted"]
    assert lab.table.rows("id = 2", history=True)[0].fate.kind == "removed"
    assert len(lab.table.rows("id = 2")) == 0
    lab.table.close()


def test_branches_have_fates_of_their_own() -> None:
    lab = Lab.start(3)
    lab.append([(1, "a"), (2, "a")])
    path = lab.files()[0]
    s = lab.table
    s.branch("audit")
    cut = s.row_delta(deletes={path: [0]}, ref="audit")
    found = s.rows("id = 1", history="branches")
    assert {(p.fate.kind, p.lines) for p in found} == {("live", ("main",)), ("deleted", ("audit",))}
    gone = next(p for p in found if p.fate.kind == "deleted")
    assert gone.fate.by is not None and gone.fate.by.snapshot_id == cut.snapshot_id
    assert [p.lines for p in s.rows("id = 2", history="branches")] == [("main", "audit")]
    assert [p.fate.kind for p in s.rows("id = 1", history=True)] == ["live"]
    assert "audit" in repr(found) and "[audit]" in found.story().to_text()
    s.close()
