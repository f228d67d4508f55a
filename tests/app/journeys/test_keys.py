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
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from app.theme.theme import theme
from core.events import Attachment, Message
from tests.app.hand import Hand
from tests.app.stage import (
    Stage,
    answer_view,
    answering,
    asked,
    choose_in_sheet,
    click,
    last,
    press,
    ready,
    sheet,
    until,
)

CTRL, SHIFT, ALT, META = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
    Qt.KeyboardModifier.MetaModifier,
)
SIDEBAR = CTRL | META if sys.platform == "darwin" else CTRL | ALT
KEY = Qt.Key
NONE = Qt.KeyboardModifier.NoModifier
RULES = Attachment("rules.md", "\n\n".join(f"Rule {n}: the pilot waits." for n in range(200)))


async def asked_about_rules(window: MainWindow) -> None:
    window.controller.asking.submit(Message("user", "skim write 4", (RULES,)))
    await ready(window)


def _control(window: MainWindow) -> QWidget:
    """A setting of the inspector, in a field that takes text."""
    window.columns.show_inspector(True)
    window.views.side.show_tab("settings")
    found = (each for each in window.views.inspector.findChildren(Spin) if each.isVisible())
    return next(found, window.race_page.done_button)  # which stands where the settings stood


WHERE: dict[str, Callable[[MainWindow], QWidget]] = {
    "composer": lambda window: window.views.composer.edit,
    "answer": lambda window: answer_view(window).body,
    "chats": lambda window: window.views.sidebar.list,
    "settings": _control,
}


@pytest.mark.sweep
async def test_finding_in_a_chat_and_in_its_document_panels_and_tint(window: MainWindow) -> None:
    views, controller = window.views, window.controller
    window.resize(980, 640)
    await asked(window, "write 5 about tides")
    first = controller.chats.open.id
    finder = views.transcript.finder
    await press(window, KEY.Key_F, CTRL)
    assert finder.bar.field.hasFocus()
    for letter in "w3":
        await press(window, KEY(ord(letter.upper())))
    await until(lambda: "of" in finder.bar.count.text())
    before = finder.bar.count.text()
    for held in (CTRL, CTRL | SHIFT):
        await press(window, KEY.Key_G, held)
    assert finder.bar.count.text() == before
    bar = finder.bar.geometry()
    assert not bar.intersects(views.transcript.viewport().geometry()), "it covers the first lines"
    views.first_page.verticalScrollBar().setValue(10_000)
    await press(window, KEY.Key_N, CTRL)
    assert controller.chats.open.id != first
    assert not finder.is_open
    assert finder.bar.field.text() == ""
    assert views.first_page.verticalScrollBar().value() == 0
    controller.chat.select(first)
    assert views.transcript.viewport().height() == views.transcript.height()

    window.controller.chat.start()
    actions = window.menu_actions
    window.resize(1900, 1000)
    window.columns.set_wants(sidebar=True, inspector=True)
    for expected in ("origins", "off", "drafts"):
        await press(window, KEY.Key_T, CTRL)
        assert views.header.token_colors.value == expected
        assert views.legend.is_wanted == (expected != "off")  # the first page has none
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
    await press(window, KEY.Key_R, CTRL)
    assert window.controller.link.phase is Phase.READY  # nothing to answer again
    assert not actions["next_passage"].isEnabled()
    await asked_about_rules(window)
    assert actions["next_passage"].isEnabled()
    views.composer.edit.setFocus()
    for key, stretch in ((KEY.Key_Down, 0), (KEY.Key_Down, 1), (KEY.Key_Down, 2), (KEY.Key_Up, 1)):
        await press(window, key, CTRL | ALT)
        assert views.document.view.current_stretch == stretch
    assert views.composer.edit.hasFocus()  # one can go on writing
    views.side.show_tab("settings")
    await press(window, KEY.Key_D, CTRL | ALT)
    assert views.side.tab == "document"
    assert window.columns.arrangement.inspector_px == 400
    assert actions["document"].text() == "Hide Document"
    # What is looked through is what the person is at.
    assert views.document.isAncestorOf(QApplication.focusWidget())
    await press(window, KEY.Key_F, CTRL)
    assert views.document.finder.bar.field.hasFocus()
    assert not views.transcript.finder.is_open
    bar = views.document.finder.bar
    bar.field.setText("rule 7")
    before = int(bar.count.text().removesuffix(" of 11"))
    await press(window, KEY.Key_G, CTRL)
    assert bar.count.text() == f"{before % 11 + 1} of 11"
    await press(window, KEY.Key_Escape)
    await press(window, KEY.Key_D, CTRL | ALT)
    assert views.side.tab == "settings"
    assert window.columns.arrangement.inspector_px == 304
    assert actions["document"].text() == "Show Document"
    assert views.composer.edit.hasFocus()


async def test_writing_pasting_attaching_sending_and_taking_up_what_was_sent(
    window: MainWindow, tmp_path: Path
) -> None:
    views, hand = window.views, Hand(window)
    await press(window, KEY.Key_Up)
    assert not views.editing_bar.isVisible()  # nothing was asked yet
    for letter in "HI":
        await press(window, KEY(ord(letter)))
    await press(window, KEY.Key_Return, SHIFT)
    await press(window, KEY.Key_3)
    assert hand.draft == "hi\n3"
    await press(window, KEY.Key_Return)
    assert hand.questions == ["hi\n3"]
    await ready(window)
    await press(window, KEY.Key_Up)
    assert (hand.draft, views.editing_bar.isVisible()) == ("hi\n3", True)
    await press(window, KEY.Key_Escape)  # takes that back; there is no answer to stop
    assert (hand.draft, views.editing_bar.isVisible()) == ("", False)
    old = window.controller.chats.open.turns[-1].id
    await press(window, KEY.Key_R, CTRL)
    await ready(window)
    assert window.controller.chats.open.turns[-1].id != old
    # Only where nothing is written.
    await hand.type("next")
    await press(window, KEY.Key_Up)
    assert hand.draft == "next"
    views.composer.set_text("")
    views.composer.attach(Attachment("a.txt", "A"))
    await press(window, KEY.Key_Up)
    assert hand.draft == ""
    views.composer.clear()
    await press(window, KEY.Key_Up)
    await hand.type("write 7")
    await press(window, KEY.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
    await ready(window)
    assert (hand.questions, len(last(window).tokens)) == (["write 7"], 7)
    assert (hand.draft, views.editing_bar.isVisible()) == ("", False)
    assert len(window.controller.chats.listed()) == 1

    window.controller.chat.start()
    composer = views.composer
    QGuiApplication.clipboard().setText("a word " * 2_000)
    await press(window, KEY.Key_V, CTRL)
    await until(lambda: len(composer.attachments) == 1)
    window.views.sidebar.search.setFocus()
    await press(window, KEY.Key_V, CTRL | SHIFT)
    assert len(composer.text) == 14_000
    assert composer.edit.hasFocus()
    assert len(composer.attachments) == 1
    # The Edit menu's keys mean the text that has the focus.
    await press(window, KEY.Key_A, CTRL)
    await press(window, KEY.Key_X, CTRL)
    assert composer.text == ""
    window.menu_actions["undo"].trigger()
    assert composer.text.startswith("a word a word")

    composer.clear()
    # The sheet belongs to its window and runs no event loop of its own: the answer is written meanwhile.
    notes = tmp_path / "notes.txt"
    notes.write_text("High water at noon.")
    await answering(window)
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


@pytest.mark.sweep
async def test_stopping_from_anywhere_after_escape_closed_one_thing_at_a_time(window: MainWindow) -> None:
    window.resize(1900, 1000)  # Escape closes a panel over the chat first
    for where, focused in WHERE.items():
        for key, held in ((KEY.Key_Escape, NONE), (KEY.Key_Period, CTRL)):
            await answering(window)
            if held:  # the command stops; Escape closes what is in front first
                window.views.transcript.finder.open()
            widget = focused(window)
            widget.setFocus()
            assert QApplication.focusWidget() is widget
            assert window.menu_actions["stop"].isEnabled()
            await press(window, key, held)
            await ready(window)
            assert last(window).status == "stopped", (where, key)
            window.views.transcript.finder.close()
            assert not window.menu_actions["stop"].isEnabled()

    window.controller.chat.start()
    views, controller = window.views, window.controller
    library = window.windows.show("library")
    library.search.setFocus()
    library.search.setText("tides")
    await press(library, KEY.Key_Escape)
    assert (library.search.text(), library.isVisible()) == ("", True)
    await press(library, KEY.Key_Escape)
    assert library.isHidden()
    await answering(window)
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


@pytest.mark.sweep
@pytest.mark.parametrize("where", WHERE)
async def test_the_windows_keys_work_from_anywhere(
    window: MainWindow, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    views, actions = window.views, window.menu_actions
    monkeypatch.setattr(theme, "set_zoom", lambda factor: None)  # test_zoom tests what the keys do
    await asked_about_rules(window)
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
        ("next_colors", KEY.Key_T, CTRL),
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
        WHERE[where](window).setFocus()
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


async def test_letters_are_the_messages_wherever_no_field_has_the_keyboard(window: MainWindow) -> None:
    """They were lost after a click on a chat, a source, the find bar's × and Cancel."""
    views, controller = window.views, window.controller
    for question in ("write 3", "write 4"):
        controller.chat.start()
        await asked(window, question)

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
    for what, widget in (
        ("in the transcript", views.transcript),
        ("on a button under an answer", answer_view(window).footer.buttons["copy"]),
        ("in the inspector", views.inspector),
    ):
        widget.setFocus()
        await typed(what)
    # A field keeps its letters, and what covers the message too.
    views.sidebar.search.setFocus()
    await press(window, KEY.Key_X)
    assert (views.sidebar.search.text(), views.composer.text) == ("x", "")
    views.sidebar.search.clear()
    controller.racing.show()
    await press(window, KEY.Key_X)
    assert views.composer.text == ""


async def click_row(window: MainWindow, number: int) -> None:
    chats = window.views.sidebar.list
    row = chats.row(window.controller.chats.listed()[number].id)
    rows = [chats.model().index(place, 0) for place in range(chats.model().rowCount())]
    place = next(chats.visualRect(index).center() for index in rows if index.data() == row.title)
    QTest.mouseClick(chats.viewport(), Qt.MouseButton.LeftButton, NONE, place)


async def test_a_side_window_comes_goes_and_comes_back_and_the_app_ends_from_it(stage: Stage) -> None:
    window = await stage.ready()
    assert window.windows.find("lab") is None
    for _ in range(2):
        await press(window, KEY.Key_L, CTRL | SHIFT)
        beside = window.windows.find("lab")
        assert beside.isVisible()
        await until(lambda beside=beside: QApplication.activeWindow() is beside)
        # ⌘W means the window in front, and the app's keys work there too.
        await press(beside, KEY.Key_W, CTRL)
        assert beside.isHidden()
        assert window.isVisible()
    window.activateWindow()
    await until(lambda: QApplication.activeWindow() is window)
    await press(window, KEY.Key_W, CTRL)
    assert window.isHidden()
    assert window.windows.find("lab") is None
    await window.closed()

    window = await stage.ready()
    await press(window, KEY.Key_T, CTRL | SHIFT)
    await press(window.windows.find("tables"), KEY.Key_Q, CTRL)
    assert window.isHidden()
    await window.closed()
    assert window.controller.link.phase is Phase.CLOSED
