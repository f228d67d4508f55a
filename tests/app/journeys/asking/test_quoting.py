"""Quoting: what is selected in an answer, or marked in a document, stands in the message as a quote."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QMenu

from app.richtext import strings
from app.richtext.text_canvas import TextCanvas
from app.shell.window import MainWindow
from core.events import Attachment, Message
from tests.app.stage import answer_view, asked, last, press, ready, shown

CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)
KEY = Qt.Key


def body(window: MainWindow) -> TextCanvas:
    answer = answer_view(window)
    return answer.body


def entry(menu: QMenu, title: str) -> object:
    return next(action for action in menu.actions() if action.text() == title)


async def test_a_selection_is_quoted_by_a_key_and_by_the_menu(window: MainWindow) -> None:
    composer = window.views.composer
    await asked(window, "write 9 about tides")
    body(window).setFocus()
    for _ in range(5):
        await press(window, KEY.Key_Right, CTRL | SHIFT)
    chosen = body(window).selected_text
    await press(window, KEY.Key_B, CTRL | SHIFT)
    assert composer.edit.hasFocus()
    assert composer.text.rstrip("\n") == "> " + chosen.strip()
    for letter in "WHY":
        await press(window, KEY(ord(letter)))
    assert composer.text == f"> {chosen.strip()}\n\nwhy"
    await press(window, KEY.Key_Return)
    assert window.controller.chats.open.turns[-1].user.content == f"> {chosen.strip()}\n\nwhy"
    await ready(window)
    assert shown(window)
    assert last(window).status == "finished"

    window.controller.chat.start()
    await asked(window, "write 3 about tides")
    canvas = body(window)
    menu = canvas.menu_at(QPointF(2, 2))
    assert not entry(menu, strings.MENU_QUOTE).isEnabled()
    canvas.select_all()
    menu = canvas.menu_at(QPointF(2, 2))
    entry(menu, strings.MENU_QUOTE).trigger()
    lines = window.views.composer.text.split("\n")
    assert lines[:2] == ["> write 3 about tides", ">"]
    assert lines[2].startswith("> ")
    assert lines[-2:] == ["", ""]


@pytest.mark.parametrize("width", [1440, 1024])  # the panel is beside the chat, or over it
async def test_the_marked_passage_of_a_document_is_quoted_and_the_key_is_on_the_sheet(
    window: MainWindow, width: int
) -> None:
    window.resize(width, 700)
    views = window.views
    text = "\n\n".join(f"Rule {n}: the pilot waits." for n in range(200))
    window.controller.asking.submit(Message("user", "skim write 4", (Attachment("rules.md", text),)))
    await ready(window)
    await press(window, KEY.Key_D, CTRL | ALT)
    await press(window, KEY.Key_Down, CTRL | ALT)
    stretch = views.document.view.stretches[0]
    await press(window, KEY.Key_B, CTRL | SHIFT)
    first = text[stretch.first : stretch.last].strip().split("\n")[0]
    assert views.composer.text.startswith(f"> {first}\n")
    assert views.composer.edit.hasFocus()
    keys = dict(row for _, rows in window.menu_actions.sheet() for row in rows)
    assert keys["Quote Selection"] in ("Ctrl+Shift+B", "⇧⌘B")
