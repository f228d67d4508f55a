"""Saved prompts in the message field, by keys and by mouse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QRect, Qt
from pytestqt.qtbot import QtBot

from app.chat.composer import Composer
from app.chat.intents import EditMessage, Escape, SendMessage
from app.chat.snippets import SnippetList
from app.session.chats.snippets import BUILT_IN, Snippet, filled, known, matching
from app.theme.theme import Theme

KEY = Qt.Key
MAIL = Snippet("Reply 🚢", "Reply to {the mail} 🚢 in {two} {sentences}.\nSign with {my name}, {x: 1}.")


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    widget = Composer(Theme("light"))
    qtbot.addWidget(widget)
    widget.resize(752, 600)
    widget.show()
    widget.snippets.set_snippets(known([MAIL]))
    widget.activateWindow()
    widget.edit.setFocus()
    qtbot.waitUntil(widget.edit.hasFocus)
    return widget


def names(composer: Composer) -> list[str]:
    found = composer.snippets.list
    if not composer.snippets.is_open:
        return []
    assert isinstance(found, SnippetList)
    return [found.item(row).text() for row in range(found.count())]


def selected(composer: Composer) -> str:
    return composer.edit.textCursor().selectedText()


def test_what_is_typed_filters_the_list_and_return_inserts(qtbot: QtBot, composer: Composer) -> None:
    intents: list[object] = []
    composer.intent.connect(intents.append)
    qtbot.keyClicks(composer.edit, "/")
    assert names(composer) == [MAIL.name, *(each.name for each in BUILT_IN)]
    qtbot.keyClicks(composer.edit, "r")
    assert names(composer) == [MAIL.name, "Rewrite"]
    qtbot.keyClick(composer.edit, KEY.Key_Up)  # from the first to the last
    qtbot.keyClick(composer.edit, KEY.Key_Return)
    assert composer.text == "Rewrite the text so that it is shorter and clearer. Keep its meaning."
    assert selected(composer) == "the text"
    assert not composer.snippets.is_open
    assert not intents
    qtbot.keyClick(composer.edit, KEY.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert composer.text == "/r"
    assert not composer.snippets.is_open
    qtbot.keyClick(composer.edit, KEY.Key_Tab)
    assert not composer.edit.hasFocus(), "the placeholders are gone with the prompt"


def test_the_list_comes_back_with_the_name(qtbot: QtBot, composer: Composer) -> None:
    qtbot.keyClicks(composer.edit, "/sx")
    assert not names(composer)
    qtbot.keyClick(composer.edit, KEY.Key_Backspace)
    assert names(composer) == ["Summarize"]
    qtbot.keyClick(composer.edit, KEY.Key_Escape)
    qtbot.keyClick(composer.edit, KEY.Key_Backspace)
    assert not names(composer), "dismissed"


def test_the_list_fits_above_a_long_draft(qtbot: QtBot, composer: Composer) -> None:
    composer.snippets.set_snippets([Snippet(f"Prompt {number}", "Text") for number in range(20)])
    composer.resize(752, 200)
    composer.snippets.open()
    found = composer.snippets.list
    assert found is not None
    for top in (400, 150):
        found.place_above(QRect(20, top, 700, 90))
        assert 0 < found.geometry().top() < found.geometry().bottom() < top
    qtbot.keyClick(composer.edit, KEY.Key_Up)
    assert found.viewport().rect().contains(found.visualItemRect(found.item(19)))


def test_tab_goes_through_the_placeholders_and_then_on(qtbot: QtBot, composer: Composer) -> None:
    edit = composer.edit
    qtbot.keyClicks(edit, "/reply")
    qtbot.keyClick(edit, KEY.Key_Tab)
    assert selected(composer) == "the mail"
    edit.insertPlainText("Ada’s 🚢")  # QTest types ASCII only
    qtbot.keyClick(edit, KEY.Key_Tab)
    assert selected(composer) == "two"
    assert len(edit.extraSelections()) == 3
    qtbot.keyClick(edit, KEY.Key_Tab)
    qtbot.keyClicks(edit, "words")
    qtbot.keyClick(edit, KEY.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(edit, KEY.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    assert selected(composer) == "Ada’s 🚢"
    for expected in ("two", "words", "my name", ""):
        qtbot.keyClick(edit, KEY.Key_Tab)
        assert selected(composer) == expected
    assert composer.text == "Reply to Ada’s 🚢 🚢 in two words.\nSign with my name, {x: 1}."
    assert edit.textCursor().atEnd()
    assert not edit.extraSelections()
    assert edit.hasFocus()
    qtbot.keyClick(edit, KEY.Key_Tab)
    assert not edit.hasFocus()


def test_a_message_may_begin_with_a_slash(qtbot: QtBot, composer: Composer) -> None:
    intents: list[object] = []
    composer.intent.connect(intents.append)
    edit = composer.edit
    qtbot.keyClicks(edit, "/s")
    qtbot.keyClick(edit, KEY.Key_Escape)
    assert (composer.text, names(composer), intents) == ("/s", [], [])
    qtbot.keyClicks(edit, "ummarize")
    assert not names(composer)
    qtbot.keyClick(edit, KEY.Key_Return)
    assert isinstance(intents[-1], SendMessage)
    qtbot.keyClick(edit, KEY.Key_Escape)
    assert isinstance(intents[-1], Escape)
    composer.clear()
    qtbot.keyClicks(edit, "/usr/bin")
    assert not names(composer)
    qtbot.keyClick(edit, KEY.Key_Return)
    assert isinstance(intents[-1], SendMessage)
    # In a text, after another draft came, and after all was deleted.
    composer.clear()
    qtbot.keyClicks(edit, "and/or")
    assert not names(composer)
    composer.clear()
    qtbot.keyClicks(edit, "/")
    assert names(composer)
    composer.set_text("another draft")
    assert not names(composer)
    composer.clear()
    qtbot.keyClicks(edit, "/")
    qtbot.keyClick(edit, KEY.Key_Backspace)
    assert not names(composer)
    qtbot.keyClick(edit, KEY.Key_Up)
    assert isinstance(intents[-1], EditMessage)


def test_the_mouse_inserts_at_the_cursor(qtbot: QtBot, composer: Composer) -> None:
    qtbot.keyClicks(composer.edit, "First. ")
    menu = composer.attach_menu()
    next(each for each in menu.actions() if each.text() == "Saved Prompt…").trigger()
    menu.deleteLater()
    found = composer.snippets.list
    assert isinstance(found, SnippetList)
    row = names(composer).index("Explain")
    spot = found.visualItemRect(found.item(row)).center()
    qtbot.mouseClick(found.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(spot))
    assert composer.text == "First. Explain the passage in simple words, with an example."
    assert selected(composer) == "the passage"
    assert composer.edit.hasFocus()
    composer.clear()
    assert not composer.edit.extraSelections()


def test_own_prompts_hide_built_in_ones_of_their_name() -> None:
    own = Snippet("summarize", "Short: {x}"), Snippet("", "no"), Snippet("no", " ")
    assert [each.name for each in known(own)] == ["summarize", *(each.name for each in BUILT_IN[1:])]
    assert known([Snippet("SUMMARIZE", "")]) == BUILT_IN, "not before it has a text"
    assert [each.name for each in matching(BUILT_IN, "PASS")] == ["Quote the Passage"]
    assert [each.name for each in matching(BUILT_IN, "e")] == ["Explain"]


@given(st.lists(st.tuples(st.text("ab {\n", max_size=4), st.text("xyz", min_size=1, max_size=4)), max_size=5))
def test_placeholders_are_where_their_names_are(pieces: list[tuple[str, str]]) -> None:
    text, places = filled("".join(f"{before}{{{name}}}" for before, name in pieces))
    assert [text[first:last] for first, last in places] == [name for _, name in pieces]
    assert text == "".join(f"{before}{name}" for before, name in pieces)
