"""Chats of files: what another program's lines, own exports and Markdown become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.session.chats.conversation import Conversation
from app.session.chats.presets import Override
from app.store.chat_files import to_json, to_markdown
from app.store.faults import TransferError
from app.store.importing import ImportReading
from core.chat_archives.process import Line, PathEnd, Progress, TurnLine
from core.chat_archives.reading import ChatHead, Losses, OwnChat
from core.chat_archives.tree import ArchivedTurn, ArchivedVersion
from core.events import Attachment
from tests.app.store.chats import chat_of

HEAD = ChatHead("c", "ChatGPT", "Ferries", 1_700_000_000.0, True, "Be brief.")
TURN = ArchivedTurn(
    (
        ArchivedVersion("v1", "When?", "At noon.", (Attachment("a.md", "text"),), 1_700_000_060.0),
        ArchivedVersion("v2", "When?", "At one."),
        ArchivedVersion("v3", "Where?"),
    ),
    1,
)


class Lines:
    """A reader that has these lines."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def lines(self) -> Iterator[Line]:
        return iter(self._lines)

    def stop(self) -> None:
        pass


def chats(*lines: Line) -> list[Conversation]:
    found = ImportReading(Path("export.json"), Lines(lines)).chats()
    return [each[1] for each in found if isinstance(each, tuple)]


def test_a_conversation_of_another_program_is_a_chat() -> None:
    (chat,) = chats(HEAD, TurnLine(TURN), TurnLine(TURN), PathEnd())
    assert (chat.id, chat.name, chat.pinned) == ("c", "Ferries", True)
    assert chat.created == datetime.fromtimestamp(1_700_000_000, UTC)
    assert chat.overrides == (Override("chat.system_prompt", "Be brief."),)
    turn, again = chat.turns
    assert [each.answer.text for each in turn.versions] == ["At noon.", "At one.", ""]
    assert [len(each.answer.tokens) for each in turn.versions] == [1, 1, 0]
    assert (turn.id, turn.place, turn.answer.status) == ("v2", 1, "imported")
    assert turn.others[0].user.attachments == (Attachment("a.md", "text"),)
    assert turn.others[0].asked == datetime.fromtimestamp(1_700_000_060, UTC)
    assert turn.asked is None
    assert again == turn


def test_what_a_head_does_not_say_is_made_up() -> None:
    first = replace(TURN, place=0)
    (chat,) = chats(ChatHead("c", "Claude", branch=1), TurnLine(first), PathEnd())
    assert (chat.name, chat.created) == ("When? (2)", chat.turns[0].asked)
    assert (chat.pinned, chat.overrides) == (False, ())
    assert chats(HEAD, PathEnd()) == []  # without a question
    two = chats(HEAD, TurnLine(TURN), PathEnd(), TurnLine(first), PathEnd())
    assert [each.turns[0].id for each in two] == ["v2", "v1"]


def test_own_chats_are_taken_as_they_are_and_others_reported() -> None:
    own = to_json([chat_of(1)]).decode().removeprefix('{"draftlight_chats":1,"chats":[').removesuffix("]}")
    reading = ImportReading(Path("export.json"), Lines([OwnChat(own), OwnChat("{}"), Progress(1, 2)]))
    assert list(reading.chats()) == [("", chat_of(1)), Losses("export.json", {"chats": 1}), Progress(1, 2)]
    with pytest.raises(TransferError, match=r"export\.json: "):
        chats(OwnChat("{}"))


def test_files_are_read_by_their_kind(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_bytes(to_json([chat_of(1)]))
    assert ("", chat_of(1)) in list(ImportReading(tmp_path / "own.json").chats())
    text = tmp_path / "talk.MD"
    text.write_text(to_markdown(chat_of(1).renamed("Harbour")), encoding="utf-8-sig")
    ((_, chat),) = ImportReading(text).chats()
    assert isinstance(chat, Conversation)
    assert chat.title == "Harbour"
    for content, said in (
        (b"\xff", "not UTF-8"),
        (b"nothing", r"talk\.MD: No question"),
        (None, "could not"),
    ):
        text.unlink()
        if content:
            text.write_bytes(content)
        with pytest.raises(TransferError, match=said):
            list(ImportReading(text).chats())
        text.touch()


def test_a_text_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "talk.md").write_text(content := to_markdown(chat_of(1)), encoding="utf-8")
    monkeypatch.setattr("app.store.importing.MOST_MARKDOWN_BYTES", len(content))
    assert list(ImportReading(tmp_path / "talk.md").chats())
    monkeypatch.setattr("app.store.importing.MOST_MARKDOWN_BYTES", len(content) - 1)
    with pytest.raises(TransferError, match="larger than"):
        list(ImportReading(tmp_path / "talk.md").chats())
