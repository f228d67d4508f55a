"""The first page: what it says, its examples, its colours."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.first_page import ExampleCard, FirstPage, Lead
from app.theme.theme import Theme, theme
from tests.app.chat.watching import colours, picture, pixels_of


@pytest.fixture
def page(qtbot: QtBot) -> FirstPage:
    widget = FirstPage()
    qtbot.addWidget(widget)
    widget.resize(900, 700)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def blue_pixels(page: FirstPage) -> int:
    return pixels_of(picture(page)).count(theme.color("accent_fill").rgb())


READY = Lead("SmolLM2 135M is ready.", "It runs here.")


def test_the_bar_of_a_load_and_of_a_download(page: FirstPage, qapp: QApplication) -> None:
    assert page.title == "Loading the model…"
    page.show_state(Lead("Loading SmolLM2 135M…", "Reading the weights", 0.4))
    assert (page.title, page.subtitle) == ("Loading SmolLM2 135M…", "Reading the weights")
    with_bar = blue_pixels(page)
    page.show_state(Lead("Loading SmolLM2 135M…", "Reading the weights"))
    assert blue_pixels(page) < with_bar - 1000
    page.show_lead(Lead("Downloading Big 9B…", "2 of 5 GB", 0.4, other_button="Cancel Download"))
    assert blue_pixels(page) > with_bar - 100
    assert not page.lead_button.isVisible()
    assert page.other_button.isVisible()


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
    # About 4,000 tokens of the starter's 8,192: long enough for a sparse prefill, with room for follow-ups.
    assert 14_000 <= len(document.text) <= 22_000
    assert "The refrigerant is propane" in document.text


def test_the_sample_shows_both_marks_in_both_themes(page: FirstPage, theme: Theme) -> None:
    for scheme in ("light", "dark"):
        theme.set_scheme(scheme)
        seen = colours(picture(page))
        for name in ("window", "accepted_tint", "accepted_line", "bonus_line"):
            assert theme.color(name).name() in seen


def test_a_low_window_scrolls_instead_of_squeezing(page: FirstPage) -> None:
    page.resize(700, 320)
    assert page.verticalScrollBar().maximum() > 0
    cards = page.findChildren(ExampleCard)
    assert all(card.geometry().right() <= page.viewport().width() for card in cards)
    page.resize(1200, 800)
    assert page.verticalScrollBar().maximum() == 0


LEAD = Lead(
    "Start with Big 9B", "The best model for this machine.", None, "Download", "Use the Small Starter for Now"
)


@pytest.mark.parametrize("width", [1200, 900, 420, 300])
def test_a_lead_takes_the_place_of_the_model_s_state(page: FirstPage, width: int) -> None:
    page.resize(width, 700)
    page.show_state(READY)
    page.show_lead(LEAD)
    assert (page.title, page.subtitle) == (LEAD.title, LEAD.text)
    buttons = [page.lead_button, page.other_button]
    cards = page.findChildren(ExampleCard)
    for button in buttons:
        assert button.isVisible()
        assert button.geometry().right() <= page.viewport().width()
        assert all(button.geometry().bottom() < card.geometry().top() for card in cards)
    assert not buttons[0].geometry().intersects(buttons[1].geometry())
    page.show_lead(None)
    assert page.title == "SmolLM2 135M is ready."
    assert not any(button.isVisible() for button in buttons)


def test_the_focus_leaves_a_button_that_got_another_meaning(page: FirstPage, qtbot: QtBot) -> None:
    page.show_lead(LEAD)
    page.other_button.setFocus()
    with qtbot.waitSignal(page.focus_left):
        page.show_lead(Lead("Downloading Big 9B…", "", 0.1, other_button="Cancel Download"))
