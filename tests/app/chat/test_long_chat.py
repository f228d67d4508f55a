"""A conversation far longer than the window: few widgets, and nothing jumps."""

from __future__ import annotations

import gc
import weakref

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.transcript import Transcript
from app.richtext.text_canvas import MARGIN_PX
from app.session.chats.conversation import Turn
from core.events import Message
from tests.app.chat.watching import picture
from tests.app.chat.written import FERRY, finished, tokens_of, turns_of

TURNS = turns_of(30)


def seen(transcript: Transcript) -> dict[str, int]:
    """Where on the screen the answers are that can be seen."""
    view = transcript.viewport().rect()
    found = {}
    for turn in TURNS:
        item = transcript.answer(turn.id)
        if item and item.isVisible():
            top = item.mapTo(transcript.viewport(), QPoint(0, 0)).y()
            if top < view.bottom() and top + item.height() > 0:
                found[turn.id] = top
    return found


def test_only_what_is_near_has_widgets(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(TURNS)
    bar = transcript.verticalScrollBar()
    assert bar.value() == bar.maximum() > 10_000
    assert 1 <= len(transcript.findChildren(AnswerView)) <= 3
    assert "t29" in seen(transcript)
    assert transcript.answer("t0") is None
    assert transcript.answer_text("t0").startswith("Answer 0.")
    transcript.offer_continue("t29")
    for _ in range(40):
        bar.setValue(bar.value() - 500)
        qtbot.wait(1)
    qtbot.waitUntil(lambda: len(transcript.findChildren(AnswerView)) <= 10)
    assert all(each.footer.continue_button.isHidden() for each in transcript.findChildren(AnswerView))
    bar.setValue(bar.maximum())
    assert not transcript.answer("t29").footer.continue_button.isHidden()


def test_a_reopened_answer_looks_as_it_did_when_it_was_written(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "A question"))
    transcript.begin_answer("t", "ngram-simple")
    for token in tokens_of(FERRY):
        transcript.append_tokens("t", [token])
        picture(transcript)  # whatever painting keeps is kept from here on
    transcript.finish_answer("t", finished())
    written = picture(transcript)
    turn = Turn("t", Message("user", "A question"))
    answer = type(turn.answer)(tuple(tokens_of(FERRY)), "finished", finished())
    transcript.show_turns([type(turn)("t", turn.user, answer)], "ngram-simple")
    QApplication.processEvents()
    assert picture(transcript) == written


@pytest.mark.sweep
@pytest.mark.parametrize("step", [-120, -37, 90])
def test_scrolling_moves_what_is_seen_by_just_that_much(
    transcript: Transcript, qtbot: QtBot, step: int
) -> None:
    """Though heights above and below turn out other than they were thought."""
    transcript.show_turns(TURNS)
    bar = transcript.verticalScrollBar()
    if step > 0:
        bar.setValue(300)
    for _ in range(60):
        before, value = seen(transcript), bar.value()
        bar.setValue(value + step)
        if step < 0 and bar.value() == 0:
            break
        after = seen(transcript)
        both = before.keys() & after.keys()
        assert both
        assert {turn: after[turn] - before[turn] for turn in both} == dict.fromkeys(both, -step)
        qtbot.wait(1)  # what is near is made now, and must not move anything either
        later = seen(transcript)
        assert {turn: later[turn] for turn in both} == {turn: after[turn] for turn in both}


def test_a_jump_shows_what_is_there(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(TURNS)
    bar = transcript.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    assert seen(transcript)
    bar.setValue(0)
    assert seen(transcript)["t0"] < 200
    bar.setValue(bar.maximum())
    assert "t29" in seen(transcript)
    assert transcript.is_following


def test_an_answer_goes_on_while_the_reader_is_far_away(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(TURNS)
    transcript.begin_answer("new")
    transcript.append_tokens("new", tokens_of("One two."))
    transcript.verticalScrollBar().setValue(0)
    qtbot.wait(30)
    before = seen(transcript)
    transcript.append_tokens("new", tokens_of(FERRY))
    transcript.finish_answer("new", finished())
    assert seen(transcript) == before
    assert transcript.answer_text("new").startswith("One two.Under")
    transcript.scroll_to_end()
    item = transcript.answer("new")
    assert item.isVisible()


def test_a_selection_outlives_scrolling_away(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(TURNS)
    item = transcript.answer("t29")
    item.body.select_all()
    text = transcript.selected_text()
    transcript.verticalScrollBar().setValue(0)
    qtbot.wait(50)
    assert transcript.selected_text() == text != ""


def test_another_width_lays_everything_out_anew(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(TURNS)
    transcript.resize(560, 500)
    qtbot.wait(20)
    bar = transcript.verticalScrollBar()
    assert bar.value() == bar.maximum()
    for turn, top in seen(transcript).items():
        item = transcript.answer(turn)
        assert item.height() == item.height_for(item.width() - 2 * MARGIN_PX)
        assert top + item.height() <= transcript.viewport().height()


def test_tab_goes_through_the_conversation_as_it_is_read(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(TURNS[:6])
    other = QWidget(transcript.window())
    first = transcript.answer("t5")
    first.body.setFocus()
    visited: list[str] = []
    for _ in range(60):
        focus = QApplication.focusWidget()
        owner = next(
            (t.id for t in TURNS[:6] if (a := transcript.answer(t.id)) and a.isAncestorOf(focus)), ""
        )
        if owner and (not visited or visited[-1] != owner):
            visited.append(owner)
        qtbot.keyClick(focus, Qt.Key.Key_Backtab)
        if QApplication.focusWidget() is focus:
            break
    assert visited == ["t5", "t4", "t3", "t2", "t1", "t0"]
    other.deleteLater()


def test_what_was_laid_out_goes_with_its_widget(transcript: Transcript) -> None:
    """At once: what waits for Python to look for cycles keeps its memory taken."""
    transcript.show_turns(TURNS)
    answer = transcript.answer(TURNS[-1].id)
    kept = [weakref.ref(box.layout) for box in answer.body.boxes]
    assert kept
    del answer
    collects = gc.isenabled()  # it does not while there is an application
    gc.disable()
    try:
        transcript.clear()
        assert not [layout for layout in kept if layout() is not None]
    finally:
        if collects:
            gc.enable()
