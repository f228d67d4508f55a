"""The Document tab: marks, jumps, the gutter, and documents of any length."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.panels.document_paint import LEFT_PX, TEXT_LEFT_PX, units
from app.panels.document_tab import WIDTH_PX, DocumentTab
from app.session.chats.reading import Document
from app.theme.theme import Theme
from core.events import Attachment, Passage, ReadingMap

PARAGRAPH = "The duty master may waive condition one, and only for a medical transfer. Say so. "
LINES = [f"{number} {PARAGRAPH}" for number in range(400)]
TEXT = "\n\n".join(LINES)


def document(text: str = TEXT, every: int = 10, source: int = 0, name: str = "handbook.txt") -> Document:
    """Every so many passages of 100 characters are kept."""
    passages = []
    for number, first in enumerate(range(0, len(text), 100)):
        last = min(first + 100, len(text))
        kept = number % every == 3
        passages.append(Passage(32 * number, 32 * number + 32, kept, 0.5, source, first, last))
    kept_tokens = sum(32 for passage in passages if passage.kept)
    reading = ReadingMap("t1", "lexical", 32 * len(passages), kept_tokens, tuple(passages))
    return Document("t1", source, source, Attachment(name, text, 9_000), reading, "t1")


@pytest.fixture
def tab(qtbot: QtBot) -> DocumentTab:
    widget = DocumentTab(Theme("light"))
    qtbot.addWidget(widget)
    widget.resize(WIDTH_PX, 800)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def settle(qtbot: QtBot, tab: DocumentTab) -> None:
    qtbot.waitUntil(lambda: not tab.view._timer.isActive(), timeout=10_000)


def colors(tab: DocumentTab) -> set[str]:
    image = tab.view.viewport().grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(0, image.width(), 2) for y in range(image.height())}


def test_it_says_so_when_there_is_none(tab: DocumentTab) -> None:
    assert tab.shown is None
    assert not tab.view.isVisible()
    assert not tab.jump(1)


def test_kept_passages_are_tinted_with_a_bar(qtbot: QtBot, tab: DocumentTab) -> None:
    theme = tab._theme
    tab.show_documents([document()])
    settle(qtbot, tab)
    assert tab.name_label.text() == "handbook.txt"
    assert tab.note_label.text() == "9,000 tokens · 35 of 351 passages kept"
    seen = colors(tab)
    assert {theme.color("accent_tint").name(), theme.color("accent").name()} <= seen
    theme.set_scheme("dark")
    assert {theme.color("accent_tint").name(), theme.color("accent").name()} <= colors(tab)


def test_a_document_that_was_read_whole_is_not_dim(tab: DocumentTab) -> None:
    tab.show_documents([replace(document(), reading=None)])
    theme = tab._theme
    assert tab.note_label.text() == "9,000 tokens"
    assert tab.filter.isHidden()
    assert tab.next_button.isHidden()
    seen = colors(tab)
    assert theme.color("accent_tint").name() not in seen
    assert theme.color("text").name() in seen
    assert theme.color("dim").name() not in seen


def test_jumps_go_from_passage_to_passage_and_are_said(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
    settle(qtbot, tab)
    stretches = tab.view.stretches
    qtbot.mouseClick(tab.next_button, Qt.MouseButton.LeftButton)
    assert tab.view.current_stretch == 0
    for _ in range(3):
        qtbot.mouseClick(tab.next_button, Qt.MouseButton.LeftButton)
    assert tab.view.current_stretch == 3
    first, last = tab.view.visible_characters()
    assert first <= stretches[3].first < last
    words = TEXT[stretches[3].first : stretches[3].last].strip()
    assert tab.view.accessibleDescription() == f"Kept passage 4 of {len(stretches)}: {words}"
    qtbot.mouseClick(tab.previous_button, Qt.MouseButton.LeftButton)
    assert tab.view.current_stretch == 2
    for _ in range(5):
        tab.jump(-1)
    assert tab.view.current_stretch == 0
    assert not tab.jump(-1)


def test_a_jump_begins_at_what_is_on_the_screen(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
    settle(qtbot, tab)
    tab.view.scroll_to_character(20_000)
    first, _ = tab.view.visible_characters()
    assert 19_000 < first <= 20_000
    assert tab.jump(1)
    after = tab.view.stretches[tab.view.current_stretch]
    assert first <= after.first < first + 1_000
    tab.view.scroll_to_character(20_000)
    assert tab.jump(-1)
    before = tab.view.stretches[tab.view.current_stretch]
    assert first - 1_100 < before.first < first


def test_the_beginning_keeps_its_margin_when_the_panel_changes(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
    tab.resize(tab.width() + 40, 700)
    assert tab.view.verticalScrollBar().value() == 0


def test_kept_only_leaves_out_the_rest(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
    settle(qtbot, tab)
    whole = tab.view.verticalScrollBar().maximum()
    tab.filter.set_value("kept")
    settle(qtbot, tab)
    assert 0 < tab.view.verticalScrollBar().maximum() < whole / 4
    tab.filter.set_value("all")
    settle(qtbot, tab)
    assert tab.view.verticalScrollBar().maximum() == whole


def test_the_gutter_shows_and_brings_the_place(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
    settle(qtbot, tab)
    at_top = tab.gutter.bracket()
    qtbot.mouseClick(tab.gutter, Qt.MouseButton.LeftButton, pos=QPoint(19, tab.gutter.height() // 2))
    first, last = tab.view.visible_characters()
    assert first < len(TEXT) / 2 < last
    assert tab.gutter.bracket().top() > at_top.top() + 200
    tab.view.setFocus()
    qtbot.keyClick(tab.view, Qt.Key.Key_End)
    assert tab.view.visible_characters()[1] == len(TEXT)
    assert tab.gutter.bracket().bottom() <= tab.gutter.height() - 12
    qtbot.keyClick(tab.view, Qt.Key.Key_Home)
    assert tab.view.visible_characters()[0] == 0
    qtbot.keyClick(tab.view, Qt.Key.Key_PageDown)
    assert tab.view.visible_characters()[0] > 500


def test_what_waits_to_be_read_is_paler_in_the_gutter(tab: DocumentTab) -> None:
    tab.show_documents([document()], 0)
    theme = tab._theme

    def strip() -> set[str]:
        image = tab.gutter.grab().toImage()
        return {image.pixelColor(19, y).name() for y in range(image.height())}

    assert theme.color("accent_mid").name() in strip()
    assert theme.color("accent").name() not in strip()
    tab.show_read(10_000)
    assert theme.color("accent").name() in strip()
    assert theme.color("accent_mid").name() not in strip()


def test_several_documents_can_be_chosen(qtbot: QtBot, tab: DocumentTab) -> None:
    first, second = document(), document("Other words. " * 300, 7, 1, "other.md")
    tab.show_documents([first, second])
    assert tab.shown == second
    assert tab.chooser.isVisible()
    assert not tab.name_label.isVisible()
    tab.chooser.set_value("0")
    assert tab.shown == first
    # What is shown stays when a map comes, or another document.
    newer = replace(first, reading=None)
    tab.show_documents([newer, second])
    assert tab.shown == newer
    tab.choose(1, 800)
    assert tab.shown == second
    assert tab.view.visible_characters()[0] <= 800
    tab.choose(7)
    assert tab.shown == second
    tab.show_documents([])
    assert tab.shown is None


def test_a_place_inside_a_kept_passage_is_the_current_one(tab: DocumentTab) -> None:
    tab.show_documents([document()])
    stretch = tab.view.stretches[5]
    tab.choose(0, stretch.first + 3)
    assert tab.view.current_stretch == 5


def test_letters_beyond_sixteen_bits_do_not_shift_the_marks(qtbot: QtBot, tab: DocumentTab) -> None:
    text = "🦭" * 20 + " after the seals"
    passages = (Passage(0, 1, False, 0.0, 0, 0, 21), Passage(1, 2, True, 1.0, 0, 21, len(text)))
    reading = ReadingMap("t", "lexical", 2, 1, passages)
    tab.show_documents([Document("t", 0, 0, Attachment("a", text), reading, "t")])
    (part,) = tab.view._units(tab.view._blocks[0])
    assert (part.first, part.last) == (41, 41 + len("after the seals"))


def test_a_book_opens_at_once(qtbot: QtBot, tab: DocumentTab) -> None:
    book = document("\n\n".join(LINES * 10))
    assert len(book.attachment.text) > 300_000
    began = time.perf_counter()
    tab.show_documents([book])
    tab.view.viewport().grab()
    opened_s = time.perf_counter() - began
    assert tab.view.laid_out < 100
    began = time.perf_counter()
    tab.choose(0, 250_000)
    tab.view.viewport().grab()
    jumped_s = time.perf_counter() - began
    # A machine under load is slow; laying out all of it would take seconds.
    assert opened_s < 2.0
    assert jumped_s < 2.0
    top = tab.view.visible_characters()[0]
    settle(qtbot, tab)
    # Measuring the rest did not move what is read.
    assert abs(tab.view.visible_characters()[0] - top) < 150
    assert tab.view.laid_out < 450


def at(tab: DocumentTab, character: int) -> QPoint:
    """A point of the viewport over the left half of a visible character."""
    view = tab.view
    block = next(each for each in view._blocks if each.start <= character < each.end)
    place = view._shown.index(view._blocks.index(block))
    layout = view._layout(place)
    position = units(layout.text()[: character - block.start])
    line = layout.lineForTextPosition(position)
    top = view._tops[place] - view.verticalScrollBar().value() + view._measures.pads(block)[0]
    x = LEFT_PX + TEXT_LEFT_PX + line.cursorToX(position)[0] + 1
    return QPoint(round(x), round(top + line.y() + line.height() / 2))


def test_text_is_selected_with_the_mouse_and_copied_as_it_is_in_the_file(
    qtbot: QtBot, tab: DocumentTab
) -> None:
    text = "First \U0001f600 line of a paragraph that was wrapped at\na fixed width by its author.\n\nSecond."
    tab.show_documents([document(text, every=100)])
    settle(qtbot, tab)
    view, port = tab.view, tab.view.viewport()
    begin, end = text.index("line of"), text.index("Second") + 3
    QTest.mousePress(port, Qt.MouseButton.LeftButton, pos=at(tab, begin))
    QTest.mouseMove(port, at(tab, end))
    QTest.mouseRelease(port, Qt.MouseButton.LeftButton, pos=at(tab, end))
    assert view.selected_text == text[begin:end]
    plain = colors(tab)
    QApplication.clipboard().clear()
    QTest.keySequence(view, QKeySequence.StandardKey.Copy)
    assert QApplication.clipboard().text() == text[begin:end]
    QTest.mousePress(
        port, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, at(tab, text.index("a fixed"))
    )
    assert view.selected_text == text[begin : text.index("a fixed")]
    QTest.mouseClick(port, Qt.MouseButton.LeftButton, pos=at(tab, 0))
    assert view.selected_text == ""
    assert colors(tab) != plain
    QTest.mouseDClick(port, Qt.MouseButton.LeftButton, pos=at(tab, text.index("paragraph") + 2))
    assert view.selected_text == "paragraph"
    QTest.keySequence(view, QKeySequence.StandardKey.SelectAll)
    assert view.selected_text == text
    tab.show_documents([document("Another text.")])
    assert view.selected_text == ""


def test_dragging_below_the_view_scrolls_and_selects(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
    settle(qtbot, tab)
    port = tab.view.viewport()
    QTest.mousePress(port, Qt.MouseButton.LeftButton, pos=at(tab, 10))
    QTest.mouseMove(port, QPoint(100, port.height() + 30))
    qtbot.waitUntil(lambda: tab.view.verticalScrollBar().value() > 400, timeout=5_000)
    QTest.mouseRelease(port, Qt.MouseButton.LeftButton, pos=QPoint(100, port.height() + 30))
    assert tab.view.selected_text.startswith(TEXT[10:40])
    assert len(tab.view.selected_text) > 1_000
