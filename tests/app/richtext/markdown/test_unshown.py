"""Texts that cannot be shown: the rest is there, it is said in their place, and they can be copied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from pygments.lexers import PythonLexer
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.richtext import strings
from app.richtext.markdown import markdown
from app.richtext.markdown.piece import Piece
from app.richtext.piece_box import PieceBox
from app.richtext.text_style import Highlight
from app.session.chats.conversation import Answer as Words
from app.session.chats.conversation import Turn
from core.events import Message
from tests.app.chat.watching import picture, readable
from tests.app.chat.written import finished, tokens_of

BAD = "This is **unspeakable**."


@pytest.fixture
def cannot_lay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any piece with the bad word raises as soon as it is laid out."""
    init = PieceBox.__init__

    def raising(self: PieceBox, piece: Piece, *given: object, **more: object) -> None:
        if "unspeakable" in piece.text:
            raise RecursionError("too deep")
        init(self, piece, *given, **more)

    monkeypatch.setattr(PieceBox, "__init__", raising)


def turns() -> list[Turn]:
    """Three of them, and what cannot be shown is in the answer of the second and in the third's question."""
    pairs = [("one", "First."), ("two", BAD), (BAD, "Third.")]
    return [
        Turn(
            str(n),
            Message("user", asked),
            Words(tuple(tokens_of(said)), status="complete", finished=finished()),
        )
        for n, (asked, said) in enumerate(pairs)
    ]


@pytest.mark.usefixtures("cannot_lay_out")
def test_a_chat_opens_whatever_is_in_it(transcript: Transcript, unshown: list[str]) -> None:
    transcript.show_turns(turns())
    picture(transcript)
    said = strings.UNSHOWN
    assert readable(transcript) == ["one", "First.", "two", said, said, "Third."]
    assert transcript.answer_text("1") == BAD
    answer = transcript.answer("1")
    answer.footer.buttons["copy"].click()
    assert QGuiApplication.clipboard().text() == BAD
    assert len(unshown) == 2
    assert all("RecursionError" in line for line in unshown)
    assert not any("unspeakable" in line for line in unshown)
    unshown.clear()


@pytest.mark.usefixtures("cannot_lay_out")
def test_an_answer_under_way_goes_on_unseen(transcript: Transcript, qtbot: QtBot, unshown: list[str]) -> None:
    transcript.add_user("t", Message("user", "say it"))
    transcript.begin_answer("t")
    for token in tokens_of(BAD + " And on."):
        transcript.append_tokens("t", [token])
    transcript.finish_answer("t", finished())
    answer = transcript.answer("t")
    assert answer.body.readable_text == strings.UNSHOWN
    assert transcript.answer_text("t") == BAD + " And on."
    qtbot.waitUntil(lambda: answer.height() == answer.height_for(answer.width()))
    assert len(unshown) == 1
    unshown.clear()


def test_what_cannot_be_painted_is_given_up(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch, unshown: list[str]
) -> None:
    transcript.show_turns(turns()[:1])

    def raising(*given: object) -> None:
        raise ValueError("no such glyph")

    body = transcript.answer("0").body
    monkeypatch.setattr(body.boxes[0], "paint_around", raising)
    picture(transcript)
    assert readable(transcript) == ["one", strings.UNSHOWN]
    assert len(unshown) == 1
    unshown.clear()


def test_a_text_that_can_never_be_painted_ends_in_nothing(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch, unshown: list[str]
) -> None:
    transcript.show_turns(turns()[:1])

    def raising(*given: object) -> None:
        raise ValueError("no such glyph")

    monkeypatch.setattr(PieceBox, "paint_around", raising)
    picture(transcript)
    picture(transcript)
    assert readable(transcript) == ["", ""]
    assert len(unshown) == 4
    unshown.clear()


def test_a_block_that_cannot_be_read_stands_as_written(
    monkeypatch: pytest.MonkeyPatch, unshown: list[str]
) -> None:
    def raising(*given: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(MarkdownIt, "parse", raising)
    (piece,) = markdown.parse_block("a\n\n**b**\n", 3, 9)
    assert (piece.text, piece.source_start, piece.source_end) == ("**b**", 3, 9)
    assert len(unshown) == 1
    unshown.clear()


def test_a_lexer_that_fails_leaves_code_without_colours(
    monkeypatch: pytest.MonkeyPatch, unshown: list[str]
) -> None:
    highlight = Highlight("python")

    def raising(*given: object) -> Iterator[tuple[int, object, str]]:
        yield 0, None, "def"
        raise RuntimeError("no such state")

    monkeypatch.setattr(PythonLexer, "get_tokens_unprocessed", raising)
    highlight.set_text("def f(): pass", whole=True)
    assert highlight.advance(lambda: False)
    assert highlight.stretches == []
    assert len(unshown) == 1
    unshown.clear()
