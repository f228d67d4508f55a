"""The card while a prompt is read: its two heights, its map, its buttons."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt, QTimer
from pytestqt.qtbot import QtBot

from app.chat import strings
from app.chat.entry import answer_entry
from app.chat.intents import Intent, OpenPassage, ReadEverything, StopAnswer
from app.chat.reading_card import ReadingCard
from app.chat.reading_state import ReadingState
from app.controls.text_label import TextLabel
from app.session.chats.conversation import Answer, Turn
from app.theme.theme import Theme
from core.events import Image, Message, Passage, PrefillProgress, ReadingMap

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
    assert card.sizeHint().height() == 123
    assert not card.strip.isVisible()
    assert not card.everything_button.isVisible()
    assert card.accessibleName() == "Reading 1,000 tokens"


@pytest.mark.parametrize("zoom", [1.0, 1.5])
def test_in_a_narrow_card_no_phase_is_without_its_title(card: ReadingCard, theme: Theme, zoom: float) -> None:
    theme.set_zoom(zoom)
    card.resize(round(440 * zoom), card.height())
    card.show_progress(SCORING)
    card.show_map(replace(MAP, always_tokens=120))
    card.show_progress(READING)
    titles = {phase.title for phase in card.facts.phases}
    shown = [label for label in card.findChildren(TextLabel) if label.text() in titles]
    cut = [label.text() for label in shown if label.width() < label.sizeHint().width()]
    theme.set_zoom(1.0)
    assert (len(shown), cut) == (3, [])


def test_the_map_follows_the_reading(card: ReadingCard, clock: Clock, theme: Theme) -> None:
    card.show_progress(SCORING)
    assert card.is_sparse
    assert card.sizeHint().height() == 332
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


def test_the_time_left_goes_on_between_events(card: ReadingCard, clock: Clock) -> None:
    def left(at_s: float) -> tuple[str, float]:
        clock.s = at_s
        card.findChild(QTimer).timeout.emit()  # as each second
        return card.facts.left, card.facts.fraction

    clock.s = 110.0
    told = PrefillProgress("r", 500, 7000, 0, 130.0, time_s=10.0, fraction=0.07, at_s=110.0)
    card.show_progress(told)
    assert left(110.0) == ("2 min 10 s left", pytest.approx(10 / 140))
    assert left(114.0) == ("2 min 6 s left", pytest.approx(14 / 140))
    assert left(238.0)[0] == "a few seconds left"
    assert left(250.0)[0] == "10 s longer than expected"
    assert left(250.0)[1] < 1.0
    clock.s = 251.0
    card.show_progress(replace(told, seconds_left=60.0, time_s=151.0, fraction=0.95, at_s=251.0))
    assert card.facts.left == "1 min 0 s left"  # it may rise


def test_a_card_that_is_made_late_is_right_from_the_last_event(card: ReadingCard, clock: Clock) -> None:
    clock.s = 130.0
    card.show_progress(PrefillProgress("r", 500, 7000, 0, 130.0, time_s=10.0, fraction=0.07, at_s=110.0))
    assert card.facts.left == "1 min 50 s left"
    assert card.facts.fraction == pytest.approx(30 / 140)


def test_the_card_names_the_images_of_the_question() -> None:
    state = ReadingState(PrefillProgress("r", 100, 1000, 0, 9.0))
    told = []
    for images in (0, 1, 3):
        state.images = images
        facts = state.facts(0.0)
        assert facts
        told.append(facts.done)
    plain = "100 of 1,000 tokens read"
    assert told == [plain, f"{plain}, with an image", f"{plain}, with 3 images"]
    asked = Message("user", "See.", images=(Image("a.png", "", "0" * 64, 8, 8),))
    assert answer_entry(Turn("t", asked, Answer())).reading_state.images == 1
