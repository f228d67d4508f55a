"""The Document tab: blocks, marks, jumps, the search, the gutter, and documents of any length."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.reading_map import Stretch
from app.panels.document_paint import (
    LEFT_PX,
    MOST_CHARACTERS,
    MOST_MATCHES,
    NO_MATCHES,
    TEXT_LEFT_PX,
    BlockPart,
    Matches,
    TextBlock,
    block_at,
    blocks_of,
    matches_of,
    parts_of,
)
from app.panels.document_tab import WIDTH_PX, DocumentTab
from app.richtext.selection import utf16_length
from app.session.chats.conversation import Document
from app.theme.theme import theme
from core.events import Attachment, Passage, ReadingMap
from tests.app.chat.watching import colours, picture, pixels_of

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
    widget = DocumentTab()
    qtbot.addWidget(widget)
    widget.resize(WIDTH_PX, 800)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def settle(qtbot: QtBot, tab: DocumentTab) -> None:
    qtbot.waitUntil(lambda: not tab.view._timer.isActive(), timeout=20_000)


def colors(tab: DocumentTab) -> set[str]:
    return colours(picture(tab.view.viewport()))


def test_it_says_so_when_there_is_none(tab: DocumentTab) -> None:
    assert tab.shown is None
    assert not tab.view.isVisible()
    assert not tab.jump(1)


def test_kept_passages_are_tinted_with_a_bar(qtbot: QtBot, tab: DocumentTab) -> None:
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
    book = document("\n\n".join(LINES * 5))
    assert len(book.attachment.text) > 150_000
    tab.show_documents([book])
    tab.view.viewport().grab()
    assert tab.view.laid_out < 100
    tab.choose(0, 125_000)
    tab.view.viewport().grab()
    assert tab.view.laid_out < 200
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
    position = utf16_length(layout.text()[: character - block.start])
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
    qtbot.waitUntil(lambda: tab.view.verticalScrollBar().value() > 400, timeout=20_000)
    QTest.mouseRelease(port, Qt.MouseButton.LeftButton, pos=QPoint(100, port.height() + 30))
    assert tab.view.selected_text.startswith(TEXT[10:40])
    assert len(tab.view.selected_text) > 1_000


KEY = Qt.Key
FAR = "The pilot sleeps here. "


def plain(text: str) -> Document:
    """A document of which all is read."""
    return Document("t1", 0, 0, Attachment("plain.txt", text, 10), None, "")


def framed(tab: DocumentTab) -> tuple[set[int], set[int]]:
    """The columns and rows of pixels with the colour of the frame around what is looked at."""
    image = picture(tab.view.viewport())
    color = theme.color("accent").rgb()
    found = [divmod(at, image.width()) for at, each in enumerate(pixels_of(image)) if each == color]
    return {x for _, x in found}, {y for y, _ in found}


def everywhere(character: int) -> bool:
    return True


def test_any_capitals_and_any_white_space() -> None:
    text = "Fog lamp. FOG\n  lamp. foglamp"
    found = matches_of(text, " fog lamp", everywhere, 0)
    assert [text[a:b] for a, b in zip(found.starts, found.ends)] == ["Fog lamp", "FOG\n  lamp"]
    assert found.current == 0
    assert matches_of(text, "  ", everywhere, 0) is NO_MATCHES
    assert matches_of(text, "tide", everywhere, 0) == Matches()


def test_it_begins_at_what_is_seen_and_goes_round() -> None:
    found = matches_of("a b a b a", "a", everywhere, 3)
    assert (found.starts, found.current) == ((0, 4, 8), 1)
    assert matches_of("a b", "a", everywhere, 2).current == 0


def test_more_than_anybody_steps_through_are_not_collected() -> None:
    found = matches_of("e" * (MOST_MATCHES + 1), "e", everywhere, 0)
    assert (len(found.starts), found.whole) == (MOST_MATCHES, False)


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
    tab.find_button.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(tab.find_button, Qt.Key.Key_Return)
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


WRAPPED = "7.2 Fog\nFirst line\nsecond line\n\nNew paragraph"


def test_lines_headings_and_paragraphs() -> None:
    assert blocks_of(WRAPPED) == (
        TextBlock(0, 7, heading=True),
        TextBlock(8, 18, opens=True, closes=False),
        TextBlock(19, 30, opens=False, closes=True),
        TextBlock(32, 45),
    )
    assert blocks_of("") == ()
    assert blocks_of("\n \n") == ()


@given(st.text("ab \n#1.", max_size=300))
def test_blocks_hold_all_that_can_be_seen(text: str) -> None:
    found = blocks_of(text)
    assert "".join("".join(text[b.start : b.end] for b in found).split()) == "".join(text.split())
    assert all(one.end <= other.start for one, other in pairwise(found))
    if found:
        assert found[0].opens
        assert found[-1].closes


def test_hard_wrapped_prose_is_one_block() -> None:
    """Lists, code and short lines keep their breaks."""
    wrapped = (
        "A vessel that leaves in fog sounds one long blast\nevery two minutes, and waits at the pilot\nbuoy."
    )
    text = f"{wrapped}\n\n- one entry of a list that is as long as the lines of prose above\n- two\n    code"
    assert [text[block.start : block.end] for block in blocks_of(text)] == [
        wrapped,
        "- one entry of a list that is as long as the lines of prose above",
        "- two",
        "    code",
    ]


def test_very_long_lines_are_cut_at_words() -> None:
    text = "word " * 2_000
    found = blocks_of(text)
    assert all(block.end - block.start <= MOST_CHARACTERS for block in found)
    assert "".join(text[block.start : block.end] for block in found) == text
    assert all(text[block.end - 1] == " " for block in found[:-1])
    assert [block.opens for block in found] == [True] + [False] * (len(found) - 1)
    assert len(blocks_of("x" * 10_000)) == 5


def test_what_of_a_block_is_read() -> None:
    stretches = (Stretch(0, 10), Stretch(20, 40), Stretch(50, 60))
    starts = [stretch.first for stretch in stretches]
    assert parts_of(TextBlock(5, 30), stretches, starts) == (BlockPart(0, 5, 0), BlockPart(15, 25, 1))
    assert parts_of(TextBlock(25, 35), stretches, starts) == (BlockPart(0, 10, 1),)
    assert parts_of(TextBlock(40, 50), stretches, starts) == ()
    assert parts_of(TextBlock(0, 5), (), ()) == ()


def test_the_block_of_a_character() -> None:
    starts = [block.start for block in blocks_of(WRAPPED)]
    assert [block_at(starts, place) for place in (0, 7, 8, 31, 32, 99)] == [0, 0, 1, 2, 3, 3]
