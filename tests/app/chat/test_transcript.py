"""The transcript: following, the theme, speed, and that nothing stays behind."""

from __future__ import annotations

import statistics
import time
from collections import Counter

import pytest
from PySide6.QtCore import QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.transcript import NewestButton, Transcript
from app.chat.user_message import UserMessage
from app.richtext.text_canvas import MARGIN_PX
from app.theme.theme import Theme
from core.events import Message
from tests.app.chat.watching import body_of, enlarged, picture, pixels_of, stream
from tests.app.chat.written import FERRY, MERGE, finished, tokens_of


def test_follows_until_the_reader_scrolls_up_and_again_with_newest(
    transcript: Transcript, qtbot: QtBot
) -> None:
    stream(transcript, (FERRY + "\n\n") * 6)
    bar = transcript.verticalScrollBar()
    newest = transcript.findChild(NewestButton)
    assert bar.maximum() > 0
    assert bar.value() == bar.maximum()
    assert not newest.isVisible()
    bar.setValue(bar.value() - 40)
    held = bar.value()
    assert newest.isVisible()
    transcript.append_tokens("t", tokens_of(FERRY))
    assert bar.value() == held < bar.maximum()
    qtbot.mouseClick(newest, Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum()
    assert not newest.isVisible()
    before = bar.maximum()
    transcript.append_tokens("t", tokens_of(FERRY))
    assert bar.value() == bar.maximum() > before


@pytest.mark.parametrize("zoom", [1.0, 1.5])
@pytest.mark.parametrize("width", [620, 1200])
def test_the_button_for_the_end_covers_no_text(
    transcript: Transcript, theme: Theme, zoom: float, width: int
) -> None:
    transcript.resize(width, 300)
    theme.set_zoom(zoom)
    transcript.add_user("t", Message("user", "What is in the harbour at this hour of the day? " * 20))
    stream(transcript, (FERRY + "\n\n") * 4)
    transcript.verticalScrollBar().setValue(0)
    newest = transcript.findChild(NewestButton)
    assert newest.isVisible()
    assert transcript.viewport().geometry().contains(newest.geometry())
    for item in (*transcript.findChildren(UserMessage), *transcript.findChildren(AnswerView)):
        corner = item.mapTo(transcript, QPoint(0, 0))
        shown = QRect(corner, item.size()).adjusted(MARGIN_PX, 0, -MARGIN_PX, 0)
        assert not shown.intersects(newest.geometry())
        if width == 620:  # in the middle of the margin
            right = transcript.viewport().geometry().right() - newest.geometry().right()
            assert abs(newest.x() - shown.right() - right) <= 2
    theme.set_zoom(1.0)


def test_the_end_is_kept_in_a_narrower_window_and_found_again_by_scrolling(transcript: Transcript) -> None:
    stream(transcript, (FERRY + "\n\n") * 6)
    bar = transcript.verticalScrollBar()
    transcript.resize(620, 500)
    assert bar.value() == bar.maximum() > 0
    assert body_of(transcript).width() <= 620 - 80 + 16
    bar.setValue(10)
    assert not transcript.is_following
    bar.setValue(bar.maximum())
    assert transcript.is_following


def test_colours_change_with_the_theme(transcript: Transcript, theme: Theme) -> None:
    transcript.resize(500, 360)
    transcript.add_user("t", Message("user", "A question"))
    stream(transcript, FERRY)  # a finished answer has no tints
    light = Counter(pixels_of(enlarged(transcript)))
    theme.set_scheme("dark")
    QApplication.processEvents()
    dark = Counter(pixels_of(enlarged(transcript)))
    for name in ("window", "text", "accepted_tint", "bonus_line", "fill1"):
        colour = theme.color(name).rgb()
        # The edges of dark letters on white pass through every grey, a few pixels of each.
        assert dark[colour] > 10 * light[colour], name


@pytest.mark.quiet
@pytest.mark.parametrize("written", [FERRY + "\n\n", " the{ duty| master| may^ waive} condition, and"])
def test_a_flush_into_a_long_answer_is_fast(transcript: Transcript, written: str) -> None:
    once = tokens_of(written)
    transcript.begin_answer("t")
    transcript.append_tokens("t", once * (3000 // len(once)))
    took_ms: list[float] = []
    for _ in range(20):
        started = time.perf_counter()
        transcript.append_tokens("t", (once * 30)[:30])
        QApplication.processEvents()  # layout, scrolling and painting count too
        took_ms.append((time.perf_counter() - started) * 1000)
    assert statistics.median(took_ms) < 30


@pytest.mark.parametrize(
    ("written", "at_once"),
    [
        ((FERRY + "\n\n" + MERGE + "\n\n") * 3, 25),
        # One paragraph, one token at a time, words of several steps that wrap as a whole among them.
        ("{ The| whole| of^ it}{^para}{gra^ph} goes{ on|,^ and}{^har}{^bour}{master^s} wait" * 20, 1),
    ],
)
def test_the_screen_shows_what_a_fresh_painting_would(
    transcript: Transcript, written: str, at_once: int
) -> None:
    """Following shifts the screen and paints only the rest; nothing old may stay behind."""
    tokens = tokens_of(written)
    transcript.resize(780, 500)
    transcript.begin_answer("t")
    for at in range(0, len(tokens), at_once):
        transcript.append_tokens("t", tokens[at : at + at_once])
        QApplication.processEvents()
    fresh = picture(transcript)
    shown = QGuiApplication.primaryScreen().grabWindow(transcript.winId()).toImage()
    shown = shown.convertToFormat(fresh.format())
    assert shown.size() == fresh.size()
    pixels = zip(shown.constBits(), fresh.constBits(), strict=True)
    # A rounded corner cut by the clip may be a shade off.
    assert sum(a != b for a, b in pixels) < 60


def test_clear_leaves_nothing(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "A question"))
    stream(transcript, MERGE)
    transcript.clear()
    qtbot.waitUntil(
        lambda: not transcript.findChildren(AnswerView) and not transcript.findChildren(UserMessage)
    )
    assert transcript.verticalScrollBar().maximum() == 0
    with pytest.raises(KeyError):
        transcript.answer_text("t")
    stream(transcript, FERRY)
    assert transcript.answer_text("t").startswith("Under")


def test_nothing_is_left_running_after_close(theme: Theme, qtbot: QtBot) -> None:
    known = set(QApplication.topLevelWidgets())
    widget = Transcript()
    widget.resize(800, 600)
    widget.show()
    stream(widget, MERGE)
    widget.finish_answer("t", finished())
    body = body_of(widget)
    body.setFocus()
    qtbot.keyClick(body, Qt.Key.Key_Right)
    timers = widget.findChildren(QTimer)
    assert any(timer.isActive() for timer in timers)
    widget.close()
    assert not any(timer.isActive() for timer in timers)
    widget.deleteLater()
    qtbot.waitUntil(lambda: set(QApplication.topLevelWidgets()) <= known)
    theme.set_scheme("dark")  # nobody listens any more


def test_everything_has_a_name(transcript: Transcript) -> None:
    transcript.add_user("t", Message("user", "A question"))
    stream(transcript, MERGE)
    transcript.finish_answer("t", finished())
    for child in transcript.findChildren(QWidget):
        if child.focusPolicy() & Qt.FocusPolicy.TabFocus and child.isVisible():
            assert child.accessibleName(), child


def test_texts_do_not_move_when_there_is_something_to_scroll(transcript: Transcript) -> None:
    stream(transcript, "A short answer.")
    answer = transcript.answer("t")
    before = answer.x(), answer.width()
    assert transcript.verticalScrollBar().maximum() == 0
    transcript.append_tokens("t", tokens_of((FERRY + "\n\n") * 6))
    QApplication.processEvents()
    assert transcript.verticalScrollBar().maximum() > 0
    assert (answer.x(), answer.width()) == before
    # In the middle of the window, as the composer is, which has no scroll bar.
    assert abs(2 * answer.x() + answer.width() - transcript.width()) <= 1
