"""Selecting by keyboard, and with the mouse beyond the view."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from core.events import Message
from tests.app.chat.watching import body_of, stream
from tests.app.chat.written import FERRY, finished

SHIFT = Qt.KeyboardModifier.ShiftModifier
CONTROL = Qt.KeyboardModifier.ControlModifier


def test_shift_and_arrows_select(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, "Some **bold** words\n\n- item one\n")
    transcript.finish_answer("t", finished())
    body = body_of(transcript)
    body.setFocus()
    qtbot.keyClick(body, Qt.Key.Key_Right, SHIFT | CONTROL)
    assert transcript.selected_text() == "Some"
    qtbot.keyClick(body, Qt.Key.Key_Right, SHIFT)
    qtbot.keyClick(body, Qt.Key.Key_Right, SHIFT | CONTROL)
    assert transcript.selected_text() == "Some bold"
    qtbot.keyClick(body, Qt.Key.Key_Left, SHIFT)
    assert transcript.selected_text() == "Some bol"
    qtbot.keyClick(body, Qt.Key.Key_End, SHIFT)
    assert transcript.selected_text() == "Some bold words"
    qtbot.keyClick(body, Qt.Key.Key_Down, SHIFT)
    assert transcript.selected_text() == "Some bold words\n\n- item one"
    qtbot.keyClick(body, Qt.Key.Key_Up, SHIFT)
    qtbot.keyClick(body, Qt.Key.Key_Home, SHIFT)
    assert transcript.selected_text() == ""
    qtbot.keyClick(body, Qt.Key.Key_End, SHIFT | CONTROL)
    assert transcript.selected_text() == "Some bold words\n\n- item one"


def test_a_drag_beyond_the_view_scrolls_and_goes_on_selecting(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("q", Message("user", "A question"))
    stream(transcript, (FERRY + "\n\n") * 6)
    transcript.finish_answer("t", finished())
    transcript.verticalScrollBar().setValue(0)
    body = body_of(transcript)
    qtbot.mousePress(body, Qt.MouseButton.LeftButton, pos=QPoint(20, 5))
    below = transcript.viewport().mapToGlobal(QPoint(200, transcript.viewport().height() + 30))
    transcript._selecting.drag(below)
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() > 300, timeout=4000)
    assert len(transcript.selected_text()) > 600
    qtbot.mouseRelease(body, Qt.MouseButton.LeftButton, pos=QPoint(20, bar.value()))
    stopped = bar.value()
    qtbot.wait(100)
    assert bar.value() == stopped
