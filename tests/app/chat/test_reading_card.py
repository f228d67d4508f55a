"""The card while a prompt is read: its two heights, its map, its buttons."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt, QTimer
from pytestqt.qtbot import QtBot

from app.chat import strings
from app.chat.intents import Intent, OpenPassage, ReadEverything, StopAnswer
from app.chat.reading_card import ReadingCard
from app.theme.theme import Theme
from core.events import Passage, PrefillProgress, ReadingMap

PASSAGES = tuple(Passage(32 * n, 32 * n + 32, n >= 75, 0.5, 0, 9 * n, 9 * n + 9) for n in range(100))
MAP = ReadingMap("r", "lexical", 3200, 800, PASSAGES)
SCORING = PrefillProgress("r", 0, 3200, 0, 2.0, "scoring", 1600)
READING = PrefillProgress("r", 400, 800, 0, 2.0, "reading", 3200, 800)


class Clock:
    s = 0.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def intents() -> list[Intent]:
    return []


@pytest.fixture
def card(qtbot: QtBot, clock: Clock, intents: list[Intent]) -> ReadingCard:
    widget = ReadingCard("t", intents.append, now=clock)
    qtbot.addWidget(widget)
    widget.resize(720, 332)
    widget.show()
    return widget


def column(card: ReadingCard, x: int) -> str:
    return card.strip.grab().toImage().pixelColor(x, 24).name()


def test_a_dense_reading_has_no_map(card: ReadingCard) -> None:
    card.show_progress(PrefillProgress("r", 100, 1000, 0, 9.0))
    assert not card.is_sparse
    assert card.height_px == 123
    assert card.strip.isHidden()
    assert card.everything_button.isHidden()
    assert card.accessibleName() == "Reading 1,000 tokens"


def test_the_map_follows_the_reading(card: ReadingCard, clock: Clock, theme: Theme) -> None:
    card.show_progress(SCORING)
    assert card.is_sparse
    assert card.height_px == 332
    width = card.strip.width()
    seen = column(card, width // 4)
    assert seen != column(card, 3 * width // 4) == theme.color("map_empty").name()
    clock.s = 1.0
    card.show_map(MAP, ((0.0, "1 Purpose"), (0.5, "2 Crew")))
    card.show_progress(READING)
    assert card.facts.phases[0].note == "100 passages by words, 1.0 s"
    assert column(card, int(0.8 * width)) == theme.color("accent").name()
    assert column(card, int(0.95 * width)) == theme.color("accent_mid").name()
    assert column(card, width // 4) not in (theme.color("accent").name(), theme.color("map_empty").name())
    # The playhead stands where the reading is: after half of the last quarter.
    assert column(card, int(0.875 * width)) == theme.color("text").name()
    # Nothing was expected of reading all: the speed of reading a part says little about it.
    assert card.everything_button.accessibleDescription().endswith("All 3,200 tokens")


def test_what_everything_would_take_is_said_before_anything_is_read(card: ReadingCard) -> None:
    card.show_progress(SCORING)
    card.show_map(replace(MAP, dense_s=41.0), ())
    assert "All 3,200 tokens, about 41 s" in card.everything_button.accessibleDescription()
    card.show_progress(READING)
    assert "about 41 s" in card.everything_button.accessibleDescription()
    # What does not fit is not offered, before the map is known by the context's limit.
    other = ReadingCard("t", lambda intent: None, card.parentWidget())
    for limit_tokens, offered in ((0, True), (3300, True), (3200, False), (2048, False)):
        other.set_context_limit(limit_tokens)
        other.show_progress(SCORING)
        assert other.everything_button.isVisibleTo(other) is offered
    other.deleteLater()
    card.show_map(replace(MAP, all_fits=False, held_tokens=800))
    card.show_progress(READING)
    assert card.everything_button.isHidden()
    assert not card.cancel_button.isHidden()
    assert card.everything_button.accessibleDescription() == strings.MORE_THAN_FITS


def test_buttons_and_map_send_intents(qtbot: QtBot, card: ReadingCard, intents: list[Intent]) -> None:
    card.show_progress(SCORING)
    qtbot.mouseClick(card.strip, Qt.MouseButton.LeftButton)
    assert intents == []  # no passage can be opened before the map is known
    card.show_map(MAP)
    card.show_progress(READING)
    qtbot.mouseClick(card.everything_button, Qt.MouseButton.LeftButton)
    card.cancel_button.setFocus()
    qtbot.keyClick(card.cancel_button, Qt.Key.Key_Return)
    middle = QPoint(card.strip.width() // 2, 20)
    qtbot.mouseClick(card.strip, Qt.MouseButton.LeftButton, pos=middle)
    assert intents == [ReadEverything("t"), StopAnswer(), OpenPassage(PASSAGES[50])]


def test_the_time_left_goes_on_between_reports(card: ReadingCard, clock: Clock) -> None:
    def left() -> str:
        card.findChild(QTimer).timeout.emit()  # as each second
        return card.facts.left

    def report(at_s: float, done: int, seconds_left: float) -> None:
        clock.s = at_s
        card.show_progress(PrefillProgress("r", done, 7000, 0, seconds_left))

    report(0.0, 0, 140.0)
    report(10.0, 500, 130.0)
    assert left() == "About 2 min 10 s left"
    clock.s = 14.0
    assert left() == "About 2 min 6 s left"
    # A chunk that takes longer than the one before takes off no more than that one did.
    clock.s = 50.0
    assert left() == "About 2 min 0 s left"
    report(50.0, 1000, 119.0)
    assert left() == "About 1 min 59 s left"


def test_the_time_left_never_rises_while_the_work_is_the_same(card: ReadingCard, clock: Clock) -> None:
    def left(total: int, kept: int, seconds_left: float) -> str:
        clock.s += 1.0
        card.show_progress(PrefillProgress("r", 100, total, 0, seconds_left, kept_tokens=kept))
        return card.facts.left

    assert left(7000, 0, 40.0) == "About 40 s left"
    assert left(7000, 0, 55.0) == "About 40 s left"  # the forecast was refitted
    assert left(7000, 0, 30.0) == "About 30 s left"
    assert left(7000, 0, 31.0) == "About 29 s left"  # as shown just before this report
    assert left(7000, 900, 50.0) == "About 50 s left"  # other tokens are read
