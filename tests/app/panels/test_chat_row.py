"""ChatRow: ages in calendar days of local time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from app.panels.chat_row import ChatRow, grouped, time_label

NOW = datetime(2026, 11, 18, 9, 30)  # a Wednesday


@pytest.mark.parametrize(
    ("when", "group", "label"),
    [
        (datetime(2026, 11, 18, 0, 0), "Today", "00:00"),
        (datetime(2026, 11, 18, 14, 2), "Today", "14:02"),
        (datetime(2026, 11, 19, 1, 0), "Today", "01:00"),  # a clock that was set back
        (datetime(2026, 11, 17, 23, 59), "Yesterday", "Tue"),
        (datetime(2026, 11, 16, 12, 0), "Previous 7 days", "Mon"),
        (datetime(2026, 11, 11, 12, 0), "Previous 7 days", "11 Nov"),
        (datetime(2026, 11, 10, 12, 0), "Previous 30 days", "10 Nov"),
        (datetime(2026, 10, 18, 12, 0), "Earlier", "18 Oct"),
        (datetime(2025, 12, 3, 12, 0), "Earlier", "3 Dec 2025"),
    ],
)
def test_groups_and_labels(when: datetime, group: str, label: str) -> None:
    assert [title for title, _ in grouped([ChatRow("c", "c", when)], NOW)] == [group]
    assert time_label(when, NOW) == label


def test_a_timezone_is_brought_to_local_time() -> None:
    local = NOW.astimezone()
    elsewhere = local.astimezone(timezone(timedelta(hours=13)))
    assert time_label(elsewhere, NOW) == "09:30"
    assert grouped([ChatRow("c", "c", elsewhere)], NOW)[0][0] == "Today"


def test_newest_first_and_no_empty_groups() -> None:
    ages = {"old": 400, "new": 0, "week": 3, "newer": 0}
    chats = [ChatRow(name, name, NOW - timedelta(days=days)) for name, days in ages.items()]
    chats[3] = ChatRow("newer", "newer", NOW + timedelta(minutes=1))
    titles = [(title, [chat.id for chat in members]) for title, members in grouped(chats, NOW)]
    assert titles == [("Today", ["newer", "new"]), ("Previous 7 days", ["week"]), ("Earlier", ["old"])]
    assert grouped([], NOW) == []
