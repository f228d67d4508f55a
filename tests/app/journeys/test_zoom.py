"""Larger texts by key: answers, messages, the composer and the document; kept, and back again."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.chat.answer.answer import AnswerView
from app.shell.window import MainWindow
from app.theme.theme import Theme
from core.events import Attachment, Message
from tests.app.stage import last, play, press, ready

CTRL = Qt.KeyboardModifier.ControlModifier
KEY = Qt.Key
TEXT = "\n\n".join(f"Rule {n}: the pilot waits for the tide, and the tide for nobody." for n in range(120))


async def asked(window: MainWindow) -> AnswerView:
    """A document, a question and its answer, which is returned."""
    await ready(window)
    window.controller.asking.submit(Message("user", "skim write 120", (Attachment("rules.md", TEXT),)))
    await ready(window)
    await press(window, KEY.Key_D, CTRL | Qt.KeyboardModifier.AltModifier)
    answer = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
    assert answer
    return answer


def measures(window: MainWindow, answer: AnswerView) -> tuple[int, ...]:
    """Of every text that people read."""
    views = window.views
    return (
        answer.body.boxes[0].layout.style.line_px,
        round(answer.body.boxes[0].layout.style.size_px),
        answer.body.height(),
        views.composer.edit.fontMetrics().height(),
        views.composer.maximumWidth(),
        views.document.view.verticalScrollBar().maximum(),
    )


def test_larger_smaller_and_back(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        answer = await asked(window)
        before = measures(window, answer)
        text = answer.body.readable_text
        await press(window, KEY.Key_Equal, CTRL)
        await press(window, KEY.Key_Plus, CTRL)
        assert window.app_settings.now.look.zoom_pct == 125
        larger = measures(window, answer)
        assert all(now > then for now, then in zip(larger, before)), (before, larger)
        assert larger[0] == round(before[0] * 1.25)
        assert answer.body.readable_text == text == last(window).text
        # Tints stand where their words are.
        first = answer.body.token_rect(2)
        assert first
        assert first.height() > 21
        for _ in range(3):
            await press(window, KEY.Key_Minus, CTRL)
        assert window.app_settings.now.look.zoom_pct == 90
        smaller = measures(window, answer)
        # The column is narrower, too, so an answer may be as high as before.
        assert all(now < then for now, then in zip(smaller[:2] + smaller[3:], before[:2] + before[3:]))
        await press(window, KEY.Key_0, CTRL)
        assert measures(window, answer) == before

    play(qapp, scene)


def test_what_is_read_stays_and_the_size_is_remembered(qapp: QApplication, tmp_path: Path) -> None:
    async def first(window: MainWindow) -> None:
        await asked(window)
        view = window.views.document.view
        view.scroll_to_character(TEXT.index("Rule 60"))
        for _ in range(4):
            await press(window, KEY.Key_Plus, CTRL)
        start, end = view.visible_characters()
        assert "Rule 60" in TEXT[max(0, start - 80) : end]
        assert start > TEXT.index("Rule 55")

    async def again(window: MainWindow) -> None:
        assert window.app_settings.now.look.zoom_pct == 175
        answer = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
        assert answer
        assert answer.body.boxes[0].layout.style.line_px == round(25 * 1.75)

    play(qapp, first, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


def test_reduced_motion_stops_what_blinks(qapp: QApplication) -> None:
    blinks = QApplication.cursorFlashTime()

    async def scene(window: MainWindow) -> None:
        theme: Theme = window.views.composer._theme
        window.app_settings.set("look.motion", "reduced")
        assert theme.reduced_motion
        assert QApplication.cursorFlashTime() == 0

    play(qapp, scene)
    assert QApplication.cursorFlashTime() == blinks
