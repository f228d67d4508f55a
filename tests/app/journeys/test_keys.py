"""Every key of the design's table, as the window system delivers it to the real window.

The rest of them are tried where what they do is tested: sending (test_window), the zoom and the
settings beside their own tests; Tab in test_tab_order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.controls.numbers import Spin
from app.features.library import LibraryWindow
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import Attachment, Message
from tests.app.stage import choose_in_sheet, click, last, play, press, ready, sheet, until

CTRL, SHIFT, ALT, META = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
    Qt.KeyboardModifier.MetaModifier,
)
SIDEBAR = CTRL | META if sys.platform == "darwin" else CTRL | ALT
KEY = Qt.Key
NONE = Qt.KeyboardModifier.NoModifier


def test_chats(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        views, controller = window.views, window.controller
        await ready(window)
        ask(window, "write 5 about tides")
        await ready(window)
        first = controller.chats.open.id
        await press(window, KEY.Key_N, CTRL)
        assert controller.chats.open.id != first
        await press(window, KEY.Key_K, CTRL)
        assert QApplication.focusWidget() is views.sidebar.search
        controller.chat.select(first)
        await press(window, KEY.Key_F, CTRL)
        assert views.transcript.finder.is_open
        assert views.transcript.finder.bar.field.hasFocus()
        for letter in "w3":
            await press(window, KEY(ord(letter.upper())))
        await until(lambda: "of" in views.transcript.finder.bar.count.text())
        before = views.transcript.finder.bar.count.text()
        await press(window, KEY.Key_G, CTRL)
        await press(window, KEY.Key_G, CTRL | SHIFT)
        assert views.transcript.finder.bar.count.text() == before
        await press(window, KEY.Key_Escape)
        assert not views.transcript.finder.is_open

    play(qapp, scene)


def test_writing_and_sending(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        views, controller = window.views, window.controller
        await ready(window)
        for letter in "HI":
            await press(window, KEY(ord(letter)))
        await press(window, KEY.Key_Return, SHIFT)
        await press(window, KEY.Key_3)
        assert views.composer.text == "hi\n3"
        await press(window, KEY.Key_Return)
        assert controller.chats.open.turns[-1].user.content == "hi\n3"
        await ready(window)
        await press(window, KEY.Key_Up)
        assert views.composer.text == "hi\n3"
        assert views.editing_bar.isVisible()
        # Escape takes that back; there is no answer to stop.
        await press(window, KEY.Key_Escape)
        assert views.composer.text == ""
        old = controller.chats.open.turns[-1].id
        await press(window, KEY.Key_R, CTRL)
        await ready(window)
        assert controller.chats.open.turns[-1].id != old

    play(qapp, scene)


def test_a_raw_paste_from_anywhere(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        composer = window.views.composer
        await ready(window)
        QGuiApplication.clipboard().setText("a word " * 3_000)
        await press(window, KEY.Key_V, CTRL)
        await until(lambda: len(composer.attachments) == 1)
        window.views.sidebar.search.setFocus()
        await press(window, KEY.Key_V, CTRL | SHIFT)
        assert composer.text.startswith("a word a word")
        assert composer.edit.hasFocus()
        assert len(composer.attachments) == 1
        # The Edit menu's keys mean the text that has the focus.
        await press(window, KEY.Key_A, CTRL)
        await press(window, KEY.Key_X, CTRL)
        assert composer.text == ""
        window.menu_actions["undo"].trigger()
        assert composer.text.startswith("a word a word")

    play(qapp, scene)


def test_attaching_a_file(qapp: QApplication, tmp_path: Path) -> None:
    """The sheet belongs to its window and runs no event loop of its own: the answer is written meanwhile."""
    notes = tmp_path / "notes.txt"
    notes.write_text("High water at noon.")

    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: bool(last(window).tokens))
        await press(window, KEY.Key_O, CTRL)
        dialog = await sheet(window)
        written = len(last(window).tokens)
        await until(lambda: len(last(window).tokens) > written + 2)
        window.menu_actions["attach_folder"].trigger()
        assert await sheet(window) is dialog  # a window has one sheet at a time
        await choose_in_sheet(window)
        assert window.views.composer.attachments == ()
        await press(window, KEY.Key_O, CTRL)
        await choose_in_sheet(window, notes)
        await until(lambda: [each.name for each in window.views.composer.attachments] == ["notes.txt"])

    play(qapp, scene)


def _control(window: MainWindow) -> QWidget:
    """A setting of the inspector, in a field that takes text."""
    window.columns.show_inspector(True)
    window.views.side.show_tab("settings")
    found = (each for each in window.views.inspector.findChildren(Spin) if each.isVisible())
    return next(found, window.views.race.done_button)  # which stands where the settings stood


def _answer(window: MainWindow) -> QWidget:
    answer = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
    assert answer
    return answer.body


WHERE: dict[str, Callable[[MainWindow], QWidget]] = {
    "composer": lambda window: window.views.composer.edit,
    "answer": _answer,
    "chats": lambda window: window.views.sidebar.list,
    "settings": _control,
}


@pytest.mark.parametrize(
    ("key", "held"), [(KEY.Key_Escape, Qt.KeyboardModifier.NoModifier), (KEY.Key_Period, CTRL)]
)
@pytest.mark.parametrize("where", WHERE)
def test_stopping_from_anywhere(
    qapp: QApplication, where: str, key: Qt.Key, held: Qt.KeyboardModifier
) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 2)
        widget = WHERE[where](window)
        widget.setFocus()
        assert QApplication.focusWidget() is widget
        assert window.menu_actions["stop"].isEnabled()
        await press(window, key, held)
        await ready(window)
        assert last(window).status == "stopped"
        assert not window.menu_actions["stop"].isEnabled()

    play(qapp, scene)


@pytest.mark.parametrize("where", WHERE)
def test_the_windows_keys_work_from_anywhere(qapp: QApplication, where: str) -> None:
    """No part of the window keeps a key of the table for itself."""

    async def scene(window: MainWindow) -> None:
        views, actions = window.views, window.menu_actions
        await ready(window)
        text = "\n\n".join(f"Rule {n}: the pilot waits." for n in range(200))
        window.controller.asking.submit(Message("user", "skim write 4", (Attachment("rules.md", text),)))
        await ready(window)
        views.composer.set_text("typed")
        heard: list[str] = []
        table = [
            ("attach", KEY.Key_O, CTRL),
            ("search", KEY.Key_K, CTRL),
            ("find", KEY.Key_F, CTRL),
            ("find_next", KEY.Key_G, CTRL),
            ("find_previous", KEY.Key_G, CTRL | SHIFT),
            ("inspector", KEY.Key_I, CTRL | ALT),
            ("inspector", KEY.Key_I, CTRL | ALT),
            ("sidebar", KEY.Key_S, SIDEBAR),
            ("sidebar", KEY.Key_S, SIDEBAR),
            ("tint", KEY.Key_T, CTRL),
            ("document", KEY.Key_D, CTRL | ALT),
            ("next_passage", KEY.Key_Down, CTRL | ALT),
            ("previous_passage", KEY.Key_Up, CTRL | ALT),
            ("document", KEY.Key_D, CTRL | ALT),
            ("quote", KEY.Key_B, CTRL | SHIFT),
            ("zoom_in", KEY.Key_Plus, CTRL),
            ("zoom_out", KEY.Key_Minus, CTRL),
            ("zoom_reset", KEY.Key_0, CTRL),
            ("paste_raw", KEY.Key_V, CTRL | SHIFT),
            ("race", KEY.Key_R, CTRL | SHIFT),
            ("race", KEY.Key_R, CTRL | SHIFT),
            ("regenerate", KEY.Key_R, CTRL),
        ]
        for name in dict.fromkeys(name for name, _, _ in table):
            actions[name].triggered.connect(lambda checked, name=name: heard.append(name))
        QGuiApplication.clipboard().setText("raw")
        for name, key, held in table:
            views.transcript.finder.close()
            widget = WHERE[where](window)
            widget.setFocus()
            before = views.composer.text
            await press(window, key, held)
            if name == "attach":
                await choose_in_sheet(window)
            if name == "paste_raw" and where == "composer":
                # Its own field knows what that means.
                assert views.composer.text == before + "raw"
            else:
                assert heard[-1:] == [name], (name, heard)
        await ready(window)
        assert "typed" in views.composer.text

    play(qapp, scene)


def test_from_one_kept_passage_to_the_next(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        views = window.views
        await ready(window)
        text = "\n\n".join(f"Rule {n}: the pilot waits." for n in range(200))
        window.controller.asking.submit(Message("user", "skim write 4", (Attachment("rules.md", text),)))
        await ready(window)
        views.composer.edit.setFocus()
        for number in range(3):
            await press(window, KEY.Key_Down, CTRL | ALT)
            assert views.document.view.current_stretch == number
        await press(window, KEY.Key_Up, CTRL | ALT)
        assert views.document.view.current_stretch == 1
        # One can go on writing.
        assert views.composer.edit.hasFocus()

    play(qapp, scene)


def test_letters_are_the_messages_wherever_no_field_has_the_keyboard(qapp: QApplication) -> None:
    """They were lost after a click on a chat, a source, the find bar's × and Cancel."""

    async def scene(window: MainWindow) -> None:
        views, controller = window.views, window.controller
        await ready(window)
        for question in ("write 3", "write 4"):
            controller.chat.start()
            ask(window, question)
            await ready(window)

        async def typed(what: str) -> None:
            for letter in "hi":
                await press(window, KEY(ord(letter.upper())))
            assert views.composer.text == "hi", what
            assert views.composer.edit.hasFocus(), what
            views.composer.set_text("")

        chats = views.sidebar.list
        chats.setFocus()
        await click_row(window, 1)
        assert chats.hasFocus()
        await typed("after a chat was clicked")
        await press(window, KEY.Key_F, CTRL)
        await click(views.transcript.finder.bar.close_button)
        await typed("after the find bar was closed")
        views.transcript.setFocus()
        await typed("in the transcript")
        answer = views.transcript.answer(controller.chats.open.turns[-1].id)
        assert answer
        answer.footer.buttons[0].setFocus()
        await typed("on a button under an answer")
        views.inspector.setFocus()
        await typed("in the inspector")
        # A field keeps its letters, and what covers the message too.
        views.sidebar.search.setFocus()
        await press(window, KEY.Key_X)
        assert (views.sidebar.search.text(), views.composer.text) == ("x", "")
        views.sidebar.search.clear()
        controller.racing.show()
        await press(window, KEY.Key_X)
        assert views.composer.text == ""

    play(qapp, scene)


async def click_row(window: MainWindow, number: int) -> None:
    chats = window.views.sidebar.list
    ids = [each.id for each in window.controller.chats.listed()]
    rows = [chats.model().index(row, 0) for row in range(chats.model().rowCount())]
    shown = [
        index for index in rows if chats.row(ids[number]) and index.data() == chats.row(ids[number]).title
    ]
    place = chats.visualRect(shown[0]).center()
    QTest.mouseClick(chats.viewport(), Qt.MouseButton.LeftButton, NONE, place)


def test_escape_closes_one_thing_at_a_time_before_it_stops(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        views, controller = window.views, window.controller
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 3)
        controller.racing.show()
        await press(window, KEY.Key_Escape)
        assert not controller.racing.open
        assert controller.link.phase is Phase.WRITING, "the race stopped the answer behind it"
        views.transcript.finder.open()
        views.composer.edit.setFocus()
        await press(window, KEY.Key_Escape)
        assert not views.transcript.finder.is_open
        assert controller.link.phase is Phase.WRITING
        await press(window, KEY.Key_Escape)
        await ready(window)
        assert last(window).status == "stopped"
        # Nothing is to be stopped: the find bar closes from anywhere, too.
        views.transcript.finder.open()
        views.transcript.setFocus()
        await press(window, KEY.Key_Escape)
        assert not views.transcript.finder.is_open

    play(qapp, scene)


def test_escape_closes_the_library_from_its_search(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        library = window.windows.show("library")
        assert isinstance(library, LibraryWindow)
        library.search.setFocus()
        library.search.setText("tides")
        await press(library, KEY.Key_Escape)
        assert (library.search.text(), library.isVisible()) == ("", True)
        await press(library, KEY.Key_Escape)
        assert library.isHidden()

    play(qapp, scene)


def test_another_chat_is_found_nothing_in_and_begins_at_its_beginning(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        views, controller = window.views, window.controller
        await ready(window)
        window.resize(980, 640)
        ask(window, "write 3")
        await ready(window)
        await press(window, KEY.Key_F, CTRL)
        finder = views.transcript.finder
        finder.bar.field.setText("write")
        bar = finder.bar.geometry()
        assert not bar.intersects(views.transcript.viewport().geometry()), "it covers the first lines"
        page = views.first_page.verticalScrollBar()
        page.setValue(page.maximum())
        controller.chat.start()
        assert not finder.is_open
        assert finder.bar.field.text() == ""
        assert page.value() == 0
        controller.chat.select(controller.chats.listed()[0].id)
        assert views.transcript.viewport().height() == views.transcript.height()

    play(qapp, scene)


def test_a_raw_paste_makes_no_chip(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        composer = window.views.composer
        await ready(window)
        QGuiApplication.clipboard().setText("a word " * 9_000)
        await press(window, KEY.Key_V, CTRL | SHIFT)
        assert len(composer.text) == 63_000
        assert not composer.attachments

    play(qapp, scene)


def test_up_edits_only_where_nothing_is_written(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        composer = window.views.composer
        await ready(window)
        await press(window, KEY.Key_Up)
        assert not window.views.editing_bar.isVisible()  # nothing was asked yet
        ask(window, "write 3")
        await ready(window)
        composer.set_text("next")
        await press(window, KEY.Key_Up)
        assert composer.text == "next"
        composer.set_text("")
        composer.attach(Attachment("a.txt", "A"))
        await press(window, KEY.Key_Up)
        assert composer.text == ""
        composer.clear()
        await press(window, KEY.Key_Up)
        assert composer.text == "write 3"
        await press(window, KEY.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
        await ready(window)
        assert not window.views.editing_bar.isVisible()
        assert len(window.controller.chats.open.turns) == 1

    play(qapp, scene)


def test_panels_tint_and_document(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        views, actions = window.views, window.menu_actions
        await ready(window)
        await press(window, KEY.Key_T, CTRL)
        assert views.header.tint.value == "never"
        for key, held, panel, name in (
            (KEY.Key_I, CTRL | ALT, views.side, "inspector"),
            (KEY.Key_S, SIDEBAR, views.sidebar, "sidebar"),
        ):
            assert actions[name].text().startswith("Hide ")
            await press(window, key, held)
            assert panel.isHidden()
            assert actions[name].text().startswith("Show ")
            await press(window, key, held)
            assert panel.isVisible()
        assert not actions["next_passage"].isEnabled()
        text = "\n\n".join(f"Rule {n}: the pilot waits." for n in range(200))
        window.controller.asking.submit(Message("user", "skim write 4", (Attachment("rules.md", text),)))
        await ready(window)
        assert actions["next_passage"].isEnabled()
        await press(window, KEY.Key_D, CTRL | ALT)
        assert views.side.tab == "document"
        assert actions["document"].text() == "Hide Document"
        await press(window, KEY.Key_Down, CTRL | ALT)
        assert views.document.view.current_stretch == 0
        await press(window, KEY.Key_Up, CTRL | ALT)
        # What is looked through is what the person is at.
        assert views.document.isAncestorOf(QApplication.focusWidget())
        await press(window, KEY.Key_F, CTRL)
        assert views.document.finder.bar.field.hasFocus()
        assert not views.transcript.finder.is_open
        views.document.finder.bar.field.setText("rule 7")
        await press(window, KEY.Key_G, CTRL)
        assert views.document.finder.bar.count.text() == "2 of 11"
        await press(window, KEY.Key_Escape)
        await press(window, KEY.Key_D, CTRL | ALT)
        assert views.side.tab == "settings"
        assert actions["document"].text() == "Show Document"

    play(qapp, scene)


def test_a_side_window_comes_goes_and_comes_back(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        kind = "lab"
        assert window.windows.find(kind) is None
        await press(window, KEY.Key_L, CTRL | SHIFT)
        beside = window.windows.find(kind)
        assert beside is not None
        assert beside.isVisible()
        await until(lambda: QApplication.activeWindow() is beside)
        # ⌘W means the window in front, and the app's keys work there too.
        await press(beside, KEY.Key_W, CTRL)
        assert beside.isHidden()
        assert window.isVisible()
        await press(window, KEY.Key_L, CTRL | SHIFT)
        assert window.windows.find(kind) is beside
        assert beside.isVisible()
        window.activateWindow()
        await until(lambda: QApplication.activeWindow() is window)
        await press(window, KEY.Key_W, CTRL)
        assert window.isHidden()
        assert window.windows.find(kind) is None
        await window.closed()

    play(qapp, scene)


def test_quitting_from_a_side_window(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        await press(window, KEY.Key_T, CTRL | SHIFT)
        beside = window.windows.find("tables")
        assert beside is not None
        await press(beside, KEY.Key_Q, CTRL)
        assert window.isHidden()
        await window.closed()
        assert window.controller.link.phase is Phase.CLOSED

    play(qapp, scene)


def test_every_menu_can_be_reached(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        titles = [menu.text() for menu in window.menuBar().actions() if menu.isVisible()]
        assert titles == ["&File", "&Edit", "&View", "&Chat", "&Window", "&Help"]

    play(qapp, scene)
