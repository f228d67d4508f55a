"""Selecting and copying; code blocks."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from app.richtext.canvas_menu import CodeCopy
from app.richtext.piece_box import PieceBox
from app.richtext.selection import everything
from core.events import Message
from tests.app.chat.watching import body_of, drag, stream
from tests.app.chat.written import FERRY, MERGE, finished, token


def test_selected_text_is_clean(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    transcript.finish_answer("t", finished())
    body = body_of(transcript)
    drag(qtbot, body, QPoint(0, 2), QPoint(body.width(), body.height()))
    text = transcript.selected_text()
    assert text.startswith("Under section 7.2, three conditions have to hold")
    assert "\n\n1. Visibility" in text
    assert "\n2. The bridge team" in text
    assert "**" not in text
    assert "\u2028" not in text
    qtbot.keyClick(body, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == text


def test_a_double_click_selects_a_word(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    number = next(i for i, one in enumerate(body.table.tokens) if one.text == "vis")
    rect = body.token_rect(number)
    assert rect is not None
    qtbot.mouseDClick(body, Qt.MouseButton.LeftButton, pos=rect.center().toPoint())
    assert transcript.selected_text() == "visibility"


def test_a_selection_outlives_the_block_becoming_markdown(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, "Some **bold** words")
    body = body_of(transcript)
    place = body.rects_of(0, 14, 19)[0]
    drag(
        qtbot,
        body,
        place.center().toPoint() - QPoint(int(place.width() / 2), 0),
        place.center().toPoint() * 2,
    )
    assert transcript.selected_text() == "words"
    transcript.append_tokens("t", [token(".\n\nMore")])
    assert transcript.selected_text() == "words"


def test_only_one_place_is_selected(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "A question"))
    stream(transcript, FERRY)
    question = transcript.findChild(UserMessage)
    assert question is not None
    question.body.show_selection(everything(question.body.pieces))
    assert transcript.selected_text() == "A question"
    body = body_of(transcript)
    qtbot.mousePress(body, Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    assert transcript.selected_text() == ""


def test_select_all_by_keyboard(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, "Some **bold** words\n\n")
    body = body_of(transcript)
    qtbot.keyClick(body, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert transcript.selected_text() == "Some bold words"


def test_code_is_code_while_it_is_written_and_can_be_copied(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, MERGE.split("{ return|")[0])
    (box,) = [box for box in body_of(transcript).boxes if box.is_code]
    assert box.piece.language == "python"
    assert box.piece.text.startswith("def merge(intervals):")
    transcript.append_tokens("t", [token(" return merged\n```\n\nDone.")])
    (button,) = transcript.findChildren(CodeCopy)
    assert button.accessibleName() == "Copy code"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.text() == "Copied"
    assert QGuiApplication.clipboard().text() == "def merge(intervals):\n    merged = []\n    return merged"
    qtbot.waitUntil(lambda: button.text() == "Copy", timeout=3000)


def test_painting_a_part_looks_at_that_part(transcript: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the answer is: a flush paints its last lines."""
    stream(transcript, "".join(f"Rule {number} of the harbour.\n\n" for number in range(400)), size=400)
    body = body_of(transcript)
    assert len(body.boxes) == 400
    height = PieceBox.height.fget
    asked: list[PieceBox] = []

    def counted(box: PieceBox) -> float:
        asked.append(box)
        return height(box)  # type: ignore[no-any-return,misc]

    monkeypatch.setattr(PieceBox, "height", property(counted))
    body.grab(QRect(0, body.height() - 60, body.width(), 60))
    assert 0 < len(asked) < 60
