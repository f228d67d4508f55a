"""Chats in the real window, kept on disk: closed and opened again, changed, found, deleted, damaged."""

from __future__ import annotations

import asyncio
import errno
import itertools
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QObject, QPoint, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QMessageBox

from app.chat.intents import Branch
from app.chat.user_message import UserMessage
from app.controllers import transfer as transfer_module
from app.controls import sheets
from app.controls.sheets import first_folder
from app.features.chats import DeletedWindow
from app.launch.scenario import ask
from app.panels.chat_delegate import dots_rect
from app.session.chats.conversation import Conversation
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from app.store.chat_files import from_json, pieces
from app.store.library import Library
from core.events import Attachment, Message
from core.settings import read
from tests.app.stage import choose_in_sheet, click, last, play, press, ready, sheet, shown, until
from tests.app.store.chats import chat_of

CTRL = Qt.KeyboardModifier.ControlModifier
NO_KEY = Qt.KeyboardModifier.NoModifier


def titles(window: MainWindow) -> list[str]:
    """What the sidebar's list shows, groups included."""
    rows = window.views.sidebar.list.model()
    return [str(rows.index(place, 0).data()) for place in range(rows.rowCount())]


def filled(folder: Path, *chats: Conversation) -> None:
    library = Library(folder)
    for chat in chats:
        library.save(chat)
    library.close()


async def asked(window: MainWindow, question: str) -> None:
    await ready(window)
    ask(window, question)
    await ready(window)


def test_everything_comes_back(qapp: QApplication, tmp_path: Path) -> None:
    kept: list[Conversation] = []
    question = "Please write 40 words"

    async def first(window: MainWindow) -> None:
        await asked(window, question)
        await asked(window, "And write 9 more")
        window.controller.chat.start()
        await asked(window, "Another: write 5")
        window.views.composer.set_text("not sent yet")
        window.views.composer.attach(Attachment("notes.txt", "some notes"))
        window.controller.chat.select(window.controller.chats.listed()[1].id)
        window.views.composer.set_text("a follow-up")
        window.views.header.tint.set_value("hover")
        window.resize(1300, 800)
        window.columns.show_inspector(False)
        kept.append(window.controller.chats.open)

    async def second(window: MainWindow) -> None:
        chat = window.controller.chats.open
        assert chat.turns == kept[0].turns
        assert chat.id == kept[0].id
        assert window.views.header.title == question
        assert shown(window) == last(window).text
        assert {token.origin for token in chat.turns[0].answer.tokens} == {"accepted", "bonus", "normal"}
        assert titles(window) == ["Today", "Another: write 5", question]
        assert window.views.composer.text == "a follow-up"
        assert (window.width(), window.height()) == (1300, 800)
        assert window.columns.arrangement.inspector_px == 0
        assert window.views.header.tint.value == "hover"
        window.controller.chat.select(window.controller.chats.listed()[0].id)
        assert window.views.composer.text == "not sent yet"
        assert [each.name for each in window.views.composer.attachments] == ["notes.txt"]
        await asked(window, "go on and write 3")
        assert len(window.controller.chats.open.turns) == 2
        assert window.controller.chats.open.draft.content == ""

    play(qapp, first, folder=tmp_path)
    play(qapp, second, folder=tmp_path)


def test_an_answer_is_on_disk_while_it_is_written(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 30)
        other = Library(tmp_path)
        assert other.elsewhere

        def saved() -> int:
            try:
                return len(other.load(window.controller.chats.open.id).turns[0].answer.tokens)
            except KeyError:  # not saved for the first time yet
                return 0

        await until(lambda: saved() > 20)
        other.close()

    play(qapp, scene, folder=tmp_path)


def test_a_draft_is_kept_without_leaving_its_chat(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        window.views.composer.set_text("half a thought")
        await until(lambda: window.controller.chats.open.draft.content == "half a thought")

    async def again(window: MainWindow) -> None:
        assert window.views.composer.text == "half a thought"
        assert window.controller.chats.listed() == ()

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


def test_searching_by_key_and_opening_what_is_found(qapp: QApplication, tmp_path: Path) -> None:
    filled(tmp_path, *(chat_of(number, 2, 30, f"About ferry {number}") for number in range(5)))
    filled(
        tmp_path,
        chat_of(
            9, 1, 8, f"How many lamps are there on the {'northern ' * 20}pier, and who are their keepers?"
        ),
    )

    async def scene(window: MainWindow) -> None:
        sidebar = window.views.sidebar
        await press(window, Qt.Key.Key_K, CTRL)
        assert sidebar.search.hasFocus()
        sidebar.search.setText("keepers")
        await until(lambda: "1 chat found" in titles(window))
        row = sidebar.list.row("c9")
        assert row
        assert [row.passage[begin:end] for begin, end in row.marks] == ["keepers"]
        await press(window, Qt.Key.Key_Return)
        assert window.controller.chats.open.id == "c9"
        assert "1 chat found" in titles(window)
        sidebar.search.setText("nowhere to be seen")
        await until(lambda: sidebar.list.isHidden())
        sidebar.search.setFocus()
        await press(window, Qt.Key.Key_Escape)
        assert sidebar.search.text() == ""
        assert len(titles(window)) == 7

    play(qapp, scene, folder=tmp_path)


def test_a_found_passage_is_gone_to(qapp: QApplication, tmp_path: Path) -> None:
    chat = chat_of(1, 30, 200)
    turn = replace(chat.turns[9], user=Message("user", "Where do the herons nest?"))
    filled(tmp_path, replace(chat, turns=(*chat.turns[:9], turn, *chat.turns[10:])))

    async def scene(window: MainWindow) -> None:
        transcript = window.views.transcript
        window.views.sidebar.search.setText("herons")
        await press(window, Qt.Key.Key_K, CTRL)
        await press(window, Qt.Key.Key_Return)
        assert window.controller.chats.open.id == "c1"
        assert not transcript.is_following
        seen = [
            message.body.accessibleDescription()
            for message in transcript.findChildren(UserMessage)
            if not message.visibleRegion().isEmpty()
        ]
        assert seen[0] == "Where do the herons nest?"

    play(qapp, scene, folder=tmp_path)


def test_renaming_in_place(qapp: QApplication, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1), chat_of(2))

    async def scene(window: MainWindow) -> None:
        window.controller.chat.select("c1")
        window.views.sidebar.list.setFocus()
        await press(window, Qt.Key.Key_F2)
        editor = window.views.sidebar.list.findChild(QLineEdit)
        assert isinstance(editor, QLineEdit)
        assert editor.text() == "Question 0 of chat 1"
        editor.setText("  Harbour   rules ")
        await press_in(editor, Qt.Key.Key_Return)
        assert window.views.header.title == "Harbour rules"
        assert "Harbour rules" in titles(window)
        window.controller.chat.listing.rename("c1", "")
        assert window.views.header.title == "Question 0 of chat 1"
        window.controller.chat.listing.rename("c2", "Second")

    async def again(window: MainWindow) -> None:
        assert "Second" in titles(window)

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


async def press_in(widget: QLineEdit, key: Qt.Key) -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(lambda: (QTest.keyClick(widget, key), done.set_result(None)))
    await done


def test_pinned_chats_stand_first(qapp: QApplication, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1), chat_of(2))

    async def scene(window: MainWindow) -> None:
        menu = window.views.sidebar.menu_for("c1")
        next(action for action in menu.actions() if action.text() == "Pin to Top").trigger()
        assert titles(window)[:2] == ["Pinned", "Question 0 of chat 1"]
        menu.deleteLater()

    async def again(window: MainWindow) -> None:
        assert titles(window)[0] == "Pinned"
        window.controller.chat.listing.pin("c1", False)
        assert "Pinned" not in titles(window)

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


def test_deleting_and_taking_it_back(qapp: QApplication, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1), chat_of(2))

    async def scene(window: MainWindow) -> None:
        bar = window.views.sidebar.undo_bar
        window.controller.chat.select("c2")
        window.views.sidebar.list.setFocus()
        await press(window, Qt.Key.Key_Delete)
        assert bar.isVisible()
        assert bar.text == "“Question 0 of chat 2” deleted"
        assert window.controller.chats.open.id == "c1"
        assert len(titles(window)) == 2
        await click(bar.undo_button)
        assert bar.isHidden()
        assert window.controller.chats.open.id == "c2"
        assert len(titles(window)) == 3
        window.controller.chat.listing.delete("c1")

    async def after_a_restart(window: MainWindow) -> None:
        bar = window.views.sidebar.undo_bar
        assert bar.isHidden()
        window.menu_actions["undo_delete"].trigger()
        assert window.controller.chats.get("c1").turns == chat_of(1).turns
        assert window.controller.chats.open.id == "c1"
        bar.set_time_ms(50)
        window.controller.chat.listing.delete("c1")
        await until(lambda: bar.isHidden())
        # The bar is gone, the chat is not.
        window.menu_actions["deleted"].trigger()
        deleted = window.windows.find("deleted")
        assert isinstance(deleted, DeletedWindow)
        assert [(row.title, row.when) for row in deleted.list.rows] == [("Question 0 of chat 1", "30 days")]
        await click(deleted.restore_button)
        assert deleted.list.rows == ()
        assert window.controller.chats.open.id == "c1"
        window.controller.chat.listing.delete("c1")
        await click(deleted.erase_button)
        assert deleted.list.rows == ()

    async def gone(window: MainWindow) -> None:
        assert window.views.sidebar.undo_bar.isHidden()
        with pytest.raises(KeyError):
            window.controller.chats.get("c1")
        window.controller.chat.listing.delete("c2")
        assert window.controller.chats.open.turns == ()
        assert window.views.pages.currentWidget() is window.views.first_page

    play(qapp, scene, folder=tmp_path)
    play(qapp, after_a_restart, folder=tmp_path)
    play(qapp, gone, folder=tmp_path)


def test_deleting_the_chat_that_is_being_answered_stops_it(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 5)
        chat_id = window.controller.chats.open.id
        window.views.sidebar.undo_bar.set_time_ms(20)
        window.controller.chat.listing.delete(chat_id)
        await ready(window)
        await until(lambda: window.views.sidebar.undo_bar.isHidden())
        window.controller.chat.listing.undo()
        assert window.controller.chats.open.id == chat_id
        assert last(window).status == "stopped"

    play(qapp, scene, folder=tmp_path)


def test_the_chat_that_is_being_answered_is_marked(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 3)
        chat_id = window.controller.chats.open.id
        window.controller.chat.start()
        row = window.views.sidebar.list.row(chat_id)
        assert row
        assert row.busy
        window.controller.chat.select(chat_id)
        window.controller.asking.stop()
        await ready(window)
        row = window.views.sidebar.list.row(chat_id)
        assert row
        assert not row.busy

    play(qapp, scene)


def test_deleted_chats_go_for_good_after_thirty_days(qapp: QApplication, tmp_path: Path) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=30, minutes=1)
    filled(tmp_path, chat_of(1).with_deleted(long_ago), chat_of(2).with_deleted(datetime.now(UTC)))

    async def scene(window: MainWindow) -> None:
        assert [each.id for each in window.controller.chats.deleted()] == ["c2"]
        with pytest.raises(KeyError):
            window.controller.chats.get("c1")

    play(qapp, scene, folder=tmp_path)


def test_the_dots_of_a_row_open_its_menu_and_not_the_chat(qapp: QApplication, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1), chat_of(2))

    async def scene(window: MainWindow) -> None:
        view = window.views.sidebar.list
        heard: list[str] = []
        view.menu_requested.disconnect()
        view.menu_requested.connect(lambda chat_id, where: heard.append(chat_id))
        before = window.controller.chats.open.id
        spot = dots_rect(view.visualRect(view.model().index(2, 0))).center()
        await click_at(view.viewport(), spot)
        assert heard == ["c1"]
        assert window.controller.chats.open.id == before

    play(qapp, scene, folder=tmp_path)


async def click_at(widget: object, spot: QPoint) -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    left = Qt.MouseButton.LeftButton
    loop.call_soon(lambda: (QTest.mouseClick(widget, left, NO_KEY, spot), done.set_result(None)))  # type: ignore[call-overload]
    await done


def test_editing_the_last_message_by_key(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        views = window.views
        await asked(window, "write 3 for a start")
        await asked(window, "write 5")
        views.composer.edit.setFocus()
        await press(window, Qt.Key.Key_Up)
        assert views.composer.text == "write 5"
        assert views.editing_bar.isVisible()
        await press(window, Qt.Key.Key_Escape)
        assert views.composer.text == ""
        assert views.editing_bar.isHidden()
        await press(window, Qt.Key.Key_Up)
        views.composer.set_text("write 7")
        await press(window, Qt.Key.Key_Return)
        await ready(window)
        turns = window.controller.chats.open.turns
        assert [turn.user.content for turn in turns] == ["write 3 for a start", "write 7"]
        assert len(turns[-1].answer.tokens) == 7
        assert views.composer.text == ""
        assert views.editing_bar.isHidden()
        assert len(window.controller.chats.listed()) == 1

    play(qapp, scene, folder=tmp_path)


def test_editing_an_earlier_message_goes_on_in_a_new_chat(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        views = window.views
        await asked(window, "write 3")
        await asked(window, "write 4")
        first = window.controller.chats.open
        views.composer.set_text("a draft that waits")
        message = views.transcript.findChildren(UserMessage)[0]
        await click(message.edit_button)
        assert views.composer.text == "write 3"
        assert "new chat" in views.editing_bar.text
        views.composer.set_text("write 6")
        await press(window, Qt.Key.Key_Return)
        await ready(window)
        assert window.controller.chats.open.id != first.id
        assert [turn.user.content for turn in window.controller.chats.open.turns] == ["write 6"]
        assert window.controller.chats.get(first.id).turns == first.turns
        assert window.controller.chats.get(first.id).draft.content == "a draft that waits"
        assert [each.title for each in window.controller.chats.listed()] == ["write 3 (2)", "write 3"]

    play(qapp, scene, folder=tmp_path)


def test_an_edited_message_that_is_refused_is_back_in_the_composer(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await asked(window, "write 3")
        window.controller.asking.edit()
        window.views.composer.set_text("refuse this one")
        await press(window, Qt.Key.Key_Return)
        await ready(window)
        assert [turn.user.content for turn in window.controller.chats.open.turns] == ["write 3"]
        assert len(last(window).tokens) == 4
        assert window.views.composer.text == "refuse this one"

    play(qapp, scene)


def test_leaving_a_chat_ends_editing_and_keeps_the_draft(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await asked(window, "write 3")
        first = window.controller.chats.open.id
        window.views.composer.set_text("mine")
        window.controller.asking.edit()
        window.controller.chat.start()
        assert window.views.editing_bar.isHidden()
        assert window.views.composer.text == ""
        window.controller.chat.select(first)
        assert window.views.composer.text == "mine"

    play(qapp, scene)


def test_branching_from_an_answer(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await asked(window, "write 3")
        await asked(window, "write 4")
        first = window.controller.chats.open
        window.views.inspector.field("sampling.temperature").edited.emit("sampling.temperature", 1.5)
        window.views.transcript.intent.emit(Branch(first.turns[0].id))
        branch = window.controller.chats.open
        assert branch.id != first.id
        assert branch.turns == first.turns[:1]
        assert branch.title == "write 3 (2)"
        assert read(window.views.inspector.settings, "sampling.temperature") == 1.5
        await asked(window, "write 5")
        assert last(window).text.startswith("ECHO 3:")
        assert window.controller.chats.get(first.id).turns == first.turns

    play(qapp, scene, folder=tmp_path)


def test_a_chat_holds_its_own_settings(qapp: QApplication, tmp_path: Path) -> None:
    key = "sampling.temperature"

    async def scene(window: MainWindow) -> None:
        inspector = window.views.inspector
        await asked(window, "write 3")
        own = window.controller.chats.open.id
        inspector.field(key).edited.emit(key, 1.5)
        assert inspector.section("basics").is_own
        assert not inspector.section("drafting").is_own
        window.controller.chat.start()
        assert read(inspector.settings, key) == 0.0
        assert not inspector.section("basics").is_own
        await asked(window, "write 2")
        window.controller.chat.select(own)
        assert read(inspector.settings, key) == 1.5

    async def again(window: MainWindow) -> None:
        inspector = window.views.inspector
        assert read(inspector.settings, key) == 1.5
        section = inspector.open_section("basics")
        foot = inspector.own_settings("basics")
        assert foot.isVisible()
        await click(foot.default_button)
        assert foot.isHidden()
        assert not section.is_own
        window.controller.chat.start()
        assert read(inspector.settings, key) == 1.5
        inspector.field(key).edited.emit(key, 0.5)
        assert section.is_own
        await click(foot.reset_button)
        assert read(inspector.settings, key) == 1.5
        assert window.controller.chats.open.overrides == ()

    async def at_last(window: MainWindow) -> None:
        assert read(window.views.inspector.settings, key) == 1.5
        assert not window.views.inspector.section("basics").is_own

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)
    play(qapp, at_last, folder=tmp_path)


def test_a_second_window_says_that_it_saves_nothing(qapp: QApplication, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1))
    other = Library(tmp_path)

    async def scene(window: MainWindow) -> None:
        assert window.views.banner.trouble
        assert "another Draftlight" in window.views.banner.trouble.title
        assert len(titles(window)) == 2
        await ready(window)
        assert window.views.banner.trouble  # a model that is ready changes nothing of it
        await asked(window, "write 3")
        assert len(window.controller.chats.listed()) == 2
        assert window.views.banner.trouble

    play(qapp, scene, folder=tmp_path)
    other.close()
    library = Library(tmp_path)
    assert len(library.summaries()) == 1
    library.close()


def test_a_death_does_not_hide_that_nothing_is_saved(qapp: QApplication, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1))
    other = Library(tmp_path)

    async def scene(window: MainWindow) -> None:
        banner = window.views.banner
        await ready(window)
        unsaved = banner.trouble
        assert unsaved
        ask(window, "die 5")
        await until(lambda: window.controller.link.phase is Phase.DEAD)
        assert banner.trouble
        assert banner.trouble.remedy == "restart"
        assert banner.count_label.text() == "1 of 2"
        await click(banner.next_button)
        assert banner.trouble == unsaved
        assert banner.count_label.text() == "2 of 2"
        await click(banner.next_button)
        await click(banner.remedy_button)
        await ready(window)
        assert banner.trouble == unsaved  # the worker is back, and still nothing is saved
        assert banner.count_label.isHidden()
        await click(banner.close_button)
        assert banner.isHidden()

    play(qapp, scene, folder=tmp_path)
    other.close()


def test_out_into_files_and_in_again(qapp: QApplication, tmp_path: Path) -> None:
    home, files = tmp_path / "home", tmp_path / "files"
    files.mkdir()
    chats = [chat_of(number, 2, 12) for number in range(3)]
    filled(home, *chats)

    async def save_proposed(window: MainWindow) -> None:
        dialog = await sheet(window)
        assert isinstance(dialog, QFileDialog)
        assert dialog.directory().path() == first_folder()  # not where the app happens to run
        await choose_in_sheet(window, files / Path(dialog.selectedFiles()[0]).name)

    async def out(window: MainWindow) -> None:
        transfer = window.controller.chat.transfer
        for chat_id, kind in (("c1", "json"), ("c1", "markdown"), ("", "json")):
            transfer.export(chat_id, kind)
            await save_proposed(window)
        transfer.export("", "markdown")  # none of those under way is dropped for it
        await choose_in_sheet(window, files)
        await until(lambda: not transfer.is_busy)
        names = sorted(path.name for path in files.iterdir())
        assert names == [
            "Draftlight chats.json",
            "Question 0 of chat 0.md",
            "Question 0 of chat 1 (2).md",
            "Question 0 of chat 1.json",
            "Question 0 of chat 1.md",
            "Question 0 of chat 2.md",
        ]

    async def back(window: MainWindow) -> None:
        (files / "holiday.json").write_text('{"photos": []}')
        chosen = [files / "holiday.json", files / "Draftlight chats.json", files / "Question 0 of chat 1.md"]
        window.controller.chat.importing.choose()
        await choose_in_sheet(window, *chosen)
        await until(lambda: not window.controller.chat.importing.is_busy)
        assert {each.id for each in window.controller.chats.listed()} >= {"c0", "c1", "c2"}
        assert [window.controller.chats.get(chat.id) for chat in chats] == chats
        assert len(window.controller.chats.listed()) == 4
        assert window.controller.chats.open.id == "c2"
        assert window.views.banner.trouble
        assert "holiday.json" in window.views.banner.trouble.title
        words = next(each for each in window.controller.chats.listed() if each.id not in ("c0", "c1", "c2"))
        window.controller.chat.select(words.id)
        assert last(window).text == chats[1].turns[-1].answer.text.strip("\n")

    play(qapp, out, folder=home)
    play(qapp, back, folder=tmp_path / "elsewhere")


def test_the_context_of_an_imported_chat_is_counted(qapp: QApplication, tmp_path: Path) -> None:
    """It stood at the words of the next question alone."""
    file = tmp_path / "old.md"
    file.write_text("# Old\n\n## You\n\n" + "word " * 300 + "\n\n## Answer\n\n" + "answer " * 200)

    async def scene(window: MainWindow) -> None:
        await ready(window)
        pill = window.views.composer.pill
        window.controller.chat.importing.import_from([file])
        await until(lambda: pill.used_tokens == 500, what=f"{pill.used_tokens} of 500")
        window.views.composer.set_text("and now?")
        await until(lambda: pill.used_tokens == 502)
        window.controller.chat.start()
        window.views.composer.set_text("")
        await until(lambda: pill.used_tokens == 0)

    play(qapp, scene)


def test_a_chat_becomes_a_page_or_a_pdf_with_what_is_checked(qapp: QApplication, tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(home, *(chat_of(number, 2, 5) for number in range(2)))

    async def scene(window: MainWindow) -> None:
        transfer = window.controller.chat.transfer
        for kind, checked in (("html", (False, False)), ("pdf", (False, True))):
            transfer.export("c1", kind)
            options = await sheet(window, sheets.OptionsSheet)
            assert isinstance(options, sheets.OptionsSheet)
            assert tuple(box.isChecked() for box in options.boxes) == checked
            options.boxes[1].setChecked(True)
            await click(options.accept_button)
            await choose_in_sheet(window, tmp_path / f"chat.{kind}")
            await until(lambda: not transfer.is_busy)
        transfer.export("c1", "pdf")
        options = await sheet(window, sheets.OptionsSheet)
        options.reject()
        assert not transfer.is_busy
        for kind in ("html", "pdf"):
            transfer.export("", kind)
            options = await sheet(window, sheets.OptionsSheet)
            assert isinstance(options, sheets.OptionsSheet)
            await click(options.accept_button)
            await choose_in_sheet(window, every)
            await until(lambda: not transfer.is_busy)
        assert window.views.notice_bar.text == "Exported 2 chats into the folder “every”"

    every = tmp_path / "every"
    every.mkdir()
    play(qapp, scene, folder=home)
    pages = sorted(every.glob("*.html"))
    assert len(pages) == len(sorted(every.glob("*.pdf"))) == 2
    assert [f"Question 1 of chat {n}" in page.read_text() for n, page in enumerate(pages)] == [True, True]
    page, pdf = (tmp_path / "chat.html").read_text(), (tmp_path / "chat.pdf").read_bytes()
    assert "Question 0 of chat 1" in page
    assert "Question 1 of chat 1" in page
    assert "of chat 0" not in page
    assert pdf.startswith(b"%PDF-")


def test_an_export_that_fails_leaves_the_old_file(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: the second chat cannot be written any more."""
    home, old = tmp_path / "home", tmp_path / "files" / "All.json"
    old.parent.mkdir()
    old.write_text("the export of last week")
    filled(home, *(chat_of(number, 1, 5) for number in range(3)))
    threads: list[bool] = []

    def cut_off(chats: Iterable[Conversation]) -> Iterator[bytes]:
        for piece in itertools.islice(pieces(chats), 4):
            threads.append(threading.current_thread() is threading.main_thread())
            yield piece
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(transfer_module, "pieces", cut_off)

    async def scene(window: MainWindow) -> None:
        transfer, banner = window.controller.chat.transfer, window.views.banner
        transfer.export("", "json")
        await choose_in_sheet(window, old)
        question = await sheet(window, QMessageBox)
        assert isinstance(question, QMessageBox)
        assert question.text() == "“All.json” already exists. Do you want to replace it?"
        await click(question.button(QMessageBox.StandardButton.Cancel))
        await choose_in_sheet(window, old)
        await confirm_replacing(window)
        await until(lambda: not transfer.is_busy)
        assert banner.trouble
        assert f"{old} could not be written: No space left" in banner.trouble.title
        assert old.read_text() == "the export of last week"
        assert list(old.parent.iterdir()) == [old]
        assert threads == [False] * 4  # nor did the window stand still
        # Closing gives up what is not written; the old file stays.
        monkeypatch.setattr(transfer_module, "pieces", pieces)
        transfer.export("", "json")
        await choose_in_sheet(window, old)
        await confirm_replacing(window)

    play(qapp, scene, folder=home)
    assert old.read_text() == "the export of last week"
    assert list(old.parent.iterdir()) == [old]


def test_an_export_of_many_chats_holds_few(qapp: QApplication, tmp_path: Path) -> None:
    home, new = tmp_path / "home", tmp_path / "All.json"
    filled(home, *(chat_of(number, 1, 5) for number in range(20)))

    async def scene(window: MainWindow) -> None:
        window.controller.chat.transfer.export("", "json")
        await choose_in_sheet(window, new)
        await until(lambda: not window.controller.chat.transfer.is_busy)
        assert len(window.controller.chats._held) <= 5

    play(qapp, scene, folder=home)
    assert len(from_json(new.read_bytes())) == 20


async def confirm_replacing(window: MainWindow) -> None:
    """Confirm that the file may be replaced."""
    question = await sheet(window, QMessageBox)
    assert isinstance(question, QMessageBox)
    button = next(each for each in question.buttons() if each.text() == sheets.REPLACE)
    await click(button)


class _Opened(QObject):
    """Hears which folders the system is asked to open."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []

    @Slot(QUrl)
    def take(self, url: QUrl) -> None:
        self.paths.append(url.toLocalFile())


def test_an_export_says_what_it_wrote_and_where(qapp: QApplication, tmp_path: Path) -> None:
    home, files = tmp_path / "home", tmp_path / "files"
    files.mkdir()
    filled(home, *(chat_of(number, 1, 5) for number in range(2)))
    opened = _Opened()
    QDesktopServices.setUrlHandler("file", opened, "take")

    async def scene(window: MainWindow) -> None:
        notice, banner, transfer = (
            window.views.notice_bar,
            window.views.banner,
            window.controller.chat.transfer,
        )
        transfer.export("c1", "markdown")
        await choose_in_sheet(window, files / "Tides.md")
        await until(lambda: not transfer.is_busy)
        assert notice.isVisible()
        assert notice.text == "Exported 1 chat as “Tides.md”"
        await click(notice.action_button)
        assert opened.paths == [str(files)]
        await click(notice.close_button)
        assert notice.isHidden()
        transfer.export("", "markdown")
        await choose_in_sheet(window, files)
        await until(lambda: not transfer.is_busy)
        assert notice.text == "Exported 2 chats into the folder “files”"
        notice.set_time_ms(400)
        transfer.export("", "json")
        await choose_in_sheet(window, files / "All.json")
        await until(lambda: notice.text == "Exported 2 chats as “All.json”")
        await until(lambda: notice.isHidden())
        # What could not be written is told, and nothing else.
        transfer.export("c1", "json")
        await choose_in_sheet(window, files / "gone" / "Tides.md")
        await until(lambda: not transfer.is_busy)
        assert notice.isHidden()
        assert banner.trouble
        assert "Tides.md could not be written: No such file" in banner.trouble.title
        banner.dismissed.emit()
        # Nor can a folder be shown that is not there any more.
        notice.set_time_ms(20_000)
        transfer.export("c1", "markdown")
        await choose_in_sheet(window, files / "Tides.md")
        await confirm_replacing(window)
        await until(lambda: not transfer.is_busy)
        shutil.rmtree(files)
        await click(notice.action_button)
        assert banner.trouble
        assert "could not be opened" in banner.trouble.title

    try:
        play(qapp, scene, folder=home)
    finally:
        QDesktopServices.unsetUrlHandler("file")


def _questions(folder: Path) -> list[str]:
    """What is asked in all chats, as another process reads the file."""
    library = Library(folder)
    found = [turn.user.content for each in library.summaries() for turn in library.load(each.id).turns]
    library.close()
    return found


def test_a_question_is_on_the_disk_before_its_answer_starts(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 1 first")
        await until(lambda: bool(last(window).tokens))
        assert _questions(tmp_path) == ["write 1 first"]
        await ready(window)
        other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")  # nothing can be written meanwhile
        ask(window, "write 1 second")
        await asyncio.sleep(0.4)
        assert not last(window).tokens
        other.execute("ROLLBACK")
        other.close()
        await until(lambda: bool(last(window).tokens))
        assert _questions(tmp_path) == ["write 1 first", "write 1 second"]

    play(qapp, scene, folder=tmp_path)


def test_an_answer_does_not_wait_for_a_disk_that_hangs(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await asked(window, "write 1 first")
        assert window.controller.home.library
        assert window.controller.home.library.flush()
        other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        ask(window, "write 1 second")
        await until(lambda: bool(last(window).tokens))
        trouble = window.views.banner.trouble
        assert trouble
        assert trouble.title == "The chats cannot be saved."
        other.execute("ROLLBACK")
        other.close()
        await until(lambda: window.views.banner.isHidden())
        assert _questions(tmp_path) == ["write 1 first", "write 1 second"]

    play(qapp, scene, folder=tmp_path)
