"""Chats of files that are imported: exports of other programs, own exports, and Markdown.

JSON and ZIP files are read in a child process (`core.chat_archives`). Ids are derived from those of the other
program, so that a chat that is imported again is recognised (`Chats.add`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.session.chats.presets import Override
from app.store import strings
from app.store.chat_files import from_json, from_markdown
from app.store.faults import TransferError
from core.chat_archives.process import ArchiveReading, Line, PathEnd, Progress, TurnLine
from core.chat_archives.reading import ChatHead, Losses, OwnChat
from core.chat_archives.tree import ArchivedTurn, ArchivedVersion
from core.events import TYPED, Message, Token

# As the setting `chat.system_prompt` allows.
_MOST_SYSTEM_CHARACTERS = 100_000
# A title is made from the first question; a long one would take long.
_MOST_TITLE_SOURCE = 10_000
_MARKDOWN = (".md", ".markdown", ".txt")
MOST_MARKDOWN_BYTES = 32 * 1024 * 1024


class LineSource(Protocol):
    """`ArchiveReading`, or a reader in this process."""

    def lines(self) -> Iterator[Line]: ...

    def stop(self) -> None: ...


class ImportReading:
    """Reads the chats of the file at `path`, once. `stop()` may be called from any thread.

    `archive` reads JSON and ZIP files, by default in a child process.
    """

    def __init__(self, path: Path, archive: LineSource | None = None) -> None:
        self._path = path
        self._archive = archive or ArchiveReading(path)

    def stop(self) -> None:
        self._archive.stop()

    def chats(self) -> Iterator[tuple[str, Conversation] | Losses | Progress]:
        """Yields each chat with the name of its program (empty for Draftlight), losses and progress. Blocks.

        Raises `RequestError`: the file is not an export, or cannot be read to its end.
        """
        if self._path.suffix.lower() in _MARKDOWN:
            yield "", self._markdown()
            return
        refused: TransferError | None = None
        found = False
        head, turns = None, list[Turn]()
        for line in self._archive.lines():
            if isinstance(line, ChatHead):
                head, turns = line, []
            elif isinstance(line, TurnLine):
                turns.append(_turn(line.turn))
            elif isinstance(line, PathEnd):
                if head and turns:
                    found = True
                    yield head.source, _conversation(head, tuple(turns))
                turns = []
            elif isinstance(line, OwnChat):
                try:
                    chats = from_json(f'{{"draftlight_chats":1,"chats":[{line.json}]}}'.encode())
                except TransferError as error:
                    refused = refused or error
                    yield Losses(self._path.name, {"chats": 1})
                    continue
                found = True
                yield from (("", chat) for chat in chats)
            elif isinstance(line, Losses | Progress):
                yield line
        if refused and not found:
            raise TransferError(strings.in_file(self._path.name, refused.message), refused.hint)

    def _markdown(self) -> Conversation:
        path = self._path
        try:
            if path.stat().st_size > MOST_MARKDOWN_BYTES:
                raise TransferError(strings.not_read(path.name, strings.TOO_LARGE))
            return from_markdown(path.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise TransferError(strings.not_read(path.name, error.strerror or str(error))) from None
        except UnicodeDecodeError:
            raise TransferError(strings.not_read(path.name, strings.NOT_TEXT)) from None
        except TransferError as error:
            raise TransferError(strings.in_file(path.name, error.message), error.hint) from None


def _conversation(head: ChatHead, turns: tuple[Turn, ...]) -> Conversation:
    created = _time(head.created_s) or turns[0].asked or datetime.now(UTC)
    title = head.title or " ".join(turns[0].user.content[:_MOST_TITLE_SOURCE].split())[:80]
    if head.branch:
        title = strings.branch(title, head.branch + 1)
    system = head.system[:_MOST_SYSTEM_CHARACTERS]
    return Conversation(
        head.id,
        created,
        turns,
        name=title,
        pinned=head.pinned,
        overrides=(Override("chat.system_prompt", system),) if system else (),
    )


def _turn(turn: ArchivedTurn) -> Turn:
    versions = [_version(each) for each in turn.versions]
    shown = versions.pop(turn.place)
    return Turn(shown.id, shown.user, shown.answer, shown.asked, tuple(versions), turn.place)


def _version(version: ArchivedVersion) -> Version:
    token = Token(version.id, TYPED, version.answer, "normal", 1, 0)
    return Version(
        version.id,
        Message("user", version.question, version.attachments),
        Answer((token,) if version.answer else (), "imported"),
        _time(version.time_s),
    )


def _time(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
