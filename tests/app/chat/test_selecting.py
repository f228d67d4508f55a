"""A selection that goes on from one message into others."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.transcript import Transcript
from app.richtext.text_canvas import TextCanvas
from app.session.chats.conversation import Answer as Written
from app.session.chats.conversation import Turn
from core.events import Message
from tests.app.chat.watching import drag
from tests.app.chat.written import finished, tokens_of, turns_of

SHIFT = Qt.KeyboardModifier.ShiftModifier
CONTROL = Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


def turn(number: int, question: str, answer: str) -> Turn:
    return Turn(
        f"t{number}", Message("user", question), Written(tuple(tokens_of(answer)), "finished", finished())
    )


SHORT = (
    turn(0, "First question", "**First** answer.\n\n- with an item"),
    turn(1, "Second question", "<think>\nSecret.\n</think>\n\nSecond answer."),
    turn(2, "Third question", "Third answer."),
)
WHOLE = (
    "First question\n\nFirst answer.\n\n- with an item\n\n"
    "Second question\n\nSecond answer.\n\nThird question\n\nThird answer."
)


@pytest.fixture
def texts(transcript: Transcript, qtbot: QtBot) -> list[TextCanvas]:
    transcript.show_turns(SHORT)
    qtbot.wait(20)
    found = [text for text in transcript.findChildren(TextCanvas) if text.isVisible()]
    return sorted(found, key=lambda text: text.mapTo(transcript, QPoint(0, 0)).y())


def point(text: TextCanvas, words: str, at: int) -> QPoint:
    """Before character `at` of the piece that holds `words`."""
    number = next(n for n, piece in enumerate(text.pieces) if words in piece.text)
    start = text.pieces[number].text.index(words) + at
    return text.rects_of(number, start, start)[0].center().toPoint()


def into(here: TextCanvas, there: TextCanvas, place: QPoint) -> QPoint:
    """`place` of `there` as `here` counts."""
    return here.mapFromGlobal(there.mapToGlobal(place))


def copied(qtbot: QtBot, text: TextCanvas) -> str:
    QGuiApplication.clipboard().clear()
    qtbot.keyClick(text, Qt.Key.Key_C, CONTROL)
    return QGuiApplication.clipboard().text()


@pytest.mark.parametrize("upwards", [False, True])
def test_a_drag_into_another_message_selects_all_between(
    transcript: Transcript, qtbot: QtBot, texts: list[TextCanvas], upwards: bool
) -> None:
    first, last = texts[1], texts[5]
    begin, end = point(first, "First answer", 6), point(last, "Third answer", 5)
    if upwards:
        drag(qtbot, last, end, into(last, first, begin))
    else:
        drag(qtbot, first, begin, into(first, last, end))
    wanted = WHOLE[WHOLE.index("answer.") : WHOLE.index("Third answer") + 5]
    assert transcript.selected_text() == wanted
    assert copied(qtbot, first) == copied(qtbot, last) == wanted
    assert [text.selection is not None for text in texts] == [False, *[True] * 5]
    qtbot.mouseClick(texts[2], LEFT, pos=QPoint(12, 8))
    assert transcript.selected_text() == ""
    assert all(text.selection is None for text in texts)


def test_a_drag_back_into_its_own_message_selects_there_only(
    transcript: Transcript, qtbot: QtBot, texts: list[TextCanvas]
) -> None:
    begin = point(texts[1], "First answer", 0)
    drag(qtbot, texts[1], begin, into(texts[1], texts[3], point(texts[3], "Second answer", 6)))
    assert transcript.selected_text().endswith("Second")
    qtbot.mouseClick(texts[1], LEFT, SHIFT, pos=point(texts[1], "First answer", 5))
    assert transcript.selected_text() == "First"


def test_shift_click_goes_on_from_where_the_last_click_was(
    transcript: Transcript, qtbot: QtBot, texts: list[TextCanvas]
) -> None:
    qtbot.mouseClick(texts[0], LEFT, pos=point(texts[0], "First question", 6))
    qtbot.mouseClick(texts[3], LEFT, SHIFT, pos=point(texts[3], "Second answer", 6))
    assert transcript.selected_text() == WHOLE[6 : WHOLE.index("Second answer") + 6]
    qtbot.mouseClick(texts[2], LEFT, SHIFT, pos=point(texts[2], "Second question", 6))
    assert transcript.selected_text() == WHOLE[6 : WHOLE.index("Second question") + 6]


def test_select_all_takes_the_whole_conversation_and_nothing_around_it(
    transcript: Transcript, qtbot: QtBot, texts: list[TextCanvas]
) -> None:
    qtbot.keyClick(texts[3], Qt.Key.Key_A, CONTROL)
    assert copied(qtbot, texts[3]) == WHOLE  # no figures, no buttons, no folded thought


def test_shift_and_arrows_go_on_into_the_next_message_and_back(
    transcript: Transcript, qtbot: QtBot, texts: list[TextCanvas]
) -> None:
    qtbot.keyClick(texts[1], Qt.Key.Key_End, SHIFT | CONTROL)
    assert transcript.selected_text() == "First answer.\n\n- with an item"
    qtbot.keyClick(texts[1], Qt.Key.Key_Right, SHIFT)
    qtbot.keyClick(texts[1], Qt.Key.Key_Right, SHIFT | CONTROL)
    assert transcript.selected_text() == "First answer.\n\n- with an item\n\nSecond"
    qtbot.keyClick(texts[1], Qt.Key.Key_End, SHIFT | CONTROL)
    qtbot.keyClick(texts[1], Qt.Key.Key_End, SHIFT | CONTROL)
    assert transcript.selected_text() == WHOLE[WHOLE.index("First answer") :]
    for _ in range(4):
        qtbot.keyClick(texts[1], Qt.Key.Key_Home, SHIFT | CONTROL)
    assert transcript.selected_text() == "First question"


@pytest.mark.sweep
def test_a_selection_over_far_more_than_the_window_needs_no_widgets(
    transcript: Transcript, qtbot: QtBot
) -> None:
    turns = turns_of(30)
    transcript.show_turns(turns)
    last = transcript.answer("t29")
    qtbot.keyClick(last.body, Qt.Key.Key_A, CONTROL)
    text = copied(qtbot, last.body)
    places = [text.index(f"Question {n}: who") for n in range(30)]
    assert places == sorted(places)
    assert all(text.count(f"\n\nAnswer {n}.\n\n") == 1 for n in range(30))
    bar = transcript.verticalScrollBar()
    while bar.value():
        bar.setValue(bar.value() - 500)
        QApplication.processEvents()
    qtbot.waitUntil(lambda: len(transcript.findChildren(AnswerView)) <= 10)
    first = transcript.answer("t0")
    assert first.body.selected_text.startswith("Answer 0.")
    assert transcript.selected_text() == text


def test_what_is_selected_stays_so_while_the_last_answer_is_written(
    transcript: Transcript, qtbot: QtBot, texts: list[TextCanvas]
) -> None:
    transcript.begin_answer("new")
    transcript.append_tokens("new", tokens_of("Some **bold"))
    written = transcript.answer("new")
    end = point(written.body, "Some", 4)
    drag(qtbot, texts[5], point(texts[5], "Third answer", 6), into(texts[5], written.body, end))
    assert transcript.selected_text() == "answer.\n\nSome"
    transcript.append_tokens("new", tokens_of("** words.\n\nMore"))
    assert transcript.selected_text() == "answer.\n\nSome"
