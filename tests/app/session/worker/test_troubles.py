"""Several troubles at once: none is lost, each ends when its time has come."""

from __future__ import annotations

from app.session.worker.trouble import Trouble, Until
from app.session.worker.troubles import Troubles

STUCK = Trouble("stuck", "", until=Until.MOVES)
DEAD = Trouble("dead", "", until=Until.READY)
TABLES = Trouble("tables", "", until=Until.ASKED)
UNSAVED = Trouble("unsaved", "", until=Until.OVER)


def of(*troubles: Trouble) -> Troubles:
    """These, said in this order."""
    held = Troubles()
    for trouble in troubles:
        held = held.with_new(trouble)
    return held


def test_the_newest_is_in_front_and_covers_nothing_for_good() -> None:
    held = of(UNSAVED, DEAD)
    assert (held.shown, len(held.held)) == (DEAD, 2)
    assert held.next().shown == UNSAVED
    assert held.next().next().shown == DEAD
    assert held.without(DEAD).shown == UNSAVED
    assert held.without(DEAD).without(UNSAVED).shown is None


def test_the_same_again_is_one_and_does_not_push_forward() -> None:
    held = of(UNSAVED, DEAD)
    assert held.with_new(UNSAVED) is held
    assert held.next().with_new(DEAD).shown == UNSAVED


def test_each_ends_in_its_time() -> None:
    held = of(UNSAVED, TABLES, DEAD, STUCK)
    assert held.after(Until.MOVES) == of(UNSAVED, TABLES, DEAD)
    assert held.after(Until.READY) == of(UNSAVED, TABLES)
    assert held.after(Until.ASKED) == of(UNSAVED)


def test_what_a_person_looks_at_stays_in_front_while_others_end() -> None:
    looked_at = of(UNSAVED, TABLES, DEAD).next()
    assert looked_at.shown == TABLES
    assert looked_at.after(Until.READY).shown == TABLES
    assert looked_at.without(UNSAVED).shown == TABLES
    assert looked_at.without(TABLES).shown == UNSAVED
    assert of(UNSAVED, DEAD).next().without(UNSAVED).shown == DEAD


def test_with_nothing_there_is_nothing_to_do() -> None:
    assert Troubles().next() == Troubles().without(None) == Troubles().after(Until.ASKED) == Troubles()
