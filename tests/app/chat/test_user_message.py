"""Messages and their attachments."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.entry_column import COLUMN_PX
from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from core.events import Attachment, Message


def test_a_message_with_attachments(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "What is it about?", (Attachment("Handbook", "x" * 4000),)))
    item = transcript.findChild(UserMessage)
    assert item is not None
    assert item.height_for(COLUMN_PX) == 48 + 6 + 21 + 18
    assert not item.copy_button.is_revealed
    qtbot.mouseClick(item.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "What is it about?"
    assert item.copy_button.is_revealed


def test_an_attachment_alone(transcript: Transcript) -> None:
    transcript.add_user("t", Message("user", "", (Attachment("Handbook", "x"),)))
    item = transcript.findChild(UserMessage)
    assert item is not None
    assert item.height_for(COLUMN_PX) == 48


def test_a_long_message_wraps_inside_its_bubble(transcript: Transcript) -> None:
    transcript.add_user("t", Message("user", "word " * 100))
    item = transcript.findChild(UserMessage)
    assert item is not None
    assert item.body.width() <= 560
    assert item.height() > 100
