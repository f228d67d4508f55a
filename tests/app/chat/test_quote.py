"""Quotes: their lines, and where they stand in what is written already."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.composer import Composer
from app.chat.composer_edit import quote_lines
from app.theme.theme import Theme


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("one", "> one"),
        ("one\n\n  two\n", "> one\n>\n>   two"),
        ("\n- a\n- b", "> - a\n> - b"),
        ("> said", "> > said"),
    ],
)
def test_each_line_is_marked(text: str, quoted: str) -> None:
    assert quote_lines(text) == quoted


@pytest.mark.parametrize(
    ("written", "cursor", "expected"),
    [
        ("", 0, "> q\n\n|"),
        ("Why?", 4, "Why?\n\n> q\n\n|"),
        ("Why?\n", 5, "Why?\n\n> q\n\n|"),
        ("ab", 1, "a\n\n> q\n\n|\n\nb"),
        ("\nb", 0, "> q\n\n|\nb"),
    ],
)
def test_a_quote_is_a_paragraph_of_its_own_and_writing_goes_on_below(
    qtbot: QtBot, written: str, cursor: int, expected: str
) -> None:
    composer = Composer(Theme("light"))
    qtbot.addWidget(composer)
    composer.set_text(written)
    place = composer.edit.textCursor()
    place.setPosition(cursor)
    composer.edit.setTextCursor(place)
    composer.quote("q")
    at = composer.edit.textCursor().position()
    assert f"{composer.text[:at]}|{composer.text[at:]}" == expected
    composer.edit.undo()
    assert composer.text == written


def test_a_quote_as_long_as_a_document_comes_along_as_one(qtbot: QtBot) -> None:
    composer = Composer(Theme("light"))
    qtbot.addWidget(composer)
    composer.quote("a line\n" * 5_000)
    composer.quote(" \n")
    assert composer.text == ""
    assert [each.name for each in composer.attachments] == ["Quoted text"]
