"""ChatRow: a chat as the sidebar shows it, and the grouping of chats by age. Pure; no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.panels.chats import strings


@dataclass(frozen=True)
class ChatRow:
    """`when` is the time of the last change; without a timezone it is local time.

    `passage` is the line found by a search, `marks` the matching end-exclusive spans, `turn_id` its turn.
    `busy`: it is being answered. `archived`: it is not listed, but open or found.
    """

    id: str
    title: str
    when: datetime
    pinned: bool = False
    passage: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    turn_id: str = ""
    busy: bool = False
    archived: bool = False


def group_title(when: datetime, now: datetime) -> str:
    """Returns the group of a chat changed at `when`, by calendar days in local time."""
    days = _days_between(when, now)
    if days <= 0:
        return strings.TODAY
    if days == 1:
        return strings.YESTERDAY
    if days <= 7:
        return strings.PREVIOUS_7_DAYS
    return strings.PREVIOUS_30_DAYS if days <= 30 else strings.EARLIER


def time_label(when: datetime, now: datetime) -> str:
    """Returns 14:02 for today, Tue within a week, 3 Nov this year, 3 Nov 2025 before."""
    local = _local(when)
    days = _days_between(when, now)
    if days <= 0:
        return f"{local:%H:%M}"
    if days <= 7:
        return f"{local:%a}"
    year = "" if local.year == _local(now).year else f" {local.year}"
    return f"{local.day} {local:%b}{year}"


def grouped(chats: Sequence[ChatRow], now: datetime) -> list[tuple[str, list[ChatRow]]]:
    """Returns archived, pinned, then other chats in groups, the newest first; empty groups are left out."""
    groups: list[tuple[str, list[ChatRow]]] = []
    for chat in sorted(chats, key=lambda chat: (chat.archived, chat.pinned, _local(chat.when)), reverse=True):
        kept = strings.ARCHIVED if chat.archived else strings.PINNED if chat.pinned else ""
        title = kept or group_title(chat.when, now)
        if not groups or groups[-1][0] != title:
            groups.append((title, []))
        groups[-1][1].append(chat)
    return groups


def _local(when: datetime) -> datetime:
    """Returns the naive local time."""
    return when if when.tzinfo is None else when.astimezone().replace(tzinfo=None)


def _days_between(when: datetime, now: datetime) -> int:
    return (_local(now).date() - _local(when).date()).days
