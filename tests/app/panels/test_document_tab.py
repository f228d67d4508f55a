"""The Document tab: marks, jumps, the search, the gutter, and documents of any length."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFont, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSlider, QApplication, QTextEdit
from pytestqt.qtbot import QtBot

from app.panels import document_view
from app.panels.document_tab import WIDTH_PX, DocumentTab
from app.panels.document_text import MOST_MATCHES, NO_MATCHES, Matches, matches_of, shown_text
from app.panels.document_view import DocumentView
from app.session.chats.conversation import Document
from app.theme.theme import theme
from core.events import Attachment, Passage, ReadingMap
from tests.app.chat.watching import colours, picture, pixels_of

OWN = str(Path(document_view.__file__).parents[1])
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


def colors(tab: DocumentTab) -> set[str]:
    QApplication.processEvents()
    return colours(picture(tab.view.viewport()))


def marked(tab: DocumentTab) -> list[str]:
    QApplication.processEvents()
    return [each.cursor.selectedText() for each in tab.view.extraSelections()]


def test_it_says_so_when_there_is_none(tab: DocumentTab) -> None:
    assert tab.shown is None
    assert not tab.view.isVisible()
    assert not tab.jump(1)


def test_kept_passages_are_tinted_with_a_bar(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
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
    tab.view.scroll_to_character(20_000)
    first, _ = tab.view.visible_characters()
    assert 19_000 < first <= 20_000 < tab.view.visible_characters()[1]
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
    whole = tab.view.verticalScrollBar().maximum()
    tab.filter.set_value("kept")
    assert 0 < tab.view.verticalScrollBar().maximum() < whole / 4
    tab.filter.set_value("all")
    assert tab.view.verticalScrollBar().maximum() >= whole


def test_the_gutter_shows_and_brings_the_place(qtbot: QtBot, tab: DocumentTab) -> None:
    tab.show_documents([document()])
    at_top = tab.gutter.bracket()
    qtbot.mouseClick(tab.gutter, Qt.MouseButton.LeftButton, pos=QPoint(19, tab.gutter.height() // 2))
    first, last = tab.view.visible_characters()
    assert first < len(TEXT) / 2 < last
    assert tab.gutter.bracket().top() > at_top.top() + 200
    tab.view.setFocus()
    qtbot.keyClick(tab.view, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert tab.view.visible_characters()[1] == len(TEXT)
    assert tab.gutter.bracket().bottom() <= tab.gutter.height() - 12
    qtbot.keyClick(tab.view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
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
    # What is shown stays when it is counted, a map comes, or another document.
    newer = replace(first, reading=None, attachment=replace(first.attachment, tokens=5))
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


def test_letters_of_two_units_do_not_shift_the_marks(tab: DocumentTab) -> None:
    text = "🦭" * 20 + " after the seals"
    passages = (Passage(0, 1, False, 0.0, 0, 0, 21), Passage(1, 2, True, 1.0, 0, 21, len(text)))
    reading = ReadingMap("t", "lexical", 2, 1, passages)
    tab.show_documents([Document("t", 0, 0, Attachment("a", text), reading, "t")])
    assert marked(tab) == ["after the seals"]
    tab.finder.search("seals")
    assert marked(tab)[1:] == ["seals"]
    tab.view.selectAll()
    assert tab.view.selected_text == text


def test_a_place_in_a_book_stays_in_the_view_at_every_width(tab: DocumentTab) -> None:
    text = "\n\n".join(LINES * 5)
    assert len(text) > 150_000
    tab.show_documents([document(text)])
    tab.show_source(0, 125_000, 125_020)
    for width in (WIDTH_PX, WIDTH_PX + 60, WIDTH_PX - 80):
        tab.resize(width, 800)
        first, last = tab.view.visible_characters()
        assert first + 300 < 125_000 < last - 300
        assert text[125_000:125_020] in marked(tab)
    assert tab.view.accessibleDescription() == text[125_000:125_020].strip()
    QTest.keyClick(tab.view, Qt.Key.Key_PageUp)
    assert tab.view.place is None
    assert tab.view.current_text == ""


@pytest.mark.parametrize("seed", range(4))
def test_qt_gets_marks_from_the_event_loop_alone(
    tab: DocumentTab, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng, running, again = random.Random(seed), [], Matches((0,), (3,))
    view, bar, stock = tab.view, tab.view.verticalScrollBar(), DocumentView.setExtraSelections

    def noted(self: DocumentView, marks: list[QTextEdit.ExtraSelection]) -> None:
        stack = traceback.extract_stack()
        running.append([each.name for each in stack if each.filename.startswith(OWN)])
        stock(self, marks)

    monkeypatch.setattr(DocumentView, "setExtraSelections", noted)
    for moved in (bar.valueChanged, bar.rangeChanged):
        moved.connect(lambda: view.show_matches(again))
    tab.show_documents([document()])
    for _ in range(60):
        lines, first = rng.choice([1, 2, 4, 6, 9, 400]), rng.randrange(len(view.text))
        action, zoom = rng.choice(list(QAbstractSlider.SliderAction)), rng.choice([0.75, 1.0, 2.0])
        acts: list[Callable[[], object]] = [
            lambda: tab.resize(rng.randint(300, 900), rng.randint(120, 900)),
            lambda lines=lines: tab.show_documents([document("\n\n".join(LINES[:lines]))]),
            lambda: tab.jump(rng.choice([-1, 1])),
            lambda action=action: bar.triggerAction(action),
            lambda zoom=zoom: theme.set_zoom(zoom),
            view.repaint,
            lambda: tab.filter.set_value(rng.choice(["all", "kept"])),
            lambda first=first: view.show_place(first, min(first + 300, len(view.text))),
            lambda: tab.finder.search(rng.choice(["", "duty", "master"])),
            QApplication.processEvents,
        ]
        rng.choice(acts)()
    shown = marked(tab)
    theme.changed.emit()
    assert marked(tab) == shown
    assert all(names == ["_show_marks"] for names in running)


@pytest.mark.parametrize("mark", ["", "\U0001f600 "])
def test_headings_and_nothing_else_are_bold_at_every_size(tab: DocumentTab, mark: str) -> None:
    lines = [f"# One {mark}", "Some words.", "## Two", "", "Others.", "```", "# no heading", "```"]
    tab.show_documents([plain("\n".join(lines))])
    for zoom in (1.0, 1.5):
        theme.set_zoom(zoom)
        QApplication.processEvents()
        block, bold, sizes = tab.view.document().begin(), [], set()
        while block.isValid():
            (run,) = block.layout().glyphRuns(0, 1) or (None,)
            sizes |= {run.rawFont().pixelSize()} if run else set()
            bold += [block.text()] if run and run.rawFont().weight() > QFont.Weight.Medium else []
            block = block.next()
        assert bold == [lines[0], lines[2]]
        assert len(sizes) == 1


def at(tab: DocumentTab, character: int) -> QPoint:
    """A point of the viewport at the left edge of a visible character."""
    return tab.view.cursorRect(tab.view._range(character)).center()


def test_text_is_selected_with_the_mouse_and_copied_as_it_is_in_the_file(tab: DocumentTab) -> None:
    text = "First \U0001f600 line of a paragraph wrapped at\na fixed width\u00a0by a person.\n\nSecond."
    tab.show_documents([document(text, every=100)])
    view, port = tab.view, tab.view.viewport()
    begin, end = text.index("line of"), text.index("Second") + 3
    QTest.mousePress(port, Qt.MouseButton.LeftButton, pos=at(tab, begin))
    QTest.mouseMove(port, at(tab, end))
    QTest.mouseRelease(port, Qt.MouseButton.LeftButton, pos=at(tab, end))
    QApplication.clipboard().clear()
    QTest.keySequence(view, QKeySequence.StandardKey.Copy)
    assert QApplication.clipboard().text() == text[begin:end]
    QTest.keySequence(view, QKeySequence.StandardKey.SelectAll)
    assert view.selected_text == text
    tab.show_documents([document("Another text.")])
    assert view.selected_text == ""


FAR = "The pilot sleeps here. "


def plain(text: str) -> Document:
    return Document("t1", 0, 0, Attachment("plain.txt", text, 10), None, "")


def framed(tab: DocumentTab) -> tuple[set[int], set[int]]:
    """The columns and rows of pixels with the colour of the frame around what is looked at."""
    QApplication.processEvents()
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
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Return)
    assert finder.bar.count.text() == "2 of 2"
    assert view.visible_characters()[0] > len(TEXT) + 100
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert finder.bar.count.text() == "1 of 2"
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Escape)
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


@given(st.text("ab \n\r#1.", max_size=300))
def test_the_shown_text_has_the_same_letters_at_the_same_positions(text: str) -> None:
    shown, _ = shown_text(text)
    assert len(shown) == len(text)
    assert all(one == other for one, other in zip(shown, text) if not one.isspace() or not other.isspace())


def test_only_hard_wrapped_prose_is_joined() -> None:
    """Lists, code, headings and short lines keep their breaks."""
    wrapped = (
        "A vessel that leaves in fog sounds one long blast\nevery two minutes, and waits at the pilot\nbuoy."
    )
    rest = "\n\n7.2 Fog\nFirst line\n- an entry of a list that is as long as lines of prose\n- two\n    code"
    shown, headings = shown_text(wrapped + rest)
    assert shown == wrapped.replace("\n", " ") + rest
    assert headings == [shown.index("7.2 Fog")]


def test_very_long_lines_are_cut_at_words_or_wrap_anywhere(tab: DocumentTab) -> None:
    lines = shown_text("word " * 2_000)[0].split("\n")
    assert all(len(line) < 2_010 for line in lines)
    assert all(line.endswith("word") for line in lines[:-1])
    assert shown_text("x" * 10_000)[0] == "x" * 10_000
    for text, wraps in (("ab," * 10_000, "WrapAnywhere"), ("word " * 10_000, "WrapAtWordBoundaryOrAnywhere")):
        tab.view.show_text(text)  # looking for ends of words takes the square of such a text's length
        assert tab.view.wordWrapMode().name == wraps
