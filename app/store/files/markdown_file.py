"""A chat as a Markdown file: to be read by people, and taken in again with its words.

    # Title
    <!-- draftlight: question 2026-05-04T12:00:00+00:00 -->
    ## You
    …
    <!-- draftlight: attachment "name" -->
    …
    <!-- draftlight: answer -->
    ## Answer
    …

The marks divide the file, so headings inside a message are no headings of ours; a line of a
message that looks like a mark gets a backslash. Token tints, figures and settings are not in it:
JSON keeps those. Files of other programs are read by their headings (You, User, Assistant …).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import uuid4

import msgspec
from msgspec import Struct

from app.session.chats.conversation import Answer, Conversation, Turn
from app.store import strings
from app.store.recovery.faults import TransferError
from core.events import Attachment, Message, Token

_MARK = re.compile(r"<!-- draftlight: (question|attachment|answer) ?(.*?) ?-->\s*$")
_ESCAPED = re.compile(r"\\+<!-- draftlight: ")
_ASKS = ("you", "user", "human", "question", "me")
_ANSWERS = ("assistant", "answer", "ai", "model", "bot", "draftlight")
_HEADING = re.compile(r"#{1,6}\s+\**([\w ]+?)[:*]*\s*$")


class _Part(Struct):
    """One piece of a file: what it is, what its mark says, its lines."""

    kind: str
    fact: str
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


def to_markdown(chat: Conversation) -> str:
    """The chat as it reads."""
    parts = [f"# {chat.title}\n"]
    for turn in chat.turns:
        asked = f"{turn.asked.isoformat()} " if turn.asked else ""
        parts.append(
            f"<!-- draftlight: question {asked}-->\n## {strings.YOU}\n\n{_guarded(turn.user.content)}\n"
        )
        for attachment in turn.user.attachments:
            name = msgspec.json.encode(attachment.name).decode()
            heading = strings.attached(" ".join(attachment.name.split()))
            parts.append(
                f"<!-- draftlight: attachment {name} -->\n### {heading}\n\n{_guarded(attachment.text)}\n"
            )
        if turn.answer.tokens:
            parts.append(
                f"<!-- draftlight: answer -->\n## {strings.ANSWER}\n\n{_guarded(turn.answer.text)}\n"
            )
    return "\n".join(parts)


def from_markdown(text: str) -> Conversation:
    """A new chat with the words of the file. Raises `TransferError` if there is no question in it."""
    lines = text.replace("\r\n", "\n").split("\n")
    title = next((line[2:].strip() for line in lines if line.startswith("# ")), "")
    ours = any(_MARK.match(line) for line in lines)
    turns = _turns(_by_marks(lines) if ours else _by_headings(lines))
    if not turns:
        raise TransferError(strings.NO_TURNS, strings.NO_TURNS_HINT)
    chat = Conversation(uuid4().hex, turns[0].asked or datetime.now(UTC), turns)
    return chat.renamed(title) if title != chat.title else chat


def _by_marks(lines: list[str]) -> list[_Part]:
    parts: list[_Part] = []
    heading = False
    for line in lines:
        if mark := _MARK.match(line):
            parts.append(_Part(mark.group(1), mark.group(2), []))
            heading = True
        elif heading and line.startswith("#"):
            heading = False  # ours, for people
        elif parts:
            heading = False
            parts[-1].lines.append(line[1:] if _ESCAPED.match(line) else line)
    return parts


def _by_headings(lines: list[str]) -> list[_Part]:
    parts: list[_Part] = []
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        name = heading.group(1).strip().lower() if heading else ""
        if name in _ASKS or name in _ANSWERS:
            parts.append(_Part("question" if name in _ASKS else "answer", "", []))
        elif parts:
            parts[-1].lines.append(line)
    return parts


def _turns(parts: list[_Part]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for part in parts:
        if part.kind == "question":
            turns.append(
                Turn(uuid4().hex, Message("user", part.text), Answer((), "imported"), _time(part.fact))
            )
        elif not turns:
            continue
        elif part.kind == "attachment":
            user = turns[-1].user
            attachment = Attachment(_name(part.fact), part.text)
            user = Message("user", user.content, (*user.attachments, attachment))
            turns[-1] = msgspec.structs.replace(turns[-1], user=user)
        elif part.text:
            token = Token(turns[-1].id, 0, part.text, "normal", 1, 0)
            turns[-1] = msgspec.structs.replace(turns[-1], answer=Answer((token,), "imported"))
    return tuple(turns)


def _guarded(text: str) -> str:
    """Lines that look like our marks get a backslash more."""
    return "\n".join(
        "\\" + line if _MARK.match(line) or _ESCAPED.match(line) else line for line in text.split("\n")
    )


def _time(fact: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(fact)
        found.timestamp()  # chats are listed by it, and a year 1 without a timezone has none
    except (ValueError, OverflowError, OSError):
        return None
    return found


def _name(fact: str) -> str:
    try:
        return msgspec.json.decode(fact.encode(), type=str)
    except ValueError:
        return fact
