"""Selecting and copying the text of an answer, by mouse and keyboard."""

from __future__ import annotations

from itertools import accumulate

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.richtext.canvas_menu import CodeCopy
from app.richtext.markdown.markdown import parse_block
from app.richtext.piece_box import PieceBox
from app.richtext.selection import TextPlace, TextSelection, everything, moved, selected_text, word_at
from app.theme.theme import color
from core.events import Message
from tests.app.chat.watching import body_of, drag, mouse_move, stream
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


def test_a_text_reached_by_the_keyboard_has_a_ring(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    qtbot.mouseClick(body, Qt.MouseButton.LeftButton)
    middle = QPoint(1, body.height() // 2)
    plain = body.grab().toImage().pixelColor(middle)
    body.clearFocus()
    body.setFocus(Qt.FocusReason.TabFocusReason)
    assert body.grab().toImage().pixelColor(middle) == color("focus") != plain


def test_a_double_click_selects_a_word(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, FERRY)
    body = body_of(transcript)
    number = next(i for i, one in enumerate(body.table.tokens) if one.text == "vis")
    rect = body.token_rect(number)
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


def test_code_is_code_while_it_is_written_and_can_be_copied(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, MERGE.split("{ return|")[0])
    (box,) = [box for box in body_of(transcript).boxes if box.is_code]
    assert box.piece.language == "python"
    assert box.piece.text.startswith("def merge(intervals):")
    transcript.append_tokens("t", [token(" return merged\n```\n\nDone.")])
    (button,) = transcript.findChildren(CodeCopy)
    assert button.accessibleName() == "Copy code"
    qtbot.keyClick(button, Qt.Key.Key_Return)
    assert button.text() == "Copied"
    assert QGuiApplication.clipboard().text() == "def merge(intervals):\n    merged = []\n    return merged"
    qtbot.waitUntil(lambda: button.text() == "Copy", timeout=20_000)


def test_painting_a_part_looks_at_that_part(transcript: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the answer is: a flush paints its last lines."""
    stream(transcript, "".join(f"Rule {number} of the harbour.\n\n" for number in range(400)), size=400)
    body = body_of(transcript)
    assert len(body.boxes) == 400
    height = PieceBox.height.fget
    asked: list[PieceBox] = []

    def counted(box: PieceBox) -> float:
        asked.append(box)
        return height(box)

    monkeypatch.setattr(PieceBox, "height", property(counted))
    body.grab(QRect(0, body.height() - 60, body.width(), 60))
    assert 0 < len(asked) < 60


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
    QApplication.sendEvent(body, mouse_move(body, body.mapFromGlobal(below)))
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() > 300, timeout=20_000)
    assert len(transcript.selected_text()) > 600
    qtbot.mouseRelease(body, Qt.MouseButton.LeftButton, pos=QPoint(20, bar.value()))
    stopped = bar.value()
    qtbot.wait(100)
    assert bar.value() == stopped


SOURCE = "# Title\n\nSome **bold** text.\n\n1. one\n2. two\n   - deep\n\n```py\nx = 1\n```\n"
PIECES = parse_block(SOURCE, 0, len(SOURCE))


@pytest.mark.parametrize(
    ("anchor", "head", "text"),
    [
        ((1, 5), (2, 2), "bold text.\n\n1. on"),
        ((2, 0), (2, 3), "one"),  # words inside an item come without its marker
        ((2, 1), (3, 3), "ne\n2. two"),
    ],
)
def test_selected_text_is_the_same_backwards(
    anchor: tuple[int, int], head: tuple[int, int], text: str
) -> None:
    for ends in ((anchor, head), (head, anchor)):
        assert selected_text(PIECES, TextSelection(*(TextPlace(*end) for end in ends))) == text


def test_everything_is_clean_text() -> None:
    assert selected_text(PIECES, everything(PIECES)) == (
        "Title\n\nSome bold text.\n\n1. one\n2. two\n  - deep\n\nx = 1"
    )
    assert everything([]).is_empty
    assert selected_text([], everything([])) == ""


def test_what_is_selected_in_a_piece() -> None:
    selection = TextSelection(TextPlace(1, 5), TextPlace(3, 0))
    assert selection.in_piece(0, 5) is None
    assert selection.in_piece(1, 15) == (5, 15)
    assert selection.in_piece(2, 3) == (0, 3)
    assert selection.in_piece(3, 3) is None


def test_words(qapp: QApplication) -> None:
    assert word_at("one two", 5) == (4, 7)
    assert word_at("a, b", 1) == (1, 2)
    assert word_at("a", 1) == (1, 1)
    # Marks belong to their word, and what is seen as one character is not cut.
    moves = (("word_right", "word_left"), ("right", "left"))
    for words, keys in (
        (["हिन्दी", " ", "भाषा"], moves[:1]),
        (["cafe\u0301", " ", "1"], moves[:1]),
        (["👩\u200d🚀", " ", "🇩🇪", "❤\ufe0f", "👍🏽", "."], moves),
    ):
        text, at = "".join(words), 0
        boxes = [PieceBox(parse_block(text, 0, len(text))[0], 0.0, 400)]
        for pair in keys:
            place = TextPlace(0, 0)
            for move in pair:
                while (to := moved(boxes, place, move)) != place:
                    place = to
                    assert place.char in (0, *accumulate(map(len, words)))
        for word in words:
            for char in range(at, at + len(word)):
                assert word_at(text, char) == (at, at + len(word))
            at += len(word)
