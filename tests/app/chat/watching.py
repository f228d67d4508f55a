"""Helpers that drive the transcript and look at what it paints."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.answer_body import AnswerBody
from app.chat.entry_column import UnshownEntry
from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from app.theme.theme import LIGHT
from tests.app.chat.written import tokens_of


def stream(transcript: Transcript, written: str, turn: str = "t", size: int = 4) -> AnswerView:
    transcript.begin_answer(turn, "ngram-simple")
    tokens = tokens_of(written)
    for at in range(0, len(tokens), size):
        transcript.append_tokens(turn, tokens[at : at + size])
    return transcript.findChildren(AnswerView)[-1]


def readable(transcript: Transcript) -> list[str]:
    kinds = (UserMessage, AnswerView, UnshownEntry)
    shown = [each for kind in kinds for each in transcript.findChildren(kind) if each.isVisible()]
    return [each.body.readable_text for each in sorted(shown, key=lambda each: each.y())]


def body_of(transcript: Transcript) -> AnswerBody:
    return transcript.findChildren(AnswerBody)[-1]


def point_at(qtbot: QtBot, body: AnswerBody, text: str) -> int:
    """Move the mouse onto the token with that text; its number."""
    number = next(i for i, one in enumerate(body.table.tokens) if one.text == text)
    rect = body.token_rect(number)
    qtbot.mouseMove(body, QPoint(1, 1))
    qtbot.mouseMove(body, rect.center().toPoint())
    return number


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage()


def enlarged(widget: QWidget) -> QImage:
    """Four times as large: of any font's letters some pixels have the very colour, none of a neighbour."""
    image = QImage(widget.size() * 4, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(4.0)
    widget.render(image)
    return image


def colours(image: QImage) -> set[str]:
    return {f"#{pixel & 0xFFFFFF:06x}" for pixel in set(pixels_of(image))}


def pixels_of(image: QImage) -> list[int]:
    plain = image.convertToFormat(QImage.Format.Format_RGB32)  # lives as long as its bits are read
    return memoryview(plain.constBits()).cast("I").tolist()


def colour(name: str) -> str:
    return QColor(getattr(LIGHT, name)).name()


def drag(qtbot: QtBot, body: AnswerBody, start: QPoint, end: QPoint) -> None:
    qtbot.mousePress(body, Qt.MouseButton.LeftButton, pos=start)
    QApplication.sendEvent(body, mouse_move(body, end))
    qtbot.mouseRelease(body, Qt.MouseButton.LeftButton, pos=end)


def mouse_move(body: AnswerBody, to: QPoint) -> QMouseEvent:
    return QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(to),
        QPointF(body.mapToGlobal(to)),
        Qt.MouseButton.NoButton,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
