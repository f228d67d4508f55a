"""The line before the worker, without a worker."""

from __future__ import annotations

import pytest

from core.serve.queue import AnswerQueue, Pace, QueueFullError


def test_first_come_first_served() -> None:
    moves: list[str] = []
    queue = AnswerQueue(5, lambda: moves.append("queue"))
    first = queue.enter("chat", lambda: moves.append("first"))
    second = queue.enter("editor", lambda: moves.append("second"))
    third = queue.enter("script", lambda: moves.append("third"))
    assert [ticket.who for ticket in queue.tickets] == ["chat", "editor", "script"]
    assert [first.position, second.position, third.position] == [0, 1, 2]
    moves.clear()
    second.leave()
    assert moves == ["third", "queue"]
    assert (second.position, third.position) == (None, 1)
    first.leave()
    assert third.position == 0


def test_a_ticket_is_given_back_once() -> None:
    queue = AnswerQueue(5)
    first, second = queue.enter("a", lambda: None), queue.enter("b", lambda: None)
    first.leave()
    first.leave()
    assert queue.tickets == (second,)


def test_so_many_wait_and_no_more_but_a_person_always_may() -> None:
    queue = AnswerQueue(1)
    queue.enter("answered", lambda: None)
    queue.enter("waits", lambda: None)
    with pytest.raises(QueueFullError, match="limit: 1 waiting"):
        queue.enter("too many", lambda: None)
    assert queue.enter("a person", lambda: None, always=True).position == 2


def test_none_may_wait() -> None:
    queue = AnswerQueue(0)
    queue.enter("answered", lambda: None)
    with pytest.raises(QueueFullError):
        queue.enter("waits", lambda: None)


def test_who_is_refused_is_told_when_there_is_room() -> None:
    pace = Pace()
    for at in (0.0, 20.0, 40.0):
        pace.begin(at)
        pace.end(at + 20)
    pace.begin(60.0)
    # The answer that is being written takes 15 s more, each of the others 20 s.
    assert [pace.room_in_s(65.0) for _ in range(3)] == [15, 35, 55]
    # One that takes longer than the others ends soon, as far as anybody knows.
    assert Pace().room_in_s(0.0) == 10
    pace.end(150.0)
    pace.begin(150.0)
    assert pace.room_in_s(1000.0) == 1
