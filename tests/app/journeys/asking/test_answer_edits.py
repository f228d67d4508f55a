"""Editing an answer in its place: a version of the person's, which the model sees and continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from app.chat.answer import AnswerEditor
from app.controls.sheets import Question
from app.shell.window import MainWindow
from core.events import TYPED, Generate
from tests.app.stage import (
    Stage,
    answer_view,
    answering,
    asked,
    click,
    last,
    outside_of_tasks,
    press,
    ready,
    sent,
    sheet,
    stop,
)

CONTROL = Qt.KeyboardModifier.ControlModifier


def editor(window: MainWindow, turn: int = -1) -> AnswerEditor:
    return answer_view(window, turn).editor


async def answered(window: MainWindow, question: str = "write 6") -> None:
    await asked(window, question)


async def type_text(window: MainWindow, text: str) -> None:
    window.activateWindow()
    await outside_of_tasks(lambda: QTest.keyClicks(QApplication.focusWidget(), text))


async def edit_end(window: MainWindow, text: str) -> None:
    await press(window, Qt.Key.Key_E, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    await press(window, Qt.Key.Key_End, CONTROL)
    await type_text(window, text)


async def test_an_answer_is_edited_continued_and_kept(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    await answered(window)
    before = last(window)
    assert before.text == "ECHO 1: w1 w2 w3 w4 w5 w6"
    await click(answer_view(window).footer.buttons["edit"])
    assert editor(window).text == before.text
    assert answer_view(window).body.isHidden()
    assert answer_view(window).footer.isHidden()
    field = QApplication.focusWidget()
    assert editor(window).isAncestorOf(field)
    await press(window, Qt.Key.Key_End, CONTROL)
    for _ in "w5 w6":
        await press(window, Qt.Key.Key_Backspace)
    await type_text(window, "typed by me")
    await press(window, Qt.Key.Key_Return, CONTROL)
    (turn,) = window.controller.chats.open.turns
    assert [each.answer.text for each in turn.versions] == [before.text, "ECHO 1: w1 w2 w3 w4 typed by me"]
    footer = answer_view(window).footer
    assert footer.versions.text() == "‹ 2/2 ›"
    assert footer.stats.figures == "Edited"
    assert answer_view(window).body.hasFocus()
    # The tints of the model's tokens stay, the person's text has none.
    inks = [ink for box in answer_view(window).body.boxes for ink in box.inks.inks if ink.origin != "normal"]
    assert {turn.answer.tokens[ink.token].id for ink in inks} == {1, 2, 3, 4}
    commands = sent(window, Generate)
    assert window.views.notice_bar.action_button.text() == "Undo"
    await click(footer.continue_button)
    await ready(window)
    assert not window.views.notice_bar.text
    (turn,) = window.controller.chats.open.turns
    assert turn.answer.text.startswith("ECHO 1: w1 w2 w3 w4 typed by me w")
    assert len(turn.versions) == 2
    assert [each.content for each in commands[0].messages] == ["write 6"]
    assert commands[0].continuation == (0, 1, 2, 3, 4, TYPED)
    assert commands[0].continuation_texts[-2:] == (" w4", " typed by me")
    assert "Edited" in answer_view(window).footer.stats.figures
    assert "tokens" in answer_view(window).footer.stats.figures
    # The next question sees it.
    await asked(window, "write 1")
    assert commands[-1].messages[1].content == turn.answer.text
    hits = window.controller.chats.search("typed")
    assert not hits or hits[0].chat_id == window.controller.chats.open.id
    window = await stage.open(folder=tmp_path)
    turn = window.controller.chats.open.turns[0]
    assert turn.answer.is_edited
    assert len(turn.versions) == 2
    assert "Edited" in answer_view(window, 0).footer.stats.figures
    assert window.controller.chats.search("typed")


async def test_an_edit_is_asked_about_undone_exact_and_an_answer_continues_from_any_word(
    window: MainWindow,
) -> None:
    await answered(window)
    before = window.controller.chats.open.turns
    await press(window, Qt.Key.Key_E, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    await press(window, Qt.Key.Key_Escape)
    assert answer_view(window).editor is None
    await edit_end(window, " more")
    await press(window, Qt.Key.Key_Escape)
    question = await sheet(window, Question)
    await click(question.cancel)
    assert editor(window).text.endswith(" more")
    await press(window, Qt.Key.Key_Escape)
    question = await sheet(window, Question)
    await click(question.answers["discard"])
    assert answer_view(window).editor is None
    assert answer_view(window).body.isVisible()
    # An empty answer cannot be saved.
    await press(window, Qt.Key.Key_E, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    await press(window, Qt.Key.Key_A, CONTROL)
    await press(window, Qt.Key.Key_Backspace)
    assert not editor(window).save_button.isEnabled()
    await click(editor(window).cancel_button)
    assert window.controller.chats.open.turns == before

    window.controller.chat.start()
    await answered(window)
    commands = sent(window, Generate)

    async def continue_from(turn: int, token: int) -> None:
        body = answer_view(window, turn).body
        rect = body.token_rect(token)
        at = QPoint(int(rect.right()) - 3, int(rect.center().y()))
        menu = menu_at(body, at)
        (action,) = (each for each in menu.actions() if each.text() == "Continue from Here")
        assert action.isEnabled()
        await outside_of_tasks(action.trigger)

    await continue_from(-1, 3)
    await ready(window)
    (turn,) = window.controller.chats.open.turns
    assert commands[0].continuation == (0, 1, 2, 3)
    assert commands[0].continuation_texts == ()
    assert len(turn.versions) == 2
    assert turn.answer.text.startswith("ECHO 1: w1 w2 w3 w4")
    assert not turn.answer.is_edited
    assert [token.position for token in turn.answer.tokens] == list(range(len(turn.answer.tokens)))
    finished = turn.answer.finished
    assert finished.stats.tokens == len(turn.answer.tokens)
    # An earlier one continues in a new chat.
    await asked(window, "write 2")
    chat = window.controller.chats.open.id
    await continue_from(0, 2)
    await ready(window)
    assert window.controller.chats.open.id != chat
    assert len(window.controller.chats.open.turns) == 1
    assert commands[-1].continuation == (0, 1, 2)
    assert len(window.controller.chats.get(chat).turns) == 2

    window.controller.chat.start()
    await answered(window)
    before = window.controller.chats.open.turns
    await edit_end(window, "1")
    await press(window, Qt.Key.Key_Z, CONTROL)  # of the text
    assert editor(window).text == before[0].answer.text
    await type_text(window, " and more")
    await click(editor(window).save_button)
    await press(window, Qt.Key.Key_Z, CONTROL)
    assert window.controller.chats.open.turns == before
    assert answer_view(window).footer.versions.isHidden()
    # From another chat, by the notice.
    await edit_end(window, " again")
    chat = window.controller.chats.open.id
    window.controller.chat.start()
    window.controller.asking.edits.undo()  # by the key
    assert window.controller.chats.get(chat).turns[0].answer.text.endswith(" again")
    await click(window.views.notice_bar.action_button)
    assert window.controller.chats.get(chat).turns == before
    window.controller.chat.select(chat)
    await answering(window)
    await click(answer_view(window, 0).footer.buttons["edit"])
    assert answer_view(window, 0).editor is None
    assert "when the current one is complete" in window.views.notice_bar.text
    assert answer_view(window).footer.buttons["edit"].isHidden()
    await stop(window)
    await click(answer_view(window, 0).footer.buttons["edit"])
    assert answer_view(window, 0).editor is not None

    window.controller.chat.start()
    # A text field has one kind of line end, and Qt's plain text no no-break spaces.
    written = "10\u00a0km\r\n\r\n👩‍🚀 is\u202f5\u2028ready, \u200fשלום\u200e\tx"
    await answered(window)
    chat = window.controller.chats.open
    token = replace(last(window).tokens[0], text=written)
    window.controller.chats.keep(chat.with_answer(chat.turns[0].id, replace(last(window), tokens=(token,))))
    window.views.transcript.show_turns(window.controller.chats.open.turns)
    await press(window, Qt.Key.Key_E, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    assert not editor(window).is_changed
    await press(window, Qt.Key.Key_Escape)
    assert answer_view(window).editor is None
    await edit_end(window, "!")
    await press(window, Qt.Key.Key_Return, CONTROL)
    assert last(window).text == written + "!"


@pytest.mark.sweep
async def test_leaving_and_asking_save_an_edit(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    await answered(window)
    await edit_end(window, " one")
    commands = sent(window, Generate)
    window.views.composer.edit.setFocus()
    await asked(window, "write 2")
    assert commands[0].messages[1].content.endswith(" w6 one")
    assert len(window.controller.chats.open.turns) == 2
    # An earlier answer, whose question is then edited.
    await click(answer_view(window, 0).footer.buttons["edit"])
    await type_text(window, "x")
    turn = window.controller.chats.open.turns[0]
    window.controller.asking.edit(turn.id)
    assert window.controller.chats.open.turns[0].answer.text.startswith("xECHO")
    window.controller.asking.cancel_edit()
    # Continue goes on from the edited text.
    await edit_end(window, " more")
    window.controller.asking.continue_answer()
    await ready(window)
    assert " more w" in last(window).text
    await edit_end(window, " last")  # and the window is closed
    window = await stage.open(folder=tmp_path)
    first, second = window.controller.chats.open.turns
    assert len(first.versions) == 2
    assert second.answer.text.endswith(" last")


def menu_at(body: QWidget, at: QPoint) -> QMenu:
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, body.mapToGlobal(at))
    QApplication.sendEvent(body, event)
    (menu,) = body.findChildren(QMenu)
    return menu
