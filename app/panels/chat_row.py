"""The rows of the sidebar: chats by project and by age, and projects. Pure; no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from app.panels import strings
from app.session.chats.archive import Summary


@dataclass(frozen=True)
class ChatRow:
    """`when` is the time of the last change; without a timezone it is local time.

    `passage` is the line found by a search, `marks` the matching end-exclusive spans, `turn_id` its turn.
    `busy`: it is being answered. `project` is the id of its project.
    """

    id: str
    title: str
    when: datetime
    pinned: bool = False
    passage: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    turn_id: str = ""
    busy: bool = False
    project: str = ""


@dataclass(frozen=True)
class ProjectRow:
    """`chats` is their number; `folded` hides them. `current`: it has the open chat, which has no row.

    `busy`: it is folded, and one of its chats is being answered.
    """

    id: str
    name: str
    chats: int = 0
    folded: bool = False
    current: bool = False
    busy: bool = False


def chat_row(head: Summary, project: str) -> ChatRow:
    """Returns the row of a chat; `project` is the id of its project, empty if that was deleted."""
    return ChatRow(head.id, head.title, head.when, head.pinned, project=project)


def facts(chat: ChatRow, now: datetime) -> tuple[str, ...]:
    """Returns texts that are painted right of the title and spoken after it."""
    return (time_label(chat.when, now),)


def spoken(chat: ChatRow, now: datetime) -> str:
    """Returns the row for assistive technology."""
    marks = (strings.PINNED if chat.pinned else "", strings.BUSY if chat.busy else "")
    parts = (chat.title or strings.UNTITLED, chat.passage, *marks, *facts(chat, now))
    return ", ".join(filter(None, parts))


# A group's title, a project, or a chat.
Row = str | ProjectRow | ChatRow


def _group(days: int) -> str:
    """Returns the group of a chat that was changed that many calendar days ago, in local time."""
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
    if days < 7:
        return f"{local:%a}"
    year = "" if local.year == _local(now).year else f" {local.year}"
    return f"{local.day} {local:%b}{year}"


def arranged(chats: Sequence[ChatRow], projects: Sequence[ProjectRow], now: datetime) -> list[Row]:
    """Returns the rows of the list: projects with their chats, then the other chats in groups by age."""
    inside: dict[str, list[ChatRow]] = {project.id: [] for project in projects}
    outside: list[ChatRow] = []
    for chat in chats:
        inside.get(chat.project, outside).append(chat)
    rows: list[Row] = [strings.PROJECTS] if projects else []
    for project in projects:
        rows.append(project)
        if not project.folded:
            rows += [chat for _, chat in _sorted(inside[project.id])]
    for title, members in grouped(outside, now):
        rows += [title, *members]
    return rows


def grouped(chats: Sequence[ChatRow], now: datetime) -> list[tuple[str, list[ChatRow]]]:
    """Returns pinned, then other chats in groups, the newest first; empty groups are left out."""
    groups: list[tuple[str, list[ChatRow]]] = []
    today = _local(now).date()
    for (_, when), chat in _sorted(chats):
        title = strings.PINNED if chat.pinned else _group((today - when.date()).days)
        if not groups or groups[-1][0] != title:
            groups.append((title, []))
        groups[-1][1].append(chat)
    return groups


def _sorted(chats: Sequence[ChatRow]) -> list[tuple[tuple[bool, datetime], ChatRow]]:
    """Returns pinned, then other chats, the newest first, with their sort keys."""
    keyed = [((chat.pinned, _local(chat.when)), chat) for chat in chats]
    return sorted(keyed, key=itemgetter(0), reverse=True)


def _local(when: datetime) -> datetime:
    """Returns the naive local time."""
    return when if when.tzinfo is None else when.astimezone().replace(tzinfo=None)


def _days_between(when: datetime, now: datetime) -> int:
    return (_local(now).date() - _local(when).date()).days
