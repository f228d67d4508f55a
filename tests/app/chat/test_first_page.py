"""The first page: what it says, its examples, its colours."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.first_page import ExampleCard, FirstPage
from app.theme.theme import Theme
from tests.app.chat.handbook_text import handbook_text
from tests.app.chat.watching import colours, picture, pixels_of


@pytest.fixture
def page(qtbot: QtBot, theme: Theme) -> FirstPage:
    widget = FirstPage(theme)
    qtbot.addWidget(widget)
    widget.resize(900, 700)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def blue_pixels(page: FirstPage, theme: Theme) -> int:
    return pixels_of(picture(page)).count(theme.color("accent_fill").rgb())


def test_loading_then_ready(page: FirstPage, theme: Theme) -> None:
    assert page.title == "Loading the model…"
    page.set_model_name("SmolLM2 135M")
    page.set_loading("Reading the weights", 0.4)
    assert (page.title, page.subtitle) == ("Loading SmolLM2 135M…", "Reading the weights")
    with_bar = blue_pixels(page, theme)
    page.set_loading("Reading the weights", None)
    assert blue_pixels(page, theme) < with_bar - 1000
    page.set_ready()
    assert page.title == "SmolLM2 135M is ready."
    assert ("Mac" in page.subtitle) == (sys.platform == "darwin")


def test_examples_go_to_the_composer(page: FirstPage, qtbot: QtBot) -> None:
    cards = page.findChildren(ExampleCard)
    assert len(cards) == 3
    for card in cards:
        with qtbot.waitSignal(page.intent) as heard:
            qtbot.mouseClick(card, Qt.MouseButton.LeftButton)
        message = heard.args[0].message
        assert message.content == card.example
        assert card.example
    cards[1].setFocus()
    with qtbot.waitSignal(page.intent):
        qtbot.keyClick(cards[1], Qt.Key.Key_Return)


def test_a_real_document_comes_along_with_a_question_that_it_answers(page: FirstPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(page.intent) as heard:
        qtbot.mouseClick(page.findChildren(ExampleCard)[0], Qt.MouseButton.LeftButton)
    (document,) = heard.args[0].message.attachments
    assert document.text == handbook_text(), "Run: make handbook"
    # About 6,000 tokens of the starter's 8,192, at 3.2 characters: a question and an answer have room.
    assert 17_000 <= len(document.text) <= 22_000
    assert "A table contains no texts, names or times" in document.text


def test_the_sample_shows_both_marks_in_both_themes(page: FirstPage, theme: Theme) -> None:
    for scheme in ("light", "dark"):
        theme.set_scheme(scheme)
        seen = colours(picture(page))
        for name in ("window", "accepted_tint", "accepted_line", "bonus_tint", "bonus_line"):
            assert theme.color(name).name() in seen


def test_a_low_window_scrolls_instead_of_squeezing(page: FirstPage) -> None:
    page.resize(700, 320)
    assert page.verticalScrollBar().maximum() > 0
    cards = page.findChildren(ExampleCard)
    assert all(card.geometry().right() <= page.viewport().width() for card in cards)
    page.resize(1200, 800)
    assert page.verticalScrollBar().maximum() == 0
