"""Looking for words in the Document tab: where they are, what is marked, and the way from one to the next."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.panels.document_paint import (
    LEFT_PX,
    MOST,
    NONE,
    TEXT_LEFT_PX,
    Matches,
    TextBlock,
    blocks_of,
    matches_of,
)
from app.panels.document_tab import WIDTH_PX, DocumentTab
from app.session.chats.reading import Document
from app.theme.theme import Theme
from core.events import Attachment
from tests.app.panels.document.test_tab import TEXT, document

KEY = Qt.Key
FAR = "The pilot sleeps here. "


def plain(text: str) -> Document:
    """A document of which all is read."""
    return Document("t1", 0, 0, Attachment("plain.txt", text, 10), None, "")


@pytest.fixture
def tab(qtbot: QtBot) -> DocumentTab:
    widget = DocumentTab(Theme("light"))
    qtbot.addWidget(widget)
    widget.resize(WIDTH_PX, 800)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def framed(tab: DocumentTab) -> tuple[set[int], set[int]]:
    """The columns and rows of pixels with the colour of the frame around what is looked at."""
    image = tab.view.viewport().grab().toImage()
    color = tab._theme.color("accent").name()
    found = [
        (x, y)
        for y in range(image.height())
        for x in range(image.width())
        if image.pixelColor(x, y).name() == color
    ]
    return {x for x, _ in found}, {y for _, y in found}


def everywhere(character: int) -> bool:
    return True


def test_any_capitals_and_any_white_space() -> None:
    text = "Fog lamp. FOG\n  lamp. foglamp"
    found = matches_of(text, " fog lamp", everywhere, 0)
    assert [text[a:b] for a, b in zip(found.starts, found.ends)] == ["Fog lamp", "FOG\n  lamp"]
    assert found.current == 0
    assert matches_of(text, "  ", everywhere, 0) is NONE
    assert matches_of(text, "tide", everywhere, 0) == Matches()


def test_it_begins_at_what_is_seen_and_goes_round() -> None:
    found = matches_of("a b a b a", "a", everywhere, 3)
    assert (found.starts, found.current) == ((0, 4, 8), 1)
    assert matches_of("a b", "a", everywhere, 2).current == 0


def test_more_than_anybody_steps_through_are_not_collected() -> None:
    found = matches_of("e" * (MOST + 1), "e", everywhere, 0)
    assert (len(found.starts), found.whole) == (MOST, False)


def test_a_match_over_two_lines_is_in_both_blocks() -> None:
    text = "one two\nthree"
    first, second = blocks_of(text)
    found = matches_of(text, "two three", everywhere, 0)
    assert [(part.first, part.last) for part in found.within(first)] == [(4, 7)]
    assert [(part.first, part.last) for part in found.within(second)] == [(0, 5)]
    assert found.within(TextBlock(0, 4)) == ()


def test_the_button_the_field_and_the_keys(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([plain(TEXT + "\n\n" + FAR + "\n\n" + TEXT + "\n\n" + FAR)])
    finder, view = tab.finder, tab.view
    before = view.viewport().grab().toImage()
    qtbot.mouseClick(tab.find_button, Qt.MouseButton.LeftButton)
    assert finder.is_open
    assert finder.bar.field.hasFocus()
    qtbot.keyClicks(finder.bar.field, "PILOT  sleeps")
    assert finder.bar.count.text() == "1 of 2"
    first, last = view.visible_characters()
    assert first <= len(TEXT) + 2 < last
    qtbot.keyClick(finder.bar.field, KEY.Key_Return)
    assert finder.bar.count.text() == "2 of 2"
    assert view.visible_characters()[0] > len(TEXT) + 100
    qtbot.keyClick(finder.bar.field, KEY.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert finder.bar.count.text() == "1 of 2"
    qtbot.keyClick(finder.bar.field, KEY.Key_Escape)
    assert not finder.is_open
    assert tab.find_button.hasFocus()
    view.scroll_to_character(0)
    assert view.viewport().grab().toImage() == before  # no mark stays behind


def test_what_is_found_is_marked_and_what_is_looked_at_is_framed(tab: DocumentTab) -> None:
    tab.show_documents([plain("The lamp.\n\nA lamp.\n\nNothing.")])
    assert not framed(tab)[1]
    tab.finder.search("lamp")
    first = framed(tab)[1]
    assert 0 < len(first) < 20
    tab.finder.step()
    assert min(framed(tab)[1]) > max(first)


def test_characters_beyond_16_bits_do_not_shift_the_mark(tab: DocumentTab) -> None:
    found = matches_of("🚢🚢 lamp", "lamp", everywhere, 0)
    (block,) = blocks_of("🚢🚢 lamp")
    assert [(part.first, part.last) for part in found.within(block)] == [(3, 7)]
    tab.show_documents([plain("🚢🚢 lamp")])
    tab.finder.search("lamp")
    # Qt counts two for a ship.
    wanted = LEFT_PX + TEXT_LEFT_PX + tab.view._layout(0).lineAt(0).cursorToX(5)[0]
    assert abs(min(framed(tab)[0]) - wanted) < 5


def test_only_what_is_kept_is_looked_through(tab: DocumentTab) -> None:
    tab.show_documents([document()])
    tab.finder.open()
    tab.finder.bar.field.setText("duty master")
    assert tab.finder.bar.count.text() == "1 of 400"
    tab.filter.set_value("kept")
    of = int(tab.finder.bar.count.text().split()[-1])
    assert 20 < of < 200
    tab.filter.set_value("all")
    assert tab.finder.bar.count.text().endswith("of 400")


def test_another_document_is_looked_through_at_once(tab: DocumentTab) -> None:
    tab.show_documents([plain("one lamp")])
    tab.finder.open()
    tab.finder.bar.field.setText("lamp")
    assert tab.finder.bar.count.text() == "1 of 1"
    tab.show_documents([plain("a lamp, a lamp")])
    assert tab.finder.bar.count.text() == "1 of 2"
