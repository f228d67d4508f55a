"""What a screen reader gets to read."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from core.events import Message
from tests.app.chat.watching import body_of, stream
from tests.app.chat.written import finished


@pytest.fixture(autouse=True)
def _listening(qapp: QApplication) -> Iterator[None]:
    QAccessible.setActive(True)
    yield
    QAccessible.setActive(False)
    gc.collect()


def read(widget: QWidget) -> tuple[object, str, str]:
    interface = QAccessible.queryAccessibleInterface(widget)
    kinds = QAccessible.Text
    return interface.role(), interface.text(kinds.Name), interface.text(kinds.Value)


def test_answers_and_messages_are_text(transcript: Transcript) -> None:
    transcript.add_user("t", Message("user", "Who may override it?"))
    stream(transcript, "Only the **master**.\n\n- one\n- two\n\n| a | b |\n|-|-|\n| c | d |\n")
    transcript.finish_answer("t", finished())
    question = transcript.findChild(UserMessage)
    text = QAccessible.Role.StaticText
    assert read(question.body) == (text, "Your message", "Who may override it?")
    assert read(body_of(transcript)) == (text, "Answer", "Only the master.\n\n- one\n- two\n\na\tb\nc\td")


def test_interfaces_go_with_their_widgets(transcript: Transcript) -> None:
    for number in range(20):
        transcript.add_user(f"t{number}", Message("user", f"Question {number}"))
        question = transcript.findChildren(UserMessage)[-1]
        assert read(question.body)[2] == f"Question {number}"
        transcript.clear()
        QApplication.processEvents()
        gc.collect()
